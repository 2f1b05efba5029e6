"""Comparing results: the hardware against the golden model bit for bit, the golden model against SciPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.csr import Csr

__all__ = ["Check", "check_against_scipy", "check_canonical", "compare_bits"]

_PRECISION = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).smallest_subnormal)


@dataclass(frozen=True, kw_only=True)
class Check:
    """Outcome of a comparison.

    Parameters
    ----------
    name: what was compared.
    correct: whether it holds.
    detail: one line: what was found, or the first difference.
    compared: elements looked at.
    worst: largest share of the permitted error that was used (``fp32`` against SciPy), else ``None``.
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


def check_against_scipy(a: Csr, b: Csr, c: Csr, name: str = "golden against SciPy") -> Check:
    """The structural product ``c`` against SciPy's own multiplication of the same values.

    ``int32``: equal modulo 2**32. ``fp32``: against float64, each entry within ``n * eps * sum |a b|``, with n the
    number of products of the entry and eps 2**-23 (the bound for any order of summation), plus n of the smallest
    subnormal. Entries whose terms are not finite, or whose sum of magnitudes leaves the range of fp32, need only be
    there.
    """

    def outcome(correct: bool, detail: str, worst: float | None = None) -> Check:
        return Check(name=name, correct=correct, detail=detail, compared=c.nnz, worst=worst)

    left, right = a.to_scipy(), b.to_scipy()
    terms = _product(_ones(left), _ones(right))
    if not (np.array_equal(terms.indptr, c.pointers) and np.array_equal(terms.indices, c.coordinates)):
        return outcome(False, f"structure differs: {c.nnz} elements, SciPy finds {terms.nnz}")
    if c.value == "int32":
        exact = _spread(_product(left.astype(np.int64), right.astype(np.int64)), terms)
        wrapped = exact.astype(np.uint64) & np.uint64(0xFFFFFFFF)
        bad = np.flatnonzero(wrapped.astype(np.uint32) != c.bits)
        if len(bad):
            at = int(bad[0])
            expected = int(wrapped[at : at + 1].astype(np.uint32).view(np.int32)[0])
            return outcome(False, f"{_where(c, at)}: {c.values[at]}, SciPy {expected}; {len(bad)} differ")
        return outcome(True, f"{c.nnz} elements equal modulo 2^32")
    left, right = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(all="ignore"):
        reference = _spread(_product(left, right), terms)
        magnitude = _spread(_product(abs(left), abs(right)), terms)
        allowed = terms.data * (_PRECISION * magnitude + _TINY)
        ordinary = magnitude <= np.finfo(np.float32).max * (1 - terms.data * _PRECISION)
        share = np.where(ordinary, np.abs(c.values - reference) / allowed, 0.0)
    share[np.isnan(share)] = np.inf
    if len(share) and share.max() > 1:
        at = int(np.argmax(share))
        return outcome(
            False, f"{_where(c, at)}: {c.values[at]}, SciPy {reference[at]}, allowed error {allowed[at]:.3e}", share[at]
        )
    worst = float(share.max()) if len(share) else 0.0
    special = int(len(share) - np.count_nonzero(ordinary))
    beyond = f", {special} beyond the range of fp32 not judged" if special else ""
    return outcome(True, f"{c.nnz} elements within the summation bound (worst at {worst:.1%} of it){beyond}", worst)


def _ones(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)


def _product(left: sp.csr_array, right: sp.csr_array) -> sp.csr_array:
    product = left @ right
    product.sort_indices()
    return product


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
