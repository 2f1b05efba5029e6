"""What the cost of a tensor depends on: nonzeros by row and by range of k, of a uniform random tensor or of an operand.

Two questions are asked: in how many groups of at most n nonzeros fibers are sent or kept, and how many nonzeros the fullest
one has. :class:`Uniform` answers by the binomial distribution (MINT, section VI), :class:`Counted` by counting,
:class:`Lengths` by the nonzeros of each fiber, wherever they stand in it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["Counted", "Fibers", "Lengths", "Uniform"]

# Standard deviations from the mean beyond which no probability is left in float64.
TAIL = 12


class Fibers(Protocol):
    """Fibers of one length: the rows of A over k, or the columns of B over k."""

    @property
    def count(self) -> int: ...

    @property
    def length(self) -> int: ...

    @property
    def nnz(self) -> float: ...

    def groups(self, width: int, most: int) -> float:
        """Groups of at most ``most`` nonzeros of one fiber and one range of ``width`` places, over all fibers and ranges."""

    def filled(self, width: int) -> float:
        """Fibers with a nonzero, counted in each range of ``width`` places."""

    def fullest(self, width: int) -> float:
        """Nonzeros of the fullest fiber in a range of ``width`` places."""


@dataclass(frozen=True)
class Uniform:
    """``count`` fibers of ``length`` places, each with a nonzero with chance ``density``, 0 to 1, whatever the others have."""

    count: int
    length: int
    density: float

    @property
    def nnz(self) -> float:
        return self.count * self.length * self.density

    def _ranges(self, width: int) -> list[tuple[int, int]]:
        """How many ranges there are of which width."""
        whole, rest = divmod(self.length, width)
        return [(n, size) for n, size in ((whole, width), (1, rest)) if n and size]

    def groups(self, width: int, most: int) -> float:
        return self.count * sum(n * _expected_groups(size, self.density, most) for n, size in self._ranges(width))

    def filled(self, width: int) -> float:
        return self.count * sum(n * (1 - _empty(size, self.density)) for n, size in self._ranges(width))

    def fullest(self, width: int) -> float:
        numbers, chance = _binomial(min(width, self.length), self.density)
        ranges = sum(n for n, _ in self._ranges(width))
        below = np.cumsum(chance)
        return float(numbers[min(int(np.searchsorted(below, 1 - 1 / (self.count * ranges + 1))), len(numbers) - 1)])


def _empty(size: int, density: float) -> float:
    return 0.0 if density >= 1 else float(np.exp(size * np.log1p(-density)))


def _binomial(size: int, density: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers of nonzeros among ``size`` places and their chances, but for those that hardly ever are."""
    if density <= 0 or density >= 1:
        return np.array([size * min(max(density, 0.0), 1.0)]), np.ones(1)
    mean, spread = size * density, (size * density * (1 - density)) ** 0.5
    n = np.arange(
        max(0, int(mean - TAIL * spread) - 1), min(size, int(mean + TAIL * spread) + TAIL) + 1, dtype=np.float64
    )
    ways = gammaln(size + 1) - gammaln(n + 1) - gammaln(size - n + 1)
    chance = np.exp(ways + n * np.log(density) + (size - n) * np.log1p(-density))
    return n, chance / chance.sum()


def _expected_groups(size: int, density: float, most: int) -> float:
    numbers, chance = _binomial(size, density)
    return float((np.ceil(numbers / most) * chance).sum())


@dataclass(frozen=True, eq=False)
class Counted:
    """Fibers of an operand.

    Parameters
    ----------
    count, length: how many fibers there are, and their places. fiber: int64[nnz], of each nonzero, rising.
    place: int64[nnz], where it stands in its fiber, rising.
    """

    count: int
    length: int
    fiber: NDArray[np.int64]
    place: NDArray[np.int64]

    @property
    def nnz(self) -> float:
        return float(len(self.fiber))

    @cached_property
    def _known(self) -> dict[int, Any]:
        return {}

    def _counts(self, width: int) -> NDArray[np.int64]:
        """Nonzeros of each fiber and range that has some."""
        if width not in self._known:
            new = np.ones(len(self.fiber), np.bool_)
            ranges = self.place // width
            new[1:] = (self.fiber[1:] != self.fiber[:-1]) | (ranges[1:] != ranges[:-1])
            self._known[width] = np.diff(np.append(np.flatnonzero(new), len(self.fiber)))
        found: NDArray[np.int64] = self._known[width]
        return found

    def groups(self, width: int, most: int) -> float:
        return float((-(-self._counts(width) // most)).sum())

    def filled(self, width: int) -> float:
        return float(len(self._counts(width)))

    def fullest(self, width: int) -> float:
        return float(self._counts(width).max(initial=0))


@dataclass(frozen=True, eq=False)
class Lengths:
    """Fibers of which only the number of nonzeros is known, as if these stood anywhere: an estimate that takes no look at places.

    ``length``: places of a fiber. ``numbers``: nonzeros of each.
    """

    length: int
    numbers: NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def nnz(self) -> float:
        return float(self.numbers.sum())

    def _filled(self, width: int) -> NDArray[np.float64]:
        """Ranges of each fiber that have something."""
        ranges = -(-self.length // width)
        if ranges == 1:
            return (self.numbers > 0).astype(np.float64)
        return -ranges * np.expm1(self.numbers * np.log1p(-1 / ranges))

    def groups(self, width: int, most: int) -> float:
        if width >= self.length:
            return float((-(-self.numbers // most)).sum())
        # A range of more than a group ends somewhere in its last one.
        filled, ranges = self._filled(width), -(-self.length // width)
        return float(np.maximum(filled, self.numbers / most + filled / 2 * (self.numbers > most * ranges)).sum())

    def filled(self, width: int) -> float:
        return float(self._filled(width).sum())

    def fullest(self, width: int) -> float:
        mean = float(self.numbers.max(initial=0)) / -(-self.length // width)
        return mean if width >= self.length else min(float(width), float(np.ceil(mean + 3 * mean**0.5)))
