"""Tiles of an operand whose fibers a dataflow walks: what each holds, its bus lines, and what of it does not fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.pattern import Index, Pattern

__all__ = ["FiberTiles", "by_columns", "fiber_tiles", "word_lines"]


@dataclass(frozen=True, eq=False)
class FiberTiles:
    """Dense arrays over tiles, ``[tiles along the fibers' rank, tiles along their coordinates]``.

    Parameters
    ----------
    nonzeros, lines: nonzeros, and bus lines that hold them; a line that two fibers of the tile share counts once.
    fibers: nonempty ones.
    bumped, bumped_lines: nonzeros from the first fiber on that finds no room, and their lines; zero where all fit.
    meta_lines: lines of the pointers or begin positions that say where the fibers are, read at a visit.
    kept_lines: lines of begin positions that are written back for the next tile along the coordinates.
    """

    nonzeros: Index
    lines: Index
    fibers: Index
    bumped: Index
    bumped_lines: Index
    meta_lines: Index
    kept_lines: Index

    def transposed(self) -> "FiberTiles":
        """The same with the axes exchanged."""
        return FiberTiles(*(np.ascontiguousarray(array.T) for array in vars(self).values()))


def by_columns(matrix: Pattern) -> Pattern:
    """The same matrix with columns as fibers."""
    return Pattern(matrix.columns, matrix.rows, *matrix.by_column(np.arange(matrix.rows, dtype=np.int64)))


def word_lines(first: int, count: int, lanes: int) -> int:
    """Lines that hold ``count`` 32-bit words from word ``first`` of an aligned array on."""
    return -(-(first % (2 * lanes) + count) // (2 * lanes)) if count else 0


def fiber_tiles(matrix: Pattern, height: int, width: int, lanes: int, regular: int, capacity: int) -> FiberTiles:
    """Tiles of ``height`` fibers and ``width`` coordinates.

    Parameters
    ----------
    lanes: nonzeros in a line. capacity: nonzeros that a partition holds beside its metadata; of a tile with more, fibers in
        order stay as long as they fit ``regular``, what is left beside the FIFO-managed region.

    A fiber that is cut has begin positions: they and the fibers' ends are read, and written for the tile that follows.
    """
    shape = -(-max(1, matrix.rows) // height), -(-max(1, matrix.columns) // width)
    counts = [np.zeros(shape, np.int64) for _ in range(5)]
    _tiles(matrix.pointers, matrix.coordinates, height, width, lanes, regular, capacity, *counts)
    meta, kept = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for tile in range(shape[0]):
        first = tile * height
        count = min(height, matrix.rows - first)
        if shape[1] == 1:
            meta[tile] = word_lines(first, count + 1, lanes)
        else:
            meta[tile] = word_lines(first, count, lanes) + word_lines(first + 1, count, lanes)
            kept[tile, :-1] = word_lines(first, count, lanes)
    return FiberTiles(counts[0], counts[1], counts[2], counts[3], counts[4], meta, kept)


@njit(cache=True, nogil=True)
def _tiles(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    height: int,
    width: int,
    lanes: int,
    regular: int,
    capacity: int,
    nonzeros: NDArray[Any],
    lines: NDArray[Any],
    fibers: NDArray[Any],
    bumped: NDArray[Any],
    bumped_lines: NDArray[Any],
) -> None:
    rows = len(pointers) - 1
    across = nonzeros.shape[1]
    read = np.empty(across, np.int64)
    last_line = np.empty(across, np.int64)
    filled = np.empty(across, np.int64)
    for tile in range(nonzeros.shape[0]):
        stop = min(rows, (tile + 1) * height)
        for p in range(pointers[tile * height], pointers[stop]):
            nonzeros[tile, coordinates[p] // width] += 1
        read[:] = -1
        last_line[:] = -1
        filled[:] = 0
        for row in range(tile * height, stop):
            p = pointers[row]
            while p < pointers[row + 1]:
                at = coordinates[p] // width
                end = p + 1
                while end < pointers[row + 1] and coordinates[end] // width == at:
                    end += 1
                first, last = p // lanes, (end - 1) // lanes
                fibers[tile, at] += 1
                lines[tile, at] += last - first + (first != read[at])
                read[at] = last
                filled[at] += end - p
                if nonzeros[tile, at] > capacity and filled[at] > regular:
                    bumped[tile, at] += end - p
                    bumped_lines[tile, at] += last - first + (first != last_line[at])
                    last_line[at] = last
                p = end
