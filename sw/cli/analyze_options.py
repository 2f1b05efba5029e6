"""Options of ``fiberloom analyze``."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Changes", "Cluster", "Evaluations", "Jobs", "Loads", "Map", "MappingFile", "Objective", "Out", "Report", "Seconds", "Seed",
    "Specs", "Subjects", "Sweeps", "Victory",
]  # fmt: skip

Specs = Annotated[
    list[Path],
    typer.Argument(
        metavar="SPEC.yaml...",
        help="Files of one specification, or a shipped name; with --design operands A [B].",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a value, as in problem.instance.K=64; repeatable."),
]
Sweeps = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="PATH=V1,V2",
        help="Analyse each value; ranges are 1..9, 0.1..0.9:0.2, 8..64*2; several make every combination.",
    ),
]
Subjects = Annotated[
    list[str] | None,
    typer.Option("--explain", metavar="LEVEL.TENSOR", help="Print how the numbers came about; repeatable."),
]
Loads = Annotated[
    list[Path] | None,
    typer.Option(
        "--load",
        "--plugin",
        metavar="FILE.py",
        help="Run a file with densities and formats of your own; repeatable.",
    ),
]
MappingFile = Annotated[
    Path | None,
    typer.Option("--mapping", metavar="FILE.yaml", help="Take the mapping of this file, not the specification's."),
]
Map = Annotated[bool, typer.Option("--map", help="Search for the best mapping; the specification needs none.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="With --map: search on this Dask scheduler's workers instead."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE.yaml",
        help="Write the specification here, with all changes; with --map the best mapping alone.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE.html", help="Write a page: loop nest, roofline, energy and traffic by level."
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        "--objective", metavar="NAME[,NAME]", help="With --map: delay, energy or edp; others decide between equals."
    ),
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        "--evaluations", min=1, help="With --map: most mappings.", show_default="10000, or all of up to 100000"
    ),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0.0, help="With --map: most seconds.", show_default="none")
]
Victory = Annotated[
    int | None,
    typer.Option(
        "--victory",
        min=1,
        help="With --map: end after so many valid mappings that are no better.",
        show_default="never",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="With --map: of random choices.", show_default="0")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="With --map: processes; the result is the same.", show_default="all cores"),
]
