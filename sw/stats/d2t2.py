"""D2T2's statistics of an operand: tile sizes, probabilities of tiles and nonzeros, correlations.

Paper: D2T2, sections 4.3 and 4.4. All from one pass over the tiled operand, and one over sampled fibers for ``Corrs``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .csf import TileGrid, tile_grid
from .pattern import Index, Pattern

__all__ = ["TileStatistics", "fiber_correlations", "tile_correlations", "tile_statistics"]

# Corrs compares a hundredth of the tiles (section 5.3), but no fewer than this.
SAMPLED_SHARE = 0.01
FEWEST_TILES = 64
# TileCorrs compares this many rows of tiles.
MOST_TILE_ROWS = 512


@dataclass(frozen=True, eq=False)
class TileStatistics:
    """Statistics of a matrix in tiles of ``T x T``; its outer rank is the rows, its inner one the columns.

    Parameters
    ----------
    T: side of the tiles. rows, columns: of the matrix.
    tiles: nonempty ones.
    max_tile, size_tile: MaxTile and SizeTile, the largest and the mean footprint of a nonempty tile in CSF words.
    nonzeros, fibers: means of a nonempty tile.
    outer_rows: PrTileIdx of the outer rank: the share of rows of tiles that hold any.
    outer_columns: PrTileIdx of the inner rank, given the outer one: the share of tiles that are not empty in such a row.
    inner_row: ProbIndex of the outer rank: for each row of a tile the share of tiles in which it holds anything.
    inner_column: ProbIndex of the inner rank, given the row of the tile: the share of its columns that it then holds.
    row_corrs, column_corrs: TileCorrs along the outer and along the inner rank of tiles; 1 at shift 0.
    corrs: Corrs along the rows inside tiles; 1 at shift 0. Empty when not asked for.
    row_tiles, row_nonzeros: nonempty tiles and nonzeros of each row of tiles. column_tiles, column_nonzeros: likewise.
    """

    T: int
    rows: int
    columns: int
    tiles: int
    max_tile: int
    size_tile: float
    nonzeros: float
    fibers: float
    outer_rows: float
    outer_columns: float
    inner_row: NDArray[np.float64]
    inner_column: NDArray[np.float64]
    row_corrs: NDArray[np.float64]
    column_corrs: NDArray[np.float64]
    corrs: NDArray[np.float64]
    row_tiles: Index
    row_nonzeros: Index
    column_tiles: Index
    column_nonzeros: Index

    @property
    def probability(self) -> float:
        """P_tile (equation 9): a tile is not empty."""
        return self.outer_rows * self.outer_columns

    @property
    def element_probability(self) -> NDArray[np.float64]:
        """Equation 10: an entry of a nonempty tile is a nonzero, by its row in the tile."""
        return self.inner_row * self.inner_column


def tile_statistics(matrix: Pattern, T: int, *, shifts: int = 0, seed: int = 0) -> TileStatistics:
    """Collects the statistics.

    Parameters
    ----------
    matrix: outer rank as rows. T: side of the tiles.
    shifts: how many of ``Corrs`` to find, at most T; 0 for none. seed: which tiles they are found in.
    """
    grid = tile_grid(matrix, T, T)
    words = grid.words
    tiles = max(1, grid.tiles)
    outer = Pattern(grid.rows_of_tiles, grid.columns_of_tiles, grid.pointers, grid.columns)
    inner = Pattern(outer.columns, outer.rows, *outer.by_column(np.arange(outer.rows, dtype=np.int64)))
    nonempty = int(np.count_nonzero(outer.row_lengths))
    present, nonzeros = _by_inner_row(matrix.pointers, matrix.coordinates, T)
    return TileStatistics(
        T=T,
        rows=matrix.rows,
        columns=matrix.columns,
        tiles=grid.tiles,
        max_tile=int(words.max(initial=0)),
        size_tile=float(words.sum()) / tiles,
        nonzeros=matrix.nnz / tiles,
        fibers=float(grid.fibers.sum()) / tiles,
        outer_rows=nonempty / grid.rows_of_tiles,
        outer_columns=grid.tiles / max(1, nonempty) / grid.columns_of_tiles,
        inner_row=present / tiles,
        inner_column=nonzeros / np.maximum(1, present) / min(T, matrix.columns),
        row_corrs=tile_correlations(outer),
        column_corrs=tile_correlations(inner),
        corrs=fiber_correlations(matrix, *_sample(grid, seed), T, shifts) if shifts else np.empty(0),
        row_tiles=outer.row_lengths,
        row_nonzeros=np.diff(matrix.pointers[np.append(np.arange(0, matrix.rows, T), matrix.rows)]),
        column_tiles=inner.row_lengths,
        column_nonzeros=np.bincount(grid.columns, grid.nonzeros, grid.columns_of_tiles).astype(np.int64),
    )


def _sample(grid: TileGrid, seed: int) -> tuple[Index, Index]:
    """Row and column of tiles of the sampled tiles."""
    wanted = min(grid.tiles, max(FEWEST_TILES, round(SAMPLED_SHARE * grid.tiles)))
    picked = (
        np.sort(np.random.default_rng(seed).choice(grid.tiles, wanted, replace=False)) if wanted else np.empty(0, int)
    )
    return np.searchsorted(grid.pointers, picked, side="right") - 1, grid.columns[picked]


@njit(cache=True, nogil=True)
def _by_inner_row(pointers: NDArray[Any], coordinates: NDArray[Any], T: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each row of a tile: tiles in which it holds anything, and its nonzeros in all tiles."""
    present = np.zeros(T, np.int64)
    nonzeros = np.zeros(T, np.int64)
    for row in range(len(pointers) - 1):
        inner = row % T
        before = np.int64(-1)
        for p in range(pointers[row], pointers[row + 1]):
            c = coordinates[p] // T
            if c != before:
                present[inner] += 1
                before = c
        nonzeros[inner] += pointers[row + 1] - pointers[row]
    return present, nonzeros


