"""Dense traffic against the walker: random nests, windows, three operands, instances side by side."""

import itertools
import random
from dataclasses import replace
from math import ceil

import pytest

from sw.analytic.conventions import V03, V04
from sw.analytic.dataflow.remainders import arrivals, time_steps
from sw.analytic.mapping import Loop, Mapping
from sw.analytic.problem import Problem, Tensor, Term
from tests.sw.analytic.machines import traffic as dense_traffic
from tests.sw.analytic.walker import steps, walk


def tensor(name: str, *ranks: str | list[tuple[int, int]], output: bool = False) -> Tensor:
    """Ranks by the number of their dimension, or as terms."""
    terms = tuple(
        tuple(Term(*term) for term in rank) if isinstance(rank, list) else (Term(int(rank), 1),) for rank in ranks
    )
    return Tensor(name, terms, output)


def matrices(bounds: tuple[int, int, int]) -> Problem:
    return Problem(
        "product", ("M", "N", "K"), bounds, (tensor("A", "0", "2"), tensor("B", "1", "2"), tensor("Z", "0", "1", output=True))
    )  # fmt: skip


def convolution(bounds: tuple[int, int, int], stride: int, dilation: int) -> Problem:
    window = [(1, stride), (2, dilation)]
    return Problem(
        "convolution",
        ("M", "P", "R"),
        bounds,
        (tensor("W", "0", "2"), tensor("I", window), tensor("O", "0", "1", output=True)),
    )


def three_operands(bounds: tuple[int, int, int, int]) -> Problem:
    return Problem(
        "mttkrp",
        ("I", "J", "K", "L"),
        bounds,
        (
            tensor("A", "0", "2", "3"),
            tensor("B", "2", "1"),
            tensor("C", "3", "1"),
            tensor("X", "0", "1", output=True),
        ),
    )


def drawn(problem: Problem, levels: int, seed: int) -> Mapping:
    """A random mapping: prime factors anywhere, in time or in space, in any order; tensors bypass inner levels at random."""
    random_ = random.Random(seed)
    loops: list[list[Loop]] = []
    factors: dict[tuple[int, int, str], int] = {}
    for dimension, bound in enumerate(problem.bounds):
        left = bound
        for prime in (2, 3, 5, 7):
            while left % prime == 0:
                place = (random_.randrange(levels), dimension, random_.choice(("time", "time", "time", "x", "y")))
                factors[place] = factors.get(place, 1) * prime
                left //= prime
    for level in range(levels):
        order = random_.sample(range(len(problem.bounds)), len(problem.bounds))
        spatial = [
            Loop(d, factors[level, d, axis], axis) for axis in "xy" for d in order if (level, d, axis) in factors
        ]
        loops.append([*spatial, *(Loop(d, factors.get((level, d, "time"), 1)) for d in order)])
    keeps = [[random_.random() < 0.7 for _ in problem.tensors] for _ in range(levels - 1)]
    return Mapping(problem, tuple(map(tuple, loops)), (*map(tuple, keeps), (True,) * len(problem.tensors)))


def compare(mapping: Mapping, *, first_fills: bool) -> None:
    traffic = dense_traffic(mapping, V03 if first_fills else V04)
    counted = walk(mapping, first_fills=first_fills)
    assert traffic.keys() == counted.keys()
    for place, own in traffic.items():
        for action in ("reads", "fills", "updates"):
            words = getattr(counted[place], action)
            expected = getattr(own, action)
            if mapping.imperfect:  # instances differ: the mean, rounded up
                assert expected == ceil(words.total() / mapping.instances(place[0])), (place, action, mapping)
                continue
            assert set(words.values()) <= {expected} if words else expected == 0, (place, action, mapping)
            assert not expected or len(words) == mapping.instances(place[0])


@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed):
    compare(drawn(matrices((4, 6, 4)), levels=2 + seed % 2, seed=seed), first_fills=seed % 3 == 0)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2), (4, 1)])
@pytest.mark.parametrize("seed", range(12))
def test_random_windows(seed, stride, dilation):
    compare(drawn(convolution((2, 6, 4), stride, dilation), levels=2 + seed % 2, seed=seed), first_fills=True)


@pytest.mark.parametrize("seed", range(12))
def test_random_products_of_three(seed):
    compare(drawn(three_operands((2, 3, 2, 2)), levels=3, seed=seed), first_fills=False)


def shortened(mapping: Mapping, seed: int) -> Mapping:
    """The same loops over fewer points, so that some have remainders; the outermost runs no further than it must."""
    random_ = random.Random(seed)
    bounds, loops = [], [list(level) for level in mapping.loops]
    for dimension in range(len(mapping.problem.bounds)):
        own = [p for p in mapping.places if p.loop.dimension == dimension and p.loop.bound > 1]
        if not own:
            bounds.append(1)
            continue
        outermost = own[-1]
        inside = outermost.below[dimension]
        bounds.append(random_.randint(inside + 1, inside * outermost.loop.bound))
        number = loops[outermost.level].index(outermost.loop)
        loops[outermost.level][number] = replace(outermost.loop, bound=ceil(bounds[-1] / inside))
    problem = replace(mapping.problem, bounds=tuple(bounds))
    return Mapping(problem, tuple(map(tuple, loops)), mapping.keeps)


