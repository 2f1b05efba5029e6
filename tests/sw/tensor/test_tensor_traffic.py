"""The exact traffic of TTM and MTTKRP against dense blocks, walked tile by tile in the kernel's order."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sw.stats.csf import WORD_BYTES
from sw.stats.pattern import Pattern
from sw.tensor.csf import tensor_grid, tensor_words
from sw.tensor.kernels import KERNELS, MTTKRP, TTM, Problem
from sw.tensor.traffic import largest_words, tensor_traffic
from tests.sw.stats.matrices import noise

from .tensors import TENSORS, dense, problem, words

SIDES = [(4, 3, 5, 6), (100, 2, 3, 100), (1, 100, 4, 7), (5, 5, 100, 100), (100, 100, 100, 5), (100,) * 4, (1, 1, 1, 1)]


def walked(task, sides):
    """Every tile of every operand is a block; it stays while ranks inside the innermost of its own moving ones move."""
    kernel, blocks = task.kernel, dense(task)
    ranks = [kernel.order[:3], *kernel.matrices]
    T = dict(zip(kernel.order, sides, strict=True))
    extent = dict(zip(kernel.order, task.extent, strict=True))
    steps = [range(-(-extent[r] // T[r])) for r in kernel.order]
    depth = [max((kernel.order.index(r) + 1 for r in own if extent[r] > T[r]), default=0) for own in ranks]
    read = [0] * len(ranks)
    held = [None] * len(ranks)
    output = visits = macs = 0
    subscripts = f"{','.join(ranks)}->{kernel.output}"
    for place in itertools.product(*steps):
        at = dict(zip(kernel.order, place, strict=True))
        parts = [
            block[tuple(slice(at[r] * T[r], (at[r] + 1) * T[r]) for r in own)]
            for own, block in zip(ranks, blocks, strict=True)
        ]
        if not all(part.any() for part in parts):
            continue
        visits += 1
        for number, part in enumerate(parts):
            if held[number] != place[: depth[number]]:
                held[number] = place[: depth[number]]
                read[number] += WORD_BYTES * words(part)
        product = np.einsum(subscripts, *(part.astype(int) for part in parts))
        macs += product.sum()
        if product.any():
            output += WORD_BYTES * words(product > 0)
    return read, output, visits, macs


@pytest.mark.parametrize("sides", SIDES[:-1])
@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_traffic_is_that_of_a_walk_over_all_tiles(kernel, tensor, sides):
    task = problem(kernel, tensor)
    found = tensor_traffic(task, sides)
    read, output, visits, macs = walked(task, sides)
    assert [found.tensor, *found.matrices] == read
    assert (found.output, found.visits, found.macs) == (output, visits, macs)
    assert found.total == sum(read) + output


@settings(max_examples=40, deadline=None)
@given(
    kernel=st.sampled_from(sorted(KERNELS)),
    shape=st.tuples(*[st.integers(1, 9)] * 3),
    width=st.integers(1, 9),
    sides=st.tuples(*[st.integers(1, 10)] * 4),
    density=st.floats(0, 0.6),
    seed=st.integers(0, 99),
)
def test_traffic_of_anything(kernel, shape, width, sides, density, seed):
    rng = np.random.default_rng(seed)
    coordinates = np.argwhere(rng.random(shape) < density).astype(np.int64)
    found = KERNELS[kernel]
    factors = tuple(Pattern.of(noise(shape[r], width, density, seed + r)) for r in found.contracted)
    task = Problem(found, shape, coordinates, factors)
    traffic = tensor_traffic(task, sides)
    read, output, visits, macs = walked(task, sides)
    assert ([traffic.tensor, *traffic.matrices], traffic.output) == (read, output)
    assert (traffic.visits, traffic.macs) == (visits, macs)


@pytest.mark.parametrize("sides", [sides[:3] for sides in SIDES])
@pytest.mark.parametrize("tensor", TENSORS)
def test_tiles_have_the_footprint_of_their_arrays(tensor, sides):
    shape, coordinates = TENSORS[tensor]
    task = problem("ttm", tensor)
    block = dense(task)[0]
    grid = tensor_grid(task.columns, shape, sides)
    expected = {}
    for place in itertools.product(*(range(-(-size // side)) for size, side in zip(shape, sides, strict=True))):
        part = block[tuple(slice(p * s, (p + 1) * s) for p, s in zip(place, sides, strict=True))]
        if part.any():
            expected[place] = words(part)
    assert dict(zip(map(tuple, grid.places.tolist()), grid.words.tolist(), strict=True)) == expected
    assert sorted(grid.order.tolist()) == list(range(len(coordinates)))
    assert largest_words(task, (*sides, 6))[0] == max(expected.values(), default=0)


def test_ranks_of_any_size_are_sorted(monkeypatch):
    """Where tiles are too many for one key."""
    task = problem("ttm", "skewed")
    sides = (3, 2, 4)
    expected = tensor_grid(task.columns, task.shape, sides)
    monkeypatch.setattr("sw.tensor.csf.LARGEST_KEY", 1)
    found = tensor_grid(task.columns, task.shape, sides)
    assert np.array_equal(found.order, expected.order) and np.array_equal(found.words, expected.words)


def test_kernels_are_those_of_table_3():
    assert (TTM.order, TTM.matrices, TTM.output) == ("ijlk", ("lk",), "ijk")
    assert (MTTKRP.order, MTTKRP.matrices, MTTKRP.output) == ("iklj", ("kj", "lj"), "ij")
    assert tensor_words(3, 2, 2, 1) == 18


def test_what_does_not_go_together_is_refused():
    shape, coordinates = TENSORS["even"]
    with pytest.raises(ValueError, match=r"^ttm needs matrices with \[17\] rows$"):
        Problem(TTM, shape, coordinates, (Pattern.of(noise(16, 4, 0.5)),))
    with pytest.raises(ValueError, match="^mttkrp needs matrices with as many columns as each other$"):
        Problem(MTTKRP, shape, coordinates, (Pattern.of(noise(11, 4, 0.5)), Pattern.of(noise(17, 5, 0.5))))
    with pytest.raises(ValueError, match="^Tile sides must be at least 1, not 4 x 0 x 1$"):
        tensor_grid(problem("ttm", "even").columns, shape, (4, 0, 1))
