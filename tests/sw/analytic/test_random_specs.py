"""Small random specifications against a walk over every operation: SAFs at any level, formats, remainders, bands, windows.

The walk knows the places of the nonzeros and nothing of the model's formulas. A tile that a level hands on is one access for each
of its words; it is needed if some operation that it stays for meets a nonzero of each leader.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sw.analytic.conventions import V04
from sw.analytic.densities.banded import Banded
from sw.analytic.densities.protocol import Density
from sw.analytic.features import Features
from sw.analytic.mapping import Mapping
from sw.analytic.problem import Problem, Tensor
from tests.sw.analytic.machines import A, B, Z, nest, represented, saf, sparse
from tests.sw.analytic.test_dataflow import convolution, drawn, matrices, shortened
from tests.sw.analytic.walker import operations, steps

KINDS = {"gating": "gated", "skipping": "skipped"}
# Enough ranks for any order of loops, those of the level inside among them: the innermost alone leaves zeros out.
CODED = [represented(*["U"] * plain, "CP", inner_first=True) for plain in (11, 23)]


@dataclass(frozen=True)
class Visit:
    """A tile of the target that stays inside, or a word at an operation. needed: some operation needs it."""

    words: frozenset[tuple[int, ...]]
    needed: bool
    operations: int


def at(tensor: Tensor, point: list[int]) -> tuple[int, ...]:
    return tuple(sum(term.coefficient * point[term.dimension] for term in rank) for rank in tensor.ranks)


def visits(
    mapping: Mapping, target: int, leaders: tuple[int, ...], child: int, data: dict[str, np.ndarray]
) -> Iterator[Visit]:
    """Of the level inside that keeps the target, -1 for the units, in order."""
    tensors, places = mapping.problem.tensors, mapping.places
    own = [
        n
        for n, place in enumerate(places)
        if place.level > child and place.loop.dimension in tensors[target].dimensions and place.loop.bound > 1
    ]
    number = itertools.count()

    def tile(pair: tuple[tuple[int, ...], list[int]]) -> tuple[int, ...]:
        return (next(number),) if child < 0 else tuple(pair[0][n] for n in own)

    for _, group in itertools.groupby(zip(steps(mapping), operations(mapping), strict=True), key=tile):
        met = [point for _, point in group]
        shown = all(any(data[tensors[leader].name][at(tensors[leader], point)] for point in met) for leader in leaders)
        yield Visit(frozenset(at(tensors[target], point) for point in met), shown, len(met))


def counted(found: Iterator[Visit], mask: np.ndarray | None) -> Counter[str]:
    """Words that are needed and that are not; only nonzeros where a mask says which these are. Operations that are left."""
    total: Counter[str] = Counter()
    for visit in found:
        words = len(visit.words) if mask is None else sum(bool(mask[place]) for place in visit.words)
        total["needed" if visit.needed else "removed"] += words
        total["operations"] += visit.operations if visit.needed else 0
    return total


def decides(mapping: Mapping, target: int, child: int, level: int) -> bool:
    """Whether a loop of the level, or between, brings the tiles: else the level has handed it on long before."""
    return child < 0 or any(
        place.loop.bound > 1 and place.loop.dimension in mapping.problem.tensors[target].dimensions
        for place in mapping.between(child, level)
    )


def in_time(mapping: Mapping) -> Mapping:
    """The same loops one after the other."""
    return replace(mapping, loops=tuple(tuple(replace(loop, axis="time") for loop in level) for level in mapping.loops))


def cases(problem: Problem, seeds: range, *, shorter: bool = False) -> Iterator[tuple[int, Mapping, int, int]]:
    """Random mappings, a target and a level that hands it on."""
    for seed in seeds:
        random_ = random.Random(seed)
        mapping = in_time(drawn(problem, levels=2 + seed % 2, seed=seed))
        if shorter:
            mapping = shortened(mapping, seed)
        target = random_.choice((A, B, Z))
        level = random_.choice(mapping.keepers(target))
        child = mapping.inner_keeper(target, level)
        if decides(mapping, target, child, level) and not (target == Z and child >= 0):
            yield seed, mapping, target, level


def masked(mapping: Mapping, seed: int) -> dict[str, np.ndarray]:
    random_ = np.random.default_rng(seed)
    return {
        tensor.name: random_.random(tensor.extents(mapping.problem.bounds)) < random_.choice([0.15, 0.4, 0.8])
        for tensor in mapping.problem.tensors
        if not tensor.is_output
    }


def agree(
    mapping: Mapping,
    target: int,
    level: int,
    seed: int,
    data: dict[str, np.ndarray],
    models: dict[str, Density] | None = None,
) -> None:
    """The level's accesses, what arrives inside, and the operations that are left."""
    names = [tensor.name for tensor in mapping.problem.tensors]
    random_ = random.Random(seed + 1)
    leaders = (0, 1) if target == Z else (1 - target,)
    child = mapping.inner_keeper(target, level)
    coded = target != Z and random_.random() < 0.5
    coders = [each for each in (child, level) if coded and each >= 0]
    formats = {(each, target): CODED[number] for number, each in enumerate(coders)}
    kind = random_.choice(list(KINDS))
    features = Features(formats, {level: (saf(kind, target, *leaders),)})
    found = sparse(mapping, features, models or data, V04)
    mask = data[names[target]] if coded else None
    expected = counted(visits(mapping, target, leaders, child, data), mask)
    own = found.counters[level, target]
    accesses = own.updates if target == Z else own.reads
    copies = found.occupancy[level, target].arrives
    assert abs(accesses.actual * copies - expected["needed"]) <= 1.01, (accesses, expected)
    assert abs(getattr(accesses, KINDS[kind]) * copies - expected["removed"]) <= 1.01, (accesses, expected)
    if child >= 0:
        inside = found.counters[child, target].fills
        assert abs(inside.actual * found.occupancy[child, target].arrives - expected["needed"]) <= 1.01
    if target != Z and not coded:
        computes = found.computes
        assert abs(computes.actual + computes.gated + computes.skipped - expected["operations"]) <= 1


