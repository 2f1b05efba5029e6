"""Fixed-structured density: each tile has its share of the nonzeros, as N:M sparsity guarantees."""

from dataclasses import dataclass
from math import ceil, floor, prod

import numpy as np

from .protocol import Occupancies

__all__ = ["FixedStructured"]

# Products of floats a hair off an integer are that integer.
SLACK = 1e-9


@dataclass(frozen=True)
class FixedStructured:
    """A tile of n points has n * density nonzeros; where that is no integer, the two next to it in proportion."""

    density: float
    name: str = "fixed_structured"

    def mean(self, extents: tuple[int, ...]) -> float:
        return prod(extents) * self.density

    def maximum(self, extents: tuple[int, ...]) -> int:
        return min(prod(extents), ceil(self.mean(extents) - SLACK))

    def empty(self, extents: tuple[int, ...]) -> float:
        return max(0.0, 1.0 - self.mean(extents))

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        mean = self.mean(extents)
        low = floor(mean + SLACK)
        share = max(0.0, mean - low)
        if share <= SLACK:
            return np.array([low]), np.array([1.0])
        return np.array([low, low + 1]), np.array([1.0 - share, share])

    def fullest(self, extents: tuple[int, ...]) -> "FixedStructured":
        return self
