"""How long the rows of tiles take: some tiles are replayed row by row, and the others are taken to be like them.

The closed form (:mod:`.predict`) takes memory, PEs and dispatch to be busy all the time. It leaves out that jobs wait for one
another, for scratch memory and for the first word of a fiber.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.golden.partition import Partition
from sw.plan.records import tensor_formats
from sw.plan.thresholds import SAMPLED_NONZEROS, SAMPLED_ROWS, SAMPLED_TILES, SPREAD
from sw.stats.pattern import Index, Pattern
from sw.timing.assembly import assembly_jobs
from sw.timing.constants import MERGE_CYCLES
from sw.timing.jobs import jobs_end
from sw.timing.pace import Pace, pace_of

from .replay import NO_PARTIALS, RowWork, one_tile, replay
from .sampling import runs_of
from .traffic import TrafficEstimate

__all__ = ["assembly_cycles", "fitting_rows", "rows_cycles"]

Floats = NDArray[np.float64]


class _Tile(NamedTuple):
    """Which tile, and the chance to draw it."""

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
        self.visits = found.visits_k.astype(np.float64)
        self.macs = np.where(self.visits > 0, self._a_nonzeros * self._b_nonzeros, 0.0)

    def of_a(self, k: int) -> tuple[Index, Floats]:
        """Tiles of A in a step: which ones along i, and their nonzeros."""
        if self._a is None:
            return np.zeros(1, np.int64), self._a_nonzeros[k : k + 1]
        picked = np.flatnonzero(self._a.columns == k)
        return self._a.rows[picked], self._a.occupancy[picked].astype(np.float64)

    def of_b(self, k: int) -> tuple[Index, Floats]:
        """Tiles of B in a step: which ones along j, and their nonzeros."""
        if self._b is None:
            return np.zeros(1, np.int64), self._b_nonzeros
        picked = slice(self._b.pointers[k], self._b.pointers[k + 1])
        return self._b.columns[picked], self._b.occupancy[picked].astype(np.float64)

    def all(self) -> list[_Tile]:
        """Each tile once."""
        every = np.flatnonzero(self.visits).tolist()
        return [_Tile(int(i), k, int(j), 1.0) for k in every for i in self.of_a(k)[0] for j in self.of_b(k)[0]]

    def drawn(self, count: int) -> list[_Tile]:
        """Some of them, by turns by the MACs to be expected and evenly, at regular distances: no chance is in it."""
        tiles = []
        for number in range(count):
            by_macs = number % 2 == 1
            k = _pick(self.macs if by_macs else self.visits, (number + 0.5) / count)
            (rows, of_a), (columns, of_b) = self.of_a(k), self.of_b(k)
            i, j = (
                _pick(weights if by_macs else np.ones(len(weights)), (number + 1) * step % 1.0)
                for weights, step in ((of_a, SPREAD), (of_b, SPREAD * SPREAD))
            )
            expected = of_a[i] * of_b[j] / self.macs.sum()
            chance = count * (expected + 1 / self.visits.sum()) / 2
            tiles.append(_Tile(int(rows[i]), k, int(columns[j]), chance))
        return tiles


def rows_cycles(found: TrafficEstimate) -> float:
    """Cycles that the rows of all tiles of a scheme take, beside what moves for all of them."""
    if not found.working:
        return 0.0
    steps = _Steps(found)
    tiles = steps.all() if found.working <= SAMPLED_TILES else steps.drawn(SAMPLED_TILES)
    scheme, design, workload = found.scheme, found.design, found.workload
    formats = tensor_formats(design, workload.K, workload.J)
    pace = pace_of(design, scheme.region_lines(design.line_bytes), formats)
    # Tiles without work pass on what the earlier ones left of their rows.
    passed = workload.I / found.N_i + found.carried / max(1.0, found.tiles - found.N_i * found.N_j)
    cycles = (
        sum(_tile_cycles(found, tile, pace) / tile.chance for tile in tiles) + (found.tiles - found.working) * passed
    )
    return cycles + MERGE_CYCLES * found.grouped / design.pe.count


def assembly_cycles(found: TrafficEstimate) -> float:
    """Cycles of the pass that joins the pieces of rows of C, from some runs of rows. Pieces of a row are of one length."""
    workload, design = found.workload, found.design
    rows = runs_of(workload.I, SAMPLED_ROWS, SAMPLED_ROWS // SAMPLED_TILES)
    count = max(1, round(found.pieces / max(1, workload.I)))
    places = np.minimum(np.arange(found.N_j + 1), count)
    lengths = np.diff(np.rint(workload.row_nonzeros[rows]).astype(np.int64)[:, None] * places // count, axis=1)
    begins = np.cumsum(lengths, axis=0) - lengths
    formats = tensor_formats(design, workload.K, workload.J)
    scheme, line = found.scheme, design.line_bytes
    pace = pace_of(design, scheme.region_lines(line), formats, scheme.scratch_lines(line))
    radix, lanes = design.pe.merge_radix, design.lanes
    jobs, *_ = assembly_jobs(lengths, begins, radix, lanes, pace.slot_factors, pace.kept_lines)
    return float(jobs_end(jobs, pace)) * workload.I / len(rows)


def fitting_rows(partition: Partition, b: Pattern) -> int:
    """How many rows of a tile of B are on chip: those behind them are bumped."""
    capacity = partition.capacity(b.rows)
    if b.nnz <= capacity.limit:
        return b.rows
    return int(np.searchsorted(b.pointers[1:], capacity.regular, side="right"))


def _pick(weights: Floats, share: float) -> int:
    """Where the running sum of the weights reaches a share of it all."""
    sums = np.cumsum(weights)
    return min(int(np.searchsorted(sums, share * sums[-1], side="right")), len(weights) - 1)


def _tile_cycles(found: TrafficEstimate, tile: _Tile, pace: Pace) -> float:
    """Cycles of one tile's rows, from runs of them where it has many nonzeros."""
    s, workload = found.scheme, found.workload
    first, end = tile.i * s.T_i, min((tile.i + 1) * s.T_i, workload.I)
    pointers = workload.a.pointers
    all_of_a, most = (
        int(pointers[end] - pointers[first]),
        found.N_k * SAMPLED_NONZEROS // min(found.working, SAMPLED_TILES),
    )
    if all_of_a > most:
        # The run of rows that has so many nonzeros, somewhere in the tile.
        begin = int(pointers[first] + (all_of_a - most) * ((tile.k + tile.j + 1) * SPREAD % 1.0))
        first, end = (int(np.searchsorted(pointers, place)) for place in (begin, begin + most))
    step = slice(tile.k * s.T_k, min((tile.k + 1) * s.T_k, workload.K))
    a = _part(workload.a, slice(first, end), step)
    b = _part(workload.b, step, slice(tile.j * s.T_j, min((tile.j + 1) * s.T_j, workload.J)))
    if not a.nnz:
        return 0.0
    replayed = replay(
        _work(found, a, b, slice(first, end), tile.k), np.array([0, a.rows]), b.pointers, one_tile(0, 0), pace, whole=True,
        streaming=not s.buffers("B"), memory_from=fitting_rows(s.partition("B", found.design), b), scanned=found.N_k > 1,
    )  # fmt: skip
    return replayed.cycles * max(1.0, all_of_a / most)


