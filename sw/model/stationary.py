"""Trace-driven model of a weight-stationary design: traffic exact to the byte, cycles from what passes the bus of its PEs.

Accessors, walk and C's regions are those of every design (:mod:`.machine`). What is different: B lies by columns, which go to the
PEs, and A passes them.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.golden.weight_stationary import partial_sums
from sw.jit import njit
from sw.plan.gather import Index
from sw.plan.plan import Plan
from sw.timing.constants import (
    CHUNK_END_CYCLES,
    COLUMN_CYCLES,
    MEMORY_PART_CYCLES,
    NEXT_TILE_GAIN,
    PART_CYCLES,
    PHASE_CYCLES,
    PIECE_CYCLES,
    SCAN_CYCLES,
    STATIONARY_TILE_CYCLES,
    TILE_LATENCIES,
)
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES, READ_FIBERS, REGION_PARTS
from sw.timing.record_beats import fetched_lines

from .kernels import TOTALS, boundaries
from .loaded_b import LoadedB
from .machine import Run
from .rows_of_c import RowsOfC, rows_of
from .segments import Segments
from .walk import Tile, TileWalk

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["run_stationary"]

PRODUCTS, BUMPED_ELEMENTS, MERGED = (TOTALS.index(name) for name in ("products", "bumped_elements", "merged"))


def run_stationary(design: "Design", planned: Plan[Csr]) -> EngineResult:
    """Runs the model for a design whose dataflow is ``weight_stationary``; parameters and result as ``run_model``."""
    result = _StationaryRun(design, planned).result()
    del result.buffer["B"]["hits"]  # products do not read the SRAM
    return result


class _RowsOfC(RowsOfC):
    """A row stays on chip where all columns of the tile fit."""

    def _stay(self, tile: Tile, at: Segments, partial: Index, lengths: Index) -> NDArray[np.bool_]:
        return super()._stay(tile, at, np.full(tile.size_i, tile.size_j, np.int64), lengths)


class _StationaryRun(Run):
    b_fibers = "j"
    make_rows = _RowsOfC

    def __init__(self, design: "Design", planned: Plan[Csr]) -> None:
        super().__init__(design, planned)
        self.columns = planned.b.transposed()
        self.loaded_b = LoadedB(design, replace(planned, b=self.columns), self.reads, self.pace)
        nonzeros = design.pe.buffer_entries // 2
        region = max(1, nonzeros // REGION_PARTS)
        self.sizes = np.array([nonzeros, nonzeros - region, region], np.int64)
        self._in_pes: tuple[int, ...] | None = None
        # Of the columns in the PEs: which overflow, and how far the pass over what is bumped has come.
        self._wide: list[tuple[int, NDArray[np.int64]]] = []
        self._segments = ((-1, -1), self.columns.pointers[:-1], self.columns.pointers[:-1])

    def _columns_of(self, tile: Tile) -> tuple[Index, Index]:
        """Where the segment of every column of B in the tile's range of k begins and ends."""
        place = tile.k, tile.size_k
        if self._segments[0] != place:
            pointers, coordinates = self.columns.pointers, self.columns.coordinates
            begin = boundaries(pointers, coordinates, pointers[:-1], tile.k)
            self._segments = place, begin, boundaries(pointers, coordinates, begin, tile.k + tile.size_k)
        return self._segments[1:]

    def _walk(self, walk: TileWalk) -> None:
        self._column_place = self.columns.pointers[:-1].copy()
        super()._walk(walk)

    def _visit(self, walk: TileWalk, tile: Tile) -> None:
        """One tile: A and B come, columns go to the PEs, rows of A pass, rows of C leave."""
        at = self.places.of(tile)
        keeps_a = self.scheme.buffers("A")
        a_comes = not tile.carry and not (keeps_a and self.kept_a.place == (tile.i, tile.k, tile.size_k))
        load_beats = self._load_a(tile, at) if a_comes and keeps_a else 0
        before = self.clock.mark()
        load_of_b = self._load_columns(tile)
        first, last = rows_of(tile)
        scanned_from = self._scan_of_a(tile, at)[1][first:last].copy()
        self._stream_a(tile, at, a_comes)
        partial, spilled, base = self.rows_of_c.back(tile)
        begin, end = at.a_begin[first:last], at.a_end[first:last]
        if tile.carry:
            end = begin
        products = row_products(begin, end, self.a_coordinates, at.b_begin, at.b_end)
        self.totals[PRODUCTS] += int(products.sum())
        loading, waiting = self._feed(tile, begin, end)
        asking = self._reenter(partial, spilled, base) if tile.partial_in else 0
        lengths = self.places.lengths(tile)
        self.rows_of_c.leave(tile, at, partial, lengths)
        # A comes one nonzero a cycle, a row of C leaves with one; the rows of an array wait for partial sums that go round.
        on_bus = int(np.maximum(end - begin, 1).sum()) + waiting
        if not (tile.whole_k or keeps_a or tile.carry):
            row_ends = self.a.pointers[first + 1 : last + 1]
            longer, alone = later_chunks(scanned_from, end, row_ends, self.lanes, FIRST_CHUNK_LINES, NEXT_CHUNK_LINES)
            on_bus += CHUNK_END_CYCLES * longer + self.pace.latency * alone
            on_bus += int(
                ((begin - scanned_from) // self.lanes).sum()
            )  # what tiles before have left is dropped, a line a cycle
        leaving = int(np.maximum(np.minimum(products, tile.size_j) + partial, 1).sum())
        # B comes while A's first nonzeros are on their way, which wait for all of it.
        loading += int(load_of_b * self.pace.beat)
        if not tile.whole_k:  # where segments begin is read before them
            loading += self.pace.latency + SCAN_CYCLES
        self._add_cycles(load_beats, self.clock.moved(before), max(on_bus, leaving, asking) + loading)

    def _add_cycles(self, load_beats: int, moved: int, computing: int) -> None:
        clock, latency, beat = self.clock, self.pace.latency, self.pace.beat
        if load_beats:
            clock.cycles += math.ceil(load_beats * beat) + latency + PHASE_CYCLES
        clock.cycles += max(math.ceil(moved * beat), computing)
        clock.cycles += int(TILE_LATENCIES * latency) + STATIONARY_TILE_CYCLES
        clock.cycles += self._latency
        if clock.tiles:
            clock.cycles += latency - NEXT_TILE_GAIN
        clock.tiles += 1

    @property
    def _latency(self) -> int:
        """Of the multipliers and adders of a PE, and of the adder of partial rows."""
        sums = partial_sums(self.design.pe.value)
        return (sums - 1) * (self.design.pe.vector.bit_length() + 5)

    def _load_columns(self, tile: Tile) -> int:
        """B's tile goes into its partition, unless it is there. Returns the beats of its load."""
        place = (tile.k, tile.size_k, tile.j, tile.size_j)
        if tile.carry or not self.scheme.buffers("B") or self._in_partition == place:
            return 0
        self._in_partition = place
        turned_tile = replace(
            tile, j=tile.k, size_j=tile.size_k, k=tile.j, size_k=tile.size_j, whole_j=tile.whole_k, whole_k=tile.whole_j
        )
        load = self.loaded_b.load(turned_tile, tile.whole_k, self._column_place, *self._columns_of(tile))
        self._bumped = load.bumped
        return load.beats

    def _feed(self, tile: Tile, begin: Index, end: Index) -> tuple[int, int]:
        """Columns go to the PEs, unless they are there; what overflows comes once more in each row.

        Returns the cycles before the first row, and those for which the bus waits.
        """
        filled = end > begin
        if not filled.any():
            return 0, 0
        first, last = tile.j, tile.j + tile.size_j
        starts, ends = (found[first:last] for found in self._columns_of(tile))
        lengths = ends - starts
        streaming = not self.scheme.buffers("B")
        in_memory = np.ones(tile.size_j, np.bool_) if streaming else self._bumped
        place = (tile.k, tile.size_k, tile.j, tile.size_j)
        loading = 0
        if self._in_pes != place:
            self._in_pes = place
            if streaming:
                words = 2 * self.lanes
                straddles = int(np.count_nonzero(np.arange(first, last) % words == words - 1))
                self.beats["read_b_meta"] += self.reads.line_beats * (tile.size_j + straddles)
            sent = np.minimum(lengths, self.sizes[0])
            self.totals[MERGED] += int(sent.sum())
            self._fetch(starts[in_memory], sent[in_memory])
            self._wide = [
                (int(n), np.array([self.sizes[1], self.sizes[2]], np.int64))
                for n in np.flatnonzero(lengths > self.sizes[0])
            ]
            latency = self.pace.latency * (1 + streaming) if in_memory.any() else 0
            loading = 2 * int(sent.sum()) + self.design.pe.count + COLUMN_CYCLES + latency
        words, waits = 0, 0  # words come one by one, PEs wait side by side
        farthest = self.a_coordinates[end[filled] - 1]
        for n, state in self._wide:
            column = self.columns.coordinates[starts[n] : ends[n]]
            parts, nonzeros, lines = bumped_parts(farthest, column, self.sizes, state, int(starts[n]), self.lanes)
            self.totals[MERGED] += nonzeros
            if in_memory[n]:
                self.beats["read_b_data"] += self.reads.line_beats * lines
                self.totals[BUMPED_ELEMENTS] += nonzeros
            answer = self.pace.latency + MEMORY_PART_CYCLES if in_memory[n] else 0
            words += 2 * nonzeros
            waits = max(waits, parts * (PART_CYCLES + answer))
        return loading, words + waits

    def _fetch(self, begin: Index, length: Index) -> None:
        """Columns are read from memory, each by itself."""
        lines = -(-(begin + length) // self.lanes) - begin // self.lanes
        self.beats["read_b_data"] += self.reads.line_beats * int(lines[length > 0].sum())
        self.totals[BUMPED_ELEMENTS] += int(length.sum())

    def _reenter(self, partial: Index, spilled: NDArray[np.bool_], base: int) -> int:
        """Partial rows in memory come back, each by itself. Returns the cycles in which they are asked for."""
        length = partial[spilled]
        begin = base + np.cumsum(length) - length
        lines = -(-(begin + length) // self.lanes) - begin // self.lanes
        count = int(lines[length > 0].sum())
        self.beats["read_c_data"] += self.reads.line_beats * count
        return 2 * len(partial) + count

    def _assemble(self, walk: TileWalk) -> None:
        """The pass that joins the j tiles of each row."""
        tiles_i, tiles_j = walk.tiles
        rows, words = self.extent[0], 2 * self.lanes
        before = self.clock.mark()
        lengths, begins = self.rows_of_c.parts(self.tile[0], tiles_j)
        every_row = np.arange(rows)
        for jt in range(tiles_j):
            index = jt * (rows + tiles_i) + every_row + every_row // self.tile[0]
            self.beats["read_c_meta"] += self.reads.line_beats * int(np.sum(1 + (index % words == words - 1)))
        lines = -(-(begins + lengths) // self.lanes) - begins // self.lanes
        self.beats["read_c_data"] += self.reads.line_beats * int(lines[lengths > 0].sum())
        nonzeros = int(lengths.sum())
        self.beats["write_c_data"] += self.reads.result_beats(0, nonzeros)
        self.beats["write_c_meta"] += self.reads.word_beats(0, rows + 1)
        # Pointers and nonzeros of a piece are a burst each, of which a few are under way at a time.
        pace = (self.pace.latency + PIECE_CYCLES) / min(READ_FIBERS, self.pace.outstanding)
        reading = float(np.maximum(np.maximum(lengths, 2), pace * (1 + (lengths > 0))).sum())
        self._add_cycles(0, self.clock.moved(before), int(reading))


@njit(cache=True)
def row_products(
    begin: NDArray[Any], end: NDArray[Any], a_coordinates: NDArray[Any], b_begin: NDArray[Any], b_end: NDArray[Any]
) -> NDArray[np.int64]:
    """Products of each row: its nonzeros of A meet those of B's rows."""
    found = np.zeros(len(begin), np.int64)
    for row in range(len(begin)):
        for position in range(begin[row], end[row]):
            k = a_coordinates[position]
            found[row] += b_end[k] - b_begin[k]
    return found


@njit(cache=True)
def later_chunks(
    begin: NDArray[Any], end: NDArray[Any], row_end: NDArray[Any], lanes: int, first_chunk: int, next_chunk: int
) -> tuple[int, int]:
    """How rows are scanned from ``begin`` for segments up to ``end``: rows of several chunks, and chunks that hold up all others.

    The latter are third and later ones that do not reach the end of their row: none of another row is asked for until it is known
    whether theirs goes on (``rtl.accessor.next_chunks``).
    """
    longer, alone = 0, 0
    for row in range(len(begin)):
        if begin[row] == row_end[row]:
            continue
        stop = -(-row_end[row] // lanes)
        shows = end[row] // lanes if end[row] < row_end[row] else stop - 1  # the line that shows the segment's end
        to = min((begin[row] // lanes // first_chunk + 1) * first_chunk, stop)
        longer += to <= shows
        chunks = 1
        while to <= shows:
            to = min((to // next_chunk + 1) * next_chunk, stop)
            chunks += 1
            alone += chunks > 2 and to < stop
    return longer, alone


@njit(cache=True)
def bumped_parts(
    farthest: NDArray[Any],
    column: NDArray[Any],
    sizes: NDArray[Any],
    state: NDArray[Any],
    begin: int,
    lanes: int,
) -> tuple[int, int, int]:
    """What rows of A ask for of a column that overflows the buffer of its PE (``golden.weight_stationary.bumped_words``).

    Parameters
    ----------
    farthest: the last column of each row with data. column: coordinates of the PE's column, from position ``begin`` on.
    sizes: nonzeros of the buffer, of its part that stays, of its region. state: the nonzero that is used next, and how many
        are in the region; moved on.

    Returns parts, their nonzeros, lines that hold them.
    """
    kept, region = sizes[1], sizes[2]
    following, waiting = state[0], state[1]
    parts, nonzeros, lines = 0, 0, 0
    for row in range(len(farthest)):
        passing = following != kept  # what the row before has left is passed over
        while True:
            if waiting == 0:
                waiting = min(region, len(column) - following)
                parts += 1
                nonzeros += waiting
                lines += fetched_lines(begin + following, waiting, lanes)
            if not passing and column[following] > farthest[row]:
                break
            waiting -= 1
            following += 1
            if following == len(column):
                following = kept
                if not passing:
                    break
                passing = False
    state[0], state[1] = following, waiting
    return parts, nonzeros, lines