PRODUCT = list(cases(matrices((4, 6, 4)), range(60)))
REMAINDERS = [
    case for case in cases(matrices((8, 6, 4)), range(40), shorter=True) if case[1].inner_keeper(case[2], case[3]) < 0
]


@pytest.mark.parametrize("case", PRODUCT, ids=[str(case[0]) for case in PRODUCT])
def test_random_products(case):
    seed, mapping, target, level = case
    agree(mapping, target, level, seed, masked(mapping, seed))


@pytest.mark.parametrize("case", REMAINDERS, ids=[str(case[0]) for case in REMAINDERS])
def test_random_products_with_remainders(case):
    seed, mapping, target, level = case
    agree(mapping, target, level, seed, masked(mapping, seed))


WINDOWS = [
    (*case, stride, dilation)
    for stride, dilation in ((1, 1), (2, 1), (1, 2), (3, 2))
    for case in cases(convolution((2, 6, 4), stride, dilation), range(16))
    if case[1].inner_keeper(case[2], case[3]) < 0 or (case[2] == A and stride == dilation == 1)
]


@pytest.mark.parametrize("case", WINDOWS, ids=["-".join(map(str, (case[0], *case[4:]))) for case in WINDOWS])
def test_random_windows(case):
    """Weights wait for a window of inputs, or single words for each other."""
    seed, mapping, target, level, *_ = case
    agree(mapping, target, level, seed, masked(mapping, seed))


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3)])
def test_a_window_takes_words_at_the_edge_less_often(stride, dilation):
    problem = convolution((6, 40, 8), stride, dilation)
    mapping = nest(problem, "M6 P40 R8", keeps=["WIO"])
    data = {"W": np.ones((6, 8), dtype=bool), "I": np.zeros(39 * stride + 7 * dilation + 1, dtype=bool)}
    data["I"][:12] = True
    found = sparse(mapping, Features({(0, B): CODED[0]}), data, V04)
    expected = counted(visits(mapping, B, (A,), -1, data), data["I"])
    assert abs(found.counters[0, B].reads.actual - expected["needed"]) <= 1
    assert abs(expected["needed"] - data["I"].mean() * problem.computes) > 10, "the share of words says something else"


@pytest.mark.parametrize("case", PRODUCT[::3], ids=[str(case[0]) for case in PRODUCT[::3]])
def test_random_products_side_by_side(case):
    """Instances that share no access: each operation decides for itself."""
    seed = case[0]
    mapping = drawn(matrices((4, 6, 4)), levels=2 + seed % 2, seed=seed)
    mapping = replace(mapping, apart=(frozenset(range(3)),) * len(mapping.loops))
    target = seed % 2
    level = mapping.keepers(target)[0]
    data = masked(mapping, seed)
    found = sparse(mapping, Features({}, {level: (saf("skipping", target, 1 - target),)}), data, V04)
    expected = counted(visits(mapping, target, (1 - target,), -1, data), None)
    reads, instances = found.counters[level, target].reads, mapping.instances(level)
    assert abs(reads.actual * instances - expected["needed"]) <= instances
    assert abs(reads.skipped * instances - expected["removed"]) <= instances


SQUARE = [case for case in cases(matrices((6, 4, 6)), range(40)) if case[2] != A]


@pytest.mark.parametrize("band", [0, 1, 3])
@pytest.mark.parametrize("case", SQUARE, ids=[str(case[0]) for case in SQUARE])
def test_random_products_of_a_band(case, band):
    """B waits for a band of A, which the model knows by its width alone."""
    seed, mapping, target, level = case
    rows = np.arange(6)
    data = {"A": np.abs(rows[:, None] - rows[None, :]) <= band, "B": np.ones((4, 6), dtype=bool)}
    child = mapping.inner_keeper(target, level)
    found = sparse(
        mapping, Features({}, {level: (saf("gating", target, A),)}), {"A": Banded(6, band), "B": data["B"]}, V04
    )
    expected = counted(visits(mapping, target, (A,), child, data), None)
    own = found.counters[level, target]
    accesses = own.updates if target == Z else own.reads
    assert abs(accesses.actual - expected["needed"]) <= 1 and abs(accesses.gated - expected["removed"]) <= 1


@pytest.mark.parametrize("block", [2, 3, 6])
@pytest.mark.parametrize("order", ["M4 N3 K6", "N3 M4 K6", "K6 M4 N6", "M4 K6 N6"])
def test_rows_of_several_words_are_needed_together(order, block):
    """The level reads rows along the innermost loop: one is needed if a word of it is."""
    problem = matrices((4, 3 if "N3" in order else 6, 6))
    mapping = nest(problem, "N1 M1 K1", order, keeps=["BZ", "ABZ"])
    data = masked(mapping, block)
    found = sparse(mapping, Features({}, {1: (saf("skipping", B, A),)}), data, V04, block=block)
    each = list(visits(mapping, B, (A,), 0, data))
    rows = [each[first : first + block] for first in range(0, len(each), block)]
    needed = sum(block for row in rows if any(visit.needed for visit in row))
    assert abs(found.counters[1, B].reads.actual - needed) <= 1
