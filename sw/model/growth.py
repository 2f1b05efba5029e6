"""How the rows of C grow while k moves on in steps that are not known beforehand."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

__all__ = ["RowGrowth", "row_growth"]


@njit(cache=True)
def _new_columns(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b_coordinates: NDArray[Any],
    columns: int,
    found: NDArray[Any],
    at: NDArray[Any],
) -> NDArray[Any]:
    """Counts the columns that each row gains, or with ``found`` not empty writes the k of each gain from ``at`` on."""
    rows = len(a_pointers) - 1
    gained = np.zeros(rows, np.int64)
    stamp = np.full(columns, -1, np.int64)
    for row in range(rows):
        for position in range(a_pointers[row], a_pointers[row + 1]):
            k = a_coordinates[position]
            for b_position in range(b_begin[k], b_end[k]):
                j = b_coordinates[b_position]
                if stamp[j] != row:
                    stamp[j] = row
                    if len(found) > 0:
                        found[at[row] + gained[row]] = k
                    gained[row] += 1
    return gained


@njit(cache=True)
def _below(pointers: NDArray[Any], found: NDArray[Any], first: int, last: int, bound: int) -> NDArray[np.int64]:
    lengths = np.empty(last - first, np.int64)
    for row in range(first, last):
        low, high = pointers[row], pointers[row + 1]
        while low < high:
            middle = (low + high) // 2
            if found[middle] < bound:
                low = middle + 1
            else:
                high = middle
        lengths[row - first] = low - pointers[row]
    return lengths


@dataclass(frozen=True, eq=False)
class RowGrowth:
    """For each row of C within one range of columns the k that brought each nonzero, rising."""

    pointers: NDArray[np.int64]
    k: NDArray[np.uint32]

    def lengths(self, first: int, last: int, end_k: int) -> NDArray[np.int64]:
        """Nonzeros of rows ``first`` to ``last - 1`` once all k below ``end_k`` have been added."""
        found: NDArray[np.int64] = _below(self.pointers, self.k, first, last, end_k)
        return found


def row_growth(
    a_pointers: NDArray[np.int64],
    a_coordinates: NDArray[np.int64],
    b_begin: NDArray[np.int64],
    b_end: NDArray[np.int64],
    b_coordinates: NDArray[np.int64],
    columns: int,
) -> RowGrowth:
    """The growth of all rows, from B's segments ``b_begin`` to ``b_end`` with coordinates below ``columns``."""
    operands = (a_pointers, a_coordinates, b_begin, b_end, b_coordinates, columns)
    none = np.zeros(0, np.uint32)
    gained = _new_columns(*operands, none, b_begin)
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(gained)])
    found = np.zeros(int(pointers[-1]), np.uint32)
    if len(found):
        _new_columns(*operands, found, pointers)
    return RowGrowth(pointers, found)
