"""Segments of rows: where a tile cuts them, and how many products they have."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.pattern import Index

__all__ = ["RowSegments", "lengths_between", "products_of_steps", "rows_of_tile"]


class RowSegments(NamedTuple):
    """Of each row of A in a tile: where its segment begins and ends, products inside it and in the k steps before, in how many of
    which it has any."""

    begin: Index
    end: Index
    inside: Index
    before: Index
    parts: Index


@njit(cache=True)
def lengths_between(pointers: NDArray[Any], coordinates: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
    """int64[rows]: nonzeros of each row from a column on to another one."""
    found = np.empty(len(pointers) - 1, np.int64)
    for row in range(len(found)):
        of_row = coordinates[pointers[row] : pointers[row + 1]]
        found[row] = np.searchsorted(of_row, end) - np.searchsorted(of_row, begin)
    return found


@njit(cache=True)
def products_of_steps(
    pointers: NDArray[Any], coordinates: NDArray[Any], lengths: NDArray[Any], side: int, steps: int, summed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Products of each row in each k step of ``side`` coordinates in which it has any, and 1 for each.

    ``lengths``: nonzeros of rows of B. ``summed``: products up to the step instead, and in how many steps before the last there
    are so many.
    """
    found, times = np.empty(len(coordinates), np.int64), np.ones(len(coordinates), np.int64)
    number = 0
    for row in range(len(pointers) - 1):
        newest, so_far = -1, 0
        for position in range(pointers[row], pointers[row + 1]):
            k = coordinates[position]
            if lengths[k] == 0:
                continue
            if k // side != newest:
                if summed and newest >= 0:
                    times[number - 1] = k // side - newest
                newest = k // side
                found[number] = so_far
                number += 1
            found[number - 1] += lengths[k]
            if summed:
                so_far += lengths[k]
        if summed and newest >= 0:
            times[number - 1] = steps - 1 - newest
    return found[:number], times[:number]


@njit(cache=True)
def _rows_of_tile(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    lengths: NDArray[Any],
    step: tuple[int, int],
    side: int,
    found: NDArray[Any],
) -> None:
    for row in range(len(pointers) - 1):
        position, end = pointers[row], pointers[row + 1]
        products, parts, newest = 0, 0, -1
        while position < end and coordinates[position] < step[0]:
            k = coordinates[position]
            if lengths[k] > 0:
                products += lengths[k]
                if k // side != newest:
                    newest = k // side
                    parts += 1
            position += 1
        found[0, row], found[3, row], found[4, row] = position, products, parts
        products = 0
        while position < end and coordinates[position] < step[1]:
            products += lengths[coordinates[position]]
            position += 1
        found[1, row], found[2, row] = position, products


def rows_of_tile(pointers: Index, coordinates: Index, lengths: Index, step: tuple[int, int], side: int) -> RowSegments:
    """The rows of A that begin at these ``pointers``.

    Parameters
    ----------
    pointers, coordinates: int64[rows + 1], and of all of A. lengths: int64[K], nonzeros of each row of B in the tile's columns.
    step: the first coordinate of the k step, and the one after its last. side: coordinates of a k step.
    """
    found = np.empty((5, len(pointers) - 1), np.int64)
    _rows_of_tile(pointers, coordinates, lengths, step, side, found)
    return RowSegments(*found)
