"""``fiberloom run``: schedule, run, verify, report."""

import importlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sw.scheme.terms import GATHERS

from . import options
from .printed import STAY, Outcome, printed
from .timing import compile_seconds

if TYPE_CHECKING:
    from gen.design import Design
    from sw.engine_result import EngineResult
    from sw.formats.csr import Csr
    from sw.operands import Operand

    from .console import Console
    from .memory_formats import Conversions

__all__ = ["command"]

# Nonzeros of C from which its file is not compressed: a second for each million of them, for half of the size.
COMPRESSED_BELOW = 1 << 22
PRODUCT = "C.npz"
# Bytes of C from which on its file is announced.
LARGE = 1 << 30
# Modules that choosing tiles and running need: loaded before their time is taken.
NEEDED = ("sw.model.judge", "sw.policies.auto")
# A share of the time from which on a phase is shown by itself.
WORTH_TELLING = 0.1


def run(
    console: "Console",
    left: options.Left,
    right: options.Right = None,
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
    engine: options.Engine = "rtl",
    tiling: options.Tiling = None,
    plugin: options.Plugin = None,
    scheme_file: options.SchemeFile = None,
    t_i: options.TileI = None,
    t_j: options.TileJ = None,
    t_k: options.TileK = None,
    order: options.Order = None,
    row_order: options.RowOrder = None,
    effort: options.Effort = "normal",
    partial_rows: options.PartialRows = None,
    load: options.Load = None,
    tuning: options.Tuning = None,
    mcf_a: options.FormatOfA = None,
    mcf_b: options.FormatOfB = None,
    mcf_c: options.FormatOfC = None,
    run_bits: options.RunBits = None,
    transpose_a: options.TransposeA = False,
    transpose_b: options.TransposeB = False,
    as_stored: options.AsStored = False,
    out: options.Out = None,
    no_result: options.NoResult = False,
    scipy: options.Scipy = False,
    seed: options.Seed = 0,
) -> Outcome:
    """Schedule, run, verify and report one multiplication C = A x B.

    Writes result.json, C.npz (not with --no-result), scheme.json and report.html to --out (out/NAME-OF-A by default,
    out/NAME-OF-A-ENGINE but for rtl; none with --json). Exit codes: 0 verified, 1 wrong result, 2 bad input, 3 a tool is missing.
    """
    from sw.engine_result import EngineResult
    from sw.model.machine import require_rows
    from sw.plan.least_reads import least_reads
    from sw.runtime.result import result_record

    from .memory_formats import Conversions, MemoryFormats
    from .output import check_folder, default_folder, keep_scheme
    from .pipeline import (
        SchemeChoice,
        choose_scheme,
        golden_product,
        interruptible,
        load_design,
        load_operands,
        make_plan,
        plain,
        refuse_without_hardware,
        repeat_command,
        require_tier,
        verify,
    )

    formats = MemoryFormats.parse(mcf_a, mcf_b, mcf_c, run_bits)
    choice = SchemeChoice(
        tiling=tiling, file=scheme_file, order=order, sizes=(t_i, t_j, t_k), tuning=tuning, seed=seed, load=load,
        row_order=row_order, effort=effort, partial_rows=partial_rows)  # fmt: skip
    console.compiled = compile_seconds
    design = load_design(config, formats.settings(changes or []), value)
    require_tier(engine, design)
    formats.require_built(engine, design)
    console.spend("load", console.elapsed)
    with console.phase("load", "Reading operands"):
        for module in NEEDED:
            importlib.import_module(module)
        operands = load_operands(left, right, transpose_a=transpose_a, transpose_b=transpose_b, as_stored=as_stored)
        a, b = formats.stored(operands, design.pe.value)
    folder = out if out is not None or console.as_json else default_folder(operands["A"].name, "run", engine)
    if folder is not None:
        keep_scheme(folder, None if choice.forced or tuning is not None else scheme_file)
        check_folder(folder)
    if engine != "golden":
        require_rows(a.rows, operands["A"].source)
    with console.phase("schedule", "Choosing tiles"):
        scheme = interruptible(choose_scheme, choice, operands, design, formats.passes(design, a, b, seed))
        refuse_without_hardware(engine, scheme)
        planned = interruptible(make_plan, choice, scheme, a, b, design)
        formats.require_scheme(scheme)
    conversions = Conversions(formats, engine, design, scheme, planned, a, b)
    with console.phase("simulate" if engine == "golden" else "verify", "Multiplying (golden)"):
        product, adjustments = interruptible(golden_product, design, scheme, a, b)
        conversions.require_sizes(product.structural)
    result, model = _simulated(console, design, conversions) if engine != "golden" else (None, None)
    with console.phase("verify", "Checking every value"):
        compared = partial(verify, bare=conversions.leaves_bare, unfolded=operands["B"].unfolded)
        checks = interruptible(compared, a, b, product, result) + conversions.checks
        result = result or EngineResult(c=product.structural, adjustments=adjustments)
        result, model = conversions.added(result, model)
        least = interruptible(least_reads, planned, design)

    record = plain(
        result_record(
            engine=engine,
            engine_result=result,
            design=design,
            scheme=scheme,
            operands=operands,
            product=product,
            checks=checks,
            seconds=console.seconds,
            command=repeat_command(console.words),
            model=model,
            stored=conversions.stored,
            least_reads=least,
            scipy=_scipy_seconds(console, operands) if scipy else None,
        )
    )
    c = product.canonical if result.c is None else result.c.without_zeros()
    if folder is not None:
        with console.phase("report", "Writing the report"):
            _write(console, folder, record, scheme, operands, result, c, keeps_c=not no_result)
    console.document(record)
    _summary(console, record, folder, console.elapsed)
    return Outcome(correct=record["correct"], c=c)