def _part(matrix: Pattern, rows: slice, columns: slice) -> Pattern:
    """Rows and columns of a matrix, as one of its own."""
    pointers = matrix.pointers[rows.start : rows.stop + 1]
    coordinates = matrix.coordinates[pointers[0] : pointers[-1]]
    pointers = pointers - pointers[0]
    if columns.start > 0 or columns.stop < matrix.columns:
        inside = (coordinates >= columns.start) & (coordinates < columns.stop)
        pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])[pointers]
        coordinates = coordinates[inside] - columns.start
    return Pattern(rows.stop - rows.start, columns.stop - columns.start, pointers, coordinates)


def _work(found: TrafficEstimate, a: Pattern, b: Pattern, rows: slice, k: int) -> RowWork:
    """What the rows of a tile have to do.

    Products meet by chance in the workload's effective width, which the pieces of a row of C share. What earlier k steps left,
    and what leaves, are a row's share of what partial rows of C move in all.
    """
    workload, radix = found.workload, found.design.pe.merge_radix
    sizes = b.row_lengths[a.coordinates]
    merged, leaves = (_by_row(a, of_each) for of_each in (sizes, sizes > 0))
    width = max(1.0, min(workload.width * workload.I / max(workload.I, found.pieces), float(b.columns)))
    nonzeros = -width * np.expm1(-merged / width)
    partials = NO_PARTIALS
    if found.carried:
        piece = workload.row_nonzeros[rows] / found.N_j / max(1.0, workload.nnz_c)
        nonzeros = piece * (found.carried + workload.nnz_c) / found.N_k
        # Parts that the last step joins count as if they came a share in each step.
        times = np.full(1, 1 / found.N_k if found.scheme.joins else (k > 0) / (found.N_k - 1))
        partials = np.rint(piece * found.carried * times).astype(np.int64)
        merged, leaves = merged + partials, leaves + (partials > 0)
    groups = np.maximum(1, -(-leaves // radix))
    results = -width * np.expm1(-merged / groups / width) * groups
    return RowWork(a, merged, np.minimum(nonzeros, merged), np.where(groups > 1, results, 0.0), partials)


def _by_row(matrix: Pattern, of_each: NDArray[Any]) -> Index:
    """Sums of each row's nonzeros."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(of_each, dtype=np.int64)])
    return np.diff(sums[matrix.pointers])
