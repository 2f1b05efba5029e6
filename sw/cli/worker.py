"""The worker of a sweep: runs one point after the other; each outcome is plain data."""

import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sw import plugins

if TYPE_CHECKING:
    from .evaluate import Bench
    from .points import Point

__all__ = ["work"]

_lock = threading.Lock()
_bench: "tuple[Any, Bench] | None" = None


def work(point: dict[str, Any]) -> dict[str, Any]:
    """Runs a point, given as its fields: ``{"record": ...}``, or ``{"error": one line}`` for whatever went wrong.

    ``notes`` are for the user; the process that sent the point prints them.
    """
    from sw import notes

    from .compiling import one_compiler_at_a_time
    from .reasons import reason

    said: list[tuple[str, str]] = []
    notes.listen(lambda about, text: said.append((about, text)))
    try:
        one_compiler_at_a_time()
        from .points import Point

        return {"record": _record(Point(**point)), "notes": said}
    except Exception as error:  # noqa: BLE001 - one point's failure is told and leaves the others alone
        return {"error": reason(error), "notes": said}


def _record(point: "Point") -> dict[str, Any]:
    from gen.design import Design
    from sw.operands import UserError
    from sw.operands.identity import fingerprint

    from .evaluate import Bench, evaluate, parse_tilings
    from .memory_formats import MemoryFormats
    from .pipeline import require_tier
    from .points import code_version

    plugins.use(point.plugins)
    if code_version(point.engine) != point.version:
        raise UserError("this worker's fiberloom is another version than the one that hands out the points")
    design = Design.model_validate(point.design)
    require_tier(point.engine, design)
    global _bench
    with _lock:
        if _bench is None or _bench[0] != point.pair:
            _bench = None  # before the next one is loaded
            now = tuple(fingerprint(spec) for spec in (point.a, point.b) if spec is not None)
            if now != point.digests:
                raise UserError(f"{point.a}{f', {point.b}' if point.b else ''}: not what it was when the sweep began")
            loaded = Bench(
                point.a,
                point.b,
                transpose_a=point.transpose_a,
                transpose_b=point.transpose_b,
                as_stored=point.as_stored,
            )
            _bench = point.pair, loaded
        bench = _bench[1]
    (tiling,) = parse_tilings([point.tiling], budget=point.budget)
    done = evaluate(
        bench, design, tiling, point.engine, formats=MemoryFormats.parse(*point.formats), seed=point.seed,
        command=_command(point), most_tiles=point.most_tiles,
    )  # fmt: skip
    return done.record


def _command(point: "Point") -> str:
    """The command that repeats this one point."""
    from sw.names import shell_line

    from .evaluate import parse_tilings
    from .pipeline import NORMAL

    content = asdict(point)
    words = ["fiberloom", "run", point.a, *([point.b] if point.b else []), "--config", point.config]
    words += point.words
    words += [word for path, _ in point.plugins for word in ("--plugin", path)]
    words += ["--engine", point.engine, "--tiling", point.tiling.partition("+")[0], "--seed", str(point.seed)]
    words += ["--tuning"] if "+tuning" in point.tiling else []
    (tiling,) = parse_tilings([point.tiling], budget=point.budget)
    words += ["--row-order", tiling.row_order] if tiling.row_order is not None else []
    words += ["--effort", tiling.effort] if tiling.effort != NORMAL else []
    words += [f"--{flag.replace('_', '-')}" for flag in ("transpose_a", "transpose_b", "as_stored") if content[flag]]
    return shell_line(words)
