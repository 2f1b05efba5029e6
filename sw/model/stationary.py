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
from sw.golden.stationary_product import bus_data
from sw.golden.weight_stationary import partial_sums
from sw.jit import njit
from sw.plan.gather import Index
from sw.plan.plan import Plan
from sw.timing.chunks import scan_cycles
from sw.timing.constants import (
    ARRAY_CYCLES,
    ASSEMBLY_CYCLES,
    CHUNK_ANSWER_CYCLES,
    CHUNK_CYCLES_OF_ROWS,
    COLUMNS_LOADED_CYCLES,
    FIBER_CYCLES,
    FIRST_LINE_CYCLES,
    NEXT_CHUNK_CYCLES,
    PARTIAL_CYCLES,
    PHASE_CYCLES,
    PIECE_CYCLES,
    POSITION_CYCLES,
    ROW_LEAVES_CYCLES,
    ROW_REQUEST_CYCLES,
    TILE_BEGIN_CYCLES,
    WRITTEN_CYCLES,
)
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES, READ_FIBERS
from sw.timing.record_beats import line_beats

from .clock import Mark
from .kernels import boundaries
from .loaded_b import LoadedB
from .machine import Run
from .pe_columns import OnBus, PeColumns
from .rows_of_c import RowsOfC, rows_of
from .segments import Segments
from .stationary_rows import Columns, Memory, Rows, bus_cycles, cut_rows, whole_rows
from .tile_jobs import TOTALS
from .walk import Tile, TileWalk

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["run_stationary"]

