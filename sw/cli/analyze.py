"""``fiberloom analyze``: the analytical model of an architecture, a workload, its SAFs and a mapping."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .printed import Outcome, printed
from .reasons import Interrupted

if TYPE_CHECKING:
    from sw.analytic.analysis import Analysis
    from sw.analytic.mapspace import MapSpace
    from sw.analytic.search import Search
    from sw.analytic.spec.load import Spec
    from sw.analytic.spec.read_mapper import Settings

    from .console import Console

__all__ = ["command"]


def analyze(
    console: "Console",
    specs: Annotated[
        list[Path],
        typer.Argument(
            metavar="SPEC.yaml...", help="Files of one specification, or a shipped name.", show_default=False
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a value, as in problem.instance.K=64; repeatable."),
    ] = None,
    subjects: Annotated[
        list[str] | None,
        typer.Option("--explain", metavar="LEVEL.TENSOR", help="Print how the numbers came about; repeatable."),
    ] = None,
    loads: Annotated[
        list[Path] | None,
        typer.Option(
            "--load", metavar="FILE.py", help="Run a file with densities and formats of your own; repeatable."
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE.yaml", help="Take the mapping of this file, not the specification's."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--map", help="Search for the best mapping; the specification needs none.")
    ] = False,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective", metavar="NAME[,NAME]", help="With --map: delay, energy or edp; others decide between equals."
        ),
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option("--evaluations", min=1, help="With --map: most mappings.", show_default="10000")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.0, help="With --map: most seconds.", show_default="none")
    ] = None,
    victory: Annotated[
        int | None,
        typer.Option(
            "--victory",
            min=1,
            help="With --map: end after so many valid mappings that are no better.",
            show_default="never",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="With --map: of random choices.", show_default="0")] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="With --map: processes; the result is the same.", show_default="all cores"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.yaml", help="With --map: write the best mapping here.")
    ] = None,
) -> Outcome:
    """Analyse an accelerator: cycles, energy, and every actual, gated and skipped access, from a specification alone.

    The files are those of Timeloop and Sparseloop, dialect v0.3 or v0.4, with the sections architecture, problem, mapping, and
    where there are any sparse_optimizations, ERT and ART. Exit code 2 for a bad specification, and for a mapping that does not
    fit; with --json the latter prints {"valid": false, "reason": ...} as well. --map searches under the sections mapper and
    constraints; Ctrl-C ends it and keeps the best.
    """
    # Nothing that loads SciPy or Numba: an analysis takes milliseconds, they take a second.
    from sw.analytic.analysis import InvalidMapping
    from sw.analytic.analysis import analyze as analyzed
    from sw.analytic.explain import explain
    from sw.analytic.result import invalid_record, record
    from sw.analytic.spec.extensions import load_extensions
    from sw.analytic.spec.load import load_search, load_spec

    limits = {
        "objective": objective,
        "evaluations": evaluations,
        "seconds": seconds,
        "victory": victory,
        "seed": seed,
    }
    _check_options(limits | {"jobs": jobs, "out": out}, mapping, search=search)
    extensions = load_extensions(loads or ())
    found: Search | None = None
    try:
        if search:
            spec, space, settings = load_search(specs, changes or (), extensions)
            found = _search(spec, space, _limited(settings, limits), jobs, quiet=console.quiet or console.as_json)
            assert found.best is not None
            analysis = found.best
            spec = analysis.spec
        else:
            spec = load_spec(specs, changes or (), extensions, mapping)
            analysis = analyzed(spec)
    except InvalidMapping as error:
        console.document(invalid_record(str(error)))
        raise
    if not console.as_json:
        for note in spec.notes:
            console.warn(note)
    if out is not None:
        _write(out, analysis)
    explanations = [explain(analysis, subject) for subject in subjects or ()]
    document = record(analysis)
    if found is not None:
        document["search"] = _search_record(found)
    if explanations:
        document["explanations"] = {lines[0]: lines[1:] for lines in explanations}
    console.document(document)
    if not explanations:
        lines = [] if found is None else [_outcome(found), *_nest(analysis), ""]
        console.print("\n".join([*lines, *_summary(analysis)]))
    elif not console.as_json:
        print("\n\n".join("\n".join(lines) for lines in explanations), flush=True)
    if found is not None and found.stopped == "interrupt":
        raise Interrupted(f"the best of {found.evaluations:,} mappings is kept")
    return Outcome()


command = printed(analyze)


def _check_options(options: dict[str, Any], mapping: Path | None, *, search: bool) -> None:
    from sw.analytic.errors import SpecError

    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None and not search:
        raise SpecError(f"--{given}: needs --map")
    if search and mapping is not None:
        raise SpecError(f"--mapping {mapping}: must not stand with --map, which finds a mapping")
    if options["out"] is not None:
        from .output import check_folder

        check_folder(options["out"].parent)


def _limited(settings: "Settings", limits: dict[str, Any]) -> "Settings":
    """Options stand above the section ``mapper``."""
    from dataclasses import replace

    from sw.analytic.errors import SpecError
    from sw.analytic.spec.read_mapper import OBJECTIVES

    given = {name: value for name, value in limits.items() if value is not None and name != "objective"}
    if limits["objective"] is not None:
        given["objectives"] = tuple(limits["objective"].lower().split(","))
        wrong = next((name for name in given["objectives"] if name not in OBJECTIVES), None)
        if wrong is not None:
            raise SpecError(f"--objective {limits['objective']}: {wrong!r}: must be of {', '.join(OBJECTIVES)}")
    return replace(settings, **given)


def _search(spec: "Spec", space: "MapSpace", settings: "Settings", jobs: int | None, *, quiet: bool) -> "Search":
    """With a line of progress that has the best so far, renewed some times a second; where standard error is no terminal, some
    lines in all."""
    from sw.analytic.processes import cores
    from sw.analytic.search import search

    lively = sys.stderr.isatty()
    pause, shown = (0.2, 0.0) if lively else (10.0, time.monotonic())

    def report(found: "Search") -> None:
        nonlocal shown
        if quiet or time.monotonic() - shown < pause:
            return
        shown = time.monotonic()
        print(
            f"\r\033[K{_progress(found)}" if lively else _progress(found),
            end="" if lively else "\n",
            file=sys.stderr,
            flush=True,
        )

    try:
        return search(spec, space, settings, report, jobs or cores())
    finally:
        if lively and shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _progress(found: "Search") -> str:
    of = "" if found.size is None else f" of {found.size:,}"
    return f"fiberloom: {found.evaluations:,}{of} mappings, {found.valid:,} valid; best {_value(found)}"


def _value(found: "Search") -> str:
    from sw.analytic.search import OBJECTIVE_UNITS

    pairs = zip(found.objectives, found.value, strict=False)
    return ", ".join(f"{name} {value:,.6g} {OBJECTIVE_UNITS[name]}" for name, value in pairs) or "none"


def _outcome(found: "Search") -> str:
    of = "of more" if found.size is None else f"of {found.size:,}"
    return (
        f"best {_value(found)}; {found.evaluations:,} mappings {of}, {found.valid:,} valid, "
        f"{found.seconds:.1f} s; ended by {found.stopped}"
    )


def _search_record(found: "Search") -> dict[str, Any]:
    return {
        "objectives": dict(zip(found.objectives, found.value, strict=True)),
        "mappings": found.size,
        "evaluations": found.evaluations,
        "valid": found.valid,
        "seconds": found.seconds,
        "ended_by": found.stopped,
    }


def _nest(analysis: "Analysis") -> list[str]:
    """A line for each level, outermost first: loops, outermost first, and tensors that it keeps."""
    from sw.analytic.explain import loops_text

    spec = analysis.spec
    lines = []
    for level in reversed(range(len(spec.architecture.levels))):
        places = [place for place in spec.mapping.places if place.level == level]
        kept = [
            t.name for t, here in zip(spec.workload.problem.tensors, spec.mapping.keeps[level], strict=True) if here
        ]
        keeps = "" if spec.architecture.levels[level].is_spatial else f"; keeps {', '.join(kept) or 'nothing'}"
        lines.append(f"  {spec.architecture.levels[level].name}: {loops_text(analysis, places)}{keeps}")
    return lines


def _write(path: Path, analysis: "Analysis") -> None:
    from sw.analytic.spec.write_mapping import mapping_text

    from .output import as_text, write_files

    spec = analysis.spec
    text = mapping_text(spec.document, spec.mapping, spec.architecture)
    write_files(path.parent, {path.name: as_text(text)})


def _summary(analysis: "Analysis") -> list[str]:
    """Cycles, energy and the traffic of each level, outermost first."""
    spec, computes = analysis.spec, analysis.sparse.computes
    total = sum(analysis.energy.values())
    offered = analysis.cycles.total * spec.architecture.compute.instances
    lines = [
        f"cycles {analysis.cycles.total:,} (compute units alone {analysis.cycles.compute:,}), "
        f"utilization {computes.actual / offered if offered else 0:.4f}",
        f"energy {total:,.2f} pJ: "
        + ", ".join(f"{name} {energy:,.2f}" for name, energy in reversed(analysis.energy.items())),
        f"computes {computes.algorithmic:,}: {computes.actual:,} actual, {computes.gated:,} gated, {computes.skipped:,} skipped",
        "",
        f"{'level.tensor':<28}{'tile':>12}{'most':>12}{'':>10}{'actual':>16}{'gated':>16}{'skipped':>16}",
    ]
    names = [tensor.name for tensor in spec.workload.problem.tensors]
    for level in reversed(range(len(spec.architecture.levels))):
        for number, name in enumerate(names):
            if (level, number) not in analysis.sparse.counters:
                continue
            tile = analysis.sparse.occupancy[level, number]
            head = f"{f'{spec.architecture.levels[level].name}.{name}':<28}{tile.size:>12,}{tile.maximum:>12,}"
            for action in ("reads", "fills", "updates"):
                own = analysis.sparse.counters[level, number].data(action)
                if own.dense:
                    lines.append(f"{head}{action:>10}{own.actual:>16,}{own.gated:>16,}{own.skipped:>16,}")
                    head = " " * 52
    return lines
