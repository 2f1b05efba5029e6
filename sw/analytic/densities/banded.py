"""Banded density: the nonzeros of a square matrix lie along its diagonal."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .actual import Actual
from .protocol import Occupancies

__all__ = ["Banded"]


@lru_cache(maxsize=256)
def _counts(side: int, band: int, rows: int, columns: int) -> np.ndarray:
    """Nonzeros of each aligned tile of the matrix; those at the edge are cut off there.

    A row r holds the columns from r - band to r + band; summed over the rows of a tile they are differences of running sums.
    """
    edges = np.append(np.arange(0, side, columns), side)
    row = np.arange(side)[:, None]
    first, last = np.maximum(row - band, 0), np.minimum(row + band + 1, side)
    filled = np.clip(edges[None, :], first, last) - first
    per_row = np.diff(filled, axis=1)
    return np.add.reduceat(per_row, np.arange(0, side, rows), axis=0)


@dataclass(frozen=True)
class Banded:
    """Places of a ``side`` times ``side`` matrix whose row and column differ by at most ``band`` are nonzeros.

    Probabilities are over the aligned tiles of the matrix, so that they depend on the shape of a tile, not on its size alone.
    """

    side: int
    band: int
    name: str = "banded"

    def _tiles(self, extents: tuple[int, ...]) -> np.ndarray:
        rows, columns = (min(length, self.side) for length in extents)
        return _counts(self.side, self.band, rows, columns)

    def mean(self, extents: tuple[int, ...]) -> float:
        return float(self._tiles(extents).mean())

    def maximum(self, extents: tuple[int, ...]) -> int:
        return int(self._tiles(extents).max())

    def empty(self, extents: tuple[int, ...]) -> float:
        return float((self._tiles(extents) == 0).mean())

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        values, counts = np.unique(self._tiles(extents), return_counts=True)
        return values, counts / counts.sum()

    def fullest(self, extents: tuple[int, ...]) -> Actual:
        rows, columns = (min(length, self.side) for length in extents)
        tiles = self._tiles(extents)
        row, column = divmod(int(tiles.argmax()), tiles.shape[1])
        r = np.arange(row * rows, min((row + 1) * rows, self.side))[:, None]
        c = np.arange(column * columns, min((column + 1) * columns, self.side))[None, :]
        return Actual(np.abs(r - c) <= self.band)
