"""``fiberloom generate``: the accelerator, or one of its blocks, as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .printed import Outcome, printed

if TYPE_CHECKING:
    from gen.blocks import BlockKind
    from gen.design import Design

    from .console import Console

__all__ = ["command"]

HELP = "help"
# The C driver of the folder against the compiled simulation.
DRIVER = "driver"


def generate(
    console: "Console",
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
    block: Annotated[
        str | None, typer.Option("--block", metavar="NAME", help="This block alone; `help` lists them.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="Parameter of the block; repeatable.")
    ] = None,
    plugin: options.Plugin = None,
    list_blocks: Annotated[
        bool, typer.Option("--list-blocks", help="List the blocks and end (= --block help).")
    ] = False,
    area: Annotated[
        str | None,
        typer.Option(
            "--area",
            metavar="TARGET",
            help="Cells, and for ecp5 the clock that place and route reaches; takes minutes.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of the top module; the other modules' names then begin with it."),
    ] = None,
    out: options.Out = None,
    lint: Annotated[bool, typer.Option("--lint", help="Check the Verilog with Verilator's -Wall.")] = False,
    smoke: Annotated[
        str | None,
        typer.Option(
            "--smoke", metavar="icarus|verilator|driver", help="Run the bench of the folder, or its C driver."
        ),
    ] = None,
    seed: options.UnusedSeed = 0,
) -> Outcome:
    """Write the Verilog (one file for each distinct module), file list, constraints, C header, manuals, FuseSoC core and
    smoke bench of a design to --out (out/NAME-OF-DESIGN by default). With --block those of one block;
    parameters that --param does not give are then those of the design.

    Files of an earlier design in the same folder are replaced; equal designs give equal bytes.
    """
    from gen.blocks import block_kind, own_kinds
    from gen.design import DesignError
    from gen.synth import check_target
    from gen.verilog import check_name
    from sw.operands import UserError
    from sw.plugins import table

    from .pipeline import load_design

    try:
        if list_blocks or block == HELP:
            _check_list(block, param or [], {"--area": area, "--name": name, "--out": out, "--smoke": smoke}, lint)
            _list(console, load_design(config, changes or [], value), own_kinds(table("BLOCKS")))
            return Outcome()
        _check(block, param, smoke)
        if area is not None:
            check_target(area)
        if name is not None:
            check_name(name)
        design = load_design(config, changes or [], value)
        kind = block_kind(block, own_kinds(table("BLOCKS"))) if block is not None else None
        return _generate(console, design, kind, param or [], area, name, out, lint, smoke)
    except DesignError as error:
        raise UserError(str(error).replace("--target", "--area")) from None


command = printed(generate)


def _check_list(block: str | None, param: list[str], others: dict[str, Any], lint: bool) -> None:
    """A list takes the options of the design and of the output, nothing else."""
    from sw.operands import UserError

    asked = "--block help" if block == HELP else "--list-blocks"
    given = [
        *([f"--block {block}"] if block not in (None, HELP) else []),
        *(f"--param {item}" for item in param),
        *(f"{option} {value}" for option, value in others.items() if value is not None),
        *(["--lint"] if lint else []),
    ]
    if given:
        raise UserError(f"{given[0]}: not with {asked}, which lists the blocks and makes none")


def _check(block: str | None, param: list[str] | None, smoke: str | None) -> None:
    from gen.design import did_you_mean
    from gen.simulate import SIMULATORS
    from sw.operands import UserError

    if param and block is None:
        raise UserError(f"--param {param[0]}: only with --block")
    if smoke == DRIVER and block is not None:
        raise UserError(f"--smoke {smoke}: only without --block: the driver is that of the accelerator")
    ways = SIMULATORS if block is not None else (*SIMULATORS, DRIVER)
    if smoke is not None and smoke not in ways:
        raise UserError(f"--smoke {smoke}: must be one of {', '.join(ways)}{did_you_mean(smoke, ways)}")


def _list(console: "Console", design: "Design", own: "dict[str, BlockKind]") -> None:
    """Every block with its parameters; defaults are those of the design."""
    from gen.blocks import BLOCKS, settings

    document = []
    for kind in (BLOCKS | own).values():
        # Only a block of the user's own can need a value.
        defaults = settings(kind, [], design) if kind.name in BLOCKS else {}
        document.append(
            {
                "name": kind.name,
                "summary": kind.summary,
                "source": f"{kind.block.__module__}.{kind.block.__qualname__}",
                "parameters": [
                    {
                        "name": parameter.name,
                        "type": parameter.kind,
                        "default": defaults.get(parameter.name),
                        "allowed": parameter.allowed,
                    }
                    for parameter in kind.parameters
                ],
            }
        )
    console.document({"design": design.name, "blocks": document})
    for entry in document:
        console.print(f"{entry['name']}: {entry['summary']}")
        rows: Any = entry["parameters"]
        for row in rows:
            default = "as needed" if row["default"] is None else str(row["default"]).lower()
            console.print(f"    {row['name']} = {default}: {row['allowed']}")


def _generate(
    console: "Console",
    design: "Design",
    kind: "BlockKind | None",
    param: list[str],
    area: str | None,
    called: str | None,
    out: Path | None,
    lint: bool,
    smoke: str | None,
) -> Outcome:
    from gen.blocks import settings
    from gen.folder import write_folder
    from gen.products import block_products, products
    from sw.operands import UserError

    from .output import check_folder
    from .reasons import when_interrupted
    from .smoke import smoke_run

    values = settings(kind, param, design) if kind is not None else {}
    name = kind.name if kind is not None else design.name
    folder = out if out is not None else Path("out") / name
    run = smoke_run(design) if kind is None and "rtl" in design.tiers else None
    check_folder(folder)
    with console.phase("generate", "Writing Verilog") as progress:

        def counted(done: int, of: int) -> None:
            progress(done / of, f"{done} of {of} modules synthesised")

        top = called or "accelerator"
        if kind is not None:
            top, texts = block_products(kind, values, area, counted, called, design)
        else:
            texts = products(design, run, area, counted, called)
        try:
            written = write_folder(folder, texts)
        except OSError as error:
            raise UserError(f"--out {folder}: cannot be written ({error.strerror or error})") from None
    complaints: list[str] = []
    complete = f"the files in {folder} are complete, not all checks were made; the same command starts anew"
    if lint:
        from gen.lint import lint as check

        with when_interrupted(complete), console.phase("lint", "Checking with Verilator"):
            complaints = check(folder, top, texts["files.f"].split())
    passed = ""
    if smoke is not None:
        with when_interrupted(complete), console.phase("smoke", f"Running the smoke bench with {smoke}"):
            passed, failed = _smoked(folder, design, smoke)
        complaints += failed

    sizes = {str(path): len(texts[name].encode()) for path, name in zip(written, texts, strict=True)}
    console.document(
        {
            "design": design.name,
            **({"block": kind.name, "parameters": values} if kind is not None else {}),
            "folder": str(folder),
            "top": top,
            "files": [{"path": path, "bytes": size} for path, size in sizes.items()],
            "seconds": console.seconds,
            **({"warnings": complaints} if lint or smoke else {}),
        }
    )
    modules = sum(path.startswith("rtl/") for path in texts)
    if kind is not None:
        given = ", ".join(f"{key} = {str(setting).lower()}" for key, setting in values.items())
        console.print(f"block       {kind.name}: {kind.summary}")
        console.print(f"parameters  {given or 'none'}")
    else:
        console.print(f"design      {design.name}: {design.description}")
    console.print(f"modules     {modules}, top {top}, {sum(sizes.values()):,} bytes in all")
    alone = [path for path in texts if not path.startswith(("rtl/", "docs/blocks/"))]
    console.print(f"written     {folder}: {', '.join(alone)}, rtl/*.sv, docs/blocks/*.md")
    if lint or smoke:
        console.print("\n".join(complaints) or f"checked     {passed or 'no warnings'}")
    return Outcome(correct=not complaints)


def _smoked(folder: Path, design: "Design", smoke: str) -> tuple[str, list[str]]:
    """The line that says PASS, and what is wrong."""
    if smoke == DRIVER:
        from sw.runtime.simulation.c_driver import drive

        said, code = drive(folder, design), 0
    else:
        from gen.simulate import smoke as simulate

        (done,) = simulate(folder, smoke)
        said, code = done.stdout.strip().splitlines(), done.returncode
    passed = next((line for line in said if line.startswith("PASS")), "")
    failed = bool(code) or not passed or (smoke == DRIVER and len(said) > 1)
    return passed, (said[-20:] or [f"{smoke} ended with exit code {code}"]) if failed else []
