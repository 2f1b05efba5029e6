"""Hypergeometric density: the nonzeros lie anywhere in the tensor, each place as likely as any other."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, sqrt
from typing import Any

import numpy as np

from ..values import Count, Real
from .protocol import Occupancies
from .sized import Sized

__all__ = ["Hypergeometric"]

# Standard deviations from the mean beyond which a probability is left out: it is below what a float can add to one.
REACH = 12
# Tensors up to this size have a table of the probability that a tile is empty.
LARGEST_TABLE = 1 << 16
# Terms of Stirling's series that are left out are below what a float can show from here on.
EXACT_FACTORIALS = 16


@lru_cache(maxsize=64)
def _empty_table(size: int, nonzeros: int) -> np.ndarray:
    """Of tiles of 0, 1, 2 ... points: C(N - r, n) / C(N, n) = product over i < n of 1 - r / (N - i)."""
    points = np.arange(size + 1.0)
    if nonzeros == 1:
        return (size - points) / size
    found = np.zeros(size + 1)
    found[0] = 1.0
    some = size - nonzeros
    found[1 : some + 1] = np.exp(np.cumsum(np.log1p(-nonzeros / (size - points[:some]))))
    if some:
        found[1] = some / size
    return found


@lru_cache(maxsize=1)
def _residues() -> np.ndarray:
    """log x! - (x log x - x + log(x) / 2) of the first integers, less its limit."""
    x = np.arange(1.0, EXACT_FACTORIALS)
    exact = np.concatenate([[0.0], np.cumsum(np.log(x[1:]))])
    return np.concatenate([[0.0], exact - (x * np.log(x) - x + np.log(x) / 2 + np.log(2 * np.pi) / 2)])


def _residue(x: Any) -> Any:
    """The same of any integer but 0: the series of Stirling."""
    y = 1.0 / np.maximum(x, 1.0)
    square = y * y
    series = y * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    small = x < EXACT_FACTORIALS
    if not np.any(small):
        return series
    exact = _residues()[np.minimum(x, EXACT_FACTORIALS - 1).astype(np.int64)]
    return np.where(small, exact, series)


def _empty(size: Any, nonzeros: Any, points: Any) -> Any:
    """(N - f)! (N - m)! / (N! (N - f - m)!) for f and m, the smaller and the larger of nonzeros and points.

    Differences of log-factorials of N lose their digits where N is large: in Stirling's formula what nearly cancels is taken
    together, and what remains is of the size of f.
    """
    few, many = np.minimum(nonzeros, points), np.maximum(nonzeros, points)
    rest = size - many
    left = np.maximum(rest - few, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log1p(-few / size) * (size - few) + np.log1p(-many / size) * few
        log = log - np.where(left > 0, np.log1p(-few / rest) * left, 0.0)
        # 0 log 0 is 0, and the root of 2 pi x is of other integers alone.
        half = np.log(rest * ((size - few) / size) / np.where(left > 0, left, 1 / (2 * np.pi))) / 2
        log = log + half + _residue(rest) + _residue(size - few) - _residue(size) - _residue(left)
        found = np.where(few == 1, rest / size, np.exp(log))
    return np.where(few == 0, 1.0, np.where(rest < few, 0.0, found))


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
class Hypergeometric(Sized):
    """``nonzeros`` of the ``size`` points of the tensor are nonzeros. Both may be those of many tensors."""

    size: Count
    nonzeros: Count
    name: str = "hypergeometric"

    @classmethod
    def of(cls, density: float, size: int) -> "Hypergeometric":
        """With a share of nonzeros, rounded up."""
        return cls(size, min(size, ceil(density * size)))

    def mean_of(self, size: Count) -> Real:
        return np.minimum(self.size, size) * self.nonzeros / self.size

    def maximum_of(self, size: Count) -> Count:
        return np.minimum(np.minimum(self.size, size), self.nonzeros)

    def empty_of(self, size: Count) -> Real:
        points = np.minimum(self.size, size)
        if isinstance(self.size, int) and self.size <= LARGEST_TABLE:
            return _empty_table(self.size, int(self.nonzeros))[np.asarray(points).astype(np.int64)]
        return _empty(np.asarray(self.size, dtype=float), np.asarray(self.nonzeros, dtype=float), points)

    def occupancies_of(self, size: int) -> Occupancies:
        return _occupancies(int(self.size), int(self.nonzeros), min(int(self.size), size))

    def fullest_of(self, size: Count) -> "Hypergeometric":
        return Hypergeometric(np.minimum(self.size, size), self.maximum_of(size))
