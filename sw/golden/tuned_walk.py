"""The walk over tiles whose shape is tuned while they are visited, by its definition: every tile in order, one at a time."""

from dataclasses import dataclass, field

from sw.formats.csr import Csr

from .partition import Partition
from .tuning import Counts, cells, decide, legal_candidates, quadrants, tile_grid

__all__ = ["TunedTile", "TunedWalk", "tuned_walk"]


@dataclass(frozen=True, kw_only=True)
class TunedTile:
    """Begin and size of one tile along i, j, k; ``skipped``: its A or B part is empty, it is not computed."""

    begin: tuple[int, int, int]
    size: tuple[int, int, int]
    skipped: bool


@dataclass(kw_only=True)
class TunedWalk:
    """Tiles in order, and each change of shape: the number of the first tile that has it, ``T_j`` and ``T_k``."""

    tiles: list[TunedTile] = field(default_factory=list)
    adjustments: list[tuple[int, int, int]] = field(default_factory=list)


def tuned_walk(tile: tuple[int, int, int], order: str, a: Csr, b: Csr, partition: Partition) -> TunedWalk:
    """All tiles of ``A x B`` with B buffered.

    Parameters
    ----------
    tile: T_i, T_j, T_k of the scheme. order: inter-tile order, outermost first. partition: that of B.
    """
    extent = (a.rows, b.columns, a.columns)
    grids = [tile_grid(side, size) for side, size in zip(tile, extent, strict=True)]
    grains = [min(tile[0], a.rows), grids[1].grain, grids[2].grain]
    shape = [grains[0], grids[1].start, grids[2].start]
    occupied_a, occupied_b = cells(a, grains[0], grains[2]), cells(b, grains[2], grains[1])
    begin = [0, 0, 0]
    wanted = {1: 0, 2: 0}
    in_place: tuple[int, ...] | None = None
    walk = TunedWalk()
    while True:
        at_end = [begin[r] + shape[r] >= extent[r] for r in range(3)]
        size = [extent[r] - begin[r] if at_end[r] else shape[r] for r in range(3)]
        ranges = [slice(begin[r] // grains[r], -(-(begin[r] + size[r]) // grains[r])) for r in range(3)]
        empty = not (occupied_a[ranges[0], ranges[2]].any() and occupied_b[ranges[2], ranges[1]].any())
        # Two orders visit these even when they are empty: their begin positions are needed by later sweeps.
        if order == "jki" and begin[2] == 0 and begin[1] > 0 and not at_end[2]:
            empty = False
        if order == "ijk" and begin[1] == 0 and begin[0] > 0 and not at_end[1]:
            empty = False
        walk.tiles.append(TunedTile(begin=_triple(begin), size=_triple(size), skipped=empty))
        place = (begin[1], size[1], begin[2], size[2])
        if not empty and in_place != place:
            in_place = place
            whole = all(size[r] == min(shape[r], extent[r]) for r in (1, 2))
            spans = [begin[r] == 0 and at_end[r] for r in range(3)]
            counts: Counts = quadrants(
                b,
                (begin[2], begin[2] + (shape[2] >> 1), begin[2] + size[2]),
                (begin[1], begin[1] + (shape[1] >> 1), begin[1] + size[1]),
            )
            if whole and any(counts):
                capacities = {k: partition.capacity(min(_scaled(shape[2], k), extent[2])) for k in (-1, 0, 1)}
                legal = legal_candidates(
                    order,
                    not spans[0],
                    spans[1],
                    spans[2],
                    (shape[2], shape[1]),
                    (grains[2], grains[1]),
                    (extent[2], extent[1]),
                    partition.most_rows,
                )
                wanted[2], wanted[1] = decide(counts, capacities, legal)
        if all(at_end):
            return walk
        moved = [r for r in _moves(order, at_end) if r]
        for r in _moves(order, at_end):
            begin[r] = 0 if at_end[r] else begin[r] + shape[r]
        changed = False
        for r in moved:
            changed |= wanted[r] != 0
            shape[r] = _scaled(shape[r], wanted[r])
            wanted[r] = 0
        if changed:
            walk.adjustments.append((len(walk.tiles), shape[1], shape[2]))


def _moves(order: str, at_end: list[bool]) -> list[int]:
    """Ranks that move in this step: the innermost, and each outer one while all inside it are at their end."""
    ranks = ["ijk".index(rank) for rank in reversed(order)]
    moving = [ranks[0]]
    for inner, rank in zip(ranks, ranks[1:], strict=False):
        if not at_end[inner]:
            break
        moving.append(rank)
    return moving


def _scaled(side: int, change: int) -> int:
    return side << 1 if change > 0 else side >> 1 if change < 0 else side


def _triple(values: list[int]) -> tuple[int, int, int]:
    return values[0], values[1], values[2]
