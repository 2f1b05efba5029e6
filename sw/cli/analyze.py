"""``fiberloom analyze``: the analytical model of an architecture, a workload, its SAFs and a mapping."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .printed import Outcome, printed

if TYPE_CHECKING:
    from sw.analytic.analysis import Analysis

    from .console import Console

__all__ = ["command"]


def analyze(
    console: "Console",
    specs: Annotated[
        list[Path],
        typer.Argument(
            metavar="SPEC.yaml...", help="Files of one specification, or a shipped name.", show_default=False
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a value, as in problem.instance.K=64; repeatable."),
    ] = None,
    subjects: Annotated[
        list[str] | None,
        typer.Option("--explain", metavar="LEVEL.TENSOR", help="Print how the numbers came about; repeatable."),
    ] = None,
    loads: Annotated[
        list[Path] | None,
        typer.Option(
            "--load", metavar="FILE.py", help="Run a file with densities and formats of your own; repeatable."
        ),
    ] = None,
) -> Outcome:
    """Analyse an accelerator: cycles, energy, and every actual, gated and skipped access, from a specification alone.

    The files are those of Timeloop and Sparseloop, dialect v0.3 or v0.4, with the sections architecture, problem, mapping, and
    where there are any sparse_optimizations, ERT and ART. Exit code 2 for a bad specification, and for a mapping that does not
    fit; with --json the latter prints {"valid": false, "reason": ...} as well.
    """
    # Nothing that loads SciPy or Numba: an analysis takes milliseconds, they take a second.
    from sw.analytic.analysis import InvalidMapping
    from sw.analytic.analysis import analyze as analyzed
    from sw.analytic.explain import explain
    from sw.analytic.result import invalid_record, record
    from sw.analytic.spec.extensions import load_extensions
    from sw.analytic.spec.load import load_spec

    spec = load_spec(specs, changes or (), load_extensions(loads or ()))
    if not console.as_json:
        for note in spec.notes:
            console.warn(note)
    try:
        analysis = analyzed(spec)
    except InvalidMapping as error:
        console.document(invalid_record(str(error)))
        raise
    explanations = [explain(analysis, subject) for subject in subjects or ()]
    document = record(analysis)
    if explanations:
        document["explanations"] = {lines[0]: lines[1:] for lines in explanations}
    console.document(document)
    if not explanations:
        console.print("\n".join(_summary(analysis)))
    elif not console.as_json:
        print("\n\n".join("\n".join(lines) for lines in explanations), flush=True)
    return Outcome()


command = printed(analyze)


def _summary(analysis: "Analysis") -> list[str]:
    """Cycles, energy and the traffic of each level, outermost first."""
    spec, computes = analysis.spec, analysis.sparse.computes
    total = sum(analysis.energy.values())
    offered = analysis.cycles.total * spec.architecture.compute.instances
    lines = [
        f"cycles {analysis.cycles.total:,} (compute units alone {analysis.cycles.compute:,}), "
        f"utilization {computes.actual / offered if offered else 0:.4f}",
        f"energy {total:,.2f} pJ: "
        + ", ".join(f"{name} {energy:,.2f}" for name, energy in reversed(analysis.energy.items())),
        f"computes {computes.algorithmic:,}: {computes.actual:,} actual, {computes.gated:,} gated, {computes.skipped:,} skipped",
        "",
        f"{'level.tensor':<28}{'tile':>12}{'most':>12}{'':>10}{'actual':>16}{'gated':>16}{'skipped':>16}",
    ]
    names = [tensor.name for tensor in spec.workload.problem.tensors]
    for level in reversed(range(len(spec.architecture.levels))):
        for number, name in enumerate(names):
            if (level, number) not in analysis.sparse.counters:
                continue
            tile = analysis.sparse.occupancy[level, number]
            head = f"{f'{spec.architecture.levels[level].name}.{name}':<28}{tile.size:>12,}{tile.maximum:>12,}"
            for action in ("reads", "fills", "updates"):
                own = analysis.sparse.counters[level, number].data(action)
                if own.dense:
                    lines.append(f"{head}{action:>10}{own.actual:>16,}{own.gated:>16,}{own.skipped:>16,}")
                    head = " " * 52
    return lines
