"""What the tiles of one range of rows multiply, and what becomes of their partial results: Numba kernels over the products."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

__all__ = ["LEAVES_AS_PRODUCTS", "LEAVES_AS_ROW", "STAYS", "merge_levels", "row_fates", "tile_products"]

# What becomes of a row of a C tile when a visit ends.
STAYS, LEAVES_AS_ROW, LEAVES_AS_PRODUCTS = range(3)


@njit(cache=True, nogil=True)
def row_fates(
    first: int,
    last: int,
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_pointers: NDArray[Any],
    b_coordinates: NDArray[Any],
    tile_j: int,
    capacity: int,
    fitting: int,
    other: int,
    fates: NDArray[Any],
    finals: NDArray[Any],
    stamp: NDArray[Any],
) -> None:
    """Counts the nonzeros of rows ``first`` to ``last`` of C by j tile into ``finals``; ``fates`` [rows, tiles_j] of these rows.

    A row is ``fitting`` in a tile where its nonzeros and those of the rows before are no more than ``capacity``, else ``other``.
    ``finals`` is cleared before. ``stamp``: int64[J]; no entry is a row from ``first`` on.
    """
    finals[:] = 0
    for row in range(first, last):
        for p in range(a_pointers[row], a_pointers[row + 1]):
            k = a_coordinates[p]
            for q in range(b_pointers[k], b_pointers[k + 1]):
                j = b_coordinates[q]
                if stamp[j] != row:
                    stamp[j] = row
                    finals[j // tile_j] += 1
        for tile in range(len(finals)):
            fates[row - first, tile] = fitting if finals[tile] <= capacity else other


@njit(cache=True, nogil=True)
def merge_levels(fibers: int, radix: int) -> int:
    """Passes that merge so many fibers, ``radix`` at a time; one at least."""
    levels = 1
    while fibers > radix:
        fibers = (fibers + radix - 1) // radix
        levels += 1
    return levels


@njit(cache=True, nogil=True)
def tile_products(
    first: int,
    last: int,
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_pointers: NDArray[Any],
    b_coordinates: NDArray[Any],
    tile_j: int,
    tile_k: int,
    fate: NDArray[Any],
    radix: int,
    b_lines: NDArray[Any],
    stamp: NDArray[Any],
    begin: int,
    macs: NDArray[Any],
    row_time: NDArray[Any],
    longest: NDArray[Any],
    logged: NDArray[Any],
    merged: NDArray[Any],
) -> int:
    """Counts of one i tile by (k tile, j tile), all arrays cleared before.

    Parameters
    ----------
    fate: int8[rows, tiles_j]. A row of a C tile stays on chip until it is whole, leaves as the fiber that one visit made of
        it, or leaves product by product, a fiber for each element of A.
    radix: fibers that one merge takes. b_lines: [tiles_k, tiles_j], lines of B's tile: the least time that a row takes
        where B passes by it.
    stamp, begin: int64[J], and the first generation that it does not hold. Returns the next one.
    macs: [tiles_k, tiles_j]. row_time, longest: the sum over rows, and the most, of max(lines, products of the row).
    logged: [tiles_k, tiles_j], elements of partial fibers that leave, one more for each fiber.
    merged: [2, tiles_j], logged elements, and what merging passes take in: each element once a level.
    """
    across = fate.shape[1]
    of_row = np.zeros(across, np.int64)
    leaving = np.zeros(across, np.int64)
    fibers = np.zeros(across, np.int64)
    entries = np.zeros(across, np.int64)
    before = np.full(across, -1, np.int64)
    generation = begin - 1
    for row in range(first, last):
        fibers[:] = 0
        entries[:] = 0
        p = a_pointers[row]
        while p < a_pointers[row + 1]:
            kt = a_coordinates[p] // tile_k
            generation += 1
            of_row[:] = 0
            leaving[:] = 0
            while p < a_pointers[row + 1] and a_coordinates[p] // tile_k == kt:
                k = a_coordinates[p]
                before[:] = -1
                for q in range(b_pointers[k], b_pointers[k + 1]):
                    j = b_coordinates[q]
                    jt = j // tile_j
                    of_row[jt] += 1
                    what = fate[row - first, jt]
                    if what == LEAVES_AS_PRODUCTS:
                        leaving[jt] += 1
                        if before[jt] != k:
                            before[jt] = k
                            leaving[jt] += 1
                            fibers[jt] += 1
                    elif what == LEAVES_AS_ROW and stamp[j] != generation:
                        stamp[j] = generation
                        leaving[jt] += 1
                p += 1
            for jt in range(across):
                macs[kt, jt] += of_row[jt]
                if b_lines[kt, jt] > 0:
                    time = max(b_lines[kt, jt], of_row[jt])
                    row_time[kt, jt] += time
                    longest[kt, jt] = max(longest[kt, jt], time)
                if leaving[jt] > 0:
                    if fate[row - first, jt] == LEAVES_AS_ROW:
                        leaving[jt] += 1
                        fibers[jt] += 1
                    logged[kt, jt] += leaving[jt]
                    entries[jt] += leaving[jt]
        for jt in range(across):
            merged[0, jt] += entries[jt]
            merged[1, jt] += entries[jt] * merge_levels(fibers[jt], radix)
    return generation + 1
