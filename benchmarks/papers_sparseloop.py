"""What Sparseloop (MICRO 2022) shows, beside what the analysis says.

    python -m benchmarks.papers_sparseloop [PART...] [--evaluations 4000] [--inputs DIR] [--plots DIR] [--docs PAGE]

Parts are figure1, figure12, figure13, figure15, figure16, figure17, table7, saving and designs; all of them without one.
Specifications are Fiberloom's own, with assumptions that their heads and docs/analysis.md list, so that but for figure 13 they
are trends. With ``--inputs``, a folder with the artifact's ``inputs.tar.gz``, what it has of a part is evaluated as well: that is
a reproduction.
"""

import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sw.analytic.analysis import Analysis, analyze
from sw.analytic.densities.actual import Actual
from sw.analytic.densities.uniform import Hypergeometric
from sw.analytic.processes import cores, in_order
from sw.analytic.result import record
from sw.analytic.search import search
from sw.analytic.spec.load import load_layers, load_search, load_spec
from sw.analytic.spec.read_network import Layer

from .dots import dots
from .table_markers import PrintedTable, benchmark_parser

# Densities of A and B, and latency over that of the dense pair, as figure 13 plots it.
FIGURE_13 = (
    (0.9, 1.0, 0.90), (0.9, 0.4, 0.48), (0.7, 1.0, 0.72), (0.7, 0.4, 0.38),
    (0.5, 1.0, 0.54), (0.5, 0.4, 0.29), (0.3, 1.0, 0.36), (0.3, 0.4, 0.19),
)  # fmt: skip
# Layer, M, C, P = Q, densities of inputs and weights, and cycles by a uniform density over true ones, as figure 12 plots it.
FIGURE_12 = (("layer 7", 64, 64, 32, 0.73, 0.52, 0.935), ("layer 25", 512, 256, 4, 0.68, 0.65, 0.977))
# Cycles and energy over those of the dense tensor core, by design and density of the weights, as figure 15 plots them.
WEIGHTS = {1.0: 16, 0.5: 32, 1 / 3: 48, 0.25: 64}
FIGURE_15 = {
    "STC": ((1.0, 0.910), (0.5, 0.603), (0.5, 0.603), (0.5, 0.603)),
    "STC-flexible": ((1.0, 0.910), (0.5, 0.603), (0.505, 0.522), (0.452, 0.438)),
    "STC-flexible-rle": ((1.0, 0.910), (0.5, 0.603), (0.488, 0.517), (0.452, 0.438)),
    "STC-flexible-rle-dualCompress": ((1.0, 0.774), (0.5, 0.489), (0.387, 0.407), (0.323, 0.346)),
    "DSTC": ((0.638, 1.61), (0.412, 0.831), (0.356, 0.657), (0.269, 0.514)),
}
# Bits of an offset or a run for the two nonzeros of so many places.
BITS = {"CP": {16: 0, 32: 2, 48: 3, 64: 3}, "RLE": {16: 0, 32: 2, 48: 2, 64: 3}}
# Density of inputs and outputs of AlexNet's layers, of which weights are dense, and table 7: by Eyeriss, by Sparseloop.
TABLE_7 = {
    "conv1": (1.0, 0.378, 1.2, 1.2), "conv2": (0.6, 0.169, 1.4, 1.4), "conv3": (0.275, 0.303, 1.7, 1.7),
    "conv4": (0.207, 0.304, 1.8, 1.9), "conv5": (0.23, 0.1, 1.9, 1.9),
}  # fmt: skip
RUN_BITS = 5
DESIGNS = ("eyeriss", "eyeriss_v2_pe", "scnn")
DENSITIES = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
FIGURE_17 = (1e-5, 1e-4, 1e-3, 0.01, 0.06, 0.1, 0.3, 0.5)


def analyzed(name: str, *changes: str) -> Analysis:
    return analyze(load_spec([Path(name)], changes))


def total(analysis: Analysis) -> float:
    return sum(analysis.energy.values())


