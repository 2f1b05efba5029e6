"""Swiftiles at known answers: what the y quantile of tile occupancies is, and what size follows from it.

The room is a plain one here: ``b`` elements for every shape, tiles of whole rows or of parts of one row.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from sw.cost.candidates.share_of_b import ShareOfB
from sw.policies.registry import schedule
from sw.policies.swiftiles import tile_shape
from sw.stats.pattern import Pattern
from tests.sw.cost.machines import EDGE, TINY
from tests.sw.stats.matrices import noise

HEIGHT = 10  # rows of an initial tile, or its columns in hundreds


class Bands:
    """Tiles of whole rows; ``b`` elements have room."""

    def __init__(self, b):
        self.b = b

    def capacity(self, T_k):
        return self.b

    def shape(self, size, J, K):
        return max(1, min(K, int(size // J))), J


class Spans(Bands):
    """Tiles of one row and some of its columns."""

    def shape(self, size, J, K):
        return 1, max(1, min(J, int(size)))


class EachInTurn:
    """Draws every number equally often, one after another."""

    def integers(self, low, high, size):
        return low + np.arange(size) % (high - low)


def in_bands(occupancies, height=HEIGHT):
    """A matrix whose bands of ``height`` rows hold these numbers of elements, in rows as even as can be."""
    lengths = np.concatenate([np.full(height, n // height) + (np.arange(height) < n % height) for n in occupancies])
    coordinates = np.concatenate([np.arange(length) for length in lengths]).astype(np.int64)
    columns = int(lengths.max())
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SimpleNamespace(K=len(lengths), J=columns, b=Pattern(len(lengths), columns, pointers, coordinates))


def in_spans(occupancies, width):
    """One row whose spans of ``width`` columns hold these numbers of elements."""
    begins = np.repeat(np.arange(len(occupancies)) * width, occupancies)
    within = np.concatenate([np.arange(n) for n in occupancies])
    pattern = Pattern(1, len(occupancies) * width, np.array([0, len(within)]), (begins + within).astype(np.int64))
    return SimpleNamespace(K=1, J=len(occupancies) * width, b=pattern)


def shuffled(occupancies, seed=1):
    return np.random.default_rng(seed).permutation(np.asarray(occupancies))


# Occupancies of 100 initial tiles; for shares y the smallest number that at most this share exceeds, by hand.
DISTRIBUTIONS = {
    "1 to 100": (range(1, 101), {0.01: 99, 0.05: 95, 0.1: 90, 0.25: 75, 0.5: 50, 0.9: 10}),
    "one in ten is long": ([20] * 90 + [1000] * 10, {0.05: 1000, 0.09: 1000, 0.1: 20, 0.5: 20}),
    "steps": ([10] * 50 + [30] * 30 + [70] * 15 + [400] * 5, {0.01: 400, 0.05: 70, 0.2: 30, 0.49: 30, 0.5: 10}),
    "half are empty": ([0] * 50 + list(range(1, 51)), {0.1: 40, 0.3: 20, 0.49: 1}),
    # More than 1 - y are empty: the others decide among themselves.
    "four in five are empty": ([0] * 80 + [4] * 15 + [40] * 5, {0.04: 40, 0.1: 4, 0.2: 40}),
    "nine in ten are empty": ([0] * 90 + [3] * 8 + [50] * 2, {0.3: 3, 0.5: 3}),
    "all alike": ([37] * 100, {0.01: 37, 0.1: 37, 0.9: 37}),
}
CASES = [(name, y) for name, (_, quantiles) in DISTRIBUTIONS.items() for y in quantiles]


def room_of(workload, tiles):
    """As much as makes ``tiles`` the number of initial tiles: the mean occupancy, and a little more against rounding."""
    return workload.b.nnz / tiles * 1.0001


@pytest.mark.parametrize(("name", "y"), CASES, ids=lambda value: str(value))
def test_size_is_exact_where_every_tile_is_looked_at(name, y):
    """The quantile of the initial tiles fills the room: T = b T_0 / Q, cut to a whole row."""
    occupancies, quantiles = DISTRIBUTIONS[name]
    workload = in_bands(shuffled(list(occupancies)))
    b = room_of(workload, 100)
    found = tile_shape(workload, Bands(b), y, math.ceil(100 * y), EachInTurn())
    assert found == (min(workload.K, max(1, math.floor(b * HEIGHT / quantiles[y]))), workload.J)


@pytest.mark.parametrize(("name", "y"), CASES, ids=lambda value: str(value))
def test_size_is_exact_along_a_row(name, y):
    """The same where tiles are cut out of a row, and in columns, which are finer."""
    occupancies, quantiles = DISTRIBUTIONS[name]
    width = 100 * HEIGHT
    workload = in_spans(shuffled(list(occupancies)), width)
    b = room_of(workload, 100)
    _, found = tile_shape(workload, Spans(b), y, math.ceil(100 * y), EachInTurn())
    # The room is a ten-thousandth more than the mean, and so is the initial tile: the last one is short by a hundredth.
    wanted = b * width / quantiles[y]
    assert found == pytest.approx(min(workload.J, wanted), abs=1.5)


@pytest.mark.parametrize("y", [0.05, 0.1, 0.3, 0.6])
def test_sampled_quantile_is_as_near_as_samples_allow(y):
    """Of n samples k = y n lie above: the share of tiles above the quantile has a deviation of sqrt(y (1 - y) / n).

    Occupancies 1 to 1000 tell the share from the size. Four deviations for the farthest of 40 seeds, and for their mean four of
    its own, beside the half step that lies between the k-th and the next sample.
    """
    width, k = 1000, 100
    workload = in_spans(shuffled(range(1, 1001), seed=7), width)
    b = room_of(workload, 1000)
    shares = []
    for seed in range(40):
        _, found = tile_shape(workload, Spans(b), y, k, np.random.default_rng(seed))
        shares.append(1 - b * width / found / 1000)
    deviation = math.sqrt(y * (1 - y) / math.ceil(k / y))
    assert np.abs(np.array(shares) - y).max() < 4 * deviation
    assert abs(np.mean(shares) - y) < 4 * deviation / math.sqrt(40) + 1 / math.ceil(k / y)
    assert np.std(shares) > deviation / 2, "the samples are not independent of each other"


@pytest.mark.parametrize("machine", [TINY, EDGE], ids=["tiny", "edge"])
@pytest.mark.parametrize("k", [1, 20])
def test_tiles_that_are_all_alike_fill_the_partition(machine, k):
    """All elements are there: every quantile is a full tile, which has room, and with one more column it has none."""
    A, B = noise(30, 200, 1.0), noise(200, 400, 1.0)
    found = schedule("swiftiles", A, B, machine, y=0.1, k=k)
    share = ShareOfB(machine)
    assert found.T_k * found.T_j <= share.capacity(found.T_k) < found.T_k * (found.T_j + 1)
