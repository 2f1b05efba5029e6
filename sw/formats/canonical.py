"""Canonical CSR from anything that SciPy or NumPy calls a matrix: the one place where operands are converted."""

from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Matrix", "RangeError", "canonical", "negated", "sum_runs"]

Matrix: TypeAlias = sp.sparray | sp.spmatrix | NDArray[Any]

# Formats that store whole blocks or diagonals: the zeros in them are padding, not nonzeros.
PADDED = ("bsr", "dia")


class RangeError(ValueError):
    """A number made of an operand's values that no int64 or float64 holds: the sum of one place's, or a mirror image.

    ``entry``: position, among the values as they were given, of the one at fault. ``place``: its
    coordinates from 0; empty where they are not known. ``complaint``: what and what is allowed.
    """

    def __init__(self, entry: int, complaint: str, place: tuple[int, ...] = ()) -> None:
        self.entry = entry
        self.complaint = complaint
        self.place = place
        super().__init__(f"{place}: {complaint}" if place else complaint)


def sum_runs(values: NDArray[Any], begins: NDArray[np.int64], entries: NDArray[np.int64]) -> NDArray[Any]:
    """The sum of each run of int64 or float64 values, in the order given.

    Parameters
    ----------
    values: runs, one behind the other. begins: rising, where each run begins; the first at 0.
    entries: position of each value as it was given, for :class:`RangeError`, which is raised where a sum of integers leaves
        64 bits, or one of finite numbers becomes infinite.
    """
    if not len(values):
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        sums: NDArray[Any] = np.add.reduceat(values, begins)
    if values.dtype.kind == "f":
        wrong = ~np.isfinite(sums)
        if wrong.any():
            wrong &= np.logical_and.reduceat(np.isfinite(values), begins)
    else:
        # Halves of 32 bits add up exactly, since no array has 2**31 nonzeros of one place.
        high = np.add.reduceat(values >> 32, begins) + (np.add.reduceat(values & 0xFFFFFFFF, begins) >> 32)
        wrong = (high < -(1 << 31)) | (high >= 1 << 31)
    if wrong.any():
        run = int(np.argmax(wrong))
        end = int(begins[run + 1]) if run + 1 < len(begins) else len(values)
        raise _range_error(values[begins[run] : end], entries[begins[run] : end])
    return sums


def _range_error(values: NDArray[Any], entries: NDArray[np.int64]) -> RangeError:
    """What is wrong with the sum of these."""
    whole = values.dtype.kind == "i"
    limits, largest = np.iinfo(np.int64), np.finfo(np.float64).max
    low, high = (limits.min, limits.max) if whole else (-largest, largest)
    running = list(accumulate(Fraction(value) for value in values.tolist()))
    last = next((n for n, total in enumerate(running) if not low <= total <= high), len(running) - 1)
    total = str(running[-1]) if whole else f"{Decimal(int(running[-1])):.6e}"
    allowed = f"int64 holds {low} to {high}" if whole else f"float64 holds magnitudes up to {largest:.6e}"
    complaint = f"the sum of the {len(values)} values there, {total}, is out of range: {allowed}"
    return RangeError(int(entries[last]), f"value {values[last].item()}: {complaint}")


def negated(values: NDArray[Any]) -> NDArray[Any]:
    """The values with the other sign, int64 or float64. Raises :class:`RangeError` for the one integer that has no other sign."""
    values = _typed(values)
    limits = np.iinfo(np.int64)
    wrong = values == limits.min
    if values.dtype.kind == "i" and wrong.any():
        raise RangeError(
            int(np.argmax(wrong)),
            f"value {limits.min}: its mirror image is out of range: int64 holds {limits.min} to {limits.max}",
        )
    return -values


def canonical(matrix: Matrix) -> sp.csr_array:
    """The matrix as CSR with sorted rows and each place once; values int64 (of integers and truth values) or float64.

    Parameters
    ----------
    matrix: any SciPy sparse matrix or array, or a NumPy array of two dimensions. It stays as it is; canonical CSR of these
        types comes back itself.

    Values of one place are summed; of truth values there is one where any is. Stored zeros stay, except for those that fill
    blocks (BSR) and diagonals (DIA). Raises TypeError for what is no matrix of real numbers, ValueError for one that contradicts
    itself, :class:`RangeError` for a sum that is out of range.
    """
    given: Any = matrix
    if not sp.issparse(given):
        if not isinstance(given, np.ndarray):
            raise TypeError(f"Operand must be a SciPy sparse matrix or a NumPy array, not {type(given).__name__}")
        if given.ndim != 2:
            raise TypeError(f"Operand must have two dimensions, not {given.ndim}")
        given = sp.coo_array(_typed(given))
    if len(given.shape) != 2:
        raise TypeError(f"Operand must have two dimensions, not {len(given.shape)}")
    if given.format == "csr":
        found = given if isinstance(given, sp.csr_array) else sp.csr_array(given)
        if found.has_canonical_format and _within(found):
            data = _typed(found.data)
            if data is found.data:
                return found
            return _flagged(sp.csr_array((data, found.indices, found.indptr), shape=found.shape))
    if given.format not in ("csr", "csc", "coo"):
        padded = given.format in PADDED
        given = given.tocoo()
        if padded:
            keep = given.data != 0
            given = sp.coo_array((given.data[keep], (given.row[keep], given.col[keep])), shape=given.shape)
    if given.format in ("csr", "csc"):
        given.check_format(full_check=True)
        given = given.tocoo()
    return _from_places(given)


def _within(matrix: sp.csr_array) -> bool:
    """Whether all columns exist: compiled code does not ask."""
    used = matrix.indices
    return not len(used) or (int(used.min()) >= 0 and int(used.max()) < matrix.shape[1])


def _typed(data: NDArray[Any]) -> NDArray[Any]:
    """The values as int64 or float64."""
    kind = data.dtype.kind
    if kind not in "fiub":
        raise TypeError(f"Operand values must be real, integer or pattern, not {data.dtype}")
    if kind == "u" and data.size and int(data.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"Operand value {int(data.max())} is too large: at most {np.iinfo(np.int64).max}")
    return data.astype(np.float64 if kind == "f" else np.int64, copy=False)


def _from_places(matrix: Any) -> sp.csr_array:
    """From COO, whose places may come in any order and more than once."""
    data = _typed(matrix.data)
    rows, columns = (int(size) for size in matrix.shape)
    built = sp.coo_array((data, (matrix.row, matrix.col)), shape=(rows, columns))
    found = sp.csr_array(built.tocsr())
    if found.nnz < len(data):
        # SciPy has summed what wraps and what becomes infinite without a word.
        order = np.lexsort((matrix.col, matrix.row))
        row, column = matrix.row[order], matrix.col[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
        found.sort_indices()
        try:
            sums = sum_runs(data[order], np.flatnonzero(new), order)
        except RangeError as error:
            place = int(matrix.row[error.entry]), int(matrix.col[error.entry])
            raise RangeError(error.entry, error.complaint, place) from None
        found.data = np.minimum(sums, 1) if matrix.data.dtype.kind == "b" else sums
    found.sort_indices()
    return _flagged(found)


def _flagged(matrix: sp.csr_array) -> sp.csr_array:
    """The matrix, known to be canonical: nothing looks at all of it again."""
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
