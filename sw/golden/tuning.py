"""Dynamic tuning of tile shapes (HYTE section 6.4): how the counts of one loaded tile of B choose the shape of the next ones.

Integers only, compared crosswise, so that hardware decides the same. ``docs/tilings.md`` says why each rule is as it is.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr

from .partition import Capacity

__all__ = [
    "CANDIDATES",
    "STAY",
    "Counts",
    "TileGrid",
    "cells",
    "decide",
    "legal_candidates",
    "quadrants",
    "scores",
    "tile_grid",
]

# Changes of (T_k, T_j): 1 twice as long, 0 as it is, -1 half as long. Of shapes that do as well the first one is taken: the
# larger tile, which is visited less often; the present one; the one longer in k, since each k step moves partial rows.
CANDIDATES = ((1, 1), (1, 0), (0, 1), (0, 0), (1, -1), (-1, 1), (0, -1), (-1, 0), (-1, -1))
STAY = (0, 0)
# A shape does as well as the best one unless that is more than 5 % better: 20 x best > 21 x shape.
BETTER_THAN, OUT_OF = 21, 20
# A side is at most three times halved below what the scheme says.
MOST_HALVINGS = 3

# Nonzeros of a tile's quadrants: (low k, low j), (low k, high j), (high k, low j), (high k, high j).
Counts = tuple[int, int, int, int]


@dataclass(frozen=True)
class TileGrid:
    """Sides that a rank may have: ``grain`` times a power of two; the walk begins with ``grain << level``."""

    grain: int
    level: int

    @property
    def start(self) -> int:
        return self.grain << self.level


def tile_grid(tile: int, extent: int) -> TileGrid:
    """The grid of a rank whose scheme says ``tile``: a cut side is rounded down to it, one that spans the rank up."""
    if tile >= extent:
        return TileGrid(-(-extent >> MOST_HALVINGS), MOST_HALVINGS)
    level = min(MOST_HALVINGS, tile.bit_length() - 1)
    return TileGrid(tile >> level, level)


def quadrants(b: Csr, rows: tuple[int, int, int], columns: tuple[int, int, int]) -> Counts:
    """Nonzeros of a tile by halves.

    Parameters
    ----------
    rows, columns: begin, middle and end of each range. Where the columns are all of B's, rows are not read to their end
        when the tile overflows; there each row counts as if it were spread evenly, the odd nonzero in the low half.
    """
    counts = []
    for low, high in ((rows[0], min(rows[1], rows[2])), (min(rows[1], rows[2]), rows[2])):
        if columns[0] == 0 and columns[2] >= b.columns:
            lengths = np.diff(b.pointers[low : high + 1])
            counts += [int(((lengths + 1) >> 1).sum()), int((lengths >> 1).sum())]
        else:
            part = b.coordinates[b.pointers[low] : b.pointers[high]]
            left = int(np.count_nonzero((part >= columns[0]) & (part < columns[1])))
            counts += [left, int(np.count_nonzero((part >= columns[0]) & (part < columns[2]))) - left]
    return counts[0], counts[1], counts[2], counts[3]


def scores(counts: Counts, capacities: Mapping[int, Capacity]) -> dict[tuple[int, int], int]:
    """Estimated hit rate of each candidate times four times the tile's nonzeros.

    Parameters
    ----------
    capacities: by the change of T_k, since metadata take lines.

    A halved side gives two tiles with what each half holds, a doubled one a tile with twice as much. With f the factor by
    which doubled sides multiply, the hit rate of a shape is the sum of ``resident(f * part)`` over the sum of ``f * part``.
    """
    c00, c01, c10, c11 = counts
    total = sum(counts)
    parts = {
        (False, False): (total,),
        (True, False): (c00 + c01, c10 + c11),
        (False, True): (c00 + c10, c01 + c11),
        (True, True): counts,
    }
    found = {}
    for k, j in CANDIDATES:
        doublings = (k == 1) + (j == 1)
        resident = sum(capacities[k].resident(part << doublings) for part in parts[k == -1, j == -1])
        found[k, j] = resident << (2 - doublings)
    return found


def decide(
    counts: Counts, capacities: Mapping[int, Capacity], legal: Container[tuple[int, int]] = CANDIDATES
) -> tuple[int, int]:
    """The change of (T_k, T_j) that follows from a tile with these counts.

    The first legal one of ``CANDIDATES`` than which the best is not more than 5 % better. So the present shape is given up
    for a smaller one only where the best is more than 5 % better, and for a larger one where that does as well. An empty
    tile changes nothing.
    """
    if not sum(counts):
        return STAY
    score = scores(counts, capacities)
    found = [c for c in CANDIDATES if c in legal or c == STAY]
    best = max(score[c] for c in found)
    return next(c for c in found if OUT_OF * best <= BETTER_THAN * score[c])


def legal_candidates(
    order: str,
    cut_i: bool,
    spans_j: bool,
    spans_k: bool,
    sides: tuple[int, int],
    grains: tuple[int, int],
    extents: tuple[int, int],
    most_rows: int,
) -> frozenset[tuple[int, int]]:
    """Changes of (T_k, T_j) that keep tiles aligned and in bounds.

    Parameters
    ----------
    cut_i: C is cut along i. spans_j, spans_k: the present tile is the only one of its rank.
    sides, grains, extents: of k, then of j.

    Partial rows of C lie in j tiles, so the cuts along j must be the same for all k steps and rows: T_j can change only
    where j is swept once. T_k can change wherever k moves, for all state between tiles is kept by row.
    """
    cut = {"i": cut_i, "j": not spans_j, "k": not spans_k}
    changes: dict[str, set[int]] = {}
    for n, rank in enumerate("kj"):
        outside = any(cut[other] for other in order[: order.index(rank)])
        movable = (cut[rank] or outside) if rank == "k" else (cut[rank] and not outside)
        changes[rank] = {0}
        if movable and sides[n] > grains[n]:
            changes[rank].add(-1)
        doubled = 2 * sides[n]
        fits = rank == "j" or min(doubled, extents[n]) <= most_rows
        if movable and sides[n] < extents[n] and doubled < 1 << 32 and fits:
            changes[rank].add(1)
    return frozenset((k, j) for k, j in CANDIDATES if k in changes["k"] and j in changes["j"])


def cells(matrix: Csr, rows: int, columns: int) -> NDArray[np.bool_]:
    """Which cells of ``rows x columns`` hold anything."""
    occupied = np.zeros((-(-matrix.rows // rows), -(-matrix.columns // columns)), np.bool_)
    row_of = np.repeat(np.arange(matrix.rows), np.diff(matrix.pointers))
    occupied[row_of // rows, matrix.coordinates // columns] = True
    return occupied
