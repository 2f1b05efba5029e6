"""``fiberloom generate``: the accelerator as files."""

from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["command"]


def command(
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
    out: options.Out = None,
    lint: Annotated[bool, typer.Option("--lint", help="Check the Verilog with Verilator's -Wall.")] = False,
    json: options.Json = False,
    seed: options.UnusedSeed = 0,
    quiet: options.Quiet = False,
) -> int:
    """Write the Verilog (one file for each distinct module), file list, constraints, C header, register manual and
    FuseSoC core of a design to --out (out/NAME-OF-DESIGN by default).

    Files of an earlier design in the same folder are replaced; equal designs give equal bytes.
    """
    from gen.products import products, write_products
    from sw.operands import UserError

    from .console import Console
    from .output import check_folder
    from .pipeline import load_design

    console = Console(as_json=json, quiet=quiet)
    design = load_design(config, changes or [], value)
    folder = out if out is not None else Path("out") / design.name
    check_folder(folder)
    with console.phase("generate", "Writing Verilog"):
        texts = products(design)
        try:
            written = write_products(folder, texts)
        except OSError as error:
            raise UserError(f"--out {folder}: cannot be written ({error.strerror or error})") from None
    complaints = []
    if lint:
        from gen.lint import lint as check

        with console.phase("lint", "Checking with Verilator"):
            complaints = check(folder, "accelerator", texts["files.f"].split())

    sizes = {str(path): len(texts[name].encode()) for path, name in zip(written, texts, strict=True)}
    console.document(
        {
            "design": design.name,
            "folder": str(folder),
            "top": "accelerator",
            "files": [{"path": path, "bytes": size} for path, size in sizes.items()],
            "seconds": console.seconds,
            **({"warnings": complaints} if lint else {}),
        }
    )
    modules = sum(name.endswith(".sv") for name in texts)
    console.print(f"design      {design.name}: {design.description}")
    console.print(f"modules     {modules}, top accelerator, {sum(sizes.values()):,} bytes in all")
    console.print(f"written     {folder}: {', '.join(name for name in texts if not name.endswith('.sv'))}, rtl/*.sv")
    if lint:
        console.print("\n".join(complaints) or "lint        no warnings")
    return 1 if complaints else 0
