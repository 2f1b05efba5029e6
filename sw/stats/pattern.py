"""The nonzero pattern of a matrix for the compiled kernels, and samples of rows and columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sw.formats.canonical import Matrix, canonical
from sw.jit import njit

__all__ = ["Index", "Pattern", "default_fraction", "sample_coordinates"]

Index = NDArray[np.int64]

# Up to this many nonzeros a full pass costs less than a tenth of a second: a sample saves nothing.
FULL_PASS_NONZEROS = 1 << 21


@dataclass(frozen=True, eq=False)
class Pattern:
    """CSR without values: ``pointers`` int64[rows + 1], ``coordinates`` int64[nnz], rising in each row."""

    rows: int
    columns: int
    pointers: Index
    coordinates: Index

    @classmethod
    def of(cls, matrix: "Matrix | Pattern") -> "Pattern":
        """The pattern of any matrix, or itself; stored zeros count as nonzeros, as in the machine.

        Raises TypeError and ValueError (:func:`sw.formats.canonical.canonical`).
        """
        if isinstance(matrix, Pattern):
            return matrix
        matrix = canonical(matrix)
        rows, columns = (int(n) for n in matrix.shape)
        return cls(
            rows, columns, matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int64, copy=False)
        )

    @property
    def nnz(self) -> int:
        return len(self.coordinates)

    @cached_property
    def row_lengths(self) -> Index:
        return np.diff(self.pointers)

    def column_counts(self) -> Index:
        """Nonzeros in each column."""
        return np.bincount(self.coordinates, minlength=self.columns).astype(np.int64, copy=False)

    def by_column(self, row_order: Index) -> tuple[Index, Index]:
        """Pointers and rows of each column's nonzeros, those of ``row_order`` only and in that order: one pass."""
        return _by_column(self.pointers, self.coordinates, row_order, self.columns)


@njit(cache=True)
def _by_column(pointers: Index, coordinates: Index, row_order: Index, columns: int) -> tuple[Index, Index]:
    begin = np.zeros(columns + 1, np.int64)
    for row in row_order:
        for p in range(pointers[row], pointers[row + 1]):
            begin[coordinates[p] + 1] += 1
    for c in range(columns):
        begin[c + 1] += begin[c]
    at = begin[:-1].copy()
    rows = np.empty(begin[columns], np.int64)
    for row in row_order:
        for p in range(pointers[row], pointers[row + 1]):
            c = coordinates[p]
            rows[at[c]] = row
            at[c] += 1
    return begin, rows


def sample_coordinates(size: int, fraction: float, rng: np.random.Generator) -> Index:
    """A sorted sample of ``0 .. size - 1`` without repetition: ``fraction`` of them, at least one."""
    if not 0 < fraction <= 1:
        raise ValueError(f"Sampled fraction must be in (0, 1], not {fraction!r}")
    wanted = min(size, max(1, round(size * fraction)))
    if wanted == size:
        return np.arange(size, dtype=np.int64)
    return np.sort(rng.choice(size, wanted, replace=False)).astype(np.int64)


def default_fraction(size: int, nonzeros: int) -> float:
    """Fraction of ``size`` rows or columns to sample: all where cheap, never below HYTE's 1/sqrt(N)."""
    if nonzeros <= FULL_PASS_NONZEROS:
        return 1.0
    return float(min(1.0, max(FULL_PASS_NONZEROS / nonzeros, size**-0.5)))
