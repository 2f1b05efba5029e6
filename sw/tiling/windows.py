"""Windows of k: for each tile along i the coordinates that its rows of A have, where these lie close together.

A banded operand, or one whose nodes are numbered along a mesh, uses few rows of B for neighbouring rows of A. A tile that spans
just these keeps k whole: no partial rows of C leave and come back. The idea of tiles that follow the data is HARP's (HYTE,
section 2), in a form that needs no more of the hardware than where each tile of B begins.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["boxes", "outside", "steady", "windows_of"]

# Between rows that were loaded at different times, and in the ring of metadata.
SPARE_LINES = 8


def boxes(windows: NDArray[np.int64], T_i: int, shape: tuple[int, int]) -> list[list[int]]:
    """Tiles of a scheme: windows, int64[tiles, 2], of ``T_i`` rows each, j whole. ``shape``: of C."""
    rows, columns = shape
    return [[n * T_i, min(rows, (n + 1) * T_i), 0, columns, int(k), int(end)] for n, (k, end) in enumerate(windows)]


def windows_of(pointers: NDArray[Any], coordinates: NDArray[Any], T_i: int) -> NDArray[np.int64]:
    """The window of each ``T_i`` rows of A, begin and end (exclusive) in k: int64[ceil(I / T_i), 2].

    ``[0, 0]`` for a tile without elements. The last tile may have fewer rows.

    Parameters
    ----------
    pointers: int[I + 1], rising: where each row of A begins in ``coordinates``, and its end.
    coordinates: int[nnz], the column of each element, rising within a row; not checked.
    T_i: rows of a tile, at least 1.
    """
    rows = len(pointers) - 1
    tiles = -(-rows // T_i)
    found = np.zeros((tiles, 2), np.int64)
    lengths = np.diff(pointers)
    filled = np.flatnonzero(lengths)
    if len(filled) == 0:
        return found
    tile = filled // T_i
    begins = np.flatnonzero(np.concatenate([[True], tile[1:] != tile[:-1]]))
    found[tile[begins], 0] = np.minimum.reduceat(coordinates[pointers[filled]].astype(np.int64), begins)
    found[tile[begins], 1] = np.maximum.reduceat(coordinates[pointers[filled + 1] - 1].astype(np.int64), begins) + 1
    return found


@njit(cache=True)
def steady(windows: NDArray[Any], pointers: NDArray[Any], room: int, lanes: int) -> NDArray[np.int64]:
    """Windows that begin no later than those after them, where their rows of B and their metadata then still fit ``room`` lines.

    What a window keeps for the next one need not be loaded again (:mod:`.ring`), and one that begins before the window
    in front of it would keep nothing.

    Parameters
    ----------
    windows: as :func:`windows_of` finds them. pointers: int[K + 1], rising: where each row of B begins, and the end.
    """
    found = np.empty(windows.shape, np.int64)
    found[:] = windows
    after = -1  # where the next window begins
    for tile in range(len(found) - 1, -1, -1):
        begin, end = found[tile, 0], found[tile, 1]
        if begin >= end:
            continue
        if 0 <= after < begin:
            lines = (pointers[end] - pointers[after]) // lanes + (end - after) // lanes + SPARE_LINES
            if lines <= room:
                found[tile, 0] = after
        after = found[tile, 0]
    return found


def outside(pointers: NDArray[Any], coordinates: NDArray[Any], T_i: int, windows: list[list[int]]) -> int | None:
    """Index of the first tile along i whose rows have elements beyond its window; None when all lie within.

    Parameters
    ----------
    pointers, coordinates, T_i: as :func:`windows_of`.
    windows: ``[begin, end]`` of each tile, as many as :func:`windows_of` finds.
    """
    needed = windows_of(pointers, coordinates, T_i)
    given = np.array(windows, np.int64).reshape(-1, 2)
    wrong = (needed[:, 1] > needed[:, 0]) & ((needed[:, 0] < given[:, 0]) | (needed[:, 1] > given[:, 1]))
    return int(np.argmax(wrong)) if wrong.any() else None
