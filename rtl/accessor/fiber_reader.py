"""Streams the fiber segments of a tile from memory: rows whole where the tile spans them, else scanned out of them."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..types import (
    COORDINATE_WIDTH,
    POSITION_WIDTH,
    pair,
    placed_pair,
    read_request,
    segment_word,
    write_beat,
    write_request,
)
from .pair_reader import PairReader
from .row_splitter import RowSplitter
from .run_requester import RunRequester
from .segment_scanner import SegmentScanner
from .word_writer import WordWriter

__all__ = ["READ_CLIENTS", "REMEMBERED_SEGMENTS", "FiberReader", "tile_rows"]

# Client ports of the memory engine, in the order of FiberReader.read_request.
READ_CLIENTS = ("positions", "pointers", "elements", "elements_second", "elements_later")

# Segments that accessor B can take back out of the FIFO-managed region when its tile turns out to be too long.
REMEMBERED_SEGMENTS = 64

# Whole rows asked for and not yet come: rows of an element each, or none, hide the memory's latency, too.
ROWS_UNDER_WAY = 128


def tile_rows() -> data.StructLayout:
    """Rows of one operand's tile and the coordinates wanted of them.

    ``whole``: the tile spans the rows, so their elements are one run of memory. Otherwise segments are scanned;
    ``from_pointers`` says that this is each row's first tile, so that begin positions are the row pointers, and
    ``advance`` that the next visit wants the segments that follow, so that their begin positions are written back.
    ``listed``, with ``whole``: rows are those of a list, whose begins are in place of begin positions and whose ends in place of
    pointers; they rise in memory within a tile.
    """
    return data.StructLayout(
        {
            "row": POSITION_WIDTH,
            "rows": POSITION_WIDTH,
            "low": COORDINATE_WIDTH + 1,
            "high": COORDINATE_WIDTH + 1,
            "whole": 1,
            "listed": 1,
            "from_pointers": 1,
            "advance": 1,
        }
    )


class FiberReader(Block):
    """Reads begin positions, elements and writes the next begin positions (HYTE section 6.2).

    Members
    -------
    tile : In(stream)
        Taken when the tile before has ended in every respect.
    pointers, positions, elements : In(address_width)
        Byte addresses of the operand's arrays, bus-aligned.
    words : Out(stream)
        Segments in row order.
    begin : Out(POSITION_WIDTH)
        Position in memory of the present segment's first element, valid with ``words``.
    limit, regular : In(POSITION_WIDTH)
        Elements of a ``whole`` tile to read, and how many of them lie before the FIFO-managed region. Rows are bumped,
        not read, from the first one on that ends beyond ``limit``, or that is the one after ``REMEMBERED_SEGMENTS`` that
        end beyond ``regular``; empty rows do not count.
    bumped : Out(1), length : Out(POSITION_WIDTH)
        With a word of a ``whole`` tile: its row is bumped, and how many elements the row has.
    read_request, read_data : client ports of the memory engine, in the order of ``READ_CLIENTS``
    write_request, write_data : a client port of the memory engine
    idle : Out(1)
        No tile in progress and all positions handed to the memory engine.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "tile": In(stream.Signature(tile_rows())),
                "pointers": In(address_width),
                "positions": In(address_width),
                "elements": In(address_width),
                "words": Out(stream.Signature(segment_word(lanes))),
                "begin": Out(POSITION_WIDTH),
                "limit": In(POSITION_WIDTH),
                "regular": In(POSITION_WIDTH),
                "bumped": Out(1),
                "length": Out(POSITION_WIDTH),
                "read_request": Out(stream.Signature(read_request(address_width))).array(len(READ_CLIENTS)),
                "read_data": In(stream.Signature(64 * lanes)).array(len(READ_CLIENTS)),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "b": self.burst_beats}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, aw, burst = self.lanes, self.address_width, self.burst_beats
        m.submodules.pair_reader = pairs = PairReader(lanes=lanes, address_width=aw)
        m.submodules.run_requester = requester = RunRequester(lanes=lanes, address_width=aw, burst_beats=burst)
        m.submodules.row_pairs = row_pairs = StreamQueue(shape=placed_pair(), depth=ROWS_UNDER_WAY, block_memory=True)
        m.submodules.row_splitter = splitter = RowSplitter(lanes=lanes)
        m.submodules.segment_scanner = scanner = SegmentScanner(lanes=lanes, address_width=aw)
        m.submodules.position_writer = writer = WordWriter(lanes=lanes, address_width=aw, burst_beats=burst)
        connect(m, flipped(self.write_request), writer.write_request)
        connect(m, flipped(self.write_data), writer.write_data)
        for n in range(2):
            connect(m, flipped(self.read_request[n]), pairs.read_request[n])
            connect(m, flipped(self.read_data[n]), pairs.read_data[n])

        tile = Signal(tile_rows())
        remaining = Signal(POSITION_WIDTH)
        begun = Signal(init=1)
        want = self.tile.payload
        take = self.tile.valid & self.tile.ready
        # Counts are compared in the cycle before. Only a tile that is taken ends the rest.
        ended = Signal(init=1)
        m.d.sync += ended.eq((remaining == 0) & begun & writer.idle & splitter.idle & scanner.idle & ~take)
        m.d.comb += [
            self.idle.eq(ended),
            self.tile.ready.eq(self.idle),
            requester.start.eq(take),
            splitter.start.eq(take & want.whole),
            splitter.rows.eq(want.rows),
            requester.elements.eq(self.elements),
            scanner.elements.eq(self.elements),
            scanner.low.eq(tile.low),
            scanner.high.eq(tile.high),
        ]
        with m.If(take):
            m.d.sync += [tile.eq(want), remaining.eq(want.rows), begun.eq(0)]

        writes = ~tile.whole & tile.advance
        m.submodules.next_positions = positions = StreamSkid(shape=POSITION_WIDTH)
        connect(m, positions.o, writer.words)
        m.d.comb += [
            pairs.run.valid.eq(~begun & (~writes | writer.run.ready)),
            pairs.run.payload.row.eq(tile.row),
            pairs.run.payload.rows.eq(tile.rows),
            pairs.run.payload.single.eq((tile.whole | tile.from_pointers) & ~tile.listed),
            pairs.run.payload.pointers.eq(self.pointers),
            pairs.run.payload.positions.eq(self.positions),
            writer.run.valid.eq(~begun & writes & pairs.run.ready),
            writer.run.payload.address.eq(self.positions + (tile.row << 2)),
            writer.run.payload.count.eq(tile.rows),
            positions.i.valid.eq(scanner.positions.valid & writes),
            positions.i.payload.eq(scanner.positions.payload),
            scanner.positions.ready.eq(positions.i.ready | ~writes),
        ]
        with m.If(pairs.run.valid & pairs.run.ready):
            m.d.sync += begun.eq(1)

        # What the block memory answers late in its cycle goes into a register before lengths are worked out.
        m.submodules.row_pair = row_pair = StreamRegister(shape=placed_pair())
        connect(m, row_pairs.o, row_pair.i)
        connect(m, row_pair.o, splitter.pairs)
        # Whole rows: the element count up to a row's end tells ahead of reading what the partition can hold. It is
        # worked out in two cycles, then compared and acted upon in one each.
        length_shape = data.StructLayout({"row": pair(), "length": POSITION_WIDTH})
        held_shape = data.StructLayout({"row": pair(), "held": POSITION_WIDTH})
        known_shape = data.StructLayout({"row": pair(), "beyond_limit": 1, "beyond_regular": 1})
        m.submodules.whole_rows = whole_rows = StreamSkid(shape=pair())
        m.submodules.row_lengths = row_lengths = StreamRegister(shape=length_shape)
        m.submodules.held_rows = held_rows = StreamRegister(shape=held_shape)
        m.submodules.known_rows = known_rows = StreamRegister(shape=known_shape)
        held = Signal(POSITION_WIDTH)  # elements of the rows before
        overflowed = Signal()
        bumped = Signal()
        came, counted, row = whole_rows.o.payload, held_rows.o.payload, known_rows.o.payload.row
        beyond = Signal(range(REMEMBERED_SEGMENTS + 1))  # rows so far that end in the FIFO-managed region
        ends_beyond = Signal()
        m.d.comb += [
            row_lengths.i.valid.eq(whole_rows.o.valid),
            whole_rows.o.ready.eq(row_lengths.i.ready),
            row_lengths.i.payload.row.eq(came),
            row_lengths.i.payload.length.eq(came.end - came.begin),
            held_rows.i.valid.eq(row_lengths.o.valid),
            row_lengths.o.ready.eq(held_rows.i.ready),
            held_rows.i.payload.row.eq(row_lengths.o.payload.row),
            held_rows.i.payload.held.eq(held + row_lengths.o.payload.length),
            known_rows.i.valid.eq(held_rows.o.valid),
            held_rows.o.ready.eq(known_rows.i.ready),
            known_rows.i.payload.row.eq(counted.row),
            known_rows.i.payload.beyond_limit.eq(counted.held > self.limit),
            known_rows.i.payload.beyond_regular.eq(
                (counted.row.begin != counted.row.end) & (counted.held > self.regular)
            ),
            ends_beyond.eq(known_rows.o.payload.beyond_regular),
            bumped.eq(overflowed | known_rows.o.payload.beyond_limit | (ends_beyond & (beyond == REMEMBERED_SEGMENTS))),
            row_pairs.i.valid.eq(known_rows.o.valid & (requester.pairs.ready | bumped)),
            requester.pairs.valid.eq(known_rows.o.valid & row_pairs.i.ready & ~bumped),
            known_rows.o.ready.eq(row_pairs.i.ready & (requester.pairs.ready | bumped)),
            self.bumped.eq(splitter.bumped & tile.whole),
            self.length.eq(splitter.length),
        ]
        with m.If(held_rows.i.valid & held_rows.i.ready):
            m.d.sync += held.eq(held_rows.i.payload.held)
        with m.If(known_rows.o.valid & known_rows.o.ready):
            m.d.sync += [overflowed.eq(bumped), beyond.eq(beyond + (ends_beyond & ~bumped))]
        with m.If(tile.whole):
            connect_pairs(m, pairs.pairs, whole_rows.i)
        with m.Else():
            connect_pairs(m, pairs.pairs, scanner.pairs)
        with m.If(take):
            m.d.sync += [held.eq(0), overflowed.eq(0), beyond.eq(0)]
        m.d.comb += [
            row_pairs.i.payload.begin.eq(row.begin),
            row_pairs.i.payload.end.eq(row.end),
            row_pairs.i.payload.bumped.eq(bumped),
            requester.pairs.payload.eq(row),
        ]

        with m.If(tile.whole):
            m.d.comb += [
                self.read_request[2].valid.eq(requester.read_request.valid),
                self.read_request[2].payload.eq(requester.read_request.payload),
                requester.read_request.ready.eq(self.read_request[2].ready),
                splitter.beats.valid.eq(self.read_data[2].valid),
                self.read_data[2].ready.eq(splitter.beats.ready),
                self.words.valid.eq(splitter.words.valid),
                self.words.payload.eq(splitter.words.payload),
                splitter.words.ready.eq(self.words.ready),
                self.begin.eq(splitter.begin),
            ]
        with m.Else():
            m.d.comb += [
                self.read_request[2].valid.eq(scanner.read_request[0].valid),
                self.read_request[2].payload.eq(scanner.read_request[0].payload),
                scanner.read_request[0].ready.eq(self.read_request[2].ready),
                scanner.read_data[0].valid.eq(self.read_data[2].valid),
                self.read_data[2].ready.eq(scanner.read_data[0].ready),
                self.words.valid.eq(scanner.words.valid),
                self.words.payload.eq(scanner.words.payload),
                scanner.words.ready.eq(self.words.ready),
                self.begin.eq(scanner.begin),
            ]
        m.d.comb += [
            splitter.beats.payload.eq(self.read_data[2].payload),
            scanner.read_data[0].payload.eq(self.read_data[2].payload),
        ]
        for n in range(1, 3):
            connect(m, flipped(self.read_request[2 + n]), scanner.read_request[n])
            connect(m, flipped(self.read_data[2 + n]), scanner.read_data[n])
        with m.If(self.words.valid & self.words.ready & self.words.payload.last):
            m.d.sync += remaining.eq(remaining - 1)
        return m


def connect_pairs(m: Module, source: Any, sink: Any) -> None:
    """Joins two pair streams under a condition."""
    m.d.comb += [sink.valid.eq(source.valid), sink.payload.eq(source.payload), source.ready.eq(sink.ready)]