@pytest.mark.parametrize("seed", range(120))
def test_random_products_with_remainders(seed):
    mapping = shortened(drawn(matrices((8, 6, 4)), levels=2 + seed % 2, seed=seed), seed)
    compare(mapping, first_fills=seed % 3 == 0)
    assert time_steps(mapping) == steps_in_time(mapping)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("seed", range(20))
def test_random_windows_with_remainders(seed, stride, dilation):
    mapping = shortened(drawn(convolution((2, 12, 4), stride, dilation), levels=2 + seed % 2, seed=seed), seed)
    compare(mapping, first_fills=True)


@pytest.mark.parametrize("seed", range(20))
def test_random_products_of_three_with_remainders(seed):
    compare(shortened(drawn(three_operands((2, 6, 4, 2)), levels=3, seed=seed), seed), first_fills=False)


def steps_in_time(mapping: Mapping) -> int:
    time = [number for number, place in enumerate(mapping.places) if not place.loop.is_spatial]
    return len({tuple(indices[number] for number in time) for indices in steps(mapping)})


@pytest.mark.parametrize("seed", range(60))
def test_random_products_whose_instances_share_nothing(seed):
    mapping = drawn(matrices((8, 6, 4)), levels=2 + seed % 2, seed=seed)
    mapping = shortened(mapping, seed) if seed % 2 else mapping
    random_ = random.Random(seed)
    apart = tuple(frozenset(t for t in range(3) if random_.random() < 0.5) for _ in mapping.loops)
    compare(replace(mapping, apart=apart), first_fills=seed % 3 == 0)


@pytest.mark.parametrize("seed", range(30))
def test_nests_without_remainders_count_the_same_both_ways(seed):
    mapping = drawn(convolution((4, 6, 4), 1, 1), levels=3, seed=seed)
    traffic = dense_traffic(mapping, V03)
    for (level, number), own in traffic.items():
        if mapping.outer_keeper(number, level) is not None:
            words = arrivals(mapping, mapping.problem.tensors[number], level, ())
            assert words == own.fills * mapping.instances(level)


@pytest.mark.parametrize("seed", range(20))
def test_a_remainder_is_the_length_of_the_last_iteration_of_all_outer_loops(seed):
    """Loops that run as the dialect defines them reach each point of the dimension once, in order."""
    mapping = shortened(drawn(matrices((16, 1, 12)), levels=3, seed=seed), seed)
    for dimension, bound in enumerate(mapping.problem.bounds):
        own = [p for p in reversed(mapping.places) if p.loop.dimension == dimension]

        def run(number: int, base: int, last: bool, own=own, dimension=dimension) -> list[int]:
            if number == len(own):
                return [base]
            place = own[number]
            count = place.residual if last else place.loop.bound
            inner = [run(number + 1, base + i * place.below[dimension], last and i == count - 1) for i in range(count)]
            return list(itertools.chain(*inner))

        assert run(0, 0, True) == list(range(bound))


def test_a_remainder_by_hand():
    """Three rows, two and one: K=2 runs around each, and the last row, which is alone, stays for it."""
    problem = matrices((3, 1, 2))
    inner = (Loop(0, 1), Loop(1, 1), Loop(2, 1))
    middle = (Loop(0, 2), Loop(2, 2))
    mapping = Mapping(problem, (inner, middle, (Loop(0, 2),)), ((True, False, True), (False,) * 3, (True,) * 3))
    assert [place.residual for place in mapping.places if place.loop.bound > 1] == [1, 2, 2]
    traffic = dense_traffic(mapping, V03)
    assert traffic[0, 2].fills == 2 * 2 + 1, "rows 0 and 1 twice, row 2 once"
    assert traffic[0, 0].fills == 6
    assert time_steps(mapping) == 6


def test_a_window_that_slides_by_hand():
    """Six outputs of a window of three, one after another: 3 words, then one for each step."""
    problem = convolution((1, 6, 3), 1, 1)
    inner = (Loop(0, 1), Loop(1, 1), Loop(2, 3))
    outer = (Loop(1, 6), Loop(0, 1), Loop(2, 1))
    mapping = Mapping(problem, (inner, outer), ((True, True, True), (True, True, True)))
    traffic = dense_traffic(mapping, V03)
    assert traffic[0, 1].fills == 3 + 5 * 1 and traffic[1, 1].reads == 8
    assert traffic[0, 0].fills == 3, "the weights stay"
    assert (traffic[0, 2].updates, traffic[0, 2].reads) == (18, 12)


def test_the_walker_sees_a_wrong_count():
    """A loop that does not index the tensor, outside one that does, brings the tile again."""
    problem = matrices((2, 2, 2))
    inner = (Loop(0, 1), Loop(1, 1), Loop(2, 1))
    outer = (Loop(2, 2), Loop(1, 2), Loop(0, 2))
    mapping = Mapping(problem, (inner, outer), ((True,) * 3, (True,) * 3))
    fills = walk(mapping, first_fills=True)[0, 0].fills
    assert fills[()] == 8 and dense_traffic(mapping, V03)[0, 0].fills == 8
    stationary = Mapping(problem, (inner, (Loop(1, 2), Loop(2, 2), Loop(0, 2))), ((True,) * 3, (True,) * 3))
    assert walk(stationary, first_fills=True)[0, 0].fills[()] == 4 == dense_traffic(stationary, V03)[0, 0].fills
