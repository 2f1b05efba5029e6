"""Tile occupancies: how many nonzeros lie in each tile of a given shape, exactly or for a sample of tiles."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .pattern import Index, Pattern

__all__ = ["Occupancy", "TileList", "fits", "occupancy", "sample_occupancies"]


@dataclass(frozen=True, eq=False)
class TileList:
    """The nonempty tiles of a matrix, row of tiles by row of tiles.

    Parameters
    ----------
    tile_rows, tile_columns: tile shape in coordinates of the matrix.
    pointers: int64[rows of tiles + 1]. columns: which tile of its row. occupancy: nonzeros of the tile.
    weight: sum over the tile's nonzeros of a weight of their row (uses of the row of B make it effectual MACs).
    """

    tile_rows: int
    tile_columns: int
    columns_of_tiles: int
    pointers: Index
    columns: Index
    occupancy: Index
    weight: Index

    @classmethod
    def single(cls, matrix: Pattern, row_weight: Index) -> "TileList":
        """Tiles of one coordinate: every nonzero is a tile."""
        ones = np.ones(matrix.nnz, np.int64)
        weight = np.repeat(row_weight, matrix.row_lengths)
        return cls(1, 1, matrix.columns, matrix.pointers, matrix.coordinates, ones, weight)

    def merged(self, rows: int, columns: int) -> "TileList":
        """Tiles ``rows`` times as high and ``columns`` times as wide, in one pass over the list."""
        count = -(-self.columns_of_tiles // columns)
        parts = _merge(self.pointers, self.columns, self.occupancy, self.weight, rows, columns, count)
        return TileList(self.tile_rows * rows, self.tile_columns * columns, count, *parts)

    @property
    def rows_of_tiles(self) -> int:
        return len(self.pointers) - 1

    @property
    def rows(self) -> Index:
        """Row of tiles of each nonempty tile."""
        return np.repeat(np.arange(self.rows_of_tiles), np.diff(self.pointers))


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Distribution of tile occupancies: ``nonempty`` lists those above zero, ``tiles`` counts all tiles."""

    tiles: int
    nonempty: Index

    @property
    def largest(self) -> int:
        return int(self.nonempty.max(initial=0))

    @property
    def mean(self) -> float:
        """Over all tiles, empty ones too."""
        return float(self.nonempty.sum()) / self.tiles

    def histogram(self) -> dict[int, int]:
        """Tiles of each occupancy, empty ones too."""
        sizes, counts = np.unique(self.nonempty, return_counts=True)
        found = {int(s): int(c) for s, c in zip(sizes, counts, strict=True)}
        empty = self.tiles - len(self.nonempty)
        return ({0: empty} if empty else {}) | found

    def overbooked(self, capacity: int, *, empty: bool = True) -> float:
        """Share of the tiles (of the nonempty ones unless ``empty``) that hold more than ``capacity``."""
        among = self.tiles if empty else max(1, len(self.nonempty))
        return float(np.count_nonzero(self.nonempty > capacity)) / among

    def quantile(self, share: float) -> int:
        """Smallest occupancy that at most ``share`` of all tiles exceed."""
        above = int(np.floor(share * self.tiles))
        if above >= len(self.nonempty):
            return 0
        position = len(self.nonempty) - 1 - above
        return int(np.partition(self.nonempty, position)[position])


