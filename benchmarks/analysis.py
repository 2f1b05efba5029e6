"""How long the analysis takes: many mappings at once, single ones, and computes analysed in a cycle of the host.

    python -m benchmarks.analysis [--mappings 10000] [--json FILE] [--docs PAGE]

Mappings are drawn at random from all that a specification allows; those that do not fit are left out, so that nothing ends early.
They are different from each other, and nothing is remembered from one run to the next. Turning them into arrays is stated apart.
Times are processor times of this process, the least of some runs; tables are those of docs/analysis.md.
"""

import contextlib
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.analytic.analysis import analyze, evaluate, evaluate_nests
from sw.analytic.errors import MappingError
from sw.analytic.mapping import Mapping
from sw.analytic.mapspace import MapSpace
from sw.analytic.nests import Nests
from sw.analytic.spec.load import Spec, load_layers, load_search

RUNS = 5
SINGLES = 40
BUFFER = "architecture.nodes.Buffer"
# Of the product: many factors, so that there are more mappings than a batch takes.
SIDE = 720
# Enough ranks for every order of loops, and a buffer that most tiles fit in.
RANKS = "[{format: UOP}, {format: UOP}, {format: UOP}, {format: CP}]"
SAFS = (
    f"architecture.nodes.DRAM.sparse_optimizations={{representation_format: {{data_spaces: [{{name: A, ranks: {RANKS}}}]}}}}",
    "architecture.nodes.Buffer.sparse_optimizations={representation_format: {data_spaces: [{name: A, ranks: "
    "[{format: UOP}, {format: CP}]}]}, action_optimization: [{type: skipping, target: B, condition_on: [A]}, "
    "{type: skipping, target: Z, condition_on: [A]}]}",
    f"{BUFFER}.attributes.depth=262144",
    f"{BUFFER}.attributes.metadata_storage_depth=262144",
    *(f"problem.instance.{dimension}={SIDE}" for dimension in "MNK"),
    f"{BUFFER}.constraints={{dataspace: {{keep: [A, B, Z]}}}}",
)
DENSE = (
    "architecture.nodes.DRAM.sparse_optimizations={}",
    f"{BUFFER}.sparse_optimizations={{}}",
    f"{BUFFER}.attributes.depth=8192",
)
WINDOWS = (
    *DENSE[:2],
    f"{BUFFER}.attributes.depth=65536",
    "problem={einsum: 'O[m,p,q] = W[m,c,r,s] * I[c,p+r,q+s]', instance: {m: 64, c: 32, p: 28, q: 28, r: 3, s: 3, "
    "densities: {I: {distribution: hypergeometric, density: 0.4}, W: {distribution: hypergeometric, density: 0.5}}}}",
    f"{BUFFER}.sparse_optimizations={{action_optimization: [{{type: gating, target: W, condition_on: [I]}}]}}",
    f"{BUFFER}.constraints={{dataspace: {{keep: [W, I, O]}}}}",
)
DENSITY = "problem.instance.densities.A="
CASES: dict[str, tuple[str, ...]] = {
    "product, formats and SAFs, uniform": SAFS,
    "product, formats and SAFs, fixed-structured": (*SAFS, f"{DENSITY}0.1"),
    "product, dense": (*DENSE, f"{BUFFER}.constraints={{dataspace: {{keep: [A, B, Z]}}}}"),
    "product, dense, any tensor kept or not": DENSE,
    "convolution of seven loops, gating, uniform": WINDOWS,
    "product, formats and SAFs, banded": (*SAFS, f"{DENSITY}{{distribution: banded, band_width: 3}}"),
    "product, formats and SAFs, actual data": SAFS,
}


def cases(name: str) -> tuple[Spec, MapSpace]:
    """The specification of a case; actual data are those of a random mask."""
    spec, space, _ = load_search([Path("sparse_product")], CASES[name])
    if name.endswith("actual data"):
        from sw.analytic.densities.actual import Actual

        mask = np.random.default_rng(0).random((SIDE, SIDE)) < 0.1
        spec = replace(spec, workload=replace(spec.workload, densities={**spec.workload.densities, "A": Actual(mask)}))
    return spec, space


