"""How long the rows of tiles take: some tiles are replayed row by row, and the others are taken to be like them.

The closed form (:mod:`.predict`) takes memory, PEs and dispatch to be busy all the time. It leaves out that jobs wait for one
another, for scratch memory and for the first word of a fiber.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.plan.records import tensor_formats
from sw.plan.thresholds import SAMPLED_PASSED, SAMPLED_PIECES, SAMPLED_TILES, SPREAD
from sw.stats.pattern import Index
from sw.timing.assembly import assembly_jobs
from sw.timing.jobs import jobs_end
from sw.timing.pace import Pace, pace_of

from .row_replay import Box, TileRows
from .sampling import runs_of
from .traffic import TrafficEstimate, words_beside, words_of_c

__all__ = ["assembly_cycles", "load_cycles", "pick", "rows_cycles", "tile_weights"]

Floats = NDArray[np.float64]


class _Tile(NamedTuple):
    """Which tile, and the chance to draw it: it stands for one over that."""

    i: int
    k: int
    j: int
    chance: float


class _Steps:
    """The tiles that have work, by k step.

    ``visits``, ``macs``: float64[N_k], tiles of a step, and the MACs to be expected in them.
    """

    def __init__(self, found: TrafficEstimate) -> None:
        scheme, workload = found.scheme, found.workload
        self._a = workload.tiles("A", scheme.T_i, scheme.T_k) if found.N_i > 1 else None
        self._b = found.b_tiles
        self._a_nonzeros = found.a_nonzeros
        self._b_nonzeros = np.array([workload.b.nnz], np.float64)
        if self._b is not None:
            self._b_nonzeros = np.bincount(self._b.rows, self._b.occupancy, found.N_k).astype(np.float64)
        self._counts = np.ones(1, np.int64) if self._b is None else np.diff(self._b.pointers)
        self.visits = found.visits_k.astype(np.float64)
        self.macs = np.where(self.visits > 0, self._a_nonzeros * self._b_nonzeros, 0.0)

    def of_a(self, k: int) -> tuple[Index, Floats]:
        """Tiles of A in a step: which ones along i, and their nonzeros."""
        if self._a is None:
            return np.zeros(1, np.int64), self._a_nonzeros[k : k + 1]
        picked = np.flatnonzero(self._a.columns == k)
        return self._a.rows[picked], self._a.occupancy[picked].astype(np.float64)

    def first_of_a(self, k: int) -> int:
        """The first tile of A in a step, -1 without any."""
        return int(min(self.of_a(k)[0], default=-1))

    def of_b(self, k: int) -> tuple[Index, Floats]:
        """Tiles of B in a step: which ones along j, and their nonzeros."""
        if self._b is None:
            return np.zeros(1, np.int64), self._b_nonzeros
        picked = slice(self._b.pointers[k], self._b.pointers[k + 1])
        return self._b.columns[picked], self._b.occupancy[picked].astype(np.float64)

    def share_of_b(self, tile: _Tile) -> float:
        """How many times the mean of all loads the load of a tile's B takes, by its nonzeros."""
        columns, occupancy = self.of_b(tile.k)
        mean = float(self.visits @ (self._b_nonzeros / np.maximum(1, self._counts))) / max(
            1.0, float(self.visits.sum())
        )
        return float(occupancy[columns == tile.j].sum()) / max(1.0, mean)

    def all(self) -> list[_Tile]:
        """Each tile once."""
        every = np.flatnonzero(self.visits).tolist()
        return [_Tile(int(i), k, int(j), 1.0) for k in every for i in self.of_a(k)[0] for j in self.of_b(k)[0]]

    def of_last(self, i: int, j: int, most: int) -> list[_Tile]:
        """The tiles of the last step, which join parts of rows, whether they have work of their own or not; ``most`` of them."""
        places = np.unique(np.linspace(0, i * j - 1, min(i * j, most)).astype(np.int64))
        return [_Tile(int(n) // j, len(self.visits) - 1, int(n) % j, len(places) / (i * j)) for n in places]

    def passed(self, tiles: float, i: int, j: int, most: int) -> list[_Tile]:
        """Some of so many ``tiles`` without work that are visited all the same, at regular distances: of the last step alone
        where there are no more. ``i``, ``j``: tiles along these ranks.
        """
        idle = i * j - self.visits
        if tiles <= idle[-1]:
            idle[:-1] = 0
        count = min(int(tiles), most)
        found = []
        for number in range(count):
            k = pick(idle, (number + 0.5) / count)
            rows, columns = (tiles[nonzeros > 0] for tiles, nonzeros in (self.of_a(k), self.of_b(k)))
            no_rows, no_columns = np.setdiff1d(np.arange(i), rows), np.setdiff1d(np.arange(j), columns)
            place = int((number + 1) * SPREAD % 1.0 * (i * j - len(rows) * len(columns)))
            if place < len(no_rows) * j:
                of_i, of_j = int(no_rows[place // j]), place % j
            else:
                place -= len(no_rows) * j
                of_i, of_j = int(rows[place // len(no_columns)]), int(no_columns[place % len(no_columns)])
            found.append(_Tile(of_i, k, of_j, count / tiles))
        return found

    def without_last(self) -> None:
        """Leaves out the tiles of the last step."""
        self.visits[-1] = self.macs[-1] = 0

    def drawn(self, count: int) -> list[_Tile]:
        """Some of them, by turns by the MACs to be expected and evenly, at regular distances: no chance is in it."""
        tiles, shares = [], []
        for number in range(count):
            by_macs = number % 2 == 1
            k = pick(self.macs if by_macs else self.visits, (number + 0.5) / count)
            (rows, of_a), (columns, of_b) = self.of_a(k), self.of_b(k)
            i, j = (
                pick(weights if by_macs else np.ones(len(weights)), (number + 1) * step % 1.0)
                for weights, step in ((of_a, SPREAD), (of_b, SPREAD * SPREAD))
            )
            shares.append(float(of_a[i] * of_b[j] / self.macs.sum()))
            tiles.append((int(rows[i]), k, int(columns[j])))
        weights = tile_weights(np.array(shares), float(self.visits.sum()))
        return [_Tile(*tile, 1 / float(weight)) for tile, weight in zip(tiles, weights, strict=True)]


def rows_cycles(found: TrafficEstimate) -> float:
    """Cycles that the rows of all tiles of a scheme take, and what of B comes beside them."""
    if not found.working:
        return 0.0
    workload, scheme, steps = found.workload, found.scheme, _Steps(found)
    tiles = []
    if scheme.joins:
        steps.without_last()
        tiles = steps.of_last(found.N_i, found.N_j, SAMPLED_TILES)
    tiles += steps.all() if steps.visits.sum() <= SAMPLED_TILES else steps.drawn(SAMPLED_TILES)
    rows = TileRows(
        workload,
        found.design,
        scheme,
        pieces=found.pieces,
        tiles=len(tiles),
        carries=found.carried > 0,
        kept=found.kept,
    )
    each = load_cycles(found.load_b / max(1.0, found.loads), min(scheme.T_k, workload.K), rows.pace)
    cycles, loaded, words = 0.0, 0.0, words_beside(found)

    def box_of(tile: _Tile) -> Box:
        return Box(*(
            (n * side, min((n + 1) * side, size))
            for n, side, size in (
                (tile.i, scheme.T_i, workload.I), (tile.j, scheme.T_j, workload.J), (tile.k, scheme.T_k, workload.K)
            )
        ))  # fmt: skip

    if not scheme.joins:
        # Tiles without work pass on what the earlier ones left of their rows.
        of_c = words_of_c(found)
        for tile in steps.passed(found.tiles - found.working, found.N_i, found.N_j, SAMPLED_PASSED):
            cycles += rows.cycles(box_of(tile), 0.0, of_c, works=False) / tile.chance
    # Where parts are joined the last step finds those of each row first.
    least = found.found / (found.N_i * found.N_j)
    for tile in tiles:
        # B's tile stays while i moves inside the others.
        loads = scheme.buffers("B") and (not found.keeps_b or tile.i == steps.first_of_a(tile.k))
        load_time = steps.share_of_b(tile) * each if loads else 0.0
        taken = rows.cycles(box_of(tile), load_time, words)
        cycles += (max(taken, least) if tile.k == found.N_k - 1 else taken) / tile.chance
        loaded += loads / tile.chance
    # Loads of tiles that were not drawn with theirs.
    return cycles + max(0.0, found.loads - loaded) * each


def load_cycles(lines: float, rows: int, pace: Pace) -> float:
    """Cycles in which a tile of B comes: a row takes one at least."""
    return max(lines * pace.beat * pace.line_beats, float(rows))


def assembly_cycles(found: TrafficEstimate) -> float:
    """Cycles of the pass that joins the pieces of rows of C, from some runs of rows. Pieces of a row are of one length."""
    workload, design = found.workload, found.design
    rows = runs_of(workload.I, SAMPLED_PIECES, SAMPLED_PIECES // SAMPLED_TILES)
    count = max(1, round(found.pieces / max(1, workload.I)))
    places = np.minimum(np.arange(found.N_j + 1), count)
    lengths = np.diff(np.rint(workload.row_nonzeros[rows]).astype(np.int64)[:, None] * places // count, axis=1)
    begins = np.cumsum(lengths, axis=0) - lengths
    formats = tensor_formats(design, workload.K, workload.J)
    scheme, line = found.scheme, design.line_bytes
    pace = pace_of(design, scheme.region_lines(line), formats, scheme.scratch_lines(line))
    radix, lanes = design.pe.merge_radix, design.lanes
    jobs, *_ = assembly_jobs(lengths, begins, radix, lanes, pace.slot_factors, pace.kept_lines)
    effort = workload.row_nonzeros + found.N_j
    return float(jobs_end(jobs, pace)) * float(effort.sum() / effort[rows].sum())


def tile_weights(shares: Floats, tiles: float) -> Floats:
    """How many of so many ``tiles`` each of some stands for, half of which were drawn by their ``shares`` of the MACs and half
    evenly: together for all tiles, and for all MACs where that leaves none of them out."""
    drawn = 2 / (len(shares) * (shares + 1 / tiles))
    known = np.stack([np.ones(len(shares)), shares * tiles])
    missing = tiles - known @ drawn
    by, *_ = np.linalg.lstsq((known * drawn) @ known.T, missing, rcond=None)
    found: Floats = drawn * (1 + by @ known)
    return found if (found > 0).all() else drawn * tiles / drawn.sum()


def pick(weights: Floats, share: float) -> int:
    """Where the running sum of the weights reaches a share of it all."""
    sums = np.cumsum(weights)
    return min(int(np.searchsorted(sums, share * sums[-1], side="right")), len(weights) - 1)
