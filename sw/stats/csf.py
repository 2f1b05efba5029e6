"""Tiled compressed sparse fibers: the footprint of a matrix's tiles with values, coordinates and segments.

Paper: D2T2, sections 2.1, 4.3. A tile is a two-level tree: its nonempty fibers, and the nonzeros of each. It takes one
word for each value, each coordinate of either level, and each entry of either level's segment array.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .pattern import Index, Pattern

__all__ = ["WORD_BYTES", "TileGrid", "csf_words", "largest_tile", "tile_grid"]

WORD_BYTES = 4
Count = TypeVar("Count", int, float, NDArray[np.int64])


def csf_words(nonzeros: Count, fibers: Count, tiles: Count) -> Count:
    """Words of ``tiles`` tiles that together hold so many nonzeros in so many nonempty fibers.

    Values and coordinates of the nonzeros; coordinates of the fibers and the segments between them; the segment that
    holds the fibers (two entries) and the last end.
    """
    return 2 * nonzeros + 2 * fibers + 3 * tiles


@dataclass(frozen=True, eq=False)
class TileGrid:
    """The nonempty tiles of a matrix, row of tiles by row of tiles.

    Parameters
    ----------
    tile_rows, tile_columns: tile shape in coordinates.
    columns_of_tiles: tiles along a row of tiles, empty ones too.
    pointers: int64[rows of tiles + 1]. columns: which tile of its row; not sorted.
    nonzeros, fibers: of each tile; fibers are its nonempty rows.
    """

    tile_rows: int
    tile_columns: int
    columns_of_tiles: int
    pointers: Index
    columns: Index
    nonzeros: Index
    fibers: Index

    @property
    def rows_of_tiles(self) -> int:
        return len(self.pointers) - 1

    @property
    def tiles(self) -> int:
        """Nonempty tiles."""
        return len(self.columns)

    @property
    def rows(self) -> Index:
        """Row of tiles of each tile."""
        return np.repeat(np.arange(self.rows_of_tiles, dtype=np.int64), np.diff(self.pointers))

    @property
    def words(self) -> Index:
        """Footprint of each tile (:func:`csf_words`)."""
        return csf_words(self.nonzeros, self.fibers, np.ones(self.tiles, np.int64))


def tile_grid(matrix: Pattern, tile_rows: int, tile_columns: int) -> TileGrid:
    """All nonempty tiles of a shape, in one pass over the nonzeros."""
    if tile_rows < 1 or tile_columns < 1:
        raise ValueError(f"Tile shape must be at least 1 x 1, not {tile_rows!r} x {tile_columns!r}")
    parts = _grid(matrix.pointers, matrix.coordinates, tile_rows, tile_columns, matrix.columns)
    return TileGrid(tile_rows, tile_columns, -(-matrix.columns // tile_columns), *parts)


def largest_tile(matrix: Pattern, tile_rows: int, tile_columns: int) -> int:
    """Footprint of the largest tile in words, 0 where there is none: as :func:`tile_grid`, ten times as fast."""
    if tile_rows < 1 or tile_columns < 1:
        raise ValueError(f"Tile shape must be at least 1 x 1, not {tile_rows!r} x {tile_columns!r}")
    tiles = np.arange(matrix.columns, dtype=np.int64) // tile_columns
    return int(_largest(matrix.pointers, matrix.coordinates, tiles.astype(np.int32), tile_rows))


@njit(cache=True, nogil=True)
def _largest(pointers: NDArray[Any], coordinates: NDArray[Any], tile_of: NDArray[np.int32], tile_rows: int) -> int:
    rows = len(pointers) - 1
    width = int(tile_of[-1]) + 1 if len(tile_of) else 0
    words = np.zeros(width, np.int64)
    most = 0
    for first in range(0, rows, tile_rows):
        words[:] = 3
        for row in range(first, min(rows, first + tile_rows)):
            before = np.int32(-1)
            for p in range(pointers[row], pointers[row + 1]):
                tile = tile_of[coordinates[p]]
                words[tile] += 2 if tile == before else 4
                before = tile
        for tile in range(width):
            if words[tile] > most:
                most = words[tile]
    return most if most > 3 else 0


@njit(cache=True, nogil=True)
def _grid(
    pointers: NDArray[Any], coordinates: NDArray[Any], tile_rows: int, tile_columns: int, columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    width = (columns + tile_columns - 1) // tile_columns
    rows = len(pointers) - 1
    height = (rows + tile_rows - 1) // tile_rows
    cell = np.full(width, -1, np.int64)
    out_pointers = np.zeros(height + 1, np.int64)
    capacity = max(16, min(len(coordinates), 1024))
    out_columns = np.empty(capacity, np.int64)
    nonzeros = np.empty(capacity, np.int64)
    fibers = np.empty(capacity, np.int64)
    n = 0
    for tile in range(height):
        first = n
        for row in range(tile * tile_rows, min(rows, (tile + 1) * tile_rows)):
            before = np.int64(-1)
            for p in range(pointers[row], pointers[row + 1]):
                c = coordinates[p] // tile_columns
                at = cell[c]
                if at < first:
                    if n == capacity:
                        capacity *= 2
                        out_columns = np.concatenate((out_columns, np.empty(n, np.int64)))
                        nonzeros = np.concatenate((nonzeros, np.empty(n, np.int64)))
                        fibers = np.concatenate((fibers, np.empty(n, np.int64)))
                    cell[c] = at = n
                    out_columns[n] = c
                    nonzeros[n] = 0
                    fibers[n] = 0
                    n += 1
                nonzeros[at] += 1
                if c != before:  # coordinates rise, so that a fiber's nonzeros in a tile follow one another
                    fibers[at] += 1
                    before = c
        out_pointers[tile + 1] = n
    return out_pointers, out_columns[:n].copy(), nonzeros[:n].copy(), fibers[:n].copy()