def occupancy(matrix: Pattern, tile_rows: int, tile_columns: int) -> Occupancy:
    """Exact occupancies for tiles of any shape, in one pass over the nonzeros."""
    _checked(tile_rows, tile_columns)
    tiles = -(-matrix.rows // tile_rows) * -(-matrix.columns // tile_columns)
    count, _ = _count(matrix.pointers, matrix.coordinates, tile_rows, tile_columns, matrix.columns, matrix.nnz)
    return Occupancy(tiles, count)


def fits(matrix: Pattern, tile_rows: int, tile_columns: int, capacity: int) -> bool:
    """Whether no tile holds more than ``capacity``; stops at the first that does."""
    _checked(tile_rows, tile_columns)
    _, ok = _count(matrix.pointers, matrix.coordinates, tile_rows, tile_columns, matrix.columns, capacity)
    return bool(ok)


def sample_occupancies(
    matrix: Pattern, tile_rows: int, tile_columns: int, samples: int, rng: np.random.Generator
) -> Index:
    """Occupancies of ``samples`` tiles drawn with equal chance and replacement, empty tiles included.

    Tiles are counted by binary search in their rows; where that takes more steps than a pass over every nonzero, all
    occupancies are found and the sample is drawn from them.
    """
    _checked(tile_rows, tile_columns)
    rows, columns = -(-matrix.rows // tile_rows), -(-matrix.columns // tile_columns)
    if samples * min(tile_rows, matrix.rows) * 8 > matrix.nnz:
        exact = occupancy(matrix, tile_rows, tile_columns)
        picked = rng.integers(0, exact.tiles, samples)
        # Which tile is which does not matter for a sample with replacement: the nonempty ones come first.
        return (
            np.where(
                picked < len(exact.nonempty), exact.nonempty[np.minimum(picked, max(0, len(exact.nonempty) - 1))], 0
            )
            if len(exact.nonempty)
            else np.zeros(samples, np.int64)
        )
    return np.asarray(
        _count_some(
            matrix.pointers, matrix.coordinates, tile_rows, tile_columns,
            rng.integers(0, rows, samples), rng.integers(0, columns, samples),
        )
    )  # fmt: skip


def _checked(tile_rows: int, tile_columns: int) -> None:
    if tile_rows < 1 or tile_columns < 1:
        raise ValueError(f"Tile shape must be at least 1 x 1, not {tile_rows!r} x {tile_columns!r}")


@njit(cache=True)
def _count(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    tile_rows: int,
    tile_columns: int,
    columns: int,
    capacity: NDArray[Any],
) -> tuple[NDArray[Any], bool]:
    width = (columns + tile_columns - 1) // tile_columns
    cell = np.full(width, -1, np.int64)
    counts = np.empty(len(coordinates), np.int64)
    n = 0
    rows = len(pointers) - 1
    row = 0
    while row < rows:
        first = n
        stop = min(rows, row + tile_rows)
        for p in range(pointers[row], pointers[stop]):
            c = coordinates[p] // tile_columns
            at = cell[c]
            if at < first:
                cell[c] = at = n
                counts[n] = 0
                n += 1
            counts[at] += 1
            if counts[at] > capacity:
                return counts[:n].copy(), False
        row = stop
    return counts[:n].copy(), True


@njit(cache=True)
def _count_some(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    tile_rows: int,
    tile_columns: int,
    tile_row: NDArray[Any],
    tile_column: NDArray[Any],
) -> NDArray[Any]:
    found = np.zeros(len(tile_row), np.int64)
    rows = len(pointers) - 1
    for n in range(len(tile_row)):
        low = tile_column[n] * tile_columns
        for row in range(tile_row[n] * tile_rows, min(rows, (tile_row[n] + 1) * tile_rows)):
            part = coordinates[pointers[row] : pointers[row + 1]]
            if len(part) and part[0] < low + tile_columns and part[-1] >= low:
                found[n] += np.searchsorted(part, low + tile_columns) - np.searchsorted(part, low)
    return found


@njit(cache=True)
def _merge(
    pointers: NDArray[Any],
    columns: NDArray[Any],
    occupancies: NDArray[Any],
    weights: NDArray[Any],
    rows_per: int,
    columns_per: int,
    count: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    rows = len(pointers) - 1
    out_rows = (rows + rows_per - 1) // rows_per
    out_ptr = np.zeros(out_rows + 1, np.int64)
    out_col = np.empty(len(columns), np.int64)
    out_occ = np.empty(len(columns), np.int64)
    out_weight = np.empty(len(columns), np.int64)
    cell = np.full(count, -1, np.int64)
    n = 0
    for r in range(out_rows):
        first = n
        for p in range(pointers[r * rows_per], pointers[min(rows, (r + 1) * rows_per)]):
            c = columns[p] // columns_per
            at = cell[c]
            if at < first:
                cell[c] = at = n
                out_col[n] = c
                out_occ[n] = 0
                out_weight[n] = 0
                n += 1
            out_occ[at] += occupancies[p]
            out_weight[at] += weights[p]
        out_ptr[r + 1] = n
    return out_ptr, out_col[:n].copy(), out_occ[:n].copy(), out_weight[:n].copy()


def as_grid(tiles: TileList) -> NDArray[np.int64]:
    """Dense array of the occupancies, for small grids."""
    grid = np.zeros((tiles.rows_of_tiles, tiles.columns_of_tiles), np.int64)
    grid[tiles.rows, tiles.columns] = tiles.occupancy
    return grid
