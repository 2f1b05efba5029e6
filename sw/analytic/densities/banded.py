"""Banded density: the nonzeros of a square matrix lie along its diagonal."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .actual import Actual
from .protocol import Occupancies

__all__ = ["Banded"]


@dataclass(frozen=True)
class _Tiles:
    """Aligned tiles of a matrix; those at its edge are cut off. counts: nonzeros of each tile that has any; where: its place."""

    total: int
    where: np.ndarray
    counts: np.ndarray


@lru_cache(maxsize=256)
def _tiles(side: int, band: int, rows: int, columns: int) -> _Tiles:
    """Each row of the matrix adds to the tiles that its columns, from row - band to row + band, lie in."""
    row = np.arange(side)[:, None]
    first, last = np.maximum(row - band, 0), np.minimum(row + band + 1, side)
    across = -(-side // columns)
    begin = first // columns
    tile = begin + np.arange(int(((last - 1) // columns - begin).max()) + 1)[None, :]
    filled = np.minimum(last, (tile + 1) * columns) - np.maximum(first, tile * columns)
    keys = ((row // rows) * across + tile)[filled > 0]
    where, inverse = np.unique(keys, return_inverse=True)
    counts = np.bincount(inverse.ravel(), weights=filled[filled > 0]).astype(np.int64)
    return _Tiles(-(-side // rows) * across, where, counts)


@dataclass(frozen=True)
class Banded:
    """Places of a ``side`` times ``side`` matrix whose row and column differ by at most ``band`` are nonzeros.

    Probabilities are over the aligned tiles of the matrix, so that they depend on the shape of a tile, not on its size alone.
    """

    side: int
    band: int
    name: str = "banded"

    @property
    def nonzeros(self) -> int:
        """Of the whole matrix."""
        band = min(self.band, self.side - 1)
        return self.side * (2 * band + 1) - band * (band + 1)

    def _found(self, extents: tuple[int, ...]) -> _Tiles:
        rows, columns = (min(length, self.side) for length in extents)
        return _tiles(self.side, min(self.band, self.side - 1), rows, columns)

    def mean(self, extents: tuple[int, ...]) -> float:
        rows, columns = (-(-self.side // min(length, self.side)) for length in extents)
        return self.nonzeros / (rows * columns)

    def points(self, extents: tuple[int, ...]) -> float:
        """Places of a tile on average: those at the edge have fewer."""
        rows, columns = (-(-self.side // min(length, self.side)) for length in extents)
        return self.side**2 / (rows * columns)

    def maximum(self, extents: tuple[int, ...]) -> int:
        return int(self._found(extents).counts.max())

    def empty(self, extents: tuple[int, ...]) -> float:
        found = self._found(extents)
        return 1.0 - found.counts.size / found.total

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        found = self._found(extents)
        values, counts = np.unique(found.counts, return_counts=True)
        empty = found.total - found.counts.size
        if empty:
            values, counts = np.append(0, values), np.append(empty, counts)
        return values, counts / found.total

    def fullest(self, extents: tuple[int, ...]) -> Actual:
        rows, columns = (min(length, self.side) for length in extents)
        found = self._found(extents)
        row, column = divmod(int(found.where[found.counts.argmax()]), -(-self.side // columns))
        r = np.arange(row * rows, min((row + 1) * rows, self.side))[:, None]
        c = np.arange(column * columns, min((column + 1) * columns, self.side))[None, :]
        return Actual(np.abs(r - c) <= self.band)