command = printed(run)


def _scipy_seconds(console: "Console", operands: "dict[str, Operand]") -> float:
    from sw.runtime.scipy_time import scipy_seconds

    from .pipeline import interruptible

    with console.phase("scipy", "Timing SciPy"):
        return interruptible(scipy_seconds, operands["A"].matrix, operands["B"].matrix)


def _simulated(
    console: "Console", design: "Design", conversions: "Conversions"
) -> "tuple[EngineResult, EngineResult | None]":
    """What the model or the hardware makes of the plan, conversions among it, and what the model says of the hardware."""
    from sw.runtime.result import with_model

    from .pipeline import engine_seconds, run_engine

    planned, tier, model = conversions.overlapped(), conversions.tier, None
    if tier == "rtl":
        with console.phase("model", "Modelling") as progress:
            model = run_engine("model", design, planned, progress)
    with console.phase("simulate", f"Running ({tier})") as progress:
        result = with_model(conversions.around(lambda: run_engine(tier, design, planned, progress), progress), model)
    return replace(result, seconds=engine_seconds(console.seconds.pop("simulate"), result.seconds)), model


def _write(
    console: "Console",
    folder: Path,
    record: dict[str, Any],
    scheme: Any,
    operands: Any,
    result: Any,
    c: "Csr",
    *,
    keeps_c: bool,
) -> None:
    import scipy.sparse as sp

    from sw.report.html import render

    from .output import as_json, as_text, write_files

    page = render(record, scheme=scheme, operands=operands, c=c, result=result)
    files = {
        "result.json": as_json(record),
        PRODUCT: lambda path: sp.save_npz(path, c.to_scipy(), compressed=c.nnz < COMPRESSED_BELOW),
        "scheme.json": as_text(scheme.to_json() + "\n"),
        "report.html": as_text(page),
    }
    size = sum(array.nbytes for array in (c.values, c.coordinates, c.pointers))
    if not keeps_c:
        del files[PRODUCT]
    elif size >= LARGE:
        console.warn(f"writing about {size / 1e9:.1f} GB to {folder / PRODUCT}; --no-result leaves it out")
    write_files(folder, files, gone=() if keeps_c else (PRODUCT,))


