"""Tiled compressed sparse fibers of order 3: the nonzeros and the footprint of each tile. Paper: D2T2, sections 2.1, 4.3.

As for matrices (:mod:`sw.stats.csf`): a tile is a tree of its slices, their fibers and nonzeros; one word for each value, each
coordinate of a level and each entry of a level's segment array.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.csf import Count
from sw.stats.pattern import Index

__all__ = ["TensorGrid", "tensor_grid", "tensor_words"]

# Keys of tiles are at most this; beyond it ranks are sorted one by one.
LARGEST_KEY = 2**62


def tensor_words(nonzeros: Count, fibers: Count, slices: Count, tiles: Count) -> Count:
    """Words of ``tiles`` tiles that together hold so many nonzeros, nonempty fibers and nonempty slices."""
    return 2 * nonzeros + 2 * fibers + 2 * slices + 4 * tiles


@dataclass(frozen=True, eq=False)
class TensorGrid:
    """The nonempty tiles of an order-3 tensor, outermost rank first.

    Parameters
    ----------
    sides: of the tiles. counts: tiles along each rank, empty ones too.
    order: nonzeros tile by tile, in each tile by coordinates. None where that is their own order.
    change: int8[nnz] in that order, in what a nonzero differs from the one before: 0 tile, 1 slice, 2 fiber, 3 neither.
    begins: first nonzero of each tile, and the number of nonzeros. places: int64[tiles, 3].
    fibers, slices: of each tile.
    """

    sides: tuple[int, int, int]
    counts: tuple[int, int, int]
    order: Index
    change: NDArray[np.int8]
    begins: Index
    places: NDArray[np.int64]
    fibers: Index
    slices: Index

    @property
    def tiles(self) -> int:
        """Nonempty tiles."""
        return len(self.places)

    @property
    def nonzeros(self) -> Index:
        """Nonzeros of each tile."""
        return np.diff(self.begins)

    @property
    def words(self) -> Index:
        """Footprint of each tile (:func:`tensor_words`)."""
        return tensor_words(self.nonzeros, self.fibers, self.slices, np.ones(self.tiles, np.int64))


def tensor_grid(
    columns: tuple[Index, Index, Index], shape: tuple[int, int, int], sides: tuple[int, int, int]
) -> TensorGrid:
    """All nonempty tiles of a shape. ``columns``: sorted coordinates, rank by rank."""
    if min(sides) < 1:
        raise ValueError(f"Tile sides must be at least 1, not {' x '.join(map(str, sides))}")
    counts = tuple(-(-size // side) for size, side in zip(shape, sides, strict=True))
    nnz = len(columns[0])
    tiles = [column // side for column, side in zip(columns, sides, strict=True)]
    if float(counts[0]) * counts[1] * counts[2] <= LARGEST_KEY:
        # Stable: nonzeros stay sorted within a tile.
        order = np.argsort((tiles[0] * counts[1] + tiles[1]) * counts[2] + tiles[2], kind="stable")
    else:
        order = np.lexsort(tiles[::-1])
    change = np.asarray(_changes(*(tile[order] for tile in tiles), *(column[order] for column in columns[:2])))
    begins = np.append(np.flatnonzero(change == 0), nnz)
    places = np.stack([tile[order[begins[:-1]]] for tile in tiles], axis=1)
    starts = begins[:-1]
    fibers, slices = (
        np.add.reduceat((change <= level).astype(np.int64), starts) if nnz else np.empty(0, np.int64)
        for level in (2, 1)
    )
    return TensorGrid(sides, (counts[0], counts[1], counts[2]), order, change, begins, places, fibers, slices)


@njit(cache=True, nogil=True)
def _changes(
    tile_1: NDArray[Any],
    tile_2: NDArray[Any],
    tile_3: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
) -> NDArray[np.int8]:
    found = np.zeros(len(first), np.int8)
    for n in range(1, len(first)):
        if tile_1[n] != tile_1[n - 1] or tile_2[n] != tile_2[n - 1] or tile_3[n] != tile_3[n - 1]:
            found[n] = 0
        elif first[n] != first[n - 1]:
            found[n] = 1
        elif second[n] != second[n - 1]:
            found[n] = 2
        else:
            found[n] = 3
    return found
