"""Accessor of B: loads a tile's fiber segments into the partition, bumping those that do not fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.passed import chosen, passed
from ..lib.unit import Fault, Unit, word_client
from ..types import (
    COORDINATE_WIDTH,
    ENTRY_WIDTH,
    POSITION_WIDTH,
    quadrant_counts,
    record_request,
    segment,
    sram_write,
    tile,
    write_beat,
    write_request,
)
from .fiber_reader import READ_CLIENTS, FiberReader, read_clients
from .quadrants import QuadrantCounters
from .segment_loader import SegmentLoader
from .segment_shaper import rows_of_tile

__all__ = ["AccessorB"]


class AccessorB(Unit):
    """Loads B's part of a tile (``T_k x T_j``) into its partition as :class:`SegmentLoader` says.

    Parameters
    ----------
    lanes : int
        64-bit elements in a line (bus beat, SRAM word), power of two.
    address_width : int
        Bits of a byte address.
    line_address_width : int
        Bits of an SRAM line address.
    burst_beats : int
        Beats of the longest burst that is asked for, power of two.
    quadrants : bool
        Count nonzeros by quadrants.
    fibers : str
        The rank that numbers B's fibers in memory: ``k``, rows of B, or ``j``, its columns.
    converts : bool
        Segments may come from a conversion.

    Members
    -------
    tile : In(stream)
        Tiles whose B part is to be loaded. Taken when the one before is in place.
    gathered : In(1)
        Tiles are windows of k: ``tile.ring`` says what is in place and where the rest goes; else a tile begins anew.
    by_list : In(1)
        With ``gathered``: k is a place in a list of rows, of which ``positions`` has the begins and ``pointers`` the ends, behind
        a word that is not used.
    planned : In(1)
        With ``by_list``: behind each begin stands where the row goes. Rows of a tile rise in memory up to the last one that finds
        place.
    base, lines, fifo_lines : In
        The partition, and how much of it is the FIFO-managed region. ``lines`` exceeds metadata plus ``fifo_lines``.
    pointers, positions, elements : In(address_width)
        Byte addresses of the operand's arrays, bus-aligned: row pointers, begin positions, elements. Constant during a run.
    sram_write : Out(stream).array(2)
        Data lines; metadata entries.
    read_request, read_data, write_request, write_data
        Client ports of the memory engine, as :class:`FiberReader`.
    idle : Out(1)
        Loaded, every line written and every position handed to the memory engine.
    nonzeros, bumped_elements : Out(POSITION_WIDTH)
        Of the tile loaded last. Stable while ``idle``.
    settled : Out(POSITION_WIDTH)
        While not ``idle``: fibers from the tile's first on whose segments can be used already, those kept included.
    occupied : Out(line_address_width + 1)
        Lines in use by its data and metadata, as :class:`SegmentLoader` counts them.
    fifo_base : Out(line_address_width)
        First line of the FIFO-managed region; changes only when a tile is taken.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        As :class:`FiberReader`.
    misplaced : Out(1), place : Out(POSITION_WIDTH)
        With ``planned`` the row at this place of the list would lie outside the partition's data or entries. What it has
        overwritten there is not fit for use. Or of what is converted something does not fit: the tile's first row.
    converted : In(1), converted_tile : Out(stream), converted_segments : In(stream), converted_idle : In(1)
        With ``converts``: what comes to the partition is converted, by :class:`.converted_b.ConvertedB`, and nothing is read.
        Constant during a run. Nothing may be bumped: there is nothing in memory to read it from.
    side_j, side_k : In(COORDINATE_WIDTH), quadrant_counts : Out
        With ``quadrants``: the tile shape, constant while a tile is loaded; its counts, ``QuadrantCounters.latency`` cycles
        after ``idle`` at the latest.

    Timing
    ------
    One segment word a cycle (:class:`SegmentLoader`); a tile is taken when the one before is in place.
    """

    READERS = read_clients("b")
    WRITERS = (word_client("b_positions", "write_b_meta"),)

    def __init__(
        self,
        *,
        lanes: int,
        address_width: int,
        line_address_width: int,
        burst_beats: int,
        quadrants: bool = False,
        fibers: str = "k",
        converts: bool = False,
    ) -> None:
        if fibers not in ("k", "j"):
            raise ValueError(f"B's fibers must be numbered by k or j, not {fibers!r}")
        self.lanes = lanes
        self.address_width = address_width
        self.line_address_width = line_address_width
        self.burst_beats = burst_beats
        self.quadrants = bool(quadrants)
        self.fibers = fibers
        self.converts = bool(converts)
        conversion = {
            "converted": In(1),
            "converted_tile": Out(stream.Signature(rows_of_tile())),
            "converted_segments": In(stream.Signature(segment(lanes))),
            "converted_idle": In(1),
        }
        counting = {
            "side_j": In(COORDINATE_WIDTH),
            "side_k": In(COORDINATE_WIDTH),
            "quadrant_counts": Out(quadrant_counts()),
        }
        super().__init__(
            {
                **(counting if self.quadrants else {}),
                **(conversion if self.converts else {}),
                "tile": In(stream.Signature(tile())),
                "gathered": In(1),
                "by_list": In(1),
                "planned": In(1),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "pointers": In(address_width),
                "positions": In(address_width),
                "elements": In(address_width),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "read_request": Out(stream.Signature(record_request(address_width))).array(len(READ_CLIENTS)),
                "read_data": In(stream.Signature(64 * lanes)).array(len(READ_CLIENTS)),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
                "nonzeros": Out(POSITION_WIDTH),
                "bumped_elements": Out(POSITION_WIDTH),
                "settled": Out(POSITION_WIDTH),
                "occupied": Out(line_address_width + 1),
                "fifo_base": Out(line_address_width),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
                "misplaced": Out(1),
                "place": Out(POSITION_WIDTH),
            }
        )

    def faults(self) -> Sequence[Fault]:
        return (Fault("bad_row", self.wrong, self.coordinate), Fault("bad_place", self.misplaced, self.place))

    def activity(self) -> Mapping[str, Value]:
        return {"b_accessor": ~self.idle}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.reader = reader = FiberReader(
            lanes=self.lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        m.submodules.loader = loader = SegmentLoader(lanes=self.lanes, line_address_width=self.line_address_width)
        for n in range(2):
            connect(m, flipped(self.sram_write[n]), loader.sram_write[n])
        for n in range(len(READ_CLIENTS)):
            connect(m, flipped(self.read_request[n]), reader.read_request[n])
            connect(m, flipped(self.read_data[n]), reader.read_data[n])
        connect(m, flipped(self.write_request), reader.write_request)
        connect(m, flipped(self.write_data), reader.write_data)
        connect(m, reader.sizes, loader.row_sizes)
        connect(m, loader.row_places, reader.places)
        connect(m, reader.row_places, loader.planned_places)

        want = self.tile.payload
        take = Signal()
        kept = Signal(ENTRY_WIDTH)
        rows = reader.tile.payload
        first = Signal(COORDINATE_WIDTH)  # place of the tile's first row in the list
        with m.If(take):
            m.d.sync += first.eq(want.begin_k)
        fiber, coordinate = ("k", "j") if self.fibers == "k" else ("j", "k")
        m.d.comb += [
            take.eq(self.tile.valid & self.tile.ready),
            kept.eq(Mux(self.gathered, want.ring.kept, 0)),
            rows.row.eq(want[f"begin_{fiber}"] + kept),
            rows.rows.eq(want[f"size_{fiber}"] - kept),
            rows.low.eq(want[f"begin_{coordinate}"]),
            rows.high.eq(want[f"begin_{coordinate}"] + want[f"size_{coordinate}"]),
            rows.last.eq(want[f"last_{coordinate}"]),
            rows.whole.eq(want[f"whole_{coordinate}"]),
            rows.by_list.eq(self.by_list),
            *passed(self, rows, "planned"),
            *passed(self, loader, "planned"),
            rows.from_pointers.eq(want.from_pointers_b),
            rows.advance.eq(want.advance_b),
            self.wrong.eq(reader.wrong),
            self.coordinate.eq(reader.coordinate),
            *passed(self, reader, "pointers positions elements"),
            loader.start.eq(take),
            loader.rows.eq(want[f"size_{fiber}"]),
            loader.gathered.eq(self.gathered),
            loader.ring.eq(want.ring),
            loader.base.eq(self.base),
            loader.lines.eq(self.lines),
            loader.fifo_lines.eq(self.fifo_lines),
            self.nonzeros.eq(loader.nonzeros),
            self.bumped_elements.eq(loader.bumped_elements),
            self.settled.eq(loader.settled),
            self.occupied.eq(loader.occupied),
            self.fifo_base.eq(loader.fifo_base),
        ]
        self._take(m, reader, loader, want[f"whole_{coordinate}"], first)
        if self.quadrants:
            m.submodules.quadrants = quadrants = QuadrantCounters(lanes=self.lanes)
            middle = Signal(COORDINATE_WIDTH + 1)
            with m.If(take):
                m.d.sync += middle.eq(want.begin_j + (self.side_j >> 1))
            m.d.comb += [
                quadrants.start.eq(take),
                quadrants.whole.eq(want.whole_j),
                quadrants.half_rows.eq(self.side_k >> 1),
                quadrants.middle.eq(middle),
                quadrants.moved.eq(loader.segments.valid & loader.segments.ready),
                quadrants.word.eq(loader.segments.payload.word),
                quadrants.length.eq(loader.segments.payload.length),
                self.quadrant_counts.eq(quadrants.counts),
            ]
        return m

    def _take(self, m: Module, reader: FiberReader, loader: SegmentLoader, whole: Value, first: Value) -> None:
        """Tiles go to the reader, its segments to the loader. ``whole``: its rows are read whole; ``first``: the tile's first."""
        idle = reader.idle & loader.idle
        misplaced, place = loader.misplaced, loader.misplaced_segment + first
        if self.converts:
            # A conversion says nothing of its rows ahead of them.
            idle, whole = idle & self.converted_idle, whole & ~self.converted
            lost = self.converted & (loader.bumped_elements != 0)
            misplaced, place = misplaced | lost, Mux(self.converted, first, place)
            rows, converted = reader.tile.payload, self.converted_tile
            offered = self.tile.valid & self.idle & loader.ready
            m.d.comb += [
                *chosen(self.converted, self.converted_segments, reader.segments, loader.segments),
                converted.valid.eq(offered & self.converted),
                converted.payload.begin.eq(rows.row),
                converted.payload.rows.eq(rows.rows),
                reader.tile.valid.eq(offered & ~self.converted),
                self.tile.ready.eq(self.idle & loader.ready & Mux(self.converted, converted.ready, reader.tile.ready)),
                loader.reader_idle.eq(Mux(self.converted, self.converted_idle, reader.idle)),
            ]
        else:
            connect(m, reader.segments, loader.segments)
            m.d.comb += [
                reader.tile.valid.eq(self.tile.valid & self.idle & loader.ready),
                self.tile.ready.eq(self.idle & loader.ready & reader.tile.ready),
                loader.reader_idle.eq(reader.idle),
            ]
        m.d.comb += [
            self.idle.eq(idle),
            loader.whole.eq(whole),
            self.misplaced.eq(misplaced),
            self.place.eq(place),
        ]
