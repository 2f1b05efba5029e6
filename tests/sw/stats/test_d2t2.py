"""D2T2's statistics against dense arithmetic, and the exact traffic of tilings against SciPy, tile by tile."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sw.stats.csf import WORD_BYTES, csf_words, largest_tile, tile_grid
from sw.stats.d2t2 import tile_statistics
from sw.stats.nnzc import exact_counts, exact_nnzc_by_tk
from sw.stats.pattern import Pattern
from sw.stats.tiled_traffic import footprints, partial_products, reads_again, tiled_traffic
from tests.sw.stats.matrices import MATRICES, banded, noise, power_law


def blocks(matrix, rows, columns):
    """Nonempty tiles as dense blocks, by place."""
    dense = matrix.toarray() != 0
    found = {}
    for r in range(0, dense.shape[0], rows):
        for c in range(0, dense.shape[1], columns):
            block = dense[r : r + rows, c : c + columns]
            if block.any():
                found[r // rows, c // columns] = block
    return found


def words(block):
    """A CSF tile, array by array: coordinates and segments of both levels, values."""
    fibers = np.flatnonzero(block.any(axis=1))
    level_1 = {"segments": [0, len(fibers)], "coordinates": fibers}
    elements = [np.flatnonzero(block[f]) for f in fibers]
    level_2 = {"segments": np.cumsum([0, *map(len, elements)]), "coordinates": np.concatenate(elements)}
    values = level_2["coordinates"]
    return sum(len(x) for level in (level_1, level_2) for x in level.values()) + len(values)


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (5, 13), (1000, 1000)])
@pytest.mark.parametrize("name", MATRICES)
def test_tiles_have_the_footprint_of_their_arrays(name, shape):
    matrix = MATRICES[name]
    grid = tile_grid(Pattern.of(matrix), *shape)
    expected = blocks(matrix, *shape)
    places = list(zip(grid.rows.tolist(), grid.columns.tolist(), strict=True))
    assert sorted(places) == sorted(expected)
    for place, found in zip(places, grid.words, strict=True):
        assert found == words(expected[place])
    assert largest_tile(Pattern.of(matrix), *shape) == max(grid.words, default=0)


def test_tile_shapes_must_be_positive():
    with pytest.raises(ValueError, match="^Tile shape must be at least 1 x 1, not 0 x 4$"):
        tile_grid(Pattern.of(MATRICES["one"]), 0, 4)


@pytest.mark.parametrize("T", [4, 16])
@pytest.mark.parametrize("name", ["noise", "oblong", "tall", "banded", "power_law", "one_row", "dense"])
def test_statistics_are_those_of_the_dense_blocks(name, T):
    matrix = MATRICES[name]
    tiles = blocks(matrix, T, T)
    found = tile_statistics(Pattern.of(matrix), T)
    high, wide = -(-matrix.shape[0] // T), -(-matrix.shape[1] // T)
    sizes = [words(b) for b in tiles.values()]
    assert found.tiles == len(tiles)
    assert found.max_tile == max(sizes)
    assert found.size_tile == pytest.approx(np.mean(sizes))
    assert found.probability == pytest.approx(len(tiles) / (high * wide))
    assert found.outer_rows == pytest.approx(len({r for r, _ in tiles}) / high)
    padded = [np.pad(b, ((0, T - b.shape[0]), (0, T - b.shape[1]))) for b in tiles.values()]
    assert found.inner_row == pytest.approx(np.mean([b.any(axis=1) for b in padded], axis=0))
    mean = np.mean(padded, axis=0).sum(axis=1) / min(T, matrix.shape[1])
    assert found.element_probability == pytest.approx(mean)
    by_row = np.zeros(high, int)
    for (r, _), b in tiles.items():
        by_row[r] += b.sum()
    assert np.array_equal(found.row_nonzeros, by_row)
    assert found.row_tiles.sum() == found.column_tiles.sum() == len(tiles)
    assert found.column_nonzeros.sum() == matrix.nnz


@pytest.mark.parametrize("name", ["banded", "dense", "one", "one_row"])
def test_corrs_are_the_mean_overlap_of_rows_inside_tiles(name):
    matrix, T = MATRICES[name], 16
    tiles = blocks(matrix, T, T)
    found = tile_statistics(Pattern.of(matrix), T, shifts=T)
    assert len(tiles) <= 64  # more are sampled
    shifts = min(T, matrix.shape[0])
    expected = np.zeros(shifts)
    for b in tiles.values():
        expected += [(b[: len(b) - s] & b[s:]).sum() / b.sum() if s < len(b) else 0 for s in range(shifts)]
    assert found.corrs == pytest.approx(expected / len(tiles))


def test_corrs_tell_bands_from_noise():
    """A row of a band of half width h shares 2 h + 1 - s of 2 h + 1 places with the one s further on; corners fewer."""
    band = tile_statistics(Pattern.of(banded(4096, 10)), 512, shifts=512)
    assert 0.4 < band.corrs[4] < 17 / 21
    assert band.corrs[30] == 0
    even = tile_statistics(Pattern.of(noise(2048, 2048, 0.01)), 512, shifts=512)
    assert even.corrs[0] == 1
    assert even.corrs[1:300].max() < 0.03
    assert np.array_equal(tile_statistics(Pattern.of(noise(64, 64, 0.1)), 8).corrs, [])


def test_tile_corrs_are_overlaps_of_rows_of_tiles():
    matrix = MATRICES["power_law"]
    grid = np.zeros((13, 13), bool)
    for place in blocks(matrix, 32, 32):
        grid[place] = True
    found = tile_statistics(Pattern.of(matrix), 32)
    for s in range(13):
        assert found.row_corrs[s] == pytest.approx((grid[: 13 - s] & grid[s:]).sum() / grid[: 13 - s].sum())
        assert found.column_corrs[s] == pytest.approx((grid[:, : 13 - s] & grid[:, s:]).sum() / grid[:, : 13 - s].sum())


def by_scipy(A, B, shape, order):
    """The paper's machine, tile by tile in the given order: a tile stays while only loops inside its own ranks' move."""
    T = dict(zip("ijk", shape, strict=True))
    extent = dict(zip("ijk", (A.shape[0], B.shape[1], A.shape[1]), strict=True))
    counts = [range(-(-extent[r] // T[r])) for r in order]
    depth = {
        t: max((order.index(r) + 1 for r in own if extent[r] > T[r]), default=0)
        for t, own in (("A", "ik"), ("B", "kj"))
    }
    tiles_a, tiles_b = blocks(A, T["i"], T["k"]), blocks(B, T["k"], T["j"])
    total = {"A": 0, "B": 0, "C": 0}
    visits = 0
    held = {"A": None, "B": None}
    for first in counts[0]:
        for second in counts[1]:
            for third in counts[2]:
                at = dict(zip(order, (first, second, third), strict=True))
                a, b = tiles_a.get((at["i"], at["k"])), tiles_b.get((at["k"], at["j"]))
                if a is None or b is None:
                    continue
                visits += 1
                for tensor, block in (("A", a), ("B", b)):
                    place = (first, second, third)[: depth[tensor]]
                    if held[tensor] != place:
                        held[tensor] = place
                        total[tensor] += WORD_BYTES * words(block)
                product = (a.astype(int) @ b.astype(int)) > 0
                if product.any():
                    total["C"] += WORD_BYTES * words(product)
    return total, visits


@pytest.mark.parametrize("order", ["ijk", "ikj", "jik", "jki", "kij", "kji"])
@pytest.mark.parametrize("name", ["noise", "oblong", "tall", "banded", "power_law"])
def test_traffic_is_that_of_a_walk_over_all_tiles(name, order):
    A = MATRICES[name]
    B = A if A.shape[0] == A.shape[1] else sp.csr_array(A.T.tocsr())
    for shape in ((40, 24, 32), (1000, 16, 64), (16, 1000, 48), (64, 64, 1000)):
        found = tiled_traffic(Pattern.of(A), Pattern.of(B), shape, order)
        total, visits = by_scipy(A, B, shape, order)
        assert (found.A, found.B, found.C, found.visits) == (total["A"], total["B"], total["C"], visits)


def test_ranks_with_one_tile_do_not_move():
    assert reads_again("ikj", {"i": 4, "j": 4, "k": 4}) == {"A": False, "B": True}
    assert reads_again("ijk", {"i": 4, "j": 4, "k": 4}) == {"A": True, "B": True}
    assert reads_again("ijk", {"i": 4, "j": 4, "k": 1}) == {"A": False, "B": True}
    assert reads_again("kji", {"i": 4, "j": 4, "k": 4}) == {"A": True, "B": False}
    assert reads_again("ijk", {"i": 1, "j": 4, "k": 4}) == {"A": True, "B": False}


@settings(max_examples=40, deadline=None)
@given(
    sides=st.tuples(*[st.integers(1, 40)] * 3),
    tiles=st.tuples(*[st.integers(1, 45)] * 3),
    density=st.floats(0, 0.5),
    seed=st.integers(0, 99),
)
def test_partial_products_of_anything(sides, tiles, density, seed):
    I, J, K = sides  # noqa: E741 - extents, as in the papers
    T_i, T_j, T_k = tiles
    A, B = noise(I, K, density, seed), noise(K, J, density, seed + 1)
    found = partial_products(Pattern.of(A), Pattern.of(B), T_i, T_j, T_k)
    nonzeros = fibers = count = 0
    for k in range(0, K, T_k):
        C = (A[:, k : k + T_k] @ B[k : k + T_k, :]).toarray() > 0
        for block in blocks(sp.csr_array(C), T_i, T_j).values():
            nonzeros, fibers, count = nonzeros + block.sum(), fibers + block.any(axis=1).sum(), count + 1
    assert (found.nonzeros, found.fibers, found.tiles) == (nonzeros, fibers, count)


@pytest.mark.parametrize("name", MATRICES)
def test_nnzc_of_all_powers_of_two_without_the_product(name):
    A = MATRICES[name]
    B = A if A.shape[0] == A.shape[1] else sp.csr_array(A.T.tocsr())
    exact = exact_counts(Pattern.of(A), Pattern.of(B))
    assert exact_nnzc_by_tk(Pattern.of(A), Pattern.of(B)) == dict(
        zip(exact.tiles_k, exact.nnz_by_tk.astype(int).tolist(), strict=True)
    )


def test_footprints_are_a_distribution():
    matrix = power_law(900)
    sizes, counts = footprints(Pattern.of(matrix), 64, 32)
    expected = sorted(WORD_BYTES * words(b) for b in blocks(matrix, 64, 32).values())
    assert np.repeat(sizes, counts).tolist() == expected
    assert csf_words(3, 2, 1) == 13
