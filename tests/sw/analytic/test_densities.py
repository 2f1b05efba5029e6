"""Density models: closed forms against SciPy and against tiles counted one by one."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import hypergeom

from sw.analytic.densities.actual import Actual
from sw.analytic.densities.banded import Banded
from sw.analytic.densities.blocks import Blocks
from sw.analytic.densities.n_of_m import NOfM
from sw.analytic.densities.protocol import Density
from sw.analytic.densities.structured import FixedStructured
from sw.analytic.densities.uniform import Hypergeometric


@pytest.mark.parametrize(("size", "nonzeros"), [(16, 4), (100, 37), (64, 0), (64, 64), (4096, 410), (1 << 20, 12345)])
@pytest.mark.parametrize("points", [1, 2, 7, 16])
def test_uniform_is_hypergeometric(size, nonzeros, points):
    model = Hypergeometric(size, nonzeros)
    truth = hypergeom(size, nonzeros, points)
    k, probability = model.occupancies((points,))
    assert probability == pytest.approx(truth.pmf(k), rel=1e-7, abs=1e-300)
    assert probability.sum() == pytest.approx(1.0)
    assert (
        model.mean((points,))
        == pytest.approx(points * nonzeros / size)
        == pytest.approx(float((k * probability).sum()))
    )
    assert model.empty((points,)) == pytest.approx(truth.pmf(0), rel=1e-7)
    exact = Fraction(comb(size - nonzeros, points), comb(size, points))
    assert model.empty((points,)) == pytest.approx(float(exact), rel=1e-12)
    assert model.maximum((points,)) == min(points, nonzeros)


@pytest.mark.parametrize(
    ("size", "nonzeros", "points"), [(10**7, 20_000, 30_000), (10**6, 5_000, 5_000), (10**8, 90_000, 6_000)]
)
def test_empty_tiles_of_many_points_are_exact(size, nonzeros, points):
    exact = sum(np.log1p(-nonzeros / (size - np.arange(float(points)))))
    assert np.log(Hypergeometric(size, nonzeros).empty((points,))) == pytest.approx(exact, rel=1e-9)


def test_uniform_of_huge_tiles_keeps_what_counts():
    k, probability = Hypergeometric(10**12, 10**11).occupancies((10**6, 10**4))
    assert k.size < 3_000_000 and probability.sum() == pytest.approx(1.0)
    assert float((k * probability).sum()) == pytest.approx(1e9, rel=1e-9)


def test_uniform_rounds_the_nonzeros_up():
    assert Hypergeometric.of(0.1, 4096).nonzeros == 410 and Hypergeometric.of(1.0, 7).nonzeros == 7


@pytest.mark.parametrize(
    ("density", "points", "mean", "most", "empty"),
    [
        (0.5, 4, 2.0, 2, 0.0),
        (0.25, 2, 0.5, 1, 0.5),
        (0.3, 10, 3.0, 3, 0.0),
        (0.0, 8, 0.0, 0, 1.0),
        (1.0, 3, 3.0, 3, 0.0),
    ],
)
def test_structured_by_hand(density, points, mean, most, empty):
    model = FixedStructured(density)
    assert model.mean((points,)) == pytest.approx(mean) and model.maximum((points,)) == most
    assert model.empty((points,)) == pytest.approx(empty)
    k, probability = model.occupancies((points,))
    assert float((k * probability).sum()) == pytest.approx(mean) and probability.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("side", [1, 6, 12, 13])
@pytest.mark.parametrize("band", [0, 1, 3, 40])
@pytest.mark.parametrize("tile", [(1, 1), (2, 3), (4, 4), (5, 1), (12, 13)])
def test_banded_is_counted_tile_by_tile(side, band, tile):
    row, column = np.indices((side, side))
    truth, model = Actual(np.abs(row - column) <= band), Banded(side, band)
    assert model.mean(tile) == pytest.approx(truth.mean(tile))
    assert model.maximum(tile) == truth.maximum(tile) and model.empty(tile) == pytest.approx(truth.empty(tile))
    for mine, theirs in zip(model.occupancies(tile), truth.occupancies(tile), strict=True):
        assert mine == pytest.approx(theirs)
    assert model.fullest(tile).mask.sum() == model.maximum(tile)


def test_actual_tiles_by_hand():
    model = Actual(np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=bool))
    assert model.counts((2, 2)).tolist() == [[1, 0], [2, 1]]
    assert (model.mean((2, 2)), model.maximum((2, 2)), model.empty((2, 2))) == (1.0, 2, 0.25)
    assert model.fullest((2, 2)).mask.tolist() == [[True, True]]


def agrees_with_draws(model: Density, draws: list[np.ndarray], tile: tuple[int, ...]) -> None:
    """Mean, share of empty tiles and distribution, over the aligned tiles of all draws, within four standard errors."""
    counts = np.concatenate([Actual(mask).counts(tile).ravel() for mask in draws])
    k, probability = model.occupancies(tile)
    assert probability.sum() == pytest.approx(1.0) and set(counts) <= set(k)
    assert float((k * probability).sum()) == pytest.approx(model.mean(tile))
    assert counts.max() <= model.maximum(tile)
    for value, share in zip(k, probability, strict=True):
        error = np.sqrt(share * (1 - share) / counts.size)
        assert abs((counts == value).mean() - share) <= 4 * error + 1e-9, (value, share)
    empty = float(probability[k == 0].sum())
    assert model.empty(tile) == pytest.approx(empty, abs=1e-12)


@pytest.mark.parametrize("tile", [(1, 1), (1, 2), (2, 2), (3, 4), (3, 6), (6, 12)])
def test_n_of_m_against_draws(tile):
    random = np.random.default_rng(1)
    draws = []
    for _ in range(400):
        groups = np.argsort(random.random((6, 3, 4)), axis=2) < 2
        draws.append(groups.reshape(6, 12))
    agrees_with_draws(NOfM(2, 4, 1), draws, tile)


@pytest.mark.parametrize("tile", [(1, 1), (2, 3), (1, 3), (4, 3), (2, 9), (8, 9)])
def test_blocks_against_draws(tile):
    random = np.random.default_rng(2)
    model = Blocks(0.3, (8, 9), (2, 3))
    draws = []
    for _ in range(400):
        grid = np.zeros(12, dtype=bool)
        grid[random.choice(12, 4, replace=False)] = True
        draws.append(np.kron(grid.reshape(4, 3), np.ones((2, 3), dtype=bool)))
    agrees_with_draws(model, draws, tile)
