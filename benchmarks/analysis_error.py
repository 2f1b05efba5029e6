"""How far the analysis is from the model tier, and from the hardware, by what it is told of the nonzeros and by matrix class.

    python -m benchmarks.analysis_error [--design edge] [--rtl] [--folder DIR] [--docs FILE.md] [--plot FILE.svg] [OPERAND...]

C = A x A. The scheme is that of HYTE, cut down to what the analysis has words for. Errors are those of the analysis, as shares of
what was counted: of multiplications, bytes of memory by tensor, cycles. ``--folder``: each .npz in it whose rows the analysis can
hold. ``--rtl``: small operands in the hardware, too. ``--docs`` puts the tables between two marks of a page.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sw.cli.analyze_design import analyze_design
from sw.cli.console import Console

from .dots import dots
from .table_markers import write_table

# By class: what lies in PyAMG's wheel or follows from its name, so that nothing is downloaded.
CLASSES = {
    "mesh": ("pyamg:airfoil", "pyamg:knot", "pyamg:unit_square", "pyamg:unit_cube", "pyamg:recirc_flow"),
    "finite elements": ("pyamg:bar", "pyamg:local_disc_galerkin_diffusion"),
    "band": ("banded:2000:20:density=0.5:seed=1", "banded:4000:4:density=0.8:seed=1"),
    "blocks": ("block:2000:2000:8:0.02:seed=1",),
    "uniform": ("uniform:2000:2000:0.005:seed=1", "uniform:600:600:0.05:seed=1"),
    "power law": ("rmat:10:8:seed=1", "rmat:12:8:seed=1"),
    "long rows": ("mycielskian:9", "mycielskian:10"),
}
FILES = "files"
RTL = ("pyamg:airfoil", "pyamg:knot", "uniform:200:200:0.05:seed=1", "rmat:8:6:seed=1")
DENSITIES = ("uniform", "banded", "actual")
QUANTITIES = ("MACs", "A", "B", "C", "cycles")
# Of a file, so that its mask and those of its product stay small.
MOST_ROWS = 8_500


@dataclass(frozen=True)
class Error:
    """ratio: analysis over what was counted, by quantity. A, B and C are bytes of memory."""

    group: str
    operand: str
    density: str
    cycles: int
    ratio: dict[str, float]


def measure(group: str, operand: str, design: str, density: str, tier: str) -> Error:
    """One analysis beside one run."""
    _, rows = analyze_design(
        Console(quiet=True),
        [operand],
        design=design,
        changes=[],
        tiling=None,
        scheme_file=None,
        transpose_b=False,
        density=density,
        against=tier,
        out=None,
    )
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        name = {"MAC": "MACs", "design": "cycles", "DRAM": row.tensor}.get(row.level)
        if name is not None:
            sums[name][0] += row.analysis
            sums[name][1] += row.counted
    ratio = {name: sums[name][0] / sums[name][1] for name in QUANTITIES if sums[name][1]}
    shown = Path(operand).stem if group == FILES else operand
    return Error(group, shown, density, int(sums["cycles"][1]), ratio)


def measured(groups: Sequence[tuple[str, str]], design: str, tier: str) -> Iterator[Error]:
    """Of each operand by each density; one that is refused says why."""
    for group, operand in groups:
        for density in DENSITIES:
            try:
                yield measure(group, operand, design, density, tier)
            except Exception as error:
                if getattr(error, "exit_code", None) != 2:
                    raise
                print(f"{operand}, {density}: {error}", flush=True)


def table(errors: Sequence[Error]) -> str:
    """A line for each operand, three errors for each quantity."""
    lines = [
        "| class | operand | cycles counted | density | " + " | ".join(QUANTITIES) + " |",
        "|---|---|--:|---|" + "--:|" * len(QUANTITIES),
    ]
    for each in errors:
        shown = [f"{each.ratio[name] - 1:+.1%}" if name in each.ratio else "" for name in QUANTITIES]
        lines.append(f"| {each.group} | `{each.operand}` | {each.cycles:,} | {each.density} | {' | '.join(shown)} |")
    return "\n".join(lines)


def summary(errors: Sequence[Error]) -> str:
    """Typical error by class: the geometric mean of the factor that the analysis is off by, in either direction."""
    lines = [
        "| class | operands | " + " | ".join(f"{density}: MACs | C | cycles" for density in DENSITIES) + " |",
        "|---|--:|" + "--:|" * (3 * len(DENSITIES)),
    ]
    for group in dict.fromkeys(each.group for each in errors):
        own = [each for each in errors if each.group == group]
        cells = []
        for density in DENSITIES:
            for name in ("MACs", "C", "cycles"):
                logs = [
                    abs(math.log(each.ratio[name])) for each in own if each.density == density and each.ratio.get(name)
                ]
                cells.append(f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "")
        lines.append(f"| {group} | {len({each.operand for each in own})} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figure(errors: Sequence[Error]) -> str:
    """Cycles of the analysis over those counted."""
    rows = []
    for operand in dict.fromkeys(each.operand for each in errors):
        own = [each for each in errors if each.operand == operand]
        rows.append((operand, {each.density: each.ratio["cycles"] for each in own}))
    return dots("Cycles by the analysis over cycles counted", "ratio", rows, log=True, mark=1.0)


def files(folder: Path) -> Iterator[tuple[str, str]]:
    """Square matrices of a folder that are small enough."""
    import scipy.sparse as sp

    for path in sorted(folder.glob("*.npz")):
        try:
            matrix = sp.load_npz(path)
        except (ValueError, OSError):  # of another kind, as tensors are
            continue
        if matrix.shape[0] == matrix.shape[1] <= MOST_ROWS:
            yield FILES, str(path)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="edge")
    parser.add_argument("--rtl", action="store_true", help="small operands in the hardware, too")
    parser.add_argument("--folder", type=Path, help="matrices of one's own")
    parser.add_argument("--docs", type=Path, help="a page whose tables are renewed")
    parser.add_argument("--plot", type=Path, help="an SVG file to write")
    parser.add_argument("operands", nargs="*", metavar="OPERAND")
    options = parser.parse_args()
    groups = [("named", operand) for operand in options.operands]
    groups = groups or [(group, operand) for group, own in CLASSES.items() for operand in own]
    if options.folder is not None:
        groups += files(options.folder)
    errors = list(measured(groups, options.design, "model"))
    parts = {"errors by class": summary(errors)}
    if options.rtl:
        parts["errors beside the hardware"] = table(
            list(measured([("hardware", name) for name in RTL], options.design, "rtl"))
        )
    print(f"errors by operand\n\n{table(errors)}\n")
    for name, text in parts.items():
        print(f"{name}\n\n{text}\n")
        if options.docs is not None:
            write_table(options.docs, name, text.splitlines())
    if options.plot is not None:
        options.plot.write_text(figure(errors), encoding="utf-8")


if __name__ == "__main__":
    main()
