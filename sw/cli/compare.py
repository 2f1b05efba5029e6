"""``fiberloom compare``: every tiling on one operand pair, on one machine, scheduling counted."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .printed import Outcome, printed

if TYPE_CHECKING:
    from gen.design import Design
    from sw.scheme.scheme import Scheme

    from .console import Console
    from .evaluate import Bench, Tiling
    from .memory_formats import MemoryFormats

__all__ = ["command"]

MOST_TILES = 200_000


def compare(
    console: "Console",
    left: options.Left,
    right: options.Right = None,
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
    engine: options.Engine = "model",
    engines: Annotated[
        bool, typer.Option("--engines", help="Both intra-tile engines, with as many MACs; --tiling auto unless named.")
    ] = False,
    tiling: options.Tilings = None,
    plugin: options.Plugin = None,
    budget: options.Budget = None,
    most_tiles: options.MostTiles = MOST_TILES,
    mcf_a: options.FormatOfA = None,
    mcf_b: options.FormatOfB = None,
    mcf_c: options.FormatOfC = None,
    run_bits: options.RunBits = None,
    transpose_a: options.TransposeA = False,
    transpose_b: options.TransposeB = False,
    as_stored: options.AsStored = False,
    out: options.Out = None,
    seed: options.Seed = 0,
) -> Outcome:
    """Schedule and run C = A x B under every tiling; a table of cycles, traffic, scheduling seconds and regret.

    `optimal`, which takes longer than all others together, runs when --tiling names it. Regret is over the best of those
    that the hardware can run. Writes table.csv, comparison.html, cycles.svg, results.json and each scheme to --out
    (out/NAME-OF-A-tilings by default, with -ENGINE behind it for another than the model; with --json only when --out is
    given). A tiling that fails is one line and stops nothing; exit code 2 when all of them failed. An interrupt keeps what
    was finished. With --engines each tiling runs on --config and on the same design with the other intra-tile engine and as
    many MACs; rows are named TILING-DATAFLOW.
    """
    from sw.operands import UserError
    from sw.runtime.comparison import compared

    from .evaluate import Bench, check_budget, parse_tilings
    from .memory_formats import MemoryFormats
    from .output import check_folder, default_folder
    from .pipeline import interruptible, load_design, repeat_command, require_tier
    from .reasons import Interrupted

    tilings = parse_tilings(tiling or (["auto"] if engines else None), budget=budget)
    check_budget(budget, tilings)
    formats = MemoryFormats.parse(mcf_a, mcf_b, mcf_c, run_bits)
    design = load_design(config, formats.settings(changes or []), value)
    designs = [design, _other(design)] if engines else [design]
    for one in designs:
        require_tier(engine, one)
        formats.require_built(engine, one)
    runs = [
        (replace(each, name=f"{each.name}-{one.pe.dataflow}") if engines else each, one)
        for each in tilings
        for one in designs
    ]
    with console.phase("load", "Reading operands"):
        bench = interruptible(
            lambda: Bench(left, right, transpose_a=transpose_a, transpose_b=transpose_b, as_stored=as_stored)
        )
        interruptible(bench.stored, design.pe.value, formats)
    folder = out if out is not None or console.as_json else default_folder(bench.operands["A"].name, "compare", engine)
    if folder is not None:
        check_folder(folder)

    found: list[tuple[dict[str, Any], Scheme]] = []
    failures: dict[str, str] = {}
    stopped = False
    try:
        _run(console, bench, runs, engine, formats, seed, most_tiles, found, failures)
    except KeyboardInterrupt:
        stopped = True
    records = compared([record for record, _ in found])
    if folder is not None and records:
        _write(folder, records, [scheme for _, scheme in found], failures, repeat_command(console.words))
    if stopped:
        raise Interrupted(_kept(runs, records, failures, folder, resumable=not engines))
    if not records:
        raise UserError(f"no tiling could be run: {_by_reason(failures)}")
    console.document(records)
    _summary(console, records, folder)
    return Outcome(correct=all(record["correct"] for record in records), failures=failures)


command = printed(compare)


def _other(design: "Design") -> "Design":
    """The design with the other engine. Raises UserError."""
    from gen.design import DesignError, counterpart
    from sw.operands import UserError

    try:
        return counterpart(design)
    except DesignError as error:
        raise UserError(f"--engines: {error}") from None


def _by_reason(failures: dict[str, str]) -> str:
    """Each reason once, after the tilings that did not run because of it."""
    names: dict[str, list[str]] = {}
    for name, why in failures.items():
        names.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(failed)}: {why}" for why, failed in names.items())


def _kept(
    runs: "list[tuple[Tiling, Design]]",
    records: list[dict[str, Any]],
    failures: dict[str, str],
    folder: Path | None,
    *,
    resumable: bool,
) -> str:
    """What an interrupt keeps, and how to go on. ``resumable``: names of runs are those of tilings."""
    left = [tiling.name for tiling, _ in runs if tiling.name not in {r["tiling"] for r in records} | set(failures)]
    if folder is None or not records:
        return "nothing is kept; the same command starts anew"
    rest = "all were finished" if not left else f"{', '.join(left)} did not run"
    if left and resumable:
        rest = f"--tiling {','.join(left)} with another --out runs the others"
    return f"{len(records)} of {len(runs)} tilings are kept in {folder}; {rest}, the same command runs all anew"


def _run(
    console: "Console",
    bench: "Bench",
    runs: "list[tuple[Tiling, Design]]",
    engine: str,
    formats: "MemoryFormats",
    seed: int,
    most_tiles: int,
    found: "list[tuple[dict[str, Any], Scheme]]",
    failures: dict[str, str],
) -> None:
    """Tilings one after the other; results and failures as they come."""
    from .evaluate import evaluate
    from .pipeline import repeat_command
    from .reasons import reason

    with console.phase("tilings", "Running tilings") as progress:
        for number, (tiling, design) in enumerate(runs):

            def at(share: float | None, note: str, number: int = number) -> None:
                progress((number + (share or 0.0)) / len(runs), f"{number} of {len(runs)}, {note}")

            try:
                done = evaluate(
                    bench, design, tiling, engine, formats=formats, seed=seed, command=repeat_command(console.words),
                    most_tiles=most_tiles, progress=at,
                )  # fmt: skip
            except Exception as error:  # noqa: BLE001 - one tiling's failure is told and leaves the others alone
                failures[tiling.name] = reason(error)
                console.warn(f"{tiling.name}: {failures[tiling.name]}")
                continue
            found.append((done.record, done.scheme))


def _write(
    folder: Path, records: list[dict[str, Any]], schemes: "list[Scheme]", failures: dict[str, str], command: str
) -> None:
    from sw.report.comparison import plot, render, to_csv

    from .output import as_json, as_text, write_files

    files = {
        "results.json": as_json(records),
        "table.csv": as_text(to_csv(records)),
        "comparison.html": as_text(render(records, failures, command)),
        "cycles.svg": as_text(plot(records)),
    }
    for record, scheme in zip(records, schemes, strict=True):
        files[f"scheme-{record['tiling']}.json"] = as_text(scheme.to_json() + "\n")
    write_files(folder, files)


def _summary(console: "Console", records: list[dict[str, Any]], folder: Path | None) -> None:
    from sw.report.comparison import clock_text, table

    first = records[0]
    a, b = first["operands"]["A"], first["operands"]["B"]
    console.print(
        f"C = A x B   {a['name']} ({a['rows']:,} x {a['cols']:,}, {a['nnz']:,} nonzeros) x "
        f"{b['name']} ({b['rows']:,} x {b['cols']:,}, {b['nnz']:,} nonzeros), {first['macs']:,} effectual MACs"
    )
    designs = ", ".join(dict.fromkeys(record["design"]["name"] for record in records))
    console.print(f"design      {designs}, engine {first['engine']}, seconds at {clock_text(first['design']['clock'])}")
    kept = ", ".join(
        f"{tensor} {found['format']} ({found['bits']:,} bits)" for tensor, found in first["memory_formats"].items()
    )
    if kept:
        console.print(f"kept as     {kept}")
    for line in table(records):
        console.print(line)
    if folder is not None:
        console.print(f"written     {folder}/comparison.html")
