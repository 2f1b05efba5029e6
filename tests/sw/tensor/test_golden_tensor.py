"""TTM and MTTKRP by tiles against NumPy's einsum."""

import numpy as np
import pytest
import scipy.sparse as sp

from sw.tensor.golden import by_elements, by_tiles, same_values

SHAPE = (6, 7, 9)
SIDES = [(2, 3, 4, 5), (6, 7, 9, 8), (1, 1, 1, 1), (100, 2, 100, 3)]
KERNELS = {"ttm": "ijl,lx->ijx", "mttkrp": "ikl,kx,lx->ix"}


def operands(kernel: str, kind: str):
    rng = np.random.default_rng(5)
    dense = (rng.random(SHAPE) < 0.3) * rng.integers(-9, 10, SHAPE)
    ranks = (2,) if kernel == "ttm" else (1, 2)
    factors = [(rng.random((SHAPE[r], 8)) < 0.5) * rng.integers(-9, 10, (SHAPE[r], 8)) for r in ranks]
    if kind == "real":
        dense, factors = dense / 7, [factor / 3 for factor in factors]
    coordinates = np.argwhere(dense).astype(np.int64)
    values = dense[tuple(coordinates.T)]
    expected = np.einsum(KERNELS[kernel], dense, *factors).reshape(-1, 8)
    return coordinates, values, [sp.csr_array(factor) for factor in factors], expected


@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_tiles_give_what_einsum_gives(kernel, sides, kind):
    coordinates, values, matrices, expected = operands(kernel, kind)
    assert by_tiles(coordinates, values, matrices, SHAPE, sides).toarray() == pytest.approx(expected, abs=1e-12)
    assert by_elements(coordinates, values, matrices, SHAPE) == pytest.approx(expected, abs=1e-12)
    assert same_values(coordinates, values, matrices, SHAPE, sides)[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_wrong_tile_shows(kernel, monkeypatch):
    coordinates, values, matrices, _ = operands(kernel, "whole")
    wrong = values.copy()
    wrong[3] += 1
    right = by_elements(coordinates, values, matrices, SHAPE)
    monkeypatch.setattr("sw.tensor.golden.by_elements", lambda *_: right)
    assert same_values(coordinates, values, matrices, SHAPE, SIDES[0])[0]
    same, detail = same_values(coordinates, wrong, matrices, SHAPE, SIDES[0])
    assert not same and detail.endswith("DIFFER")


def test_nothing_times_anything_is_nothing():
    empty = np.empty((0, 3), np.int64), np.empty(0, np.int64)
    matrix = sp.csr_array(np.ones((9, 8), np.int64))
    assert by_tiles(*empty, [matrix], SHAPE, SIDES[0]).nnz == 0
    assert same_values(*empty, [matrix], SHAPE, SIDES[0])[0]
