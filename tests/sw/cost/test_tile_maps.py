"""Lines of the tile maps that the cost model predicts: those that a walk over every tile reads, bit by bit."""

from itertools import product

import numpy as np
import pytest

from sw.cost.tile_maps import map_lines
from sw.model.walk import TileWalk
from sw.scheme.terms import ORDERS


def looked_up(order, counts, bits):
    """One bit of each map for each tile in turn; the line that was read last is kept."""
    tiles = dict(zip("ijk", counts, strict=True))
    at = dict(zip(order, np.indices([tiles[rank] for rank in order]).reshape(3, -1), strict=True))
    line = {"A": (at["i"] * tiles["k"] + at["k"]) // bits, "B": (at["k"] * tiles["j"] + at["j"]) // bits}
    return {tensor: 1 + int(np.count_nonzero(np.diff(found))) for tensor, found in line.items()}


@pytest.mark.parametrize("order", ORDERS)
def test_lines_are_those_of_every_lookup(order):
    """More tiles than a line has bits, as many, fewer; one; counts that divide it and that do not."""
    rng = np.random.default_rng(ORDERS.index(order))
    drawn = [tuple(int(n) for n in rng.integers(1, 24, 3)) for _ in range(60)]
    for counts in [*product((1, 2, 8, 11), repeat=3), *drawn]:
        for bits in (4, 8, 16, 64):
            assert map_lines(order, counts, bits) == looked_up(order, counts, bits), (counts, bits)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [0.0, 0.02, 0.6])
def test_lines_are_those_that_the_model_tier_counts(order, density):
    """Also where empty tiles are left out."""
    rng = np.random.default_rng(5)
    for counts in ((9, 20, 31), (1, 70, 6), (40, 3, 17)):
        i, j, k = counts
        walk = TileWalk(
            counts, (1, 1, 1), order, rng.random((i, k)) < density, rng.random((k, j)) < density, line_bits=16
        )
        for _ in walk:
            pass
        assert map_lines(order, counts, 16) == walk.map_lines, counts


def test_large_counts_take_no_longer():
    """10^7 tiles a rank: as many lines as there are, once where the walk follows the map and for each lookup across it."""
    size, bits = 10**7, 128
    found = map_lines("ijk", (size, size, size), bits)
    assert found["B"] == size**3  # down a column of the map no line holds two bits
    assert found["A"] == size * size * (size // bits)
