"""Hypergeometric density: the nonzeros lie anywhere in the tensor, each place as likely as any other."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, floor, fsum, prod, sqrt
from typing import Any

import numpy as np

from .protocol import Occupancies

__all__ = ["Hypergeometric"]

# Standard deviations from the mean beyond which a probability is left out: it is below what a float can add to one.
REACH = 12
MOST_FACTORS = 4096
# exp(-x) beyond it is below what a count can show.
LARGEST_EXPONENT = 700


@lru_cache(maxsize=4096)
def _empty(size: int, nonzeros: int, points: int) -> float:
    """C(N - r, n) / C(N, n) = product over i < n of 1 - r / (N - i); the same with n and r exchanged.

    Differences of log-gammas of N lose their digits where N is large. Beyond some factors the sum of their logarithms is its
    integral, with the first terms of Euler and Maclaurin.
    """
    few, many = sorted((nonzeros, points))
    if many > size - few:
        return 0.0
    if few == 1:
        return (size - many) / size
    if few * many / size > LARGEST_EXPONENT:
        return 0.0
    if few <= MOST_FACTORS:
        return exp(fsum(np.log1p(-many / (size - np.arange(float(few))))))

    def factor(i: Any) -> Any:
        return np.log1p(-many / (size - i))

    nodes, weights = np.polynomial.legendre.leggauss(32)
    integral = few / 2 * float((weights * factor(few / 2 * (nodes + 1))).sum())
    slope = [1 / (size - i) - 1 / (size - many - i) for i in (0, few)]
    return exp(integral + (factor(0.0) - factor(float(few))) / 2 + (slope[1] - slope[0]) / 12)


@lru_cache(maxsize=1024)
def _occupancies(size: int, nonzeros: int, points: int) -> Occupancies:
    """P(k) from the ratio of neighbours, P(k + 1) / P(k) = (r - k)(n - k) / ((k + 1)(N - r - n + k + 1))."""
    low, high = max(0, points - (size - nonzeros)), min(points, nonzeros)
    share, mean = nonzeros / size, points * nonzeros / size
    wide = REACH * (1 + sqrt(mean * (1 - share)))
    low, high = max(low, floor(mean - wide)), min(high, ceil(mean + wide))
    k = np.arange(low, high + 1)
    before = k[:-1].astype(float)
    steps = (
        np.log(nonzeros - before)
        + np.log(points - before)
        - np.log(before + 1)
        - np.log(size - nonzeros - points + before + 1)
    )
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return k, weights / weights.sum()


@dataclass(frozen=True)
class Hypergeometric:
    """``nonzeros`` of the ``size`` points of the tensor are nonzeros."""

    size: int
    nonzeros: int
    name: str = "hypergeometric"

    @classmethod
    def of(cls, density: float, size: int) -> "Hypergeometric":
        """With a share of nonzeros, rounded up."""
        return cls(size, min(size, ceil(density * size)))

    def _points(self, extents: tuple[int, ...]) -> int:
        return min(self.size, prod(extents))

    def mean(self, extents: tuple[int, ...]) -> float:
        return self._points(extents) * self.nonzeros / self.size

    def maximum(self, extents: tuple[int, ...]) -> int:
        return min(self._points(extents), self.nonzeros)

    def empty(self, extents: tuple[int, ...]) -> float:
        return _empty(self.size, self.nonzeros, self._points(extents))

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        return _occupancies(self.size, self.nonzeros, self._points(extents))

    def fullest(self, extents: tuple[int, ...]) -> "Hypergeometric":
        return Hypergeometric(self._points(extents), self.maximum(extents))