PRODUCTS = TOTALS.index("products")


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
        # Nonzeros of C that its regions have places for (runtime.memory_image).
        per_row = np.append(0, np.cumsum(np.diff(planned.b.pointers)[planned.a.coordinates]))
        macs = np.diff(per_row[planned.a.pointers])
        most = int(np.minimum(macs, planned.widest).sum())
        self._most = -(-most // self.lanes) * self.lanes
        pace = self.pace
        line = pace.beat * line_beats(pace.pitch_a)
        # Nonzeros of A that come together, and those of a cycle of the PEs' bus.
        self.together = 1 if planned.stored_a is not None else self.lanes
        self.data = bus_data(design.pe.acf_a, design.pe.vector)
        passes = max(1.0, self.lanes / self.data)
        self.memory = Memory(self.lanes, pace.burst, pace.latency, pace.reader, line, pace.outstanding, passes)
        self.in_pes = PeColumns(design, self.columns, self.a_coordinates, self.reads, self.pace, self.totals)
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
        loading = self._load_a_cycles(tile, at) if a_comes and keeps_a else 0
        before = self.clock.mark()
        loaded = self._load_columns(tile)
        first, last = rows_of(tile)
        scanned = self._scan_of_a(tile, at)[1][first:last].copy()
        self._stream_a(tile, at, a_comes)
        partial, spilled, base = self.rows_of_c.back(tile)
        begin, end = at.a_begin[first:last], at.a_end[first:last]
        if tile.carry:
            end = begin
        products = row_products(begin, end, self.a_coordinates, at.b_begin, at.b_end)
        self.totals[PRODUCTS] += int(products.sum())
        passes = bus_cycles(begin, end, self.together, self.data)
        some, memory = end > begin, self.memory
        # Places of a row that are sent in Dense, where the tile has data.
        places = tile.size_k if self.design.pe.acf_a == "dense" and some.any() else 0
        if places:
            some[:] = True
            passes = np.maximum(passes, -(-places // self.data))
            lines = int((end - begin).sum()) / self.lanes
            memory = memory._replace(passes=max(1.0, int(passes.sum()) / lines))
        words, waits = self._feed(tile, OnBus(begin, end, passes, places, self.together, self.data))
        asking = self._reenter(partial, spilled, base) if tile.partial_in else 0
        lengths = self.places.lengths(tile)
        position = self._position(tile)
        self.rows_of_c.leave(tile, at, partial, lengths)
        joined = np.maximum(np.minimum(products, tile.size_j) + partial, 1)
        back = spilled & (partial > 0) if tile.partial_in else np.zeros(tile.size_i, np.bool_)
        leaving = leaving_cycles(joined, lengths, position, self.lanes, self._most)
        opens = 0
        if tile.partial_in and not self.rows_of_c.on_chip:
            opens = FIRST_LINE_CYCLES + self.pace.latency + PARTIAL_CYCLES - ARRAY_CYCLES
            leaving = np.maximum(leaving, FIBER_CYCLES + back)
        rows = Rows(begin, end, some, products > 0, passes, waits, leaving, back, float(opens))
        columns = Columns(words, self.scheme.buffers("B"), loaded)
        streams = not (tile.carry or keeps_a)
        if tile.whole_k or not streams:
            flow = whole_rows(rows, columns, streams, memory)
        else:
            asked = self._positions_read(tile, tile.from_pointers_a, 3) + CHUNK_CYCLES_OF_ROWS
            row_ends = self.a.pointers[first + 1 : last + 1]
            written = self._written(before) / tile.size_i * self.pace.beat
            flow = cut_rows(rows, scanned, row_ends, written, asked, columns, memory)
        rest = self._rest(before)
        moved = math.ceil((self.clock.moved(before) - rest) * self.pace.beat)
        if streams:
            moved += FIRST_LINE_CYCLES + self.pace.latency
        self.clock.cycles += loading + max(int(flow), moved, asking) + self._tail(rest) + TILE_BEGIN_CYCLES
        self.clock.tiles += 1

    def _load_a_cycles(self, tile: Tile, at: Segments) -> int:
        """A's tile goes into its partition, a line of memory after the other, or chunk by chunk where k is cut."""
        moved = math.ceil(self._load_a(tile, at) * self.pace.beat)
        if not moved:
            return 0
        scanned = scan_cycles(self.reads.chunks, self.pace.latency + self.pace.reader, self.memory.line)
        return max(moved, int(scanned)) + self.pace.latency + PHASE_CYCLES

    def _positions_read(self, tile: Tile, from_pointers: bool, halves: int) -> int:
        """When the first pointers are there, and positions where a tile goes on: ``halves`` of a burst of A's come before."""
        lines = min(self.reads.word_beats(tile.i, tile.size_i), self.pace.burst)
        behind_a = 0 if from_pointers else halves * lines // 2 + POSITION_CYCLES
        return FIRST_LINE_CYCLES + self.pace.latency + behind_a

    def _position(self, tile: Tile) -> int:
        """Where the rows of a tile go on in their region of C."""
        rows = self.rows_of_c
        if tile.last_k:
            return rows.final_position
        return 0 if tile.k_step else rows.partial_position

    def _written(self, before: Mark) -> int:
        """Beats of C that a tile writes."""
        return sum(self.beats[name] - before[0][name] for name in ("write_c_data", "write_c_meta"))

    def _rest(self, before: Mark) -> int:
        """Beats of C that are written after a tile's last row: what is less than a burst."""
        burst = self.pace.burst * self.pace.line_beats
        return sum((self.beats[name] - before[0][name]) % burst for name in ("write_c_data", "write_c_meta"))

    def _tail(self, rest: int) -> int:
        """From a tile's last row on its way out to the tile's end; ``rest``: beats of C that are written after the last row."""
        return ROW_LEAVES_CYCLES + self._latency + int(rest * self.pace.beat) + self.pace.latency // 2 + WRITTEN_CYCLES

    @property
    def _latency(self) -> int:
        """Of the multipliers and adders of a PE, and of the adder of partial rows."""
        sums = partial_sums(self.design.pe.value)
        return (sums - 1) * (self.design.pe.vector.bit_length() + 5)

    def _load_columns(self, tile: Tile) -> int:
        """B's tile goes into its partition, unless it is there. Returns when it can be used."""
        place = (tile.k, tile.size_k, tile.j, tile.size_j)
        if tile.carry or not self.scheme.buffers("B") or self._in_partition == place:
            return 0
        self._in_partition = place
        turned_tile = replace(
            tile, j=tile.k, size_j=tile.size_k, k=tile.j, size_k=tile.size_j, whole_j=tile.whole_k, whole_k=tile.whole_j
        )
        begin, end = self._columns_of(tile)
        own = slice(tile.j, tile.j + tile.size_j)
        pointers = self.columns.pointers
        scanned = (pointers[:-1] if tile.from_pointers_b else self._column_place)[own].copy()
        load = self.loaded_b.load(turned_tile, tile.whole_k, self._column_place, begin, end)
        self._bumped = load.bumped
        pointers_read = self._positions_read(tile, tile.from_pointers_b, 2)
        if tile.whole_k:
            asked, trips = pointers_read + ROW_REQUEST_CYCLES, 1
        else:
            asked = pointers_read + CHUNK_CYCLES_OF_ROWS
            trips = int(chunks_one_by_one(scanned, end[own], pointers[1:][own], self.lanes))
        waits = trips * (self.pace.latency + self.pace.reader + CHUNK_ANSWER_CYCLES) + (trips - 1) * NEXT_CHUNK_CYCLES
        return asked + waits + int(load.beats * self.pace.beat) // trips + COLUMNS_LOADED_CYCLES

    def _feed(self, tile: Tile, on_bus: OnBus) -> tuple[int, Index]:
        """Columns go to the PEs, as :meth:`.pe_columns.PeColumns.feed` says."""
        own = slice(tile.j, tile.j + tile.size_j)
        starts, ends = (found[own] for found in self._columns_of(tile))
        streaming = not self.scheme.buffers("B")
        in_memory = np.ones(tile.size_j, np.bool_) if streaming else self._bumped
        return self.in_pes.feed(tile, on_bus, (starts, ends), in_memory, streaming)

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
        self.rows_of_c.finish(nonzeros)
        # Pointers and nonzeros of a piece are a burst each, of which a few are under way at a time.
        pace = (self.pace.latency + PIECE_CYCLES) / min(READ_FIBERS, self.pace.outstanding)
        some = lengths > 0
        of_row = np.maximum(np.maximum(lengths, FIBER_CYCLES + some), pace * (1 + some)).sum(axis=1)
        leaving = leaving_cycles(lengths.sum(axis=1), lengths.sum(axis=1), 0, self.lanes, self._most)
        rest = self._rest(before)
        moved = math.ceil((self.clock.moved(before) - rest) * self.pace.beat)
        self.clock.cycles += (
            max(moved, int(np.maximum(of_row, leaving).sum())) + self.pace.latency + ASSEMBLY_CYCLES + self._tail(rest)
        )


def leaving_cycles(joined: Index, lengths: Index, position: int, lanes: int, most: int) -> NDArray[np.float64]:
    """Cycles in which each row is joined, and taken by accessor C, which goes on at ``position`` of its region of ``most``."""
    begins = position + np.cumsum(lengths) - lengths
    words = np.maximum(1, -(-lengths // lanes))
    # Near its region's end each word is looked at before it is taken (rtl.accessor.fiber_appender).
    near = begins + 2 * lanes > most
    pace = 1 + 1 / (2 * lanes)  # the table of positions takes no word while a line of it leaves
    found: NDArray[np.float64] = np.maximum(joined, np.maximum(words * (1 + near), pace))
    return found


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
def chunks_one_by_one(begin: NDArray[Any], end: NDArray[Any], row_end: NDArray[Any], lanes: int) -> int:
    """How many chunks a scan of columns waits for one after the other: first and second ones of all come side by side, later ones
    do not (``rtl.accessor.next_chunks``)."""
    most, alone = 1, 0
    for n in range(len(begin)):
        if begin[n] == row_end[n]:
            continue
        stop = -(-row_end[n] // lanes)
        shows = end[n] // lanes if end[n] < row_end[n] else stop - 1  # the line that shows the segment's end
        to = min((begin[n] // lanes // FIRST_CHUNK_LINES + 1) * FIRST_CHUNK_LINES, stop)
        chunks = 1
        while to <= shows:
            to = min((to // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES, stop)
            chunks += 1
        most = max(most, min(chunks, 2))
        alone += max(0, chunks - 2)
    return most + alone