class Report:
    """Prints tables and keeps figures. inputs: the artifact's cases, unpacked, or None."""

    def __init__(self, evaluations: int, inputs: Path | None, plots: Path | None) -> None:
        self.evaluations, self.inputs, self.plots = evaluations, inputs, plots

    def table(self, title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        print(f"\n{title}\n")
        print(f"| {' | '.join(heads)} |\n|{'|'.join('---' if n == 0 else '--:' for n in range(len(heads)))}|")
        for row in rows:
            cells = (
                f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
                for cell in row
            )
            print(f"| {' | '.join(cells)} |", flush=True)

    def figure(
        self, name: str, title: str, axis: str, rows: Sequence[tuple[str, dict[str, float]]], *, log: bool = False
    ) -> None:
        if self.plots is not None:
            self.plots.mkdir(parents=True, exist_ok=True)
            path = self.plots / f"{name}.svg"
            path.write_text(dots(title, axis, rows, log=log, mark=1.0 if log else None), encoding="utf-8")

    def cases(self, folder: str) -> dict[str, Analysis]:
        """Those of the artifact that lie in a folder, each in one of its own, by their names."""
        if self.inputs is None:
            return {}
        names = sorted({path.parent for path in (self.inputs / folder).rglob("*.yaml")})
        return {
            str(place.relative_to(self.inputs / folder)): analyze(
                load_spec(sorted(path for path in place.glob("*.yaml") if path.stem not in ("mapper", "constraints")))
            )
            for place in names
        }


def figure_1(report: Report) -> None:
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
    rows, lines = [], []
    for density in DENSITIES:
        own = f"problem.instance.densities.A.density={density}"
        dense, *others = (analyzed("sparse_product", *base, *changes, own) for changes in (none, gates, ()))
        ratios = [(each.cycles.total / dense.cycles.total, total(each) / total(dense)) for each in others]
        rows.append((f"{density}", *(value for pair in ratios for value in pair)))
        bitmap, coordinates = (cycles * energy for cycles, energy in ratios)
        lines.append((f"density {density}", {"bitmap, gates": bitmap, "coordinates, skip": coordinates}))
    heads = ("density of A", "bitmap that gates: cycles", "energy", "coordinates that skip: cycles", "energy")
    report.table("Figure 1, a trend: cycles and energy over those without SAFs", heads, rows)
    report.figure("figure1", "Figure 1, a trend", "energy-delay product over that without SAFs", lines, log=True)


def _drawn(shape: tuple[int, int], density: float, lean: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places of nonzeros whose share differs from channel to channel, as ``lean`` says; the last rank is the channel."""
    shares = 1 / (1 + np.exp(-(np.log(density / (1 - density)) + lean)))
    return np.asarray(random.random(shape) < shares)


def figure_12(report: Report) -> None:
    """Cycles of a processing element of Eyeriss V2 over the products of nonzeros, by a uniform density and by the data."""
    rows, lines = [], []
    for (name, m, c, p, inputs, weights, published), alike in product(FIGURE_12, (False, True)):
        random = np.random.default_rng(c)
        leans = random.normal(0, 0.7, (2, c))
        w = _drawn((m, c), weights, leans[0], random)
        x = _drawn((p * p, c), inputs, leans[0] if alike else leans[1], random)
        name = f"{name}, channels {'alike' if alike else 'independent'}"
        truth = int((w.sum(axis=0) * x.sum(axis=0)).sum())
        spec = load_spec([Path("eyeriss_v2_pe")], _one_element(m, c, p, x.mean(), w.mean()))
        known = {
            "I": Actual(np.ascontiguousarray(x.T.reshape(1, c, p, p))),
            "W": Actual(np.ascontiguousarray(w.reshape(m, c, 1, 1))),
        }
        actual = replace(spec, workload=replace(spec.workload, densities={**spec.workload.densities, **known}))
        uniform, exact = (analyze(each).cycles.compute / truth for each in (spec, actual))
        rows.append((name, published, uniform, exact))
        lines.append((name, {"published, uniform": published, "uniform": uniform, "actual data": exact}))
    heads = ("layer", "published, uniform", "uniform", "actual data")
    report.table("Figure 12, a trend: cycles of one element of Eyeriss V2 over true ones", heads, rows)
    report.figure("figure12", "Figure 12, a trend: MobileNet on Eyeriss V2", "cycles over true ones", lines)
    cases = report.cases("fig12")
    if cases:
        report.table(
            "Figure 12, the artifact's inputs: cycles",
            ("case", "cycles"),
            ((n, each.cycles.total) for n, each in cases.items()),
        )


def _one_element(m: int, c: int, p: int, inputs: float, weights: float) -> tuple[str, ...]:
    """A pointwise layer in tiles of 8 outputs and 8 inputs."""
    nest = [
        f"{{target: Backing, type: temporal, factors: [C={c // 8}, P={p}, Q={p}, M={m // 8}], permutation: [C, P, Q, M]}}",
        "{target: PartialSums, type: dataspace, keep: [O], bypass: [I, W]}",
        "{target: Inputs, type: dataspace, keep: [I], bypass: [W, O]}",
        "{target: Weights, type: dataspace, keep: [W], bypass: [I, O]}",
        "{target: Weights, type: temporal, factors: [M=8, C=8], permutation: [M, C]}",
    ]
    densities = f"{{I: {{distribution: uniform, density: {inputs}}}, W: {{distribution: uniform, density: {weights}}}}}"
    return (
        f"problem.instance={{N: 1, M: {m}, C: {c}, P: {p}, Q: {p}, R: 1, S: 1, densities: {densities}}}",
        f"mapping=[{', '.join(nest)}]",
        "architecture.nodes.MAC.sparse_optimizations.compute_optimization=[{type: skipping}]",
    )


def figure_13_bars() -> list[tuple[float, float, float, float]]:
    """Latency of DSTC over that of the dense pair: densities of A and B, the published bar, ours."""

    def cycles(a: float, b: float) -> int:
        pair = [f"problem.instance.densities.{name}.density={value}" for name, value in (("A", a), ("B", b))]
        return int(analyzed("dstc", *pair).cycles.total)

    dense = cycles(1.0, 1.0)
    return [(a, b, published, cycles(a, b) / dense) for a, b, published in FIGURE_13]


def figure_13(report: Report) -> None:
    """Latency of DSTC over that of the dense pair."""
    rows = [(f"{a}", f"{b}", published, here) for a, b, published, here in figure_13_bars()]
    report.table(
        "Figure 13: latency of DSTC over that of the dense pair", ("density of A", "of B", "published", "here"), rows
    )
    lines = [(f"A {a}, B {b}", {"published": own, "here": here}) for a, b, own, here in rows]
    report.figure("figure13", "Figure 13: DSTC", "latency over that of the dense pair", lines)


def _tensor_core(design: str, density: float) -> Analysis:
    """A design of figure 15 at a density of the weights."""
    places = WEIGHTS[density]
    if design == "STC":
        places = min(places, 32)
    kind = "RLE" if "rle" in design else "CP"
    rank = f"{{format: {kind}, metadata_word_bits: {BITS[kind][places]}}}"
    ranks = f"[{', '.join(['{format: U}'] * 6)}, {rank}]"
    inner = f"[{', '.join(['{format: U}'] * 4)}, {rank}]"
    spaces = [[f"{{name: A, rank_application_order: inner-to-outer, ranks: {each}}}"] for each in (ranks, inner)]
    if "dualCompress" in design:
        bits = ("[" + "{format: U}, " * plain + "{format: B, metadata_word_bits: 1}]" for plain in (6, 4))
        for own, each in zip(spaces, bits, strict=True):
            own.append(f"{{name: B, rank_application_order: inner-to-outer, ranks: {each}}}")
    formats = [
        f"architecture.nodes.{level}.sparse_optimizations.representation_format.data_spaces=[{', '.join(own)}]"
        for level, own in zip(("DRAM", "SMEM"), spaces, strict=True)
    ]
    return analyzed(
        "stc",
        *formats,
        f"architecture.nodes.Latches.sparse_optimizations.representation_format.data_spaces.A.ranks=[{rank}]",
        f"problem.instance.densities.A.density={16 / places}",
        f"mapping.lanes.factors=[K={places}, M=16]",
    )


def _dual_side(density: float) -> Analysis:
    """DSTC with as many multipliers as the others, on the same product."""
    return analyzed(
        "dstc",
        "architecture.nodes.DRAM.attributes.read_bandwidth=42",
        "architecture.nodes.DRAM.attributes.write_bandwidth=42",
        "architecture.nodes.multipliers.spatial={meshX: 32, meshY: 32}",
        "architecture.nodes.PartialSums.attributes.depth=8192",
        "architecture.nodes.PartialSums.attributes.read_bandwidth=1024",
        "architecture.nodes.PartialSums.attributes.write_bandwidth=1028",
        "architecture.nodes.Lines.attributes.depth=256",
        "architecture.nodes.Lines.attributes.metadata_storage_depth=128",
        f"problem.instance={{M: 512, N: 1024, K: 768, densities: {{A: {{distribution: uniform, density: {density}}}, "
        "B: {distribution: uniform, density: 0.8}}}",
        "mapping=[{target: DRAM, type: temporal, factors: [M=4, N=16], permutation: [N, M, K]}, "
        "{target: PartialSums, type: temporal, factors: [K=768]}, "
        "{target: Lines, type: temporal, factors: [M=4, N=2], permutation: [N, M]}, "
        "{target: multipliers, type: spatial, factors: [N=32, M=32], permutation: [N, M, K], split: 1}]",
    )


def figure_15(report: Report) -> None:
    """Designs of tensor cores: cycles and energy-delay product over those of the dense one."""
    dense = _tensor_core("TC", 1.0)
    rows, lines = [], []
    for design, published in FIGURE_15.items():
        for density, (cycles, energy) in zip(WEIGHTS, published, strict=True):
            found = _dual_side(density) if design == "DSTC" else _tensor_core(design, density)
            here = found.cycles.total / dense.cycles.total
            costs = here * total(found) / total(dense)
            # Without the memory of the others its traffic costs what that of DRAM does.
            shown = "" if design == "DSTC" else costs
            rows.append((design, f"{density:.2f}", cycles, here, cycles * energy, shown))
            lines.append((f"{design}, {density:.2f}", {"published": cycles, "here": here}))
    heads = ("design", "density of weights", "cycles, published", "here", "EDP, published", "here")
    report.table("Figure 15, a trend: tensor cores over the dense one", heads, rows)
    report.figure("figure15", "Figure 15, a trend: tensor cores", "cycles over those of the dense one", lines)
    cases = {name.rpartition("/")[2]: each for name, each in report.cases("fig15").items()}
    if cases:
        base = next(each.cycles.total for name, each in cases.items() if name.startswith("TC"))
        found = [(name, each.cycles.total, each.cycles.total / base) for name, each in cases.items()]
        report.table(
            "Figure 15, the artifact's inputs of one layer at density 0.5", ("design", "cycles", "over dense"), found
        )


def figure_16(report: Report) -> None:
    """What the memory must give in a cycle to keep all multipliers busy, over the words of the dense core's weights."""
    rows, lines = [], []
    bound = [f"architecture.nodes.SMEM.attributes.{side}_bandwidth=100000" for side in ("read", "write")]
    for places in (32, 48, 64):
        bits = {}
        for kind in BITS:
            rank = f"{{format: {kind}, metadata_word_bits: {BITS[kind][places]}}}"
            data = "sparse_optimizations.representation_format.data_spaces.A.ranks"
            found = analyzed(
                "stc",
                *bound,
                f"architecture.nodes.SMEM.{data}=[{', '.join(['{format: U}'] * 4)}, {rank}]",
                f"architecture.nodes.DRAM.{data}=[{', '.join(['{format: U}'] * 6)}, {rank}]",
                f"architecture.nodes.Latches.{data}=[{rank}]",
                f"problem.instance.densities.A.density={16 / places}",
                f"mapping.lanes.factors=[K={places}, M=16]",
            )
            memory = next(level for level in record(found)["levels"] if level["name"] == "SMEM")["tensors"]
            words = {name: memory[name]["reads"]["actual"] / found.cycles.compute for name in ("A", "B")}
            metadata = memory["A"]["format"][0]["reads"]["metadata"]["actual"]
            bits[kind] = metadata * BITS[kind][places] / found.cycles.compute / 8 / words["A"]
        name = f"2:{places // 8}"
        rows.append((name, 1.0, words["B"] / 16, *bits.values()))
        lines.append(
            (name, {"inputs": words["B"] / 16, **{f"metadata, {kind}": value for kind, value in bits.items()}})
        )
    heads = ("weights", "of weights", "of inputs", "offsets (CP)", "runs (RLE)")
    title = "Figure 16, a trend: words that keep all lanes busy; inputs over those of dense weights, format data over weights"
    report.table(title, heads, rows)
    report.figure("figure16", "Figure 16, a trend: bandwidth of tensor cores", "times", lines)


def figure_17(report: Report) -> None:
    """Two dataflows with two sets of SAFs, by density."""
    past = "mapping.Shared={target: Shared, type: dataspace, keep: [], bypass: [A, B, Z]}"
    early = "architecture.nodes.DRAM.sparse_optimizations.action_optimization="
    of_b = "{type: skipping, target: B, condition_on: [A]}"
    both = f"{early}[{{type: skipping, target: A, condition_on: [B]}}, {of_b}]"
    designs = {
        "ABZ, innermost": (),
        "ABZ, hierarchical": (both,),
        "ABZ, hierarchical for B alone": (f"{early}[{of_b}]",),
        "AZ, innermost": (past,),
        "AZ, hierarchical": (past, both),
    }
    rows, lines = [], []
    for density in FIGURE_17:
        of_z = 1 - (1 - density**2) ** 256
        data = [
            f"problem.instance.densities.{name}.density={value}"
            for name, value in (("A", density), ("B", density), ("Z", of_z))
        ]
        found = {name: analyzed("two_reuses", *data, *changes) for name, changes in designs.items()}
        costs = {name: each.cycles.total * total(each) for name, each in found.items()}
        base = costs["ABZ, innermost"]
        rows.append((f"{density:g}", *(cost / base for cost in costs.values())))
        lines.append((f"density {density:g}", {name: cost / base for name, cost in costs.items()}))
    report.table(
        "Figure 17, a trend: energy-delay product over that of ABZ, innermost", ("density of A and B", *designs), rows
    )
    report.figure(
        "figure17",
        "Figure 17, a trend: reuse and skipping",
        "energy-delay product over ABZ, innermost",
        lines,
        log=True,
    )


def _compression(analysis: Analysis, run_bits: int | None = None) -> float:
    """Words that DRAM would move without formats over those that it moves with them. run_bits: of the run that each value of a
    tensor with zeros takes; without it what the ranks of the format say, where loops of a window count what they share twice."""
    spec = analysis.spec
    outermost = len(spec.architecture.levels) - 1
    storage, dense, moved = spec.architecture.levels[outermost], 0.0, 0.0
    for number in range(len(spec.workload.problem.tensors)):
        counters, tile = analysis.sparse.counters[outermost, number], analysis.sparse.occupancy[outermost, number]
        for action in ("reads", "updates"):
            own = counters.data(action)
            dense += own.dense
            moved += own.actual + own.gated
            if run_bits is not None and own.actual < own.dense:
                moved += own.actual * run_bits / storage.word_bits
            for rank, words in zip(tile.ranks, counters.formats[action] if run_bits is None else (), strict=False):
                bits = words.metadata.actual * rank.bits[0] + words.payload.actual * rank.bits[1]
                moved += bits / storage.word_bits
    return dense / moved


def table_7(report: Report) -> None:
    """Compression in DRAM of AlexNet on Eyeriss."""
    rows, lines = [], []
    for layer in load_layers([Path("eyeriss"), Path("alexnet")]):
        inputs, outputs, eyeriss, sparseloop = TABLE_7[layer.name]
        data = [
            f"problem.instance.densities.{name}={{distribution: uniform, density: {value}}}"
            for name, value in (("I", inputs), ("W", 1.0), ("O", outputs))
        ]
        data += ["problem.instance.N=4"]
        found = _compression(_best(("eyeriss", "alexnet"), data, layer, report.evaluations), RUN_BITS)
        rows.append((layer.name, eyeriss, sparseloop, found))
        lines.append((layer.name, {"Eyeriss": eyeriss, "Sparseloop": sparseloop, "here": found}))
    heads = ("layer", "Eyeriss", "Sparseloop", "here")
    report.table("Table 7, a trend: compression of DRAM traffic, AlexNet on Eyeriss", heads, rows)
    report.figure("table7", "Table 7, a trend: Eyeriss", "compression of DRAM traffic", lines)
    cases = {name: _compression(each) for name, each in report.cases("table7").items() if name.endswith("sparse")}
    if cases:
        report.table("Table 7, the artifact's inputs", ("case", "compression"), cases.items())


SAVING = (0.45, 0.43)  # Eyeriss' own claim; the paper's, section 6.3.4
GROUPS = {"conv2": 2, "conv4": 2, "conv5": 2}
ELEMENT = ("Scratchpad", "MAC", "MACs", "psum_spad", "weights_spad", "ifmap_spad")


def saving(report: Report) -> None:
    """Energy that the processing elements of Eyeriss save on AlexNet, since zeros of the inputs gate them."""
    sums = [0.0, 0.0]
    rows = []
    for layer in load_layers([Path("eyeriss"), Path("alexnet")]):
        data = ["problem.instance.N=4", "problem.instance.densities={}"]
        dense = _best(("eyeriss", "alexnet"), data, layer, report.evaluations)
        problem = dense.spec.workload.problem
        words = problem.tensors[problem.tensor("I")].size(problem.bounds)
        density = Hypergeometric.of(TABLE_7[layer.name][0], words)
        workload = replace(dense.spec.workload, densities={**dense.spec.workload.densities, "I": density})
        pair = [_of_elements(each) for each in (dense, analyze(replace(dense.spec, workload=workload)))]
        rows.append((layer.name, 1 - pair[1] / pair[0]))
        sums = [whole + layer.times * own for whole, own in zip(sums, pair, strict=True)]
    rows.append(("AlexNet", 1 - sums[1] / sums[0]))
    report.table("Section 6.3.4, a trend: energy that gating saves in the elements of Eyeriss", ("layer", "here"), rows)
    print(f"\nEyeriss says {SAVING[0]:.0%}, Sparseloop {SAVING[1]:.0%}.")
    cases = report.cases("table7")
    if cases:
        energy = {name: _of_elements(each) for name, each in cases.items()}
        names = sorted(name.removesuffix("_dense") for name in energy if name.endswith("_dense"))
        found = [(name, 1 - energy[f"{name}_sparse"] / energy[f"{name}_dense"]) for name in names]
        times = {name: GROUPS.get(name.rpartition("_")[2], 1) for name in names}
        dense_, sparse_ = (
            sum(times[name] * energy[f"{name}_{kind}"] for name in names) for kind in ("dense", "sparse")
        )
        found.append(("all, conv2, conv4 and conv5 twice", 1 - sparse_ / dense_))
        report.table("Section 6.3.4, the artifact's inputs: energy saved in the elements", ("case", "saved"), found)


def _of_elements(analysis: Analysis) -> float:
    """pJ inside the array."""
    return sum(energy for name, energy in analysis.energy.items() if name in ELEMENT)


def _best(names: Sequence[str], changes: Sequence[str], layer: Layer, evaluations: int) -> Analysis:
    """At the best mapping that so many evaluations find."""
    # Values of the layer stand for those of the file; changes come after them.
    spec, space, settings = load_search([Path(name) for name in names], changes, layer=layer)
    found = search(spec, space, replace(settings, evaluations=evaluations), spread=partial(in_order, cores()))
    assert found.best is not None
    return found.best


def designs(report: Report) -> None:
    """Each layer of AlexNet on each design, at the best mapping that so many evaluations find."""

    def rows() -> Iterator[Sequence[Any]]:
        for name in DESIGNS:
            for layer in load_layers([Path(name), Path("alexnet")]):
                own = record(_best((name, "alexnet"), (), layer, report.evaluations))
                energy = f"{own['energy_pJ']['total'] / 1e6:,.1f}"
                yield name, layer.name, own["cycles"], energy, own["computes"]["actual"], own["utilization"]

    heads = ("design", "layer", "cycles", "energy, uJ", "actual computes", "utilization")
    report.table("Designs of table 3 on AlexNet, a trend", heads, rows())


PARTS: dict[str, Callable[[Report], None]] = {
    "figure1": figure_1,
    "figure12": figure_12,
    "figure13": figure_13,
    "figure15": figure_15,
    "figure16": figure_16,
    "figure17": figure_17,
    "table7": table_7,
    "saving": saving,
    "designs": designs,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the parts."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--evaluations", type=int, default=4000)
    parser.add_argument("--inputs", type=Path, help="folder with the artifact's inputs.tar.gz")
    parser.add_argument("--plots", type=Path, help="folder for SVG files")
    options = parser.parse_args(arguments)
    wrong = next((name for name in options.parts if name not in PARTS), None)
    if wrong is not None:
        parser.error(f"{wrong}: must be one of {', '.join(PARTS)}")
    tables = {name: PrintedTable(parser, options, name) for name in options.parts or PARTS}
    with tempfile.TemporaryDirectory() as scratch:
        inputs = None
        if options.inputs is not None:
            inputs = Path(scratch)
            with tarfile.open(options.inputs / "inputs.tar.gz") as archive:
                archive.extractall(inputs, filter="data")
        report = Report(options.evaluations, inputs, options.plots)
        for name, printed in tables.items():
            with printed.printing():
                PARTS[name](report)
            printed.write()


if __name__ == "__main__":
    main()
