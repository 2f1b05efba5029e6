"""What Sparseloop (MICRO 2022) shows, beside what the shipped specifications of the analysis say.

    python -m benchmarks.papers_sparseloop [--evaluations 4000]

Figure 13 has published values. The others are trends: the specifications are Fiberloom's own, with assumptions that their heads
and docs/analysis.md list, and mappings that the mapper finds.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sw.analytic.analysis import analyze
from sw.analytic.processes import cores
from sw.analytic.result import record
from sw.analytic.search import search
from sw.analytic.spec.load import load_layers, load_search, load_spec
from sw.analytic.spec.read_network import Layer

# Densities of A and B, and latency over that of the dense pair, as figure 13 plots it.
FIGURE_13 = (
    (0.9, 1.0, 0.90), (0.9, 0.4, 0.48), (0.7, 1.0, 0.72), (0.7, 0.4, 0.38),
    (0.5, 1.0, 0.54), (0.5, 0.4, 0.29), (0.3, 1.0, 0.36), (0.3, 0.4, 0.19),
)  # fmt: skip
DESIGNS = ("eyeriss", "eyeriss_v2_pe", "scnn")
DENSITIES = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def figure_13() -> Iterator[tuple[float, float, float, float]]:
    """Densities of A and B, the published latency and this one."""

    def cycles(a: float, b: float) -> int:
        pair = [f"problem.instance.densities.{name}.density={value}" for name, value in (("A", a), ("B", b))]
        return int(analyze(load_spec([Path("dstc")], pair)).cycles.total)

    dense = cycles(1.0, 1.0)
    for a, b, published in FIGURE_13:
        yield a, b, published, cycles(a, b) / dense


def figure_1() -> Iterator[tuple[float, dict[str, tuple[float, float]]]]:
    """Cycles and energy, over those without SAFs, of a bitmap that gates and of coordinates that skip, by the density of A."""
    buffer = "architecture.nodes.Buffer"
    base = (f"{buffer}.attributes.depth=8192", f"{buffer}.attributes.metadata_storage_depth=8192")
    gates = (
        f"{buffer}.sparse_optimizations.representation_format.data_spaces.A.ranks=[{{format: U}}, {{format: UB}}]",
        "architecture.nodes.DRAM.sparse_optimizations={}",
        f"{buffer}.sparse_optimizations.action_optimization=[{{type: gating, target: B, condition_on: [A]}}, "
        "{type: gating, target: Z, condition_on: [A]}]",
    )
    none = ("architecture.nodes.DRAM.sparse_optimizations={}", f"{buffer}.sparse_optimizations={{}}")
    for density in DENSITIES:
        own = f"problem.instance.densities.A.density={density}"
        found: dict[str, tuple[float, float]] = {}
        for name, changes in (("dense", none), ("bitmap, gates", gates), ("coordinates, skips", ())):
            analysis = analyze(load_spec([Path("sparse_product")], (*base, *changes, own)))
            found[name] = (analysis.cycles.total, sum(analysis.energy.values()))
        cycles, energy = found.pop("dense")
        yield density, {name: (own[0] / cycles, own[1] / energy) for name, own in found.items()}


def designs(evaluations: int) -> Iterator[tuple[str, Layer, dict[str, Any]]]:
    """Each layer of AlexNet on each design, at the best mapping that so many evaluations find."""
    for name in DESIGNS:
        files = [Path(name), Path("alexnet")]
        for layer in load_layers(files):
            spec, space, settings = load_search(files, (), layer=layer)
            found = search(spec, space, replace(settings, evaluations=evaluations), jobs=cores())
            assert found.best is not None
            yield name, layer, record(found.best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=4000)
    options = parser.parse_args()
    print("Figure 13: latency of DSTC over that of the dense pair\n")
    print("| density of A | of B | published | here |\n|--:|--:|--:|--:|")
    for a, b, published, here in figure_13():
        print(f"| {a} | {b} | {published:.2f} | {here:.3f} |")
    print("\nFigure 1, a trend: cycles and energy over those without SAFs\n")
    print("| density of A | bitmap that gates: cycles | energy | coordinates that skip: cycles | energy |")
    print("|--:|--:|--:|--:|--:|")
    for density, found in figure_1():
        print(f"| {density} | " + " | ".join(f"{value:.3f}" for pair in found.values() for value in pair) + " |")
    print("\nDesigns of table 3 on AlexNet, a trend\n")
    print("| design | layer | cycles | energy, uJ | actual computes | utilization |\n|---|---|--:|--:|--:|--:|")
    for name, layer, own in designs(options.evaluations):
        print(
            f"| {name} | {layer.name} | {own['cycles']:,} | {own['energy_pJ']['total'] / 1e6:,.1f} "
            f"| {own['computes']['actual']:,} | {own['utilization']:.3f} |"
        )


if __name__ == "__main__":
    main()
