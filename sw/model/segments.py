"""Where the segments of A's and B's rows lie in a tile, and how long the rows of C are that come of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.plan.gather import Index
from sw.plan.thresholds import COUNTS_A_MAC, MANY_K_TILES, MOST_COUNTS

from .growth import RowGrowth, row_growth
from .kernels import boundaries, fiber_counts, part_lengths
from .walk import Tile

__all__ = ["SegmentPlaces", "Segments"]


class Segments(NamedTuple):
    """Positions in A's and B's nonzeros, for each row of A and each row of B, or of the list of B's rows."""

    a_begin: Index
    a_end: Index
    b_begin: Index
    b_end: Index


class SegmentPlaces:
    """The places of one tile after the other.

    Parameters
    ----------
    a, b: the operands. places: int64, where each nonzero of A finds its row of B: its column, or a place in ``list_rows``.
    used_columns, b_coordinates: columns that B uses, and for each of its nonzeros which of them.
    list_rows: rows of B in the order of the list that tiles load from, or None where tiles are cut out of B.
    tile_k, tiles_k: side of a tile along k, and how many there are. j_inside_k: j moves before k does. tuned: sides change.
    """

    def __init__(
        self,
        a: Csr,
        b: Csr,
        places: Index,
        list_rows: Index | None,
        *,
        used_columns: Index,
        b_coordinates: Index,
        tile_k: int,
        tiles_k: int,
        j_inside_k: bool,
        tuned: bool,
    ) -> None:
        self.a, self.b = a, b
        self.a_coordinates = places
        self.list_rows = list_rows
        self.tile_k, self.tiles_k = tile_k, tiles_k
        self.used_columns, self.b_coordinates = used_columns, b_coordinates
        self.columns = max(1, len(used_columns))
        # Growth of a range of columns that comes again is kept.
        self._returns = tuned and j_inside_k
        # A count for each row and k step, unless there are many more of these than elements that a row can gain.
        self._by_step = not tuned and (
            a.rows * tiles_k <= MOST_COUNTS
            or a.rows * tiles_k <= COUNTS_A_MAC * int(np.diff(b.pointers)[a.coordinates].sum())
        )
        # Of A by column: the first nonzero at or beyond it. Of B for the present columns.
        self._of_a: dict[int, Index] = {0: a.pointers[:-1]}
        self._of_b = ((-1, -1), b.pointers[:-1], b.pointers[:-1])
        self._counts: dict[int, NDArray[np.int32]] = {}
        self._growth: dict[int, RowGrowth] = {}

    def of(self, tile: Tile) -> Segments:
        """The segments of a tile."""
        return Segments(*self._in_a(tile), *self._in_b(tile))

    def _in_a(self, tile: Tile) -> tuple[Index, Index]:
        pointers = self.a.pointers
        if tile.whole_k:
            return pointers[:-1], pointers[1:]
        ends = tile.k, tile.k + tile.size_k
        for column in ends:
            if column not in self._of_a:
                self._of_a[column] = boundaries(pointers, self.a_coordinates, pointers[:-1], column)
        if self.tiles_k > MANY_K_TILES:
            self._of_a = {column: self._of_a[column] for column in (0, *ends)}
        return self._of_a[ends[0]], self._of_a[ends[1]]

    def _in_b(self, tile: Tile) -> tuple[Index, Index]:
        columns = tile.j, tile.size_j
        if self._of_b[0] != columns:
            low, high = (int(np.searchsorted(self.used_columns, j)) for j in (tile.j, tile.j + tile.size_j))
            begin = boundaries(self.b.pointers, self.b_coordinates, self.b.pointers[:-1], low)
            end = boundaries(self.b.pointers, self.b_coordinates, begin, high)
            if self.list_rows is not None:
                begin, end = begin[self.list_rows], end[self.list_rows]
            self._of_b = columns, begin, end
        return self._of_b[1:]

    def part_lengths(self, tile: Tile) -> Index:
        """int64[rows]: elements of what the tile makes of each of its rows of C, without what steps before it have made."""
        at, rows = self.of(tile), (tile.i, tile.i + tile.size_i)
        segments = (at.a_begin, at.a_end, self.a_coordinates, at.b_begin, at.b_end, self.b_coordinates, self.columns)
        found: Index = part_lengths(*rows, *segments)
        return found

    def lengths(self, tile: Tile) -> Index:
        """int64[rows]: elements of each row of C once the tile has been computed."""
        first, last, j = tile.i, tile.i + tile.size_i, tile.index_j
        segments = (self.a.pointers, self.a_coordinates, *self._in_b(tile), self.b_coordinates, self.columns)
        if self._by_step:
            if j not in self._counts:
                self._counts = {j: fiber_counts(*segments, self.tile_k, self.tiles_k)}
            step = 0 if self.list_rows is not None else tile.k // self.tile_k
            return self._counts[j][first:last, step].astype(np.int64)
        if j not in self._growth:
            self._growth = (self._growth if self._returns else {}) | {j: row_growth(*segments)}
        return self._growth[j].lengths(first, last, tile.k + tile.size_k)
