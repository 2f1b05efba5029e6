"""Comparing results: the hardware against the golden model bit for bit, the golden model against SciPy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.csr import Csr

from .arithmetic import mode_of

__all__ = ["Check", "check_against_scipy", "check_canonical", "compare_bits"]

_SMALLEST_NORMAL = 2.0**-126
# Of each floating-point type: distance of 1 to the next number, and the smallest subnormal.
_PRECISION = {"bf16": 2.0**-7, "fp32": 2.0**-23}
_TINY = {"bf16": 2.0**-133, "fp32": 2.0**-149}


@dataclass(frozen=True, kw_only=True)
class Check:
    """Outcome of a comparison.

    Parameters
    ----------
    name: what was compared.
    correct: whether it holds.
    detail: one line: what was found, or the first difference.
    compared: nonzeros that were compared.
    worst: largest share of the permitted error that was used (floating point against SciPy), else ``None``.
    """

    name: str
    correct: bool
    detail: str
    compared: int
    worst: float | None = None


def compare_bits(expected: Csr, got: Csr, name: str = "engine against golden") -> Check:
    """Shape, structure and every value pattern; the detail names the first difference (rows, columns from 0)."""

    def differs(detail: str) -> Check:
        return Check(name=name, correct=False, detail=detail, compared=expected.nnz)

    if expected.shape != got.shape or expected.value != got.value:
        return differs(
            f"expected {expected.rows} x {expected.columns} {expected.value}, "
            f"got {got.rows} x {got.columns} {got.value}"
        )
    lengths = np.flatnonzero(np.diff(expected.pointers) != np.diff(got.pointers))
    limit = int(expected.pointers[lengths[0]]) if len(lengths) else expected.nnz
    bad = np.flatnonzero(
        (expected.coordinates[:limit] != got.coordinates[:limit]) | (expected.bits[:limit] != got.bits[:limit])
    )
    if len(bad):
        at = int(bad[0])
        row = int(np.searchsorted(expected.pointers, at, side="right")) - 1
        return differs(
            f"row {row}, element {at - int(expected.pointers[row])} of the row: expected column "
            f"{expected.coordinates[at]} value {_value(expected, at)}, got column {got.coordinates[at]} value "
            f"{_value(got, at)}; {len(bad)} elements differ{' up to row ' + str(lengths[0]) if len(lengths) else ''}"
        )
    if len(lengths):
        row = int(lengths[0])
        wanted = int(expected.pointers[row + 1] - expected.pointers[row])
        found = int(got.pointers[row + 1] - got.pointers[row])
        return differs(f"row {row}: expected {wanted} elements, got {found}; {len(lengths)} rows differ in length")
    return Check(name=name, correct=True, detail=f"{expected.nnz} elements equal bit for bit", compared=expected.nnz)


def _value(matrix: Csr, position: int) -> str:
    return f"{matrix.values[position]} (0x{int(matrix.bits[position]):08x})"


def check_canonical(matrix: Csr, name: str = "canonical form") -> Check:
    """Pointers never fall, coordinates rise strictly inside each row and stay inside the shape, no stored zero."""
    complaint = ""
    rises = np.diff(matrix.coordinates.astype(np.int64)) > 0
    starts = matrix.pointers[1:-1]
    starts = starts[(starts > 0) & (starts < matrix.nnz)]
    rises[starts - 1] = True
    zeros = np.flatnonzero(matrix.values == 0)
    if matrix.pointers[0] != 0 or np.any(np.diff(matrix.pointers) < 0):
        complaint = "pointers are not rising from 0"
    elif matrix.nnz and int(matrix.coordinates.max()) >= matrix.columns:
        complaint = f"column {int(matrix.coordinates.max())} of {matrix.columns}"
    elif not rises.all():
        at = int(np.argmin(rises)) + 1
        row = int(np.searchsorted(matrix.pointers, at, side="right")) - 1
        complaint = f"row {row}: column {matrix.coordinates[at]} follows column {matrix.coordinates[at - 1]}"
    elif len(zeros):
        complaint = f"{len(zeros)} stored zeros"
    return Check(
        name=name,
        correct=not complaint,
        detail=complaint or f"{matrix.nnz} elements, sorted, no duplicates, no zeros",
        compared=matrix.nnz,
    )


def _product(left: sp.csr_array, right: sp.csr_array) -> sp.csr_array:
    product = left @ right
    product.sort_indices()
    return product


def check_against_scipy(
    a: Csr,
    b: Csr,
    c: Csr,
    name: str = "golden against SciPy",
    value: str | None = None,
    multiply: Callable[[sp.csr_array, sp.csr_array], sp.csr_array] = _product,
) -> Check:
    """The structural product ``c`` against SciPy's own multiplication of the same values.

    Integers: equal modulo 2**32 (``int8``: 2**8 and so on). Saturated ones: equal where the sum of magnitudes stays in
    the range, so that no order of additions saturates; the others need only exist. Floating point: against float64,
    each entry within ``n * eps * sum |a b|``, with n the number of products of the entry and eps 2**-23 (``bf16``: 2**-7;
    the bound for any order of summation), plus n of the smallest subnormal, or where these are flushed 2 n of the
    smallest normal number. Entries whose terms are not finite, or whose sum may leave the range of the type, need only
    exist.

    ``value``: of ``arithmetic.VALUES``; by default that of ``c`` with neither saturation nor flushing. ``multiply``: what
    makes C of A and B in SciPy, with sorted rows.
    """
    mode = mode_of(value or c.value)

    def outcome(correct: bool, detail: str, worst: float | None = None) -> Check:
        return Check(name=name, correct=correct, detail=detail, compared=c.nnz, worst=worst)

    left, right = a.to_scipy(), b.to_scipy()
    terms = multiply(_ones(left), _ones(right))
    if not (np.array_equal(terms.indptr, c.pointers) and np.array_equal(terms.indices, c.coordinates)):
        return outcome(False, f"structure differs: {c.nnz} elements, SciPy finds {terms.nnz}")
    if not mode.floating:
        exact = _spread(multiply(left.astype(np.int64), right.astype(np.int64)), terms)
        half = 1 << (mode.width - 1)
        wrapped = (exact + half) % (2 * half) - half
        unequal = wrapped != c.values
        scope = f"modulo 2^{mode.width}"
        if mode.special:
            # float64, because 64 bits overflow; it is precise enough for a bound.
            magnitude = _spread(multiply(abs(left.astype(np.float64)), abs(right.astype(np.float64))), terms)
            judged = magnitude < half
            unequal &= judged
            scope = f"or saturated on the way ({c.nnz - np.count_nonzero(judged)} not judged)"
        bad = np.flatnonzero(unequal)
        if len(bad):
            at = int(bad[0])
            return outcome(False, f"{_where(c, at)}: {c.values[at]}, SciPy {wrapped[at]}; {len(bad)} differ")
        return outcome(True, f"{c.nnz} elements equal {scope}")
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        left, right = left.astype(np.float64), right.astype(np.float64)
    if mode.special:
        for matrix in (left, right):
            matrix.data[np.abs(matrix.data) < _SMALLEST_NORMAL] = 0
    precision, lost = _PRECISION[c.value], 2 * _SMALLEST_NORMAL if mode.special else _TINY[c.value]
    with np.errstate(all="ignore"):
        reference = _spread(multiply(left, right), terms)
        magnitude = _spread(multiply(abs(left), abs(right)), terms)
        allowed = terms.data * (precision * magnitude + lost)
        ordinary = magnitude <= np.finfo(np.float32).max * np.exp(-terms.data * precision)
        share = np.where(ordinary, np.abs(c.values - reference) / allowed, 0.0)
    share[np.isnan(share)] = np.inf
    if len(share) and share.max() > 1:
        at = int(np.argmax(share))
        return outcome(
            False, f"{_where(c, at)}: {c.values[at]}, SciPy {reference[at]}, allowed error {allowed[at]:.3e}", share[at]
        )
    worst = float(share.max()) if len(share) else 0.0
    special = int(len(share) - np.count_nonzero(ordinary))
    beyond = f", {special} beyond the range of {c.value} not judged" if special else ""
    return outcome(True, f"{c.nnz} elements within the summation bound (worst at {worst:.1%} of it){beyond}", worst)


def _ones(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)


def _spread(product: sp.csr_array, terms: sp.csr_array) -> NDArray[Any]:
    """The product's values at the structural places of ``terms``: SciPy leaves out entries that cancel to zero."""
    if product.nnz == terms.nnz:
        return product.data
    places = sp.csr_array((np.arange(1, terms.nnz + 1), terms.indices, terms.indptr), shape=terms.shape)
    kept = places.multiply(_ones(product).astype(np.int64)).tocsr()
    kept.sort_indices()
    values = np.zeros(terms.nnz, product.dtype)
    values[kept.data - 1] = product.data
    return values


def _where(matrix: Csr, position: int) -> str:
    row = int(np.searchsorted(matrix.pointers, position, side="right")) - 1
    return f"row {row}, column {matrix.coordinates[position]}"