def drawn(spec: Spec, space: MapSpace, count: int) -> list[Mapping]:
    """Different mappings that fit, as many as there are after some time."""
    random_ = random.Random(0)
    found: dict[Any, Mapping] = {}
    for _ in range(60):
        some: dict[Any, Mapping] = {}
        for _ in range(count // 4):
            try:
                mapping = space.mapping(space.draw(random_))
            except MappingError:
                continue
            some[mapping.loops, mapping.keeps] = mapping
        mappings = list(some.values())
        valid = evaluate(spec, mappings).valid
        found.update((key, mapping) for (key, mapping), fits in zip(some.items(), valid, strict=True) if fits)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def groups_of(mappings: Sequence[Mapping]) -> list[tuple[np.ndarray, Nests]]:
    """The mappings as arrays; those that keep the same tensors stand together."""
    groups: dict[Any, list[int]] = {}
    for number, mapping in enumerate(mappings):
        groups.setdefault(mapping.keeps, []).append(number)
    return [(np.array(own), Nests.of([mappings[number] for number in own])) for own in groups.values()]


def seconds(run: Callable[[], object], runs: int = RUNS) -> float:
    """The least processor time."""
    found = []
    for _ in range(runs):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def fresh(groups: Sequence[tuple[np.ndarray, Nests]]) -> list[tuple[np.ndarray, Nests]]:
    """The same mappings without anything that was computed of them."""
    return [(numbers, nests.take(np.arange(nests.count))) for numbers, nests in groups]


def measure(name: str, count: int) -> dict[str, Any]:
    spec, space = cases(name)
    mappings = drawn(spec, space, count)
    arrays = seconds(lambda: groups_of(mappings), 1)
    groups = groups_of(mappings)
    found = []
    for _ in range(RUNS):
        own = fresh(groups)
        found.append(seconds(partial(evaluate_nests, spec, own), 1))
    evaluations = evaluate_nests(spec, fresh(groups))
    assert evaluations.valid.all()
    singles = [replace(spec, mapping=mapping) for mapping in mappings[:SINGLES]]
    alone = seconds(lambda: [analyze(each) for each in singles]) / len(singles)
    return {
        "case": name,
        "mappings": len(mappings),
        "groups": len(groups),
        "microseconds": min(found) / len(mappings) * 1e6,
        "arrays_microseconds": arrays / len(mappings) * 1e6,
        "single_microseconds": alone * 1e6,
        "computes": spec.workload.problem.computes,
    }


# Computes in a cycle of the host, of table 5 of Sparseloop (MICRO 2022), on an Intel Xeon Gold 6252.
TABLE_5 = {
    "eyeriss": {"resnet50": 5200, "bert_base": 13300, "vgg16": 53800, "alexnet": 21400},
    "eyeriss_v2_pe": {"resnet50": 2700, "bert_base": 12500, "vgg16": 20400, "alexnet": 13200},
    "scnn": {"resnet50": 1100, "bert_base": 4300, "vgg16": 3700, "alexnet": 5200},
}


def network(design: str, name: str, batch: int, count: int) -> tuple[float, float, float]:
    """Computes (actual and gated) of a network, seconds to evaluate a mapping of each kind of layer among many, and one alone."""
    files = [Path(design), Path(name)]
    computes, many, alone = 0.0, 0.0, 0.0
    for layer in load_layers(files):
        values = {**layer.values, "problem.instance": {**layer.values["problem.instance"], "N": batch}}
        spec, space, _ = load_search(files, (), layer=replace(layer, values=values))
        random_ = random.Random(0)
        mappings = []
        while len(mappings) < count:
            with contextlib.suppress(MappingError):
                mappings.append(space.mapping(space.draw(random_)))
        groups = groups_of(mappings)
        runs = [fresh(groups) for _ in range(RUNS)]
        many += min(seconds(partial(evaluate_nests, spec, own), 1) for own in runs) / count
        evaluations = evaluate_nests(spec, fresh(groups))
        fits = int(np.flatnonzero(evaluations.valid)[0])
        one = replace(spec, mapping=mappings[fits])
        alone += seconds(partial(analyze, one), 3)
        found = evaluations.found(fits).sparse.computes
        computes += layer.times * (found.actual + found.gated)
    return computes, many, alone


def host_hertz() -> float:
    """Of the processor, as it says itself."""
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"cpu MHz\s*:\s*([\d.]+)", text)
    return float(found[1]) * 1e6 if found else float("nan")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--mappings", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    rows = [measure(name, options.mappings) for name in CASES]
    printed.head(
        ("specification", "mappings", "sets of kept tensors", "us an evaluation", "us to make arrays", "us alone")
    )
    for row in rows:
        counts = f"{row['mappings']:,}", str(row["groups"]), f"{row['microseconds']:.2f}"
        printed.row((row["case"], *counts, f"{row['arrays_microseconds']:.1f}", f"{row['single_microseconds']:,.0f}"))
    hertz = host_hertz()
    printed.line(f"\nhost: {hertz / 1e9:.2f} GHz, one core\n")
    many = [f"batch {batch}, among many" for batch in (1, 4)]
    printed.head(("design", "network", "published", *many, "batch 1, alone"), texts=2)
    for design, cells in TABLE_5.items():
        for name, published in cells.items():
            small, large = (network(design, name, batch, options.mappings // 2) for batch in (1, 4))
            rates = [small[0] / small[1] / hertz, large[0] / large[1] / hertz, small[0] / small[2] / hertz]
            printed.row((design, name, f"{published:,}", *(f"{rate:,.0f}" for rate in rates)))
    printed.write()
    if options.json:
        options.json.write_text(json.dumps({"hertz": hertz, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
