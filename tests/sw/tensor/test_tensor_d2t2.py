"""D2T2's statistics of order 3 against dense blocks, and what follows from them where it is known."""

import itertools

import numpy as np
import pytest

from sw.stats.pattern import Pattern
from sw.tensor.d2t2 import matrix_statistics, tensor_statistics
from sw.tensor.occupancy import merged, occupancy
from tests.sw.stats.matrices import banded, noise

from .tensors import TENSORS, dense, problem, words


def cells(block: np.ndarray, sides) -> np.ndarray:
    """Which cells hold something."""
    counts = [-(-size // side) for size, side in zip(block.shape, sides, strict=True)]
    found = np.zeros(counts, bool)
    for place in itertools.product(*map(range, counts)):
        found[place] = block[tuple(slice(p * s, (p + 1) * s) for p, s in zip(place, sides, strict=True))].any()
    return found


@pytest.mark.parametrize("tensor", ["even", "skewed", "diagonal", "corner", "one"])
@pytest.mark.parametrize(("sides", "ranks"), [((4, 4, 4), (0, 1, 2)), ((1, 4, 3), (1, 2)), ((1, 1, 5), (2,))])
def test_cells_neighbours_and_coordinates_are_counted(tensor, sides, ranks):
    task = problem("ttm", tensor)
    block = dense(task)[0]
    found = occupancy(task.columns, task.shape, sides, ranks)
    held = cells(block, sides)
    assert found.cells == held.sum() and found.nonzeros == task.nnz
    whole = tuple(r for r in range(3) if r not in ranks)
    assert found.groups == held.any(axis=ranks).sum() if whole else found.groups == 1
    for r in ranks:
        along = np.moveaxis(held, r, 0)
        for s in range(1, len(along)):
            looked = along[: len(along) - s].sum()
            expected = (along[: len(along) - s] & along[s:]).sum() / max(1, looked)
            assert found.corrs[r][s] == pytest.approx(expected)
        fine = cells(block, tuple(1 if rank == r else side for rank, side in enumerate(sides)))
        assert found.distinct[r] == pytest.approx(fine.sum() / held.sum())
    assert found.at(sides) == found.cells


def test_tiles_merge_as_they_must():
    assert merged(7, 8) == pytest.approx(1 / 8)  # all hold something
    assert merged(0, 8) == 1
    share = 0.3
    assert merged(7 * share, 8) == pytest.approx((1 - 0.7**8) / (8 * share))


@pytest.mark.parametrize(
    "sides", [(8, 8, 8), (2, 2, 2), (16, 1, 4), (1, 32, 8), (32, 32, 32), (40, 40, 40), (64, 24, 3)]
)
def test_even_tensors_have_as_many_tiles_as_chance_gives(sides):
    rng = np.random.default_rng(1)
    coordinates = np.argwhere(rng.random((64, 64, 64)) < 0.004).astype(np.int64)
    columns = tuple(np.ascontiguousarray(coordinates[:, r]) for r in range(3))
    found = occupancy(columns, (64, 64, 64), (4, 4, 4), (0, 1, 2))
    block = np.zeros((64, 64, 64), bool)
    block[tuple(coordinates.T)] = True
    assert found.at(sides) == pytest.approx(cells(block, sides).sum(), rel=0.06)


@pytest.mark.parametrize("tensor", ["even", "skewed", "diagonal", "corner"])
def test_statistics_of_tiles(tensor):
    task = problem("mttkrp", tensor)
    block = dense(task)[0]
    found = tensor_statistics(task, 4)
    sizes = [
        words(block[tuple(slice(4 * p, 4 * p + 4) for p in place)]) for place in np.argwhere(cells(block, (4, 4, 4)))
    ]
    assert found.max_tile == max(sizes) and found.size_tile == pytest.approx(np.mean(sizes))
    assert [level.cells for level in found.levels] == [cells(block, s).sum() for s in ((4, 4, 4), (1, 4, 4), (1, 1, 4))]
    assert [prefix.cells for prefix in found.prefixes] == [
        cells(block, (4, *block.shape[1:])).sum(),
        cells(block, (4, 4, block.shape[2])).sum(),
    ]
    assert [m.sum() for m in found.marginals] == [task.nnz, task.nnz]


def test_statistics_of_matrices():
    matrix = noise(300, 200, 0.05)
    found = matrix_statistics(Pattern.of(matrix), 8)
    held = matrix.toarray() != 0
    assert found.nonzeros == matrix.nnz and found.levels[0].cells == cells(held, (8, 8)).sum()
    assert found.levels[1].cells == cells(held, (1, 8)).sum()
    for sides in ((16, 16), (8, 50), (2, 64), (300, 200)):
        assert found.levels[0].at(sides) == pytest.approx(cells(held, sides).sum(), rel=0.15)
    for side in (2, 20, 100):
        assert found.levels[1].at((1, side)) == pytest.approx(cells(held, (1, side)).sum(), rel=0.05)
    assert found.corrs[1:] == pytest.approx(0.05, abs=0.02)
    band = matrix_statistics(Pattern.of(banded(400, 10)), 8)
    assert band.corrs[4] == pytest.approx(17 / 21, abs=0.02) and band.corrs[-1] < 0.01


def test_empty_ones():
    task = problem("ttm", "none")
    found = tensor_statistics(task, 4)
    assert found.max_tile == 0 and [level.cells for level in found.levels] == [0, 0, 0]
    assert found.levels[0].at((2, 2, 2)) == 0
    assert TENSORS["none"][1].shape == (0, 3)
