"""Tile occupancies against counting in a dense array."""

import numpy as np
import pytest

from sw.stats.occupancy import Occupancy, TileList, as_grid, fits, occupancy, sample_occupancies
from sw.stats.pattern import Pattern
from tests.sw.stats.matrices import MATRICES

SHAPES = [(1, 1), (1, 1000), (1000, 1), (7, 5), (16, 16), (64, 3), (1000, 1000)]


def counted(matrix, tile_rows, tile_columns):
    """Occupancy of every tile, as an array of tiles."""
    dense = (matrix.toarray() != 0).astype(int)
    rows, columns = -(-dense.shape[0] // tile_rows), -(-dense.shape[1] // tile_columns)
    padded = np.zeros((rows * tile_rows, columns * tile_columns), int)
    padded[: dense.shape[0], : dense.shape[1]] = dense
    return padded.reshape(rows, tile_rows, columns, tile_columns).sum(axis=(1, 3))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_exact_occupancies_are_those_of_a_dense_count(name, shape):
    matrix = MATRICES[name]
    expected = counted(matrix, *shape)
    found = occupancy(Pattern.of(matrix), *shape)
    sizes, counts = np.unique(expected, return_counts=True)
    assert found.histogram() == dict(zip(sizes.tolist(), counts.tolist(), strict=True))
    assert found.largest == expected.max()
    assert found.mean == pytest.approx(expected.mean())


@pytest.mark.parametrize("name", MATRICES)
def test_fits_is_the_comparison_with_the_worst_tile(name):
    pattern = Pattern.of(MATRICES[name])
    worst = occupancy(pattern, 9, 11).largest
    assert fits(pattern, 9, 11, worst)
    assert worst == 0 or not fits(pattern, 9, 11, worst - 1)


@pytest.mark.parametrize("name", MATRICES)
def test_tile_lists_merge_to_the_same_tiles_by_any_way(name):
    matrix = MATRICES[name]
    pattern = Pattern.of(matrix)
    uses = np.arange(matrix.shape[0], dtype=np.int64) + 1
    singles = TileList.single(pattern, uses)
    at_once = singles.merged(12, 20)
    in_steps = singles.merged(3, 5).merged(4, 1).merged(1, 4)
    assert np.array_equal(as_grid(at_once), counted(matrix, 12, 20))
    assert np.array_equal(as_grid(in_steps), counted(matrix, 12, 20))
    weighted = counted(matrix * 1, 12, 20) * 0
    np.add.at(weighted, (at_once.rows, at_once.columns), at_once.weight)
    rows, columns = matrix.nonzero()
    expected = np.zeros_like(weighted)
    np.add.at(expected, (rows // 12, columns // 20), uses[rows])
    assert np.array_equal(weighted, expected)


def test_quantile_is_what_the_given_share_exceeds():
    tiles = Occupancy(10, np.array([1, 2, 3, 4, 9], np.int64))
    assert [tiles.quantile(share) for share in (0.0, 0.1, 0.3, 0.5, 0.9)] == [9, 4, 2, 0, 0]
    for share in (0.0, 0.1, 0.25, 0.5):
        assert tiles.overbooked(tiles.quantile(share)) <= share


@pytest.mark.parametrize("shape", [(2, 50), (16, 16)], ids=str)
def test_samples_have_the_distribution_of_the_tiles(shape):
    """The first shape is counted tile by tile, the second by way of all tiles."""
    pattern = Pattern.of(MATRICES["power_law"])
    found = sample_occupancies(pattern, *shape, 4000 if shape == (16, 16) else 60, np.random.default_rng(5))
    exact = occupancy(pattern, *shape)
    spread = np.sqrt(
        (np.sum((exact.nonempty - exact.mean) ** 2) + (exact.tiles - len(exact.nonempty)) * exact.mean**2) / exact.tiles
    )
    assert abs(found.mean() - exact.mean) < 4 * spread / np.sqrt(len(found))
    assert found.max() <= exact.largest


def test_tile_by_tile_sampling_counts_what_is_there():
    matrix = MATRICES["noise"]
    pattern = Pattern.of(matrix)
    found = sample_occupancies(pattern, 2, 30, 40, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(0, 150, 40), rng.integers(0, 10, 40)
    assert np.array_equal(found, counted(matrix, 2, 30)[rows, columns])


def test_samples_of_nothing_are_zero():
    assert not sample_occupancies(Pattern.of(MATRICES["empty"]), 2, 2, 10, np.random.default_rng(0)).any()


@pytest.mark.parametrize("shape", [(0, 1), (1, 0)])
def test_a_tile_without_sides_is_refused(shape):
    with pytest.raises(ValueError, match="^Tile shape must be at least 1 x 1, not"):
        occupancy(Pattern.of(MATRICES["one"]), *shape)
