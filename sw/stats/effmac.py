"""Effectual multiply-accumulates of a product: exact, and HYTE's sampled estimate. Paper: HYTE, algorithm 2."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .pattern import Index, Pattern, sample_coordinates

__all__ = ["estimate_effmac", "exact_effmac", "row_macs", "sampled_effmac"]


def exact_effmac(A: Pattern, B: Pattern) -> int:
    """``sum_k nnz(A[:, k]) * nnz(B[k, :])``: one pass over A's coordinates and B's pointers."""
    return int(A.column_counts() @ B.row_lengths)


def row_macs(A: Pattern, B: Pattern) -> Index:
    """Effectual multiply-accumulates of each row of C."""
    each = B.row_lengths[A.coordinates]
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    return sums[A.pointers[1:]] - sums[A.pointers[:-1]]


def estimate_effmac(A: Pattern, B: Pattern, rows: Index, columns: Index) -> float:
    """ESTEFFMAC: the count over sampled ``rows`` of A and ``columns`` of B, scaled up by both fractions.

    Rows of A come straight out of its CSR. CSR does not give columns of B: one pass over B's coordinates
    keeps the sampled ones.
    """
    wanted = np.zeros(B.columns, np.bool_)
    wanted[columns] = True
    found = _sampled(A.pointers, A.coordinates, rows, B.pointers, B.coordinates, wanted, A.columns)
    return found * (A.rows / len(rows)) * (B.columns / len(columns))


@njit(cache=True)
def _sampled(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    rows: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    wanted: NDArray[Any],
    depth: int,
) -> int:
    in_a = np.zeros(depth, np.int64)
    for row in rows:
        for p in range(a_ptr[row], a_ptr[row + 1]):
            in_a[a_idx[p]] += 1
    total = 0
    for k in range(depth):
        if in_a[k]:
            in_b = 0
            for p in range(b_ptr[k], b_ptr[k + 1]):
                in_b += wanted[b_idx[p]]
            total += in_a[k] * in_b
    return total


def sampled_effmac(A: Pattern, B: Pattern, *, fraction: float, seed: int = 0) -> float:
    """``estimate_effmac`` with a fresh sample of ``fraction`` of A's rows and of B's columns."""
    rng = np.random.default_rng(seed)
    return estimate_effmac(
        A, B, sample_coordinates(A.rows, fraction, rng), sample_coordinates(B.columns, fraction, rng)
    )
