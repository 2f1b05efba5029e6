"""Density models that ask for the size of a tile alone, not for its shape."""

from abc import ABC, abstractmethod
from math import prod

import numpy as np

from ..values import Count, Real
from .protocol import Occupancies

__all__ = ["Sized"]


class Sized(ABC):
    """Base: closed forms of sizes, for one tile or for many at once."""

    name: str

    @abstractmethod
    def mean_of(self, size: Count) -> Real:
        """Expected nonzeros."""

    @abstractmethod
    def maximum_of(self, size: Count) -> Count:
        """Most nonzeros."""

    @abstractmethod
    def empty_of(self, size: Count) -> Real:
        """Probability that no nonzero is in it."""

    @abstractmethod
    def occupancies_of(self, size: int) -> Occupancies:
        """Distribution of the nonzeros, of one tile."""

    @abstractmethod
    def fullest_of(self, size: Count) -> "Sized":
        """How the nonzeros lie within a tile that has the most of them."""

    def rows_of(self, size: Count, block: int) -> Real:
        """Expected rows of ``block`` words that the nonzeros fill."""
        sizes, where = np.unique(size, return_inverse=True)
        found = []
        for each in sizes.tolist():
            k, probability = self.occupancies_of(int(each))
            found.append(float((np.ceil(k / block) * probability).sum()))
        return np.array(found)[where]

    def mean(self, extents: tuple[Count, ...]) -> Real:
        return self.mean_of(prod(extents))

    def maximum(self, extents: tuple[Count, ...]) -> Count:
        return self.maximum_of(prod(extents))

    def empty(self, extents: tuple[Count, ...]) -> Real:
        return self.empty_of(prod(extents))

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        return self.occupancies_of(prod(extents))

    def fullest(self, extents: tuple[Count, ...]) -> "Sized":
        return self.fullest_of(prod(extents))
