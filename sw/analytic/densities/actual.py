"""Actual data: the places of the nonzeros are known."""

from dataclasses import dataclass, field

import numpy as np

from .protocol import Occupancies

__all__ = ["Actual"]


@dataclass(frozen=True, eq=False)
class Actual:
    """mask: where the nonzeros are, an axis for each rank of the tensor. Probabilities are over its aligned tiles."""

    mask: np.ndarray
    name: str = "actual"
    _known: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict, repr=False)

    def counts(self, extents: tuple[int, ...]) -> np.ndarray:
        """Nonzeros of each aligned tile; those at the edge are cut off there."""
        shape = tuple(min(length, side) for length, side in zip(extents, self.mask.shape, strict=True))
        if shape not in self._known:
            found = self.mask.view(np.uint8)
            for axis, length in sorted(enumerate(shape), key=lambda each: -each[1]):  # the longest first: less is left
                if length > 1:
                    starts = np.arange(0, found.shape[axis], length)
                    found = np.add.reduceat(found, starts, axis=axis, dtype=np.int64)
            self._known[shape] = found
        return self._known[shape]

    def mean(self, extents: tuple[int, ...]) -> float:
        return float(self.counts(extents).mean())

    def points(self, extents: tuple[int, ...]) -> float:
        """Places of a tile on average: those at the edge have fewer."""
        return self.mask.size / self.counts(extents).size

    def maximum(self, extents: tuple[int, ...]) -> int:
        return int(self.counts(extents).max())

    def empty(self, extents: tuple[int, ...]) -> float:
        return float((self.counts(extents) == 0).mean())

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        values, counts = np.unique(self.counts(extents), return_counts=True)
        return values.astype(np.int64), counts / counts.sum()

    def fullest(self, extents: tuple[int, ...]) -> "Actual":
        counts = self.counts(extents)
        tile = np.unravel_index(int(counts.argmax()), counts.shape)
        cut = tuple(slice(n * length, (n + 1) * length) for n, length in zip(tile, extents, strict=True))
        return Actual(self.mask[cut])
