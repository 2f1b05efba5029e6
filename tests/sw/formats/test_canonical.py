"""Canonical CSR from every form in which a matrix comes, and the sums that no type holds."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from sw.formats.canonical import RangeError, canonical, negated, sum_runs
from sw.formats.csr import Csr
from sw.operands import Operand, OperandError
from sw.operands.operand import canonical_csr
from sw.stats.pattern import Pattern
from sw.stats.summary import summary

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
RNG = np.random.default_rng(5)
# Not square and not symmetric: a transposed one is another.
DENSE = RNG.integers(-4, 5, (12, 18)) * (RNG.random((12, 18)) < 0.3)


def forms():
    """The matrix in each format, as both kinds of class."""
    for name in FORMATS:
        yield pytest.param(sp.coo_array(DENSE).asformat(name), id=f"{name}_array")
        yield pytest.param(sp.coo_matrix(DENSE).asformat(name), id=f"{name}_matrix")
    yield pytest.param(DENSE, id="ndarray")


@pytest.mark.parametrize("matrix", list(forms()))
def test_every_form_is_converted_and_stays_as_it_is(matrix):
    before = matrix.copy()
    found = canonical(matrix)
    assert type(found) is sp.csr_array and found.has_canonical_format and found.dtype == np.int64
    assert np.array_equal(found.toarray(), DENSE) and found.nnz == np.count_nonzero(DENSE)
    pattern = Pattern.of(matrix)
    assert np.array_equal(pattern.pointers, found.indptr) and np.array_equal(pattern.coordinates, found.indices)
    assert summary(matrix) == summary(found)
    held = Operand(name="m", source="m", matrix=matrix).matrix
    assert np.array_equal(held.indices, found.indices) and np.array_equal(held.data, found.data)
    assert (matrix != before).sum() == 0


def test_canonical_csr_comes_back_itself():
    matrix = sp.csr_array(DENSE.astype(float))
    assert canonical(matrix) is matrix


def test_unsorted_rows_and_duplicates():
    indices, pointers = np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    matrix = sp.csr_array((np.array([1.0, 2, 3, 0]), indices, pointers), shape=(2, 3))
    found = canonical(matrix)
    assert found.indices.tolist() == [0, 2, 1] and found.data.tolist() == [2, 4, 0]
    assert matrix.indices.tolist() == [2, 0, 2, 1]  # the caller's stays as it is
    assert Pattern.of(matrix).coordinates.tolist() == [0, 2, 1]
    by_column = sp.csc_array((np.array([1.0, 2, 3, 0]), indices, pointers), shape=(3, 2))
    assert canonical(by_column).toarray().tolist() == [[2, 0], [0, 0], [4, 0]]


def test_narrow_types_are_widened_before_they_are_summed():
    twice = ([0, 0, 0], [1, 1, 1])
    for kind, value, expected in ((np.int8, 100, 300), (np.uint8, 200, 600), (np.float32, 3e38, 9e38), (bool, True, 1)):
        found = canonical(sp.coo_array((np.full(3, value, kind), twice), shape=(2, 2)))
        assert found.nnz == 1 and found.data[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    ("values", "total", "allowed"),
    [
        ([2**63 - 1, 2**63 - 1], "18446744073709551614", "int64 holds -9223372036854775808 to 9223372036854775807"),
        ([-(2**63), 7, -8], "-9223372036854775809", "int64 holds -9223372036854775808 to 9223372036854775807"),
        ([1.7e308, 1.7e308], "3.400000e+308", "float64 holds magnitudes up to 1.797693e+308"),
    ],
)
def test_sums_out_of_range_are_refused(form, values, total, allowed):
    size = len(values)
    data = np.array([1, *values])
    one = np.array([0, *[2] * size])
    if form == "coo":
        matrix = sp.coo_array((data, (np.array([0, *[1] * size]), one)), shape=(2, 3))
    else:
        kind = sp.csr_array if form == "csr" else sp.csc_array
        matrix = kind((data, one, np.array([0, 1, size + 1])), shape=(2, 3) if form == "csr" else (3, 2))
    row, column = (2, 1) if form == "csc" else (1, 2)
    with pytest.raises(RangeError) as caught:
        canonical(matrix)
    assert caught.value.place == (row, column) and f"{total}, is out of range: {allowed}" in str(caught.value)
    with pytest.raises(
        OperandError, match=f"^m: row {row + 1}, column {column + 1}: value .*{re.escape(total)}.*{re.escape(allowed)}$"
    ):
        canonical_csr(matrix, "m")


def test_sums_against_whole_numbers_of_any_size():
    for _ in range(200):
        runs = [RNG.integers(-(2**63), 2**63 - 1, RNG.integers(1, 5)).tolist() for _ in range(3)]
        values = np.array([value for run in runs for value in run], np.int64)
        begins = np.cumsum([0, *map(len, runs[:-1])])
        fits = all(-(2**63) <= sum(run) < 2**63 for run in runs)
        try:
            assert sum_runs(values, begins, np.arange(len(values))).tolist() == [sum(run) for run in runs] and fits
        except RangeError:
            assert not fits


def test_the_one_integer_without_another_sign():
    assert negated(np.array([-128], np.int8)).tolist() == [128] and negated(np.array([0.5])).tolist() == [-0.5]
    with pytest.raises(RangeError, match="mirror image") as caught:
        negated(np.array([1, -(2**63)]))
    assert caught.value.entry == 1


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ([[1, 2]], "Operand must be a SciPy sparse matrix or a NumPy array, not list"),
        (np.ones(3), "Operand must have two dimensions, not 1"),
        (sp.coo_array(np.ones(3)), "Operand must have two dimensions, not 1"),
        (np.ones((2, 2)) * 1j, "Operand values must be real, integer or pattern, not complex128"),
        (np.array([[None]]), "Operand values must be real, integer or pattern, not object"),
    ],
)
def test_what_is_no_matrix_of_real_numbers(matrix, complaint):
    for convert in (canonical, Pattern.of, summary):
        with pytest.raises(TypeError, match=f"^{re.escape(complaint)}$"):
            convert(matrix)


def test_places_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="indices must be < 3"):
        canonical(sp.csr_array((np.ones(2), np.array([0, 7]), np.array([0, 1, 2])), shape=(2, 3)))


@pytest.mark.parametrize("form", ["csc", "coo"])
def test_value_patterns_need_the_order_of_canonical_csr(form):
    matrix = sp.coo_array(DENSE).asformat(form)
    with pytest.raises(TypeError, match="Matrix must be a csr_array, its rows sorted and without duplicates, not c"):
        Csr.from_scipy(matrix, np.zeros(matrix.nnz, np.uint32), "int32")
