"""Fixed-structured density: each tile has its share of the nonzeros, as N:M sparsity guarantees."""

from dataclasses import dataclass
from math import floor

import numpy as np

from ..values import Count, Real
from .protocol import Occupancies
from .sized import Sized

__all__ = ["FixedStructured"]

# Products of floats a hair off an integer are that integer.
SLACK = 1e-9


@dataclass(frozen=True)
class FixedStructured(Sized):
    """A tile of n points has n * density nonzeros; where that is no integer, the two next to it in proportion."""

    density: float
    name: str = "fixed_structured"

    def mean_of(self, size: Count) -> Real:
        return size * self.density

    def maximum_of(self, size: Count) -> Count:
        return np.minimum(size, np.ceil(self.mean_of(size) - SLACK))

    def empty_of(self, size: Count) -> Real:
        return np.maximum(0.0, 1.0 - self.mean_of(size))

    def rows_of(self, size: Count, block: int) -> Real:
        mean = self.mean_of(size)
        low = np.floor(mean + SLACK)
        share = np.maximum(0.0, mean - low)
        return np.ceil(low / block) * (1.0 - share) + np.ceil((low + 1) / block) * share

    def occupancies_of(self, size: int) -> Occupancies:
        mean = self.mean_of(size)
        low = floor(mean + SLACK)
        share = max(0.0, mean - low)
        if share <= SLACK:
            return np.array([low]), np.array([1.0])
        return np.array([low, low + 1]), np.array([1.0 - share, share])

    def fullest_of(self, size: Count) -> "FixedStructured":
        return self
