"""``fiberloom schedule``: the tile scheme alone."""

import json as json_format
from typing import TYPE_CHECKING

from . import options
from .printed import STAY, Outcome, printed

if TYPE_CHECKING:
    from .console import Console

__all__ = ["command"]


def schedule(
    console: "Console",
    left: options.Left,
    right: options.Right = None,
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
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
    seed: options.Seed = 0,
) -> Outcome:
    """Choose a tile scheme for C = A x B and write it to scheme.json in --out (out/NAME-OF-A-scheme by default).

    With --json the scheme is printed, and written only when --out is given. The file can be given back with --scheme.
    """

    from sw.cost.passes import NO_PASSES
    from sw.stats.pattern import Pattern

    from .memory_formats import MemoryFormats
    from .output import as_text, check_folder, default_folder, keep_record, write_files
    from .pipeline import (
        SchemeChoice,
        choose_scheme,
        interruptible,
        load_design,
        load_operands,
        make_plan,
        predicted,
    )

    formats = MemoryFormats.parse(mcf_a, mcf_b, mcf_c, run_bits)
    sizes = t_i, t_j, t_k
    choice = SchemeChoice(
        tiling=tiling,
        file=scheme_file,
        order=order,
        sizes=sizes,
        tuning=tuning,
        seed=seed,
        row_order=row_order,
        effort=effort,
        partial_rows=partial_rows,
        load=load,
    )
    design = load_design(config, formats.settings(changes or []), value)
    with console.phase("load", "Reading operands"):
        operands = load_operands(left, right, transpose_a=transpose_a, transpose_b=transpose_b, as_stored=as_stored)
        passes = NO_PASSES
        if formats.kinds:
            formats.require_built("model", design)
            passes = formats.passes(design, *formats.stored(operands, design.pe.value), seed)
    folder = out if out is not None or console.as_json else default_folder(operands["A"].name, "schedule")
    if folder is not None:
        keep_record(folder)
        check_folder(folder)
    with console.phase("schedule", "Choosing tiles"):
        scheme = interruptible(choose_scheme, choice, operands, design, passes)
        formats.require_scheme(scheme)
        patterns = [Pattern.of(operands[name].matrix) for name in "AB"]
        planned = interruptible(make_plan, choice, scheme, *patterns, design)
        scheme = interruptible(predicted, planned, scheme, operands, design, seed, passes)
    if folder is not None:
        write_files(folder, {"scheme.json": as_text(scheme.to_json() + "\n")})
    console.document(json_format.loads(scheme.to_json()) | {"cycles": scheme.cycles, "dram_bytes": scheme.dram_bytes})

    parts = ", ".join(f"{tensor} {size:,} ({scheme.mode[tensor]})" for tensor, size in scheme.buffer_bytes.items())
    console.print(f"policy      {scheme.policy} ({scheme.seconds:.2f} s)")
    console.print(f"order       {scheme.order}")
    console.print(f"tile        T_i x T_j x T_k = {scheme.T_i:,} x {scheme.T_j:,} x {scheme.T_k:,}")
    if scheme.gathers:
        console.print(f"list        of the rows of B that each tile uses; {STAY[scheme.load]}")
    if scheme.joins:
        console.print("partial     rows of C are joined in the last step along k")
    if scheme.row_order != "natural":
        console.print(f"rows        of A in the order {scheme.row_order}")
    if scheme.strips:
        console.print(f"strips      {scheme.strips:,} of T_j columns of a row of C are a tile")
    console.print(f"buffer      {parts} bytes")
    if scheme.scratch_bytes:
        console.print(f"scratch     {scheme.scratch_bytes:,} bytes of C's for fibers of long rows")
    console.print(f"predicted   {scheme.cycles:,} cycles, {scheme.dram_bytes:,} bytes of DRAM traffic")
    if folder is not None:
        console.print(f"written     {folder}/scheme.json")
    return Outcome()


command = printed(schedule)
