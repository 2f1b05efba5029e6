"""``fiberloom sweep``: designs x tilings x operands, in parallel, one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from sw.engine_result import Progress

    from .console import Console
    from .executors import Executor
    from .failures import Failures
    from .points import Task
    from .results import Store

__all__ = ["command"]

MOST_JOBS = 1024
MOST_TILES = 200_000


def command(
    operands: Annotated[
        list[str],
        typer.Argument(metavar="A[,B]...", help=f"Operand pairs, A x A without B: {options.OPERAND}; or patterns."),
    ],
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", metavar="NAME|FILE,...", help="Designs: names, files or patterns.", show_default="edge"
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.FIELD=V1,V2,...", help="Vary a field of every design; repeatable."),
    ] = None,
    value: options.Value = None,
    tiling: Annotated[
        list[str] | None,
        typer.Option("--tiling", metavar="POLICY,...", help="Tilings: names or patterns.", show_default="auto"),
    ] = None,
    plugin: options.Plugin = None,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", metavar="model|rtl|golden,...", help="What computes.", show_default="model"),
    ] = None,
    budget: options.Budget = None,
    most_tiles: options.MostTiles = MOST_TILES,
    mcf_a: options.FormatsOfA = None,
    mcf_b: options.FormatsOfB = None,
    mcf_c: options.FormatsOfC = None,
    run_bits: options.RunsBits = None,
    transpose_a: options.TransposeA = False,
    transpose_b: options.TransposeB = False,
    as_stored: options.AsStored = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", help="Processes.", show_default="one a core")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="ADDRESS", help="Run on this Dask scheduler's workers instead.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run also what was run before.")] = False,
    out: options.Out = None,
    json: options.Json = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Run every design with every memory format, tiling, engine and operand pair; write sweep.parquet and sweep.html to --out.

    The folder is out/sweep by default; with --json, which prints the rows of the table, only what --out says. Each result is
    kept under the content of its inputs and the version of the code: a sweep that was interrupted goes on where it stopped,
    and points of other sweeps are not run again. A point that fails is a row; each way to fail is one line. Exit code 2 when
    all of them failed, 1 when a result differs from the golden one.
    """
    import os

    from sw.cache import cache_folder
    from sw.operands import UserError
    from sw.report.parquet import require_parquet

    from .cluster import Cluster
    from .console import Console
    from .evaluate import check_budget, parse_tilings
    from .executors import Processes
    from .failures import Failures
    from .memory_formats import MemoryFormats
    from .output import check_folder
    from .points import find_operands, tasks, variations
    from .reasons import Interrupted
    from .results import Store

    require_parquet()
    _check(operands, engine, jobs, cluster, seed)
    console = Console(as_json=json, quiet=quiet)
    formats = MemoryFormats.combinations(mcf_a, mcf_b, mcf_c, run_bits)
    designs = variations(config or ["edge"], changes or [], value, formats)
    chosen = parse_tilings(tiling or ["auto"])
    check_budget(budget, chosen)
    tilings = [found.name for found in chosen]
    pairs = find_operands(operands)
    folder = out if out is not None or json else Path("out") / "sweep"
    if folder is not None:
        check_folder(folder)
    executor: Executor = Cluster(cluster) if cluster is not None else Processes(jobs or os.cpu_count() or 1)
    with console.phase("load", "Looking at operands"):
        wanted = tasks(
            designs, tilings, _engines(engine), pairs, seed=seed, budget=budget, most_tiles=most_tiles,
            transpose_a=transpose_a, transpose_b=transpose_b, as_stored=as_stored,
        )  # fmt: skip

    rows: dict[int, dict[str, Any]] = {}
    failures = Failures("points")
    store = Store(cache_folder() / "results")
    stopped: BaseException | None = None
    try:
        with console.phase("sweep", "Sweeping") as progress:
            _run(console, executor, wanted, store, fresh, rows, failures, progress)
    except KeyboardInterrupt:
        stopped = Interrupted(_kept(sum(not row["failed"] for row in rows.values()), len(wanted), store))
    except UserError as error:
        stopped = error
    table = [rows[number] for number in sorted(rows)]
    done = [row for row in table if not row["failed"]]
    if folder is not None and done:
        _write(folder, table)
    if stopped is not None or done:
        for line in failures.lines():
            console.warn(line)
    if stopped is not None:
        raise stopped
    if not done:
        *others, last = failures.lines()
        for line in others:
            console.warn(line)
        raise UserError(f"no point could be run: {last}")
    console.document(table)
    _summary(console, table, folder)
    return 0 if all(row["correct"] for row in done) else 1


def _check(
    operands: list[str],
    engine: list[str] | None,
    jobs: int | None,
    cluster: str | None,
    seed: int,
) -> None:
    from gen.design import did_you_mean
    from sw.operands import UserError

    from .pipeline import ENGINES

    for word in operands:
        if not all(word.split(",", 1)):
            raise UserError(f"{word!r}: the name of an operand is empty: must be A or A,B")
    for name in _engines(engine):
        if name not in ENGINES:
            raise UserError(f"--engine {name}: must be one of {', '.join(ENGINES)}{did_you_mean(name, ENGINES)}")
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise UserError(f"--jobs {jobs}: must be from 1 to {MOST_JOBS}")
    if jobs is not None and cluster is not None:
        raise UserError(f"--jobs {jobs}: must be left out with --cluster, which has the workers it has")
    if seed < 0:
        raise UserError(f"--seed {seed}: must be at least 0")


