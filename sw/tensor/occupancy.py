"""The nonempty cells of a grid over a sparse tensor, and how many there are at other sides. Paper: D2T2, sections 4.3, 4.4.

The paper writes its model out for matrices; for order 3 it says that correlations are taken between all coordinates under a
point and those under a shifted one, which is what is counted here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.pattern import Index

from .csf import LARGEST_KEY

__all__ = ["Occupancy", "merged", "occupancy"]

# Most pairs of cells that a correlation compares; of more, fibers at regular distances are taken.
MOST_PAIRS = 20_000_000
MOST_SHIFTS = 4096


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Which cells of a grid over a tensor hold something, and how likely their neighbours do too.

    Parameters
    ----------
    sizes: of the ranks. sides: of a cell, 1 along ranks that stay whole.
    ranks: the others, along which cells may be split or merged.
    nonzeros: of the tensor. cells: nonempty ones. groups: different coordinates in the ranks that stay, 1 if there are none.
    distinct: for each of ``ranks`` how many different coordinates a nonempty cell holds in it, the mean (ProbIndex).
    corrs: for each of ``ranks`` the share of cells whose neighbour s further on holds something too (TileCorrs, Corrs).
    """

    sizes: tuple[int, ...]
    sides: tuple[int, ...]
    ranks: tuple[int, ...]
    nonzeros: int
    cells: int
    groups: int
    distinct: dict[int, float]
    corrs: dict[int, NDArray[np.float64]]

    @property
    def density(self) -> float:
        """PrTileIdx over all ranks: the chance that a cell holds something, where anything stays whole that does."""
        places = self.groups * math.prod(-(-self.sizes[r] // self.sides[r]) for r in self.ranks)
        return self.cells / max(1, places)

    def others(
        self, sides: Sequence[int], weights: dict[int, NDArray[np.float64]] | None = None, share: float = 1.0
    ) -> tuple[float, float]:
        """How many other nonempty cells share a tile with a nonempty one, and how many cells a tile has.

        Along a rank by its correlations; diagonally these multiply, but no less than chance gives.

        Parameters
        ----------
        weights: what a neighbour s further on along a rank counts; diagonally they multiply too.
        share: of a cell's parts those that hold something, where cells are split along other ranks.
        """
        factors = {r: self._factor(sides, r) for r in self.ranks}
        weighted, chance = [], self.density
        for r, factor in factors.items():
            weight = None if weights is None else weights[r]
            weighted.append(_beside(self.corrs[r], factor, weight))
            if weight is not None:
                chance *= float(weight[-1])
        volume = math.prod(factors.values())
        straight = sum(weighted)
        apart = volume - 1 - sum(factor - 1 for factor in factors.values())
        diagonal = math.prod(1 + number for number in weighted) - 1 - straight
        return share * (straight + max(diagonal, chance * max(0.0, apart))), volume

    def at(self, sides: Sequence[int]) -> float:
        """Expected nonempty cells of these sides; those of ranks that stay whole do not count."""
        split = parts = 1.0
        for r in self.ranks:
            if sides[r] < self.sides[r]:
                split *= _parts(self.sides[r], sides[r], self.distinct[r])
                parts *= self.sides[r] / sides[r]
        split = min(split, self.nonzeros / max(1, self.cells))
        number = self.cells * split * merged(*self.others(sides, share=split / parts))
        most = self.groups * math.prod(-(-self.sizes[r] // min(sides[r], self.sizes[r])) for r in self.ranks)
        return max(min(1.0, self.cells), float(min(number, most)))

    def _factor(self, sides: Sequence[int], r: int) -> float:
        """Cells along a rank that a tile holds, the mean over all tiles, of which the last may be shorter."""
        return max(1.0, -(-self.sizes[r] // self.sides[r]) / -(-self.sizes[r] // sides[r]))


def merged(others: float, volume: float) -> float:
    """Tiles over cells when ``volume`` cells become one tile in which a nonempty cell has so many nonempty ``others``.

    Equation 18 with every cell as likely as another to hold something: the mean of 1 / (1 + binomial). It is 1 / volume
    where all hold something, and what chance gives where they are independent.
    """
    if volume <= 1 or others <= 0:
        return 1.0
    share = min(1.0, others / (volume - 1))
    return -math.expm1(volume * math.log1p(-share)) / (volume * share) if share < 1 else 1 / volume


def _beside(corrs: NDArray[np.float64], factor: float, weights: NDArray[np.float64] | None) -> float:
    """Neighbours in a window of ``factor`` cells, whose place in it is as likely as any: from either side."""
    shifts = math.ceil(factor) - 1
    if shifts < 1:
        return 0.0
    known = min(shifts, len(corrs) - 1)
    s = np.arange(1, known + 1)
    values = corrs[1 : known + 1]
    if weights is not None:
        values = values * weights[np.minimum(s, len(weights) - 1)]
    found = 2 * float(values @ np.maximum(0.0, 1 - s / factor))
    if shifts > known:  # as the last ones that were compared
        tail = float(corrs[3 * len(corrs) // 4 :].mean()) * (1.0 if weights is None else float(weights[-1]))
        found += 2 * tail * float(np.maximum(0.0, 1 - np.arange(known + 1, shifts + 1) / factor).sum())
    return found


def _parts(side: int, part: int, distinct: float) -> float:
    """Nonempty parts of a cell of ``side`` that holds so many different coordinates, anywhere."""
    number = side / part
    if distinct > side - part:
        return number
    # No coordinate of a part is among those chosen: one binomial over another.
    empty = math.exp(
        math.lgamma(side - part + 1)
        - math.lgamma(side - part - distinct + 1)
        - math.lgamma(side + 1)
        + math.lgamma(side - distinct + 1)
    )
    return number * (1 - empty)


def occupancy(
    columns: Sequence[Index], sizes: Sequence[int], sides: Sequence[int], ranks: tuple[int, ...]
) -> Occupancy:
    """Counts the cells of ``sides`` and how they lie along ``ranks``. ``columns``: coordinates, rank by rank."""
    units = [column // side for column, side in zip(columns, sides, strict=True)]
    counts = [-(-size // side) for size, side in zip(sizes, sides, strict=True)]
    cells = _distinct(units, counts)
    number = len(cells[0])
    whole = [r for r in range(len(sizes)) if r not in ranks]
    groups = len(_distinct([cells[r] for r in whole], [counts[r] for r in whole])[0]) if whole else 1
    distinct = {}
    for r in ranks:
        if sides[r] == 1:
            distinct[r] = 1.0
            continue
        finer = [columns[r] if n == r else unit for n, unit in enumerate(units)]
        scale = [sizes[r] if n == r else count for n, count in enumerate(counts)]
        distinct[r] = len(_distinct(finer, scale)[0]) / max(1, number)
    return Occupancy(
        sizes=tuple(sizes),
        sides=tuple(sides),
        ranks=ranks,
        nonzeros=len(columns[0]),
        cells=number,
        groups=groups,
        distinct=distinct,
        corrs={r: _correlations(cells, counts, r) for r in ranks},
    )


def _distinct(columns: Sequence[Index], counts: Sequence[int]) -> list[Index]:
    """Different combinations of coordinates, sorted, the first column first."""
    if math.prod(float(count) for count in counts) <= LARGEST_KEY:
        key = columns[0]
        for column, count in zip(columns[1:], counts[1:], strict=True):
            key = key * count + column
        key = np.sort(key)
        key = key[_changes([key])]
        found: list[Index] = []
        for count in reversed(counts[1:]):
            key, last = np.divmod(key, count)
            found.insert(0, last)
        return [key, *found]
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    new = _changes(ordered)
    return [column[new] for column in ordered]


def _changes(columns: Sequence[Index]) -> NDArray[np.bool_]:
    """Where a sorted combination differs from the one before."""
    new = np.ones(len(columns[0]), np.bool_)
    if len(new):
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return new


def _correlations(cells: Sequence[Index], counts: Sequence[int], rank: int) -> NDArray[np.float64]:
    """For every shift along a rank: cells whose neighbour there holds something, over those that have such a neighbour."""
    shifts = min(counts[rank], MOST_SHIFTS)
    found = np.zeros(shifts)
    found[0] = 1.0
    if not len(cells[0]):
        return found
    others = [column for n, column in enumerate(cells) if n != rank]
    position = cells[rank]
    if others:
        scale = [count for n, count in enumerate(counts) if n != rank]
        ordered = _distinct([*others, position], [*scale, counts[rank]])
        others, position = ordered[:-1], ordered[-1]
        begins = np.append(np.flatnonzero(_changes(others)), len(position))
    else:
        begins = np.array([0, len(position)])
    lengths = np.diff(begins).astype(np.float64)
    step = max(1, math.ceil(float(lengths @ lengths) / 2 / MOST_PAIRS))
    picked = np.arange(0, len(lengths), step)
    met, at = _pairs(begins, position, picked, shifts, counts[rank])
    # Cells that have a neighbour so far on before the rank ends.
    looked = np.concatenate([[0], np.cumsum(at)])[counts[rank] - np.arange(shifts)]
    found[1:] = met[1:] / np.maximum(1, looked[1:])
    return found


@njit(cache=True, nogil=True)
def _pairs(
    begins: NDArray[Any], position: NDArray[Any], picked: NDArray[Any], shifts: int, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of the same fiber by their distance, and cells by their position, of the picked fibers."""
    met = np.zeros(shifts, np.int64)
    at = np.zeros(size, np.int64)
    for fiber in picked:
        for p in range(begins[fiber], begins[fiber + 1]):
            at[position[p]] += 1
            for q in range(p + 1, begins[fiber + 1]):
                s = position[q] - position[p]
                if s >= shifts:
                    break
                met[s] += 1
    return met, at
