"""``fiberloom analyze --design``: a design of Fiberloom in the analysis, beside its model or its hardware."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sw.analytic.errors import SpecError

from . import options

if TYPE_CHECKING:
    from sw.analytic.analysis import Analysis
    from sw.analytic.design_comparison import Compared
    from sw.analytic.design_operands import Told

    from .console import Console

__all__ = ["Against", "Density", "Design", "analyze_design", "compared_lines"]

# Tiers that an analysis can stand beside.
ENGINES = ("model", "rtl")
TILING = "hyte"

Design = Annotated[
    str | None,
    typer.Option(
        "--design",
        "--config",
        metavar="NAME|FILE",
        help="Analyse this design on operands A [B], which stand in place of SPEC.yaml, with a tile scheme.",
        show_default=False,
        autocompletion=options._designs,
    ),
]
Density = Annotated[
    str | None,
    typer.Option(
        "--density",
        metavar="uniform|banded|actual",
        help="With --design: how the analysis is told where the nonzeros are.",
        show_default="uniform",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="model|rtl", help="With --design: run the same, and say how far off the analysis is."
    ),
]


def analyze_design(
    console: "Console",
    operands: Sequence[str],
    *,
    design: str,
    changes: list[str],
    tiling: str | None,
    scheme_file: Path | None,
    transpose_b: bool,
    density: str,
    against: str | None,
    out: Path | None,
) -> "tuple[Analysis, list[Compared]]":
    """The analysis of the specification that the design, the scheme and the operands make, which ``out`` keeps, and what was
    counted beside it. Raises UserError, InvalidMapping among them."""
    from gen.design import did_you_mean
    from sw.analytic.design_operands import KINDS, told
    from sw.analytic.design_spec import design_sections, require_export
    from sw.analytic.spec.write_spec import spec_text
    from sw.scheme.errors import SchemeError
    from sw.scheme.terms import NATURAL

    from .pipeline import SchemeChoice, choose_scheme, interruptible, load_design, load_operands

    for name, value, allowed in (("density", density, KINDS), ("against", against, ENGINES)):
        if value is not None and value not in allowed:
            raise SpecError(f"--{name} {value}: must be one of {', '.join(allowed)}{did_you_mean(value, allowed)}")
    if len(operands) > 2:
        raise SpecError(f"{operands[2]}: must be left out: --design takes operands A and B")
    # Only this policy cuts in coordinate tiles whatever the operands are and knows the hardware.
    choice = SchemeChoice(
        tiling=tiling or (None if scheme_file else TILING), file=scheme_file, row_order=None if scheme_file else NATURAL
    )
    hardware = load_design(design, changes, None)
    with console.phase("load", "Reading operands"):
        given = load_operands(
            operands[0],
            operands[1] if len(operands) > 1 else None,
            transpose_a=False,
            transpose_b=transpose_b,
            as_stored=False,
        )
    with console.phase("schedule", "Choosing tiles"):
        scheme = interruptible(choose_scheme, choice, given, hardware)
    a, b = given["A"].matrix, given["B"].matrix
    shape = (int(a.shape[0]), int(b.shape[1]), int(a.shape[1]))
    step = None if scheme.buffers("C") or scheme.T_k >= a.shape[1] else scheme.T_k
    found = told(density, a, b, "operands" if out is None else out.stem, step, joined=scheme.T_j < b.shape[1])
    try:
        require_export(hardware, scheme)
    except SchemeError as error:
        raise SpecError(str(error)) from None
    head = [
        f"The design {hardware.name} on C = A x B, A {given['A'].source}, B {given['B'].source}, {density} densities:",
        f"scheme {scheme.policy}, order {scheme.order}, T_i x T_j x T_k = {scheme.T_i} x {scheme.T_j} x {scheme.T_k}.",
    ]
    text = spec_text(design_sections(hardware, scheme, shape, found.densities), head)
    analysis = _analyzed(text, found, out)
    rows = []
    if against is not None:
        rows = _against(console, against, choice, hardware, scheme, given, analysis)
    return analysis, rows


def _analyzed(text: str, found: "Told", out: Path | None) -> "Analysis":
    """Of the specification as it is read back from its file, which stays where ``out`` says."""
    from sw.analytic.analysis import analyze
    from sw.analytic.spec.load import load_spec

    if out is not None:
        _write(out, text, found)
        return analyze(load_spec([out]))
    with tempfile.TemporaryDirectory(prefix="fiberloom-") as folder:
        path = Path(folder) / "design.yaml"
        _write(path, text, found)
        return analyze(load_spec([path]))


def _write(path: Path, text: str, found: "Told") -> None:
    from functools import partial

    import scipy.sparse as sp

    from .output import as_text, write_files

    files: dict[str, Any] = {name: partial(_save, sp.save_npz, matrix) for name, matrix in found.files.items()}
    write_files(path.parent, {path.name: as_text(text), **files})


def _save(save: Any, matrix: Any, path: Path) -> None:
    save(path, matrix)


def _against(
    console: "Console",
    tier: str,
    choice: Any,
    design: Any,
    scheme: Any,
    operands: dict[str, Any],
    analysis: "Analysis",
) -> "list[Compared]":
    from sw.analytic.design_comparison import compare
    from sw.operands import to_csr

    from .pipeline import interruptible, make_plan, require_tier, run_engine

    require_tier(tier, design)
    with console.phase("simulate", f"Running ({tier})") as progress:
        a, b = (to_csr(operands[tensor], design.pe.value) for tensor in "AB")
        planned = interruptible(make_plan, choice, scheme, a, b, design)
        found = run_engine(tier, design, planned, progress)
    if found.error is not None:
        raise SpecError(f"--against {tier}: the hardware stopped: {found.error}")
    return compare(analysis, found)


def compared_lines(rows: "Sequence[Compared]", against: str) -> list[str]:
    """A table."""
    lines = [f"{'level.tensor':<20}{'':<18}{'analysis':>18}{against:>18}{'error':>10}"]
    for row in rows:
        where = f"{row.level}.{row.tensor}" if row.tensor else row.level
        error = "" if row.error is None else f"{row.error:+.1%}"
        lines.append(f"{where:<20}{row.quantity:<18}{round(row.analysis):>18,}{row.counted:>18,}{error:>10}")
    return lines
