"""What a density model says of many tiles at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np

from ..values import Count, Real
from .protocol import Density
from .sized import Sized

__all__ = ["Many", "each_once", "of_many"]

Extents = tuple[Count, ...]


class Many(Protocol):
    """As a density model; extents along each rank are arrays, with a tile of each mapping."""

    def mean(self, extents: Extents) -> Real:
        """Expected nonzeros."""

    def points(self, extents: Extents) -> Real:
        """Places of a tile, on average where the mean is over tiles that the tensor's edge cuts."""

    def maximum(self, extents: Extents) -> Count:
        """Most nonzeros."""

    def empty(self, extents: Extents) -> Real:
        """Probability that a tile has no nonzero."""

    def fullest(self, extents: Extents) -> "Many":
        """How the nonzeros lie within tiles that have the most of them."""

    def rows(self, extents: Extents, block: int) -> Real:
        """Expected rows of ``block`` words that the nonzeros of a tile fill."""


@runtime_checkable
class Cut(Protocol):
    """A density whose mean is over tiles that the tensor's edge cuts."""

    def points(self, extents: tuple[int, ...]) -> float:
        """Places of a tile on average."""


def of_many(density: Density) -> Many:
    """Closed forms where only sizes count; else each tile that occurs is asked for once."""
    return _Sizes(density) if isinstance(density, Sized) else _Shapes((density,))


def each_once(columns: Sequence[Count], asked: Callable[[tuple[int, ...]], Sequence[float]]) -> list[np.ndarray]:
    """What is asked of each row of integers, whose ``columns`` are arrays; equal rows are asked for once."""
    table = np.stack(np.broadcast_arrays(*columns), axis=-1).astype(np.int64).reshape(-1, len(columns))
    rows, where = np.unique(table, axis=0, return_inverse=True)
    found = np.array([asked(tuple(row)) for row in rows.tolist()], dtype=float)
    return list(found[where.ravel()].T)


@dataclass(frozen=True)
class _Sizes:
    model: Sized

    def mean(self, extents: Extents) -> Real:
        return self.model.mean(extents)

    def points(self, extents: Extents) -> Real:
        return prod(extents)

    def maximum(self, extents: Extents) -> Count:
        return self.model.maximum(extents)

    def empty(self, extents: Extents) -> Real:
        return self.model.empty(extents)

    def fullest(self, extents: Extents) -> Many:
        return _Sizes(self.model.fullest(extents))

    def rows(self, extents: Extents, block: int) -> Real:
        size: Count = 1.0
        for extent in extents:
            size = size * extent
        return self.model.rows_of(size, block)


@dataclass(frozen=True)
class _Shapes:
    """models: one for all, or several of which ``which`` has a number for each mapping."""

    models: Sequence[Density]
    which: Count = 0

    def _asked(self, extents: Extents, asked: Callable[[Density, tuple[int, ...]], float]) -> np.ndarray:
        columns = (self.which, *extents)
        return each_once(columns, lambda row: [asked(self.models[row[0]], row[1:])])[0]

    def mean(self, extents: Extents) -> Real:
        return self._asked(extents, lambda model, tile: model.mean(tile))

    def points(self, extents: Extents) -> Real:
        if not all(isinstance(model, Cut) for model in self.models):
            return prod(extents)
        return self._asked(extents, lambda model, tile: model.points(tile) if isinstance(model, Cut) else 0.0)

    def maximum(self, extents: Extents) -> Count:
        return self._asked(extents, lambda model, tile: model.maximum(tile))

    def empty(self, extents: Extents) -> Real:
        return self._asked(extents, lambda model, tile: model.empty(tile))

    def fullest(self, extents: Extents) -> Many:
        models: list[Density] = []

        def asked(model: Density, tile: tuple[int, ...]) -> float:
            models.append(model.fullest(tile))
            return len(models) - 1

        return _Shapes(models, self._asked(extents, asked))

    def rows(self, extents: Extents, block: int) -> Real:
        def asked(model: Density, tile: tuple[int, ...]) -> float:
            k, probability = model.occupancies(tile)
            return float((np.ceil(k / block) * probability).sum())

        return self._asked(extents, asked)
