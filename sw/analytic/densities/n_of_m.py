"""N:M density: of each M neighbours along one rank, N are nonzeros, any of them."""

from dataclasses import dataclass
from math import prod

import numpy as np

from .protocol import Occupancies
from .uniform import Hypergeometric

__all__ = ["NOfM"]


@dataclass(frozen=True)
class NOfM:
    """``n`` of each ``m`` neighbours along a ``rank`` are nonzeros, independent of those of any other group.

    Tiles are taken as aligned: along the rank they cover whole groups, and at the end a part of one.
    """

    n: int
    m: int
    rank: int
    name: str = "n_of_m"

    def _parts(self, extents: tuple[int, ...]) -> tuple[int, int, Hypergeometric]:
        """Lines along the rank, nonzeros of the whole groups of one, and how many its last, partial group has."""
        length = extents[self.rank]
        return prod(extents) // length, length // self.m * self.n, Hypergeometric(self.m, self.n)

    def mean(self, extents: tuple[int, ...]) -> float:
        return prod(extents) * self.n / self.m

    def maximum(self, extents: tuple[int, ...]) -> int:
        lines, whole, _ = self._parts(extents)
        return lines * (whole + min(self.n, extents[self.rank] % self.m))

    def empty(self, extents: tuple[int, ...]) -> float:
        lines, whole, group = self._parts(extents)
        rest = extents[self.rank] % self.m
        if whole:
            return 0.0
        return float(group.empty((rest,)) ** lines) if rest else 1.0

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        """The sum of independent parts: their distribution, convolved with itself once for each line."""
        lines, whole, group = self._parts(extents)
        rest = extents[self.rank] % self.m
        if not rest:
            return np.array([lines * whole]), np.array([1.0])
        k, probability = group.occupancies((rest,))
        size = lines * int(k[-1] - k[0]) + 1
        spectrum = np.fft.rfft(probability, n=size) ** lines
        total = np.clip(np.fft.irfft(spectrum, n=size), 0.0, None)
        return lines * (whole + int(k[0])) + np.arange(size), total / total.sum()

    def fullest(self, extents: tuple[int, ...]) -> "NOfM":
        return self
