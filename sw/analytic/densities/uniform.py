"""Hypergeometric density: the nonzeros lie anywhere in the tensor, each place as likely as any other."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, lgamma, prod

import numpy as np

from .protocol import Occupancies

__all__ = ["Hypergeometric"]


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@lru_cache(maxsize=4096)
def _empty(size: int, nonzeros: int, points: int) -> float:
    """C(N - r, n) / C(N, n)."""
    if points > size - nonzeros:
        return 0.0
    if points == 1:
        return (size - nonzeros) / size
    return exp(_log_choose(size - nonzeros, points) - _log_choose(size, points))


@lru_cache(maxsize=1024)
def _occupancies(size: int, nonzeros: int, points: int) -> Occupancies:
    """P(k) from the ratio of neighbours, P(k + 1) / P(k) = (r - k)(n - k) / ((k + 1)(N - r - n + k + 1))."""
    low, high = max(0, points - (size - nonzeros)), min(points, nonzeros)
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