def tile_correlations(
    tiles: Pattern, *, shifts: int | None = None, most_rows: int = MOST_TILE_ROWS
) -> NDArray[np.float64]:
    """TileCorrs (equation 12) along the rows of a pattern of tiles: tiles that meet another, over all.

    Averaged over the other outer rank, as Corrs is. Of many rows of tiles some are taken, at regular distances.

    Parameters
    ----------
    shifts: how many to find, from 0; all when not given. most_rows: to look at.
    """
    picked = np.unique(np.linspace(0, tiles.rows - 1, min(tiles.rows, most_rows)).astype(np.int64))
    wanted = tiles.rows if shifts is None else min(shifts, tiles.rows)
    return np.asarray(_overlaps(tiles.pointers, tiles.coordinates, picked, wanted, tiles.columns))


def fiber_correlations(
    matrix: Pattern, tile_rows: Index, tile_columns: Index, T: int, shifts: int
) -> NDArray[np.float64]:
    """Corrs (equation 11) along the rows inside the tiles given by their places, as the mean over these tiles."""
    shifts = max(1, min(shifts, T, matrix.rows))
    return np.asarray(_in_tiles(matrix.pointers, matrix.coordinates, tile_rows, tile_columns, T, shifts))


@njit(cache=True, nogil=True)
def _in_tiles(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    tile_rows: NDArray[Any],
    tile_columns: NDArray[Any],
    T: int,
    shifts: int,
) -> NDArray[Any]:
    found = np.zeros(shifts, np.float64)
    stamp = np.full(T, -1, np.int64)
    begin = np.empty(T, np.int64)
    end = np.empty(T, np.int64)
    generation = -1
    for n in range(len(tile_rows)):
        first = tile_rows[n] * T
        rows = min(T, len(pointers) - 1 - first)
        low = tile_columns[n] * T
        nonzeros = 0
        for r in range(rows):
            span = coordinates[pointers[first + r] : pointers[first + r + 1]]
            begin[r] = pointers[first + r] + np.searchsorted(span, low)
            end[r] = pointers[first + r] + np.searchsorted(span, low + T)
            nonzeros += end[r] - begin[r]
        met = np.zeros(shifts, np.int64)
        for r in range(rows):
            if begin[r] == end[r]:
                continue
            generation += 1
            for p in range(begin[r], end[r]):
                stamp[coordinates[p] - low] = generation
            for s in range(min(shifts, rows - r)):
                for p in range(begin[r + s], end[r + s]):
                    met[s] += stamp[coordinates[p] - low] == generation
        found += met / max(1, nonzeros)
    found /= max(1, len(tile_rows))
    found[0] = 1.0
    return found


@njit(cache=True, nogil=True)
def _overlaps(
    pointers: NDArray[Any], coordinates: NDArray[Any], picked: NDArray[Any], shifts: NDArray[Any], width: int
) -> NDArray[Any]:
    """Nonzeros of the picked rows that the row ``s`` further on holds too, over all nonzeros, for each s.

    A row near the end is compared with the rows that exist, so that the end does not look like a lack of correlation.
    """
    rows = len(pointers) - 1
    stamp = np.full(width, -1, np.int64)
    met = np.zeros(shifts, np.int64)
    looked = np.zeros(shifts, np.int64)
    for row in picked:
        first, stop = pointers[row], pointers[row + 1]
        for p in range(first, stop):
            stamp[coordinates[p]] = row
        for s in range(min(shifts, rows - row)):
            looked[s] += stop - first
            for p in range(pointers[row + s], pointers[row + s + 1]):
                met[s] += stamp[coordinates[p]] == row
    found = np.zeros(shifts, np.float64)
    for s in range(shifts):
        if looked[s] > 0:
            found[s] = met[s] / looked[s]
    if found[0] == 0.0:
        found[0] = 1.0
    return found
