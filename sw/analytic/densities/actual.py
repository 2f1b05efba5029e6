"""Actual data: the places of the nonzeros are known."""

from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from .protocol import Occupancies

__all__ = ["Actual"]


@dataclass(frozen=True)
class _Tiles:
    """Aligned tiles; those at the edge are cut off. grid: tiles along each axis. where, counts: number and nonzeros of each tile
    that has any."""

    grid: tuple[int, ...]
    where: np.ndarray
    counts: np.ndarray

    @property
    def total(self) -> int:
        """Empty ones as well."""
        return prod(self.grid)


@dataclass(frozen=True, eq=False)
class Actual:
    """mask: where the nonzeros are, an axis for each rank of the tensor. Probabilities are over its aligned tiles."""

    mask: np.ndarray
    name: str = "actual"
    _known: dict[tuple[int, ...], _Tiles] = field(default_factory=dict, repr=False)

    @cached_property
    def _places(self) -> tuple[np.ndarray, ...]:
        return np.nonzero(self.mask)

    def _tiles(self, extents: tuple[int, ...]) -> _Tiles:
        """The nonzeros are counted, not the places, of which there are many more."""
        shape = tuple(min(length, side) for length, side in zip(extents, self.mask.shape, strict=True))
        if shape not in self._known:
            grid = tuple(-(-side // length) for side, length in zip(self.mask.shape, shape, strict=True))
            tiles = [place // length for place, length in zip(self._places, shape, strict=True)]
            numbers = np.ravel_multi_index(tiles, grid) if grid else np.zeros(int(self.mask), dtype=np.int64)
            where, counts = np.unique(numbers, return_counts=True)
            self._known[shape] = _Tiles(grid, where, counts)
        return self._known[shape]

    def counts(self, extents: tuple[int, ...]) -> np.ndarray:
        """Nonzeros of each aligned tile; those at the edge are cut off there."""
        tiles = self._tiles(extents)
        found = np.zeros(tiles.total, dtype=np.int64)
        found[tiles.where] = tiles.counts
        return found.reshape(tiles.grid)

    def mean(self, extents: tuple[int, ...]) -> float:
        tiles = self._tiles(extents)
        return int(tiles.counts.sum()) / tiles.total

    def points(self, extents: tuple[int, ...]) -> float:
        """Places of a tile on average: those at the edge have fewer."""
        return self.mask.size / self._tiles(extents).total

    def maximum(self, extents: tuple[int, ...]) -> int:
        return int(self._tiles(extents).counts.max(initial=0))

    def empty(self, extents: tuple[int, ...]) -> float:
        tiles = self._tiles(extents)
        return 1.0 - tiles.where.size / tiles.total

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        tiles = self._tiles(extents)
        values, counts = np.unique(tiles.counts, return_counts=True)
        empty = tiles.total - tiles.where.size
        if empty:
            values, counts = np.append(0, values), np.append(empty, counts)
        return values, counts / tiles.total

    def fullest(self, extents: tuple[int, ...]) -> "Actual":
        tiles = self._tiles(extents)
        number = int(tiles.where[tiles.counts.argmax()]) if tiles.where.size else 0
        tile = np.unravel_index(number, tiles.grid)
        cut = tuple(slice(n * length, (n + 1) * length) for n, length in zip(tile, extents, strict=True))
        return Actual(self.mask[cut])
