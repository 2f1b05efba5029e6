"""``fiberloom synth``: the cells of each block."""

from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["command"]

COLUMNS = ("cells", "luts", "flip_flops", "memories", "memory_bits", "depth")


def command(
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
    target: Annotated[
        str, typer.Option("--target", metavar="generic|ecp5|xilinx|ice40", help="Technology.")
    ] = "generic",
    out: options.Out = None,
    json: options.Json = False,
    seed: options.UnusedSeed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Cells of each block of a design by Yosys, children included. Writes synth.json to --out when given.

    Each distinct block is synthesised once, with its children as black boxes. `generic` counts gates and flip-flops and
    leaves memories of 1024 bits and more as memories, told in bits. `depth` is the longest path within the block, in cells.
    """
    from gen.synth import check_target, synthesise

    from .console import Console
    from .output import as_json, check_folder, write_files
    from .pipeline import load_design

    console = Console(as_json=json, quiet=quiet)
    design = load_design(config, changes or [], value)
    check_target(target)
    if out is not None:
        check_folder(out)
    with console.phase("synth", f"Synthesising for {target}") as progress:
        record = synthesise(
            design, target, lambda done, all_of_them: progress(done / all_of_them, f"{done} of {all_of_them} modules")
        ).record()
    record["seconds"] = console.seconds
    if out is not None:
        write_files(out, {"synth.json": as_json(record)})
    console.document(record)

    modules = record["modules"]
    width = max(len(module["name"]) for module in modules)
    used = [name for name in COLUMNS if any(module[name] for module in modules)]
    console.print(f"design {record['design']}, target {target}, Yosys {record['yosys']}")
    console.print(f"{'module':<{width}} {'copies':>6} " + " ".join(f"{name:>11}" for name in used))
    for module in modules:
        numbers = " ".join(f"{module[name]:>11,}" for name in used)
        console.print(f"{module['name']:<{width}} {module['instances']:>6} {numbers}")
    if out is not None:
        console.print(f"written     {Path(out) / 'synth.json'}")
