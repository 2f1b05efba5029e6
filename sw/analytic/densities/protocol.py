"""What the analysis asks of a density model."""

from typing import Protocol

import numpy as np

__all__ = ["Density", "Occupancies"]

# Occupancies that a tile may have, and the probability of each.
Occupancies = tuple[np.ndarray, np.ndarray]


class Density(Protocol):
    """How the nonzeros of one tensor lie. Tiles are aligned; a tile is given by its extents, a length for each rank."""

    @property
    def name(self) -> str:
        """As specifications call it."""

    def mean(self, extents: tuple[int, ...]) -> float:
        """Expected nonzeros of a tile."""

    def maximum(self, extents: tuple[int, ...]) -> int:
        """Most nonzeros of a tile."""

    def empty(self, extents: tuple[int, ...]) -> float:
        """Probability that a tile has no nonzero."""

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        """Distribution of the nonzeros of a tile."""

    def fullest(self, extents: tuple[int, ...]) -> "Density":
        """How the nonzeros lie within a tile that has the most of them."""
