"""Options that several commands share, so that they look and mean the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from sw import notes
from sw.policies.registry import policy_names

__all__ = [
    "AsStored",
    "Budget",
    "Config",
    "Engine",
    "FormatOfA",
    "FormatOfB",
    "FormatOfC",
    "FormatsOfA",
    "FormatsOfB",
    "FormatsOfC",
    "Json",
    "Left",
    "MostTiles",
    "NoResult",
    "Order",
    "Out",
    "Plugin",
    "Quiet",
    "Right",
    "RowOrder",
    "RunBits",
    "RunsBits",
    "SchemeFile",
    "Seed",
    "Set",
    "TileI",
    "TileJ",
    "TileK",
    "Tiling",
    "Tilings",
    "TransposeA",
    "TransposeB",
    "Tuning",
    "UnusedSeed",
    "Value",
    "Verbose",
]

ENGINES = ("rtl", "model", "golden")
OPERAND = (
    "matrix file (.mtx, .mtx.gz, .npz, .h5), FILE.onnx:TENSOR, FILE.safetensors:TENSOR, - for standard input, "
    "or a name as `fiberloom data list` shows"
)

Left = Annotated[str, typer.Argument(metavar="A", help=f"Left operand: {OPERAND}.", show_default=False)]
Right = Annotated[str | None, typer.Argument(metavar="B", help="Right operand; A again, as it is given, when absent.")]
TransposeA = Annotated[bool, typer.Option("--transpose-a", help="Transpose A, as in F^T x F.")]
TransposeB = Annotated[bool, typer.Option("--transpose-b", help="Transpose B, as in A x A^T.")]
FormatOfA = Annotated[
    str | None, typer.Option("--mcf-a", metavar="FORMAT", help="Format that A is kept in; a conversion runs first.")
]
FormatOfB = Annotated[
    str | None, typer.Option("--mcf-b", metavar="FORMAT", help="Format that B is kept in; a conversion runs first.")
]
FormatOfC = Annotated[
    str | None,
    typer.Option("--mcf-c", metavar="FORMAT", help="Format that C is left in; a conversion follows the run."),
]
_FORMATS = "FORMAT,..."
FormatsOfA = Annotated[list[str] | None, typer.Option("--mcf-a", metavar=_FORMATS, help="Formats that A is kept in.")]
FormatsOfB = Annotated[list[str] | None, typer.Option("--mcf-b", metavar=_FORMATS, help="Formats that B is kept in.")]
FormatsOfC = Annotated[list[str] | None, typer.Option("--mcf-c", metavar=_FORMATS, help="Formats that C is left in.")]
RunsBits = Annotated[
    list[str] | None,
    typer.Option("--run-bits", metavar="N,...", help="Bits of a run of rlc.", show_default="5"),
]
RunBits = Annotated[int | None, typer.Option("--run-bits", metavar="N", help="Bits of a run of rlc.", show_default="5")]
AsStored = Annotated[bool, typer.Option("--as-stored", help="Keep only the stored triangle of symmetric files.")]


def _designs(incomplete: str) -> list[str]:
    from gen.design import design_names

    return [name for name in design_names() if name.startswith(incomplete)]


def _policies(incomplete: str) -> list[str]:
    *others, last = incomplete.split(",")
    return [",".join([*others, name]) for name in policy_names() if name.startswith(last)]


def _engines(incomplete: str) -> list[str]:
    return [name for name in ENGINES if name.startswith(incomplete)]


Engine = Annotated[
    str,
    typer.Option("--engine", metavar="|".join(ENGINES), help="What computes.", autocompletion=_engines),
]

Config = Annotated[
    str,
    typer.Option(
        "--config", metavar="NAME|FILE", help="Design: a shipped name or a TOML file.", autocompletion=_designs
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.FIELD=VALUE", help="Change a field of the design; repeatable."),
]
Value = Annotated[
    str | None,
    typer.Option("--value", metavar="TYPE", help="Value type, int8, int16, int32, bf16 or fp32 (= --set pe.value=)."),
]


def _loaded(paths: list[Path] | None) -> list[Path] | None:
    from sw.plugins import load

    load(paths or [])
    return paths


# Read before all others, whose values may be what it brings.
Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        is_eager=True,
        callback=_loaded,
        help="Run a Python file with policies, storage formats or blocks of your own; repeatable.",
    ),
]
Tiling = Annotated[
    str | None,
    typer.Option(
        "--tiling",
        metavar="POLICY",
        help=f"Tiling policy; auto without it: {', '.join(policy_names())}.",
        autocompletion=_policies,
        show_default=False,
    ),
]
Tilings = Annotated[
    list[str] | None,
    typer.Option(
        "--tiling",
        metavar="POLICY,...",
        help="Tilings: names or patterns, repeatable; POLICY+tuning tunes the shape during the run, POLICY+greedy orders A's "
        "rows. All but `optimal` without it.",
        show_default=False,
        autocompletion=_policies,
    ),
]
Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help="Model runs that `optimal` may make.", show_default="200"),
]
MostTiles = Annotated[
    int, typer.Option("--most-tiles", metavar="N", help="Refuse a tiling that cuts into more tiles than this.")
]
SchemeFile = Annotated[Path | None, typer.Option("--scheme", metavar="FILE", help="Use this tile scheme (JSON).")]
TileI = Annotated[int | None, typer.Option("--T_i", metavar="N", help="Force the tile shape along i.")]
TileJ = Annotated[int | None, typer.Option("--T_j", metavar="N", help="Force the tile shape along j.")]
TileK = Annotated[int | None, typer.Option("--T_k", metavar="N", help="Force the tile shape along k.")]
Order = Annotated[
    str | None, typer.Option("--order", metavar="ORDER", help="Force the inter-tile order, outermost first, as in jki.")
]

RowOrder = Annotated[
    str | None,
    typer.Option(
        "--row-order",
        metavar="ORDER",
        help="Order in which A's rows are met: natural, rcm, greedy, communities, best (of these, by prediction), or a file of "
        "row numbers (default: best where auto decides all, else as the scheme says).",
        show_default=False,
    ),
]
Effort = Annotated[
    str,
    typer.Option(
        "--effort",
        metavar="normal|high",
        help="What auto may try; high: all orders of A's rows, and more by the model.",
    ),
]
Load = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="RULE",
        help="Tiles load the rows of B that they use. These stay: list while there is room, reuse if used again in time, "
        "planned at planned places (default: as the scheme says).",
        show_default=False,
    ),
]
PartialRows = Annotated[
    str | None,
    typer.Option(
        "--partial-rows",
        metavar="RULE",
        help="Partial rows of C where k is cut: carried along from step to step, or joined by the last one (default: as the "
        "scheme says).",
        show_default=False,
    ),
]
Tuning = Annotated[
    bool | None,
    typer.Option(
        "--tuning/--no-tuning",
        help="Tune the tile shape during the run (default: as the scheme says).",
        show_default=False,
    ),
]


def _folder(text: str) -> Path:
    """A folder by name; the empty name would be the current one."""
    from sw.operands.errors import UserError

    if not text or "\0" in text:
        raise UserError(f"--out {text!r}: must be the name of a folder (. is the current one)")
    return Path(text)


Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder for the results.", show_default=False, parser=_folder),
]
NoResult = Annotated[bool, typer.Option("--no-result", help="Leave C.npz out.")]
Scipy = Annotated[bool, typer.Option("--scipy", help="Time SciPy's product on one core of this machine, too.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of everything random.")]
# All commands take it, so that one command line fits them, also those without randomness.
UnusedSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Accepted and without effect.")]


def _more(context: typer.Context, wanted: bool) -> None:
    if wanted:
        notes.want_details(True)
        _either(context.params.get("quiet", False))


def _less(wanted: bool) -> bool:
    _either(wanted)
    return wanted


def _either(quiet: bool) -> None:
    """Options come in the order in which they are typed: the second of the two meets the first."""
    if quiet and notes.detailed():
        from sw.operands.errors import UserError

        raise UserError("--verbose: not with --quiet")


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.", callback=_less)]
# Also before the command's name. No command uses its value: who has something to tell calls `sw.notes.detail`.
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Say what is done: each step and its seconds, files, caches, commands of tools, tracebacks.",
        callback=_more,
    ),
]
