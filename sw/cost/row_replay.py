"""The rows of a tile, replayed as jobs from what each of them has to do: runs of them, where they are many."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.golden.partition import Partition
from sw.plan.records import tensor_formats
from sw.plan.thresholds import (
    FEWEST_OF_WIDTH,
    IDLE_SHARE,
    ROWS_OF_WIDTH,
    RUN_OF_ROWS,
    SAMPLED_ENDS,
    SAMPLED_ROWS,
    WIDEST,
)
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Index, Pattern
from sw.stats.workload import Workload, effective_width
from sw.timing.constants import IDLE_ROW_CYCLES, MERGE_CYCLES
from sw.timing.pace import pace_of

from .protocol import Machine
from .replay import NO_PARTIALS, RowWork, one_tile, replay
from .row_segments import lengths_between, products_of_steps, rows_of_tile
from .sampling import runs_of

__all__ = ["Box", "TileRows", "fitting_rows"]

Floats = NDArray[np.float64]
Range = tuple[int, int]


class Box(NamedTuple):
    """A tile: where it begins and ends along each rank."""

    i: Range
    j: Range
    k: Range


class TileRows:
    """The rows of a scheme's tiles.

    Products of a row meet by chance in a width: the one that makes as many nonzeros of C as the statistics find in the tile's
    columns up to its k step. Where they find few there it is the workload's effective width, which the pieces of a row of C
    share. What a k step leaves of a row is what its products up to there make, or those of the step alone where parts are joined.

    Parameters
    ----------
    pieces: of rows of C, of all tiles along j. tiles: that are asked for, among which the sample is divided.
    carries: k steps leave something of rows. kept: the share of it that stays on chip.
    """

    def __init__(
        self,
        workload: Workload,
        design: Machine,
        scheme: Scheme,
        *,
        pieces: float,
        tiles: int,
        carries: bool,
        kept: float,
    ) -> None:
        self.scheme, self.design, self.workload = scheme, design, workload
        formats = tensor_formats(design, workload.K, workload.J)
        line = design.line_bytes
        self.pace = pace_of(design, scheme.region_lines(line), formats, scheme.scratch_lines(line))
        # Nonzeros of A on chip come from there.
        self._of_a = self.pace._replace(pitch_a=0) if scheme.buffers("A") else self.pace
        self._partition = scheme.partition("B", design)
        self._most = SAMPLED_ROWS // max(1, tiles)
        self._carries, self._kept = carries, kept
        self._of_j: dict[Range, Index] = {}
        share = workload.I / max(workload.I, pieces)
        self._width = max(1.0, workload.width * share)
        self._part_width = max(1.0, _part_width(workload, scheme) * share) if scheme.T_k < workload.K else self._width

    def lengths(self, j: Range) -> Index:
        """Nonzeros of each row of B in a tile along j."""
        b = self.workload.b
        if j == (0, self.workload.J):
            return b.row_lengths
        if j not in self._of_j:
            self._of_j[j] = lengths_between(b.pointers, b.coordinates, *j)
        return self._of_j[j]

    def cycles(self, box: Box, load_time: float, words: float = 0.0, *, works: bool = True) -> float:
        """Cycles of one tile's rows, from runs of them where it has many nonzeros.

        ``load_time``: cycles of memory in which B's tile comes. ``words``: that each row moves beside the one that says where its
        nonzeros of A are. ``works``: else the tile only carries rows along.
        """
        workload, joins = self.workload, self.scheme.joins
        (first, end), lengths = box.i, self.lengths(box.j)
        pointers = workload.a.pointers[first : end + 1]
        seen = rows_of_tile(pointers, workload.a.coordinates, lengths, box.k, self.scheme.T_k)
        if not works:
            seen = seen._replace(end=seen.begin, inside=np.zeros_like(seen.inside))
        back = self._carries and box.k[0] > 0 and (box.k[1] == workload.K or not joins)
        sizes = seen.end - seen.begin
        active = np.flatnonzero((sizes > 0) | (back & (seen.before > 0)))
        # Of the others the dispatcher sees that they are empty, and that earlier steps left nothing of them.
        each = IDLE_ROW_CYCLES + back
        idle = float(each * (end - first - len(active)))
        if not len(active):
            return max(idle, load_time)
        merged, before = seen.inside[active], seen.before[active]
        widths = self._widths(box, before, merged)
        b = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[slice(*box.k)], dtype=np.int64)])
        fitting = fitting_rows(self._partition, b)
        fetched = _lines_of_products(b, fitting if self.scheme.buffers("B") else 0, self.pace.lanes)
        weights = self._weights(box, widths, merged, before, seen.parts[active], back=back, fetched=fetched)
        weights += sizes[active] + 2.0
        drawn, share = _drawn_rows(weights, self._most)
        picked = active[drawn]
        if idle <= each * IDLE_SHARE * len(active):
            # Those between the others give the PEs time; there are no more of them in a share of the rows than in all.
            between = _rows_between(picked, drawn)
            most = min(len(between), int(share * idle / each))
            between = between[np.linspace(0, len(between) - 1, most).astype(np.int64)]
            idle -= each * most / share
            picked = np.sort(np.concatenate([picked, between]))
        merged, before = seen.inside[picked], seen.before[picked]
        a = _segments(workload.a, seen.begin[picked], seen.end[picked], box.k)
        leaves = _by_row(a, lengths[a.coordinates + box.k[0]] > 0)
        parts = seen.parts[picked] if joins else np.minimum(1, before)
        last, columns = box.k[1] == workload.K, box.j[1] - box.j[0]
        of_rows = self._work(columns, widths, a, leaves, merged, before, parts if back else None, last=last)
        if works and box.k != (0, workload.K) and not self.scheme.buffers("A"):
            of_rows = of_rows._replace(scans=np.stack([seen.begin[picked], pointers[1:][picked]], axis=1))
        kept = one_tile(len(b) - 1, fitting) if load_time else one_tile(0, 0)
        settings: dict[str, Any] = {
            "whole": True, "streaming": not self.scheme.buffers("B"), "memory_from": fitting,
            "idle": share * idle,
            "more": share * words * (end - first) * self.pace.line_beats / (2 * self.pace.lanes),
        }  # fmt: skip
        found = replay(
            of_rows, np.array([0, a.rows]), b, kept, self._of_a, load_time=share * load_time, **settings
        ).cycles  # fmt: skip
        if share == 1:
            return found
        # What it takes to fill the PEs and to empty them counts once: some rows that come twice tell how much that is.
        some = np.arange(min(a.rows, SAMPLED_ENDS))
        settings |= {"idle": 0.0, "more": 0.0}
        once, twice = (
            replay(
                of_rows.of(np.tile(some, n)), np.array([0, n * len(some)]), b, one_tile(0, 0), self._of_a, **settings
            ).cycles
            for n in (1, 2)
        )
        ends = min(found, max(0.0, 2 * once - twice))
        return (found - ends) / share + ends

    def _weights(
        self,
        box: Box,
        widths: tuple[float, float],
        inside: Index,
        before: Index,
        parts: Index,
        *,
        back: bool,
        fetched: float,
    ) -> Floats:
        """Cycles that rows take of PEs, or of memory where what they leave, what comes back and what they fetch, so many lines
        for a product, takes longer."""
        columns, joins = box.j[1] - box.j[0], self.scheme.joins
        times = np.maximum(1, parts) if joins else np.ones(len(before))
        partials = _results(before / times, widths[0], columns) * times * back
        leaves = _results(inside + (0 if joins and box.k[1] < self.workload.K else before), widths[1], columns)
        merging = (inside + partials) * MERGE_CYCLES / self.design.pe.count
        moving = ((partials + leaves) / self.pace.lanes + inside * fetched) * self.pace.beat * self.pace.line_beats
        found: Floats = np.maximum(merging, moving)
        return found

    def _widths(self, box: Box, before: Index, inside: Index) -> tuple[float, float]:
        """The widths in which products meet ``before`` a tile and up to its end, of rows with so many of them."""
        counts, columns = self.workload.output, box.j[1] - box.j[0]
        of_tile = (counts.columns >= box.j[0]) & (counts.columns < box.j[1])
        of_tile &= (counts.rows >= box.i[0]) & (counts.rows < box.i[1])
        some = np.linspace(0, len(before) - 1, min(len(before), ROWS_OF_WIDTH)).astype(np.int64)
        found = []
        for step, products, usual in (
            (box.k[0], before, self._part_width),
            (box.k[1], before + inside, self._width if box.k[1] == self.workload.K else self._part_width),
        ):
            seen = of_tile & (counts.first_k < step)
            if np.count_nonzero(seen) < FEWEST_OF_WIDTH or (self.scheme.joins and step < self.workload.K):
                found.append(min(usual, float(columns)))
                continue
            nonzeros = counts.weighed(seen.astype(np.int64)) * len(some) / len(before)
            found.append(effective_width(products[some], nonzeros, WIDEST * columns))
        return found[0], found[1]

    def _work(
        self,
        columns: int,
        widths: tuple[float, float],
        a: Pattern,
        leaves: Index,
        inside: Index,
        before: Index,
        parts: Index | None,
        *,
        last: bool,
    ) -> RowWork:
        """What rows have to do with so many products ``inside`` a tile; results of those ``before`` it come back in ``parts``."""
        radix, joins = self.design.pe.merge_radix, self.scheme.joins
        partials = of_each = NO_PARTIALS
        nonzeros, merged = _results(inside if joins and not last else inside + before, widths[1], columns), inside
        if parts is not None:
            back = _results(before / np.maximum(1, parts), widths[0], columns) * parts
            partials = np.maximum(np.rint(back).astype(np.int64), before > 0)
            of_each = np.where(before > 0, parts, 0).astype(np.int64)
            merged, leaves = inside + partials, leaves + of_each
            nonzeros = nonzeros if joins else np.maximum(nonzeros, partials)
        groups = np.maximum(1, -(-leaves // radix))
        of_groups = np.where(groups > 1, _results(merged / groups, widths[1], columns) * groups, 0.0)
        of_groups *= self.workload.group_share(radix)
        kept = self._kept, 0.0 if last else self._kept
        return RowWork(a, merged, np.minimum(nonzeros, merged), of_groups, partials, of_each, *kept)


def _results(products: NDArray[Any], width: float, columns: int) -> Floats:
    """Nonzeros that so many products of a row make that meet by chance in this width, in so many columns."""
    found: Floats = np.minimum(-width * np.expm1(-products / width), columns)
    return found


def _part_width(workload: Workload, scheme: Scheme) -> float:
    """The width in which the products of a row in one k step, or up to it, collide as often as the statistics say."""
    a, counts, T_k = workload.a, workload.output, scheme.T_k
    products, times = products_of_steps(
        a.pointers, a.coordinates, workload.b.row_lengths, T_k, -(-workload.K // T_k), not scheme.joins
    )
    left = counts.nnz_tk(T_k) if scheme.joins else counts.carried(T_k)
    return effective_width(products, left, workload.J, times) if left else workload.width


def _drawn_rows(weights: Floats, most: int) -> tuple[Index, float]:
    """Runs of neighbours at regular distances, about ``most`` rows together where there are more; their share of the weights."""
    if len(weights) <= most:
        return np.arange(len(weights)), 1.0
    picked = runs_of(len(weights), most, RUN_OF_ROWS)
    return picked, float(weights[picked].sum() / weights.sum())


def _lines_of_products(pointers: Index, fitting: int, lanes: int) -> float:
    """Lines that a product brings from memory, in the mean of a tile of B of which so many rows fit: segments begin anywhere."""
    nonzeros = int(pointers[-1])
    bumped = nonzeros - int(pointers[fitting])
    segments = np.count_nonzero(np.diff(pointers[fitting:]))
    return (bumped / lanes + segments) / max(1, nonzeros)


def _rows_between(picked: Index, drawn: Index) -> Index:
    """The rows between those ``picked`` that follow one another among the ``drawn`` numbers."""
    counts = np.where(np.diff(drawn) == 1, np.diff(picked) - 1, 0)
    starts = picked[:-1] + 1 - (np.cumsum(counts) - counts)
    found: Index = np.arange(counts.sum()) + np.repeat(starts, counts)
    return found


def _segments(a: Pattern, begin: Index, end: Index, step: tuple[int, int]) -> Pattern:
    """Segments of A's rows as a matrix of the columns of a k step."""
    lengths = end - begin
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    positions = np.arange(pointers[-1]) + np.repeat(begin - pointers[:-1], lengths)
    return Pattern(len(begin), step[1] - step[0], pointers, a.coordinates[positions] - step[0])


def _by_row(matrix: Pattern, of_each: NDArray[Any]) -> Index:
    """Sums of each row's nonzeros."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(of_each, dtype=np.int64)])
    return np.diff(sums[matrix.pointers])


def fitting_rows(partition: Partition, pointers: Index) -> int:
    """How many rows of a tile of B, which begin at these ``pointers``, are on chip: those behind them are bumped."""
    rows = len(pointers) - 1
    capacity = partition.capacity(rows)
    if pointers[-1] <= capacity.limit:
        return rows
    return int(np.searchsorted(pointers[1:], capacity.regular, side="right"))
