"""The comparers must find what is wrong, and say where."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sw.formats.csr import Csr
from sw.golden.compare import check_against_scipy, check_canonical, compare_bits


def matrix(values=(1.0, 2.0, 3.0), columns=(0, 2, 1), pointers=(0, 2, 2, 3)) -> Csr:
    return Csr(
        rows=len(pointers) - 1,
        columns=3,
        pointers=np.array(pointers, np.int64),
        coordinates=np.array(columns, np.uint32),
        bits=np.array(values, np.float32).view(np.uint32),
        value="fp32",
    )


def test_equal():
    check = compare_bits(matrix(), matrix())
    assert check.correct and check.detail == "3 elements equal bit for bit"


@pytest.mark.parametrize(
    ("other", "detail"),
    [
        (
            matrix(values=(1, 2, 4)),
            "row 2, element 0 of the row: expected column 1 value 3.0 (0x40400000), "
            "got column 1 value 4.0 (0x40800000); 1 elements differ",
        ),
        (
            matrix(columns=(0, 1, 1)),
            "row 0, element 1 of the row: expected column 2 value 2.0 (0x40000000), "
            "got column 1 value 2.0 (0x40000000); 1 elements differ",
        ),
        (matrix(pointers=(0, 2, 3, 3)), "row 1: expected 0 elements, got 1; 2 rows differ in length"),
        (
            matrix(values=(1, 2), columns=(0, 2), pointers=(0, 2, 2, 2)),
            "row 2: expected 1 elements, got 0; 1 rows differ in length",
        ),
        (matrix(pointers=(0, 2, 2, 3, 3)), "expected 3 x 3 fp32, got 4 x 3 fp32"),
    ],
)
def test_first_difference(other, detail):
    check = compare_bits(matrix(), other)
    assert not check.correct
    assert check.detail == detail


def test_signalling_nans_are_compared_in_silence():
    """NumPy warns of them when it converts them."""
    diagonal = matrix(columns=(0, 1, 2), pointers=(0, 1, 2, 3))
    strange = replace(diagonal, bits=np.array([0x7F810000, 0x40000000, 0xFF800001], np.uint32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_against_scipy(
            strange, diagonal, replace(strange, bits=strange.bits + np.uint32([0, 0x800000, 0]))
        ).correct


def test_sign_of_zero_and_payload_of_nan_are_differences():
    assert not compare_bits(matrix(values=(0.0, 2, 3)), matrix(values=(-0.0, 2, 3))).correct
    quiet = matrix(values=(np.nan, 2, 3))
    assert compare_bits(quiet, quiet).correct
    assert not compare_bits(quiet, replace(quiet, bits=quiet.bits | np.uint32(1))).correct


@pytest.mark.parametrize(
    ("form", "detail"),
    [
        (matrix(), "3 elements, sorted, no duplicates, no zeros"),
        (matrix(columns=(2, 0, 1)), "row 0: column 0 follows column 2"),
        (matrix(columns=(2, 2, 1)), "row 0: column 2 follows column 2"),
        (matrix(columns=(0, 3, 1)), "column 3 of 3"),
        (matrix(values=(1, -0.0, 0)), "2 stored zeros"),
        (matrix(pointers=(1, 2, 2, 3)), "pointers are not rising from 0"),
        (matrix(pointers=(0, 2, 1, 3)), "pointers are not rising from 0"),
    ],
)
def test_canonical(form, detail):
    check = check_canonical(form)
    assert check.detail == detail
    assert check.correct == (detail.startswith("3 elements"))


def product_of(dense: np.ndarray, value: str) -> tuple[Csr, Csr]:
    dtype = np.int32 if value == "int32" else np.float32
    left = sp.csr_array(dense)
    result = left @ left
    result.sort_indices()
    return (
        Csr.from_scipy(left, left.data.astype(dtype).view(np.uint32), value),
        Csr.from_scipy(result, result.data.astype(dtype).view(np.uint32), value),
    )


def test_scipy_bound_finds_one_wrong_bit_far_up():
    a, c = product_of(np.array([[1.0, 2.0], [3.0, 4.0]]), "fp32")
    assert check_against_scipy(a, a, c).correct
    wrong = c.bits.copy()
    wrong[3] += 64
    check = check_against_scipy(a, a, replace(c, bits=wrong))
    assert not check.correct
    assert check.detail.startswith("row 1, column 1: 22.0001")


def test_scipy_modulo_finds_one_wrong_unit():
    a, c = product_of(np.array([[70000, 2], [3, 4]], np.int64), "int32")
    assert c.values[0] == (70000**2 + 6 + 2**31) % 2**32 - 2**31
    assert check_against_scipy(a, a, c).correct
    wrong = c.bits.copy()
    wrong[0] ^= 1
    assert not check_against_scipy(a, a, replace(c, bits=wrong)).correct


def test_scipy_finds_a_missing_element():
    a, c = product_of(np.eye(3) * 2, "fp32")
    short = matrix(values=(4, 4), columns=(0, 1), pointers=(0, 1, 2, 2))
    check = check_against_scipy(a, a, short)
    assert not check.correct and check.detail == "structure differs: 2 elements, SciPy finds 3"
    assert c.nnz == 3


@pytest.mark.parametrize("value", ["int32", "fp32"])
def test_cancellation_keeps_its_place(value):
    """SciPy drops what cancels; the structural result keeps it as a zero."""
    dense = np.array([[1, 1, 0], [-1, -1, 5], [-2, -2, 1]])
    a, _ = product_of(dense, value)
    dtype = np.int32 if value == "int32" else np.float32
    full = Csr(
        rows=3,
        columns=3,
        pointers=np.array([0, 3, 6, 9]),
        coordinates=np.tile(np.arange(3, dtype=np.uint32), 3),
        bits=np.array(dense @ dense, dtype).reshape(-1).view(np.uint32),
        value=value,
    )
    assert 0 in full.values
    assert check_against_scipy(a, a, full).correct
    wrong = full.bits.copy()
    wrong[np.flatnonzero(full.values == 0)[0]] = np.array([1], dtype).view(np.uint32)[0]
    assert not check_against_scipy(a, a, replace(full, bits=wrong)).correct


def slots(dense: np.ndarray, value: str) -> Csr:
    matrix = sp.csr_array(dense)
    numbers = matrix.data.astype(np.int32 if value.startswith("int") else np.float32)
    return Csr.from_scipy(matrix, numbers.view(np.uint32), value)


def test_narrow_integers_modulo_their_width():
    a = slots(np.array([[100, 3]]), "int8")
    b = slots(np.array([[2], [5]]), "int8")
    assert check_against_scipy(a, b, slots(np.array([[215 - 256]]), "int8")).detail == "1 elements equal modulo 2^8"
    assert not check_against_scipy(a, b, slots(np.array([[127]]), "int8")).correct


def test_saturated_sums_are_judged_where_no_order_saturates():
    a = slots(np.array([[10, -10], [100, -100]]), "int8")
    b = slots(np.array([[6], [6]]), "int8")
    # 60 - 60 is 0 in any order; 127 - 128 is not what the exact sum is.
    c = Csr.from_scipy(sp.csr_array(np.ones((2, 1))), np.array([0, -1], np.int32).view(np.uint32), "int8")
    check = check_against_scipy(a, b, c, value="int8_saturate")
    assert check.correct and check.detail == "2 elements equal or saturated on the way (1 not judged)"
    assert not check_against_scipy(a, b, c).correct
    wrong = replace(c, bits=np.array([1, 0], np.uint32))
    assert not check_against_scipy(a, b, wrong, value="int8_saturate").correct


def test_the_bound_of_bf16_is_that_of_its_precision():
    a, b = slots(np.array([[1.0, 2.0**-8]]), "bf16"), slots(np.ones((2, 1)), "bf16")
    assert check_against_scipy(a, b, slots(np.array([[1.0]]), "bf16")).correct
    assert check_against_scipy(a, b, slots(np.array([[1.0 + 2.0**-7]]), "bf16")).correct
    assert not check_against_scipy(a, b, slots(np.array([[1.03125]]), "bf16")).correct
    fp32 = [slots(matrix.to_scipy().toarray(), "fp32") for matrix in (a, b)]
    assert not check_against_scipy(*fp32, slots(np.array([[1.0]]), "fp32")).correct


def test_flushed_terms_may_be_missing():
    tiny = 2.0**-127
    a, b = slots(np.array([[tiny, 1.0]]), "bf16"), slots(np.array([[2.0**100], [tiny * 4]]), "bf16")
    c = slots(np.array([[tiny * 4]]), "bf16")
    assert check_against_scipy(a, b, c, value="bf16_flush").correct
    assert not check_against_scipy(a, b, c).correct


def test_overflow_is_not_judged_and_said():
    a = Csr.from_scipy(sp.csr_array(np.array([[3e38]])), np.array([3e38], np.float32).view(np.uint32), "fp32")
    c = replace(a, bits=np.array([np.inf], np.float32).view(np.uint32))
    assert check_against_scipy(a, a, c).detail.endswith(", 1 beyond the range of fp32 not judged")
