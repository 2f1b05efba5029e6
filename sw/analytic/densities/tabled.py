"""A density model that says only how many nonzeros a tile may have: the rest follows."""

from abc import ABC, abstractmethod

from .protocol import Density, Occupancies
from .uniform import Hypergeometric

__all__ = ["Tabled"]


class Tabled(ABC):
    """Base of a model of one's own: a name and ``occupancies``."""

    name = "tabled"

    @abstractmethod
    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        """Numbers of nonzeros that a tile with these extents may have, ascending, and the probability of each."""

    def mean(self, extents: tuple[int, ...]) -> float:
        k, probability = self.occupancies(extents)
        return float((k * probability).sum())

    def maximum(self, extents: tuple[int, ...]) -> int:
        k, probability = self.occupancies(extents)
        return int(k[probability > 0].max())

    def empty(self, extents: tuple[int, ...]) -> float:
        k, probability = self.occupancies(extents)
        return float(probability[k == 0].sum())

    def fullest(self, extents: tuple[int, ...]) -> Density:
        """Its nonzeros lie anywhere in it."""
        size = 1
        for length in extents:
            size *= length
        return Hypergeometric(size, self.maximum(extents))