def _engines(engine: list[str] | None) -> list[str]:
    return list(dict.fromkeys(name for text in engine or ["model"] for name in text.split(",")))


def _run(
    console: "Console",
    executor: "Executor",
    wanted: "list[Task]",
    store: "Store",
    fresh: bool,
    rows: dict[int, dict[str, Any]],
    failures: "Failures",
    progress: "Progress",
) -> None:
    """Fills ``rows``: kept results at once, the others as they finish and are kept."""
    from contextlib import closing
    from dataclasses import asdict

    from fiberloom.worker import work
    from gen.design import Design
    from sw import notes
    from sw.model.area import area_proxy
    from sw.runtime.rows import failed_row, row_of

    from .console import plain_text

    def add(number: int, record: dict[str, Any], *, kept: bool) -> None:
        point = wanted[number].point
        assert point is not None  # it has a result
        area = area_proxy(Design.model_validate(point.design))
        rows[number] = plain_text(row_of(wanted[number].names | {"kept": kept}, record, area))

    def fail(number: int, error: str) -> None:
        names = wanted[number].names
        rows[number] = plain_text(failed_row(names, error))
        operand = "" if error.startswith(names["a"]) else names["a"]
        called = " ".join(filter(None, (names["design"], names["settings"], names["tiling"], operand)))
        files = [str(Path(names[side]).resolve()) for side in ("a", "b")]
        failures.add(called, error, [names["a"], names["b"], *files])

    # Equal content under two names is one run.
    numbers: dict[str, list[int]] = {}
    for number, task in enumerate(wanted):
        if task.point is None:
            fail(number, task.complaint)
            continue
        key = task.names["key"]
        record = None if fresh else store.get(key)
        if record is not None:
            add(number, record, kept=True)
        else:
            numbers.setdefault(key, []).append(number)

    keys = list(numbers)
    points = [wanted[numbers[key][0]].point for key in keys]
    progress(0.0, f"0 of {len(keys)}")
    if not keys:
        return
    with closing(executor.results(work, [asdict(point) for point in points if point is not None])) as outcomes:
        for done, (position, outcome) in enumerate(outcomes, start=1):
            key = keys[position]
            for about, text in outcome.get("notes", ()):
                notes.note(about, text)
            if "record" in outcome:
                store.put(key, outcome["record"])
            for number in numbers[key]:
                if "record" in outcome:
                    add(number, outcome["record"], kept=False)
                else:
                    fail(number, outcome["error"])
            failed = f", {lost} failed" if (lost := sum(row["failed"] for row in rows.values())) else ""
            progress(done / len(keys), f"{done} of {len(keys)}{failed}")


def _kept(finished: int, wanted: int, store: "Store") -> str:
    """What an interrupt keeps, and how to go on."""
    if not finished:
        return "no point was finished; the same command starts anew"
    if not store.kept:
        return f"{finished:,} of {wanted:,} points were finished and could not be kept; the same command starts anew"
    return f"{finished:,} of {wanted:,} points are kept in {store.folder}; the same command goes on from there"


def _write(folder: Path, table: list[dict[str, Any]]) -> None:
    from sw.report.parquet import write_parquet
    from sw.report.sweep import render

    from .output import as_text, write_files
    from .pipeline import repeat_command

    page = render(table, repeat_command())
    write_files(folder, {"sweep.parquet": lambda path: write_parquet(path, table), "sweep.html": as_text(page)})


def _summary(console: "Console", table: list[dict[str, Any]], folder: Path | None) -> None:
    done = [row for row in table if not row["failed"]]
    kept = sum(row["kept"] for row in done)
    console.print(
        f"points      {len(table):,}: {len(done) - kept:,} run, {kept:,} kept from before, {len(table) - len(done):,} failed"
    )
    for row in (row for row in done if not row["correct"]):
        console.print(f"NOT CORRECT {row['design']} {row['settings']} {row['tiling']} {row['a']}")
    for a, b in dict.fromkeys((row["a"], row["b"]) for row in done):
        timed = [row for row in done if (row["a"], row["b"]) == (a, b) and row["cycles"] is not None]
        if timed:
            best = min(timed, key=lambda row: (row["cycles"], row["area_proxy"]))
            ideal = f"{best['ideal_fraction']:.1%}"
            called = " ".join(filter(None, (best["design"], best["settings"], best["tiling"])))
            console.print(
                f"fewest      {best['cycles']:,} cycles, {ideal} of the ideal, {a}{f' x {b}' if b != a else ''}: {called}"
            )
    if folder is not None:
        console.print(f"written     {folder}/sweep.parquet, {folder}/sweep.html")
