"""The description of a matrix against dense arithmetic."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sw.stats.summary import distribution, summary


@pytest.mark.parametrize("shape", [(30, 30), (20, 45), (45, 20), (1, 1), (1, 9)])
@pytest.mark.parametrize("density", [0.0, 0.15, 1.0])
def test_against_dense(shape, density):
    rng = np.random.default_rng(7)
    dense = rng.integers(-3, 4, shape) * (rng.random(shape) < density)
    if shape[0] == shape[1]:
        dense[:10, :10] = dense[:10, :10] + dense[:10, :10].T
    found = summary(sp.csr_array(dense))
    there = dense != 0
    rows, columns = np.nonzero(there)
    assert (found["rows"], found["cols"], found["nnz"]) == (*shape, there.sum())
    assert found["diagonal"] == np.diagonal(there).sum()
    assert found["bandwidth"]["lower"] == max([0, *(rows - columns)])
    assert found["bandwidth"]["upper"] == max([0, *(columns - rows)])
    assert found["row_nnz"]["most"] == there.sum(axis=1).max()
    assert found["col_nnz"]["mean"] == pytest.approx(there.sum(axis=0).mean())
    assert found["row_nnz"]["empty"] == (there.sum(axis=1) == 0).sum()
    square = shape[0] == shape[1]
    other = there if square else there.T
    product = there.astype(int) @ other.astype(int)
    assert found["product"]["kernel"] == ("A x A" if square else "A x A^T")
    assert (found["product"]["macs"], found["product"]["nnz_c"]) == (product.sum(), (product > 0).sum())
    off = there & ~np.eye(*shape, dtype=bool)
    if square and off.any():
        assert found["symmetry"]["pattern"] == pytest.approx((off & there.T).sum() / off.sum())
        assert found["symmetry"]["values"] == pytest.approx((off & there.T & (dense == dense.T)).sum() / off.sum())
    else:
        assert found["symmetry"] is None


def test_stored_zeros_are_elements():
    matrix = sp.csr_array((np.array([0.0, 2.5]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    found = summary(matrix)
    assert found["nnz"] == 2
    assert found["values"] == {
        "least": 0.0, "most": 2.5, "zeros": 1, "infinite": 0, "not_a_number": 0, "whole_numbers": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "least", "most", "infinite", "not_a_number", "whole_numbers"),
    [
        ([np.inf, -np.inf, np.nan, np.inf], None, None, 3, 1, True),
        ([np.inf, 2.0, np.nan, -1.0], -1.0, 2.0, 1, 1, True),
        ([np.inf, 2.5, 0.0, -1.0], -1.0, 2.5, 1, 0, False),
    ],
)
def test_infinities_are_no_bounds_and_no_whole_numbers(data, least, most, infinite, not_a_number, whole_numbers):
    values = summary(sp.csr_array(np.array([data])))["values"]
    assert (values["least"], values["most"], values["whole_numbers"]) == (least, most, whole_numbers)
    assert (values["infinite"], values["not_a_number"]) == (infinite, not_a_number)
    json.dumps(values, allow_nan=False)


def test_a_distribution():
    found = distribution(np.array([0, 1, 2, 3, 10]))
    assert found == {
        "least": 0, "first_quartile": 1.0, "median": 2.0, "third_quartile": 3.0, "most": 10, "mean": 3.2,
        "deviation": pytest.approx(3.544, abs=1e-3), "empty": 1,
    }  # fmt: skip