def _summary(console: Any, record: dict[str, Any], folder: Path | None, elapsed: float) -> None:
    """A few lines for a reader at the terminal."""
    from .console import duration

    a, b = record["operands"]["A"], record["operands"]["B"]
    scheme = record["scheme"]
    console.print(
        f"C = A x B   {a['name']} ({a['rows']:,} x {a['cols']:,}, {a['nnz']:,} nonzeros) x "
        f"{b['name']} ({b['rows']:,} x {b['cols']:,}, {b['nnz']:,} nonzeros)"
    )
    console.print(
        f"scheme      {scheme['policy']}, order {scheme['order']}, "
        f"T_i x T_j x T_k = {scheme['T_i']:,} x {scheme['T_j']:,} x {scheme['T_k']:,}"
    )
    if scheme["load"] in GATHERS:
        console.print(f"list        of the rows of B that each tile uses; {STAY[scheme['load']]}")
    if scheme["partial_rows"] != "carried":
        console.print("partial     rows of C are joined in the last step along k")
    if scheme["row_order"] != "natural":
        console.print(f"rows        of A in the order {scheme['row_order']}; C's rows are found by it")
    if scheme["strips"]:
        console.print(f"strips      {scheme['strips']:,} of T_j columns of a row of C are a tile")
    if scheme["tuning"]:
        console.print(f"tuning      {record['tuning']['adjustments']:,} changes of the tile shape")
    console.print(f"result      {record['nnz_c']:,} nonzeros from {record['macs']:,} effectual MACs")
    if record["cycles"] is not None:
        share, ideal = record["roofline_fraction"], record["ideal_fraction"]
        ideal = f", {ideal:.1%} of the ideal" if ideal is not None else ""
        roofline = f", {share:.1%} of the {record['bound']} roofline" if share is not None else ""
        console.print(f"cycles      {record['cycles']:,}{ideal}{roofline}; PEs {record['pe_utilization']:.1%} used")
        clock = record["design"]["clock"]
        if clock["part"]:
            spent = duration(record["cycles"] / (clock["mhz"] * 1e6))
            console.print(
                f"time        {spent} at {clock['mhz']:g} MHz, which place and route reached on {clock['part']}"
            )
    if record["scipy_seconds"] is not None:
        even = (
            ""
            if not record["cycles"]
            else f"; {record['cycles'] / record['scipy_seconds'] / 1e6:,.3g} MHz take as long"
        )
        console.print(f"SciPy       {1e3 * record['scipy_seconds']:,.3g} ms on one core of this machine{even}")
    if record["dram_bytes"] is not None:
        moved, least = record["dram_bytes"]["total"], record["useful_bytes"]["total"]
        factor = f"{moved / least:.2f} times the compulsory ones" if least else "none of them compulsory"
        console.print(f"DRAM        {moved:,} bytes, {factor}")
        if (aside := record["scratch_traffic"]) is not None and (scheme["scratch_bytes"] or any(aside.values())):
            kept = (
                f"; {scheme['scratch_bytes']:,} bytes of C's partition keep the first of them"
                if scheme["scratch_bytes"]
                else ""
            )
            console.print(f"scratch     {aside['write']:,} bytes written, {aside['read']:,} read{kept}")
        if (bound := record["least_reads_b"]) is not None:
            read = record["dram_bytes"]["B"]["read"] + record["dram_bytes"]["B"]["metadata_read"]
            least = f"{bound['bytes']:,}, row by row {bound['whole_rows']:,}, in B's partition {bound['partition']:,}"
            console.print(f"B           {read:,} bytes read; an optimal buffer reads {least}")
    if (energy := record["energy_pJ"]) is not None:
        shares = ", ".join(
            f"{name} {part / energy['total']:.1%}" for name, part in energy.items() if part and name != "total"
        )
        console.print(f"energy      {energy['total'] / 1e6:,.4g} uJ" + (f": {shares}" if shares else ""))
    for tensor, kept in record["memory_formats"].items():
        size = f"{kept['bits']:,} bits"
        spent = f", {kept['cycles']:,} cycles to convert" if kept["cycles"] else ""
        way = "out" if tensor == "C" else "in"
        spent = f", converted on its way {way}" if kept["conversion"] == "overlapped" else spent
        console.print(f"{tensor:<12}kept as {kept['format']}, {size}{spent}")
    if record["model"] is not None:
        traffic = "equal to the byte" if record["model"]["traffic_equal"] else "DIFFERENT"
        console.print(f"model       {record['model']['cycles']:,} cycles; DRAM traffic {traffic}")
    for check in record["checks"]:
        console.print(f"{'ok  ' if check['correct'] else 'FAIL'}        {check['name']}: {check['detail']}")
    if record["error"]:
        console.print(f"FAIL        hardware error: {record['error']}")
    verdict = "verified" if record["correct"] else "NOT CORRECT"
    compiling = record["seconds"]["compile"] + record["seconds"]["build"]
    part = f", {compiling:.1f} of them to compile" if compiling >= WORTH_TELLING * elapsed else ""
    console.print(
        f"{verdict} ({record['engine']}, {elapsed:.1f} s{part})" + (f"; see {folder}/report.html" if folder else "")
    )
