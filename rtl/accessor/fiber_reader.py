"""Streams the fiber segments of a tile from memory: rows whole where the tile spans them, else scanned out of them."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import connected, passed
from ..lib.stream import StreamSkid
from ..lib.unit import ReadClient
from ..storage import word_address
from ..types import (
    COORDINATE_WIDTH,
    POSITION_WIDTH,
    record_request,
    row_place,
    segment,
    write_beat,
    write_request,
)
from .pair_reader import PairReader
from .segment_placement import placement, segment_size
from .segment_scanner import SegmentScanner
from .whole_rows import WholeRows
from .word_writer import WordWriter

__all__ = ["READ_CLIENTS", "FiberReader", "read_clients", "tile_rows"]

# Client ports of the memory engine, in the order of FiberReader.read_request, and the beats of their queues.
READ_CLIENTS = ("positions", "pointers", "elements", "elements_second", "elements_later")
READ_DEPTHS = (16, 16, 128, 32, 16)


def tile_rows() -> data.StructLayout:
    """Rows of one operand's tile and the coordinates wanted of them.

    ``whole``: the tile spans the rows, so their elements are one run of memory. Otherwise segments are scanned;
    ``from_pointers`` says that this is each row's first tile, so that begin positions are the row pointers, and
    ``advance`` that the next visit wants the segments that follow, so that their begin positions are written back.
    ``last``: the rows have nothing at or beyond ``high``.
    ``by_list``, with ``whole``: rows are those of a list, whose begins are in place of begin positions and whose ends in place of
    pointers; they rise in memory within a tile. ``planned``, with ``by_list``: the list says where each row goes.
    """
    return data.StructLayout(
        {
            "row": POSITION_WIDTH,
            "rows": POSITION_WIDTH,
            "low": COORDINATE_WIDTH + 1,
            "high": COORDINATE_WIDTH + 1,
            "last": 1,
            "whole": 1,
            "by_list": 1,
            "planned": 1,
            "from_pointers": 1,
            "advance": 1,
        }
    )


def read_clients(tensor: str) -> tuple[ReadClient, ...]:
    """The client ports of a reader of ``tensor`` (``a``, ``b``)."""
    found = []
    for name, depth in zip(READ_CLIENTS, READ_DEPTHS, strict=True):
        nonzeros = name.startswith("elements")
        counter = f"read_{tensor}_{'data' if nonzeros else 'meta'}"
        found.append(ReadClient(f"{tensor}_{name}", depth, counter, records=tensor if nonzeros else ""))
    return tuple(found)


class FiberReader(Block):
    """Reads begin positions, elements and writes the next begin positions (HYTE section 6.2).

    Rows of a tile that is ``whole`` go through :class:`WholeRows`, others through a :class:`SegmentScanner`.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width : int
        Bits of a byte address, 8 to 64.
    burst_beats : int
        Beats from which on rows are not joined to one request, power of two from 1 to 256.

    Members
    -------
    tile : In(stream)
        Taken when the tile before has ended in every respect.
    pointers, positions, elements : In(address_width)
        Byte addresses of the operand's arrays, bus-aligned.
    segments : Out(stream)
        In row order. Bumped rows of a ``whole`` tile are not read: each is one word with ``count = 0``.
    sizes : Out(stream), places : In(stream)
        Of the rows of a ``whole`` tile: how long each is, and what becomes of it (:class:`SegmentPlacement`), a cycle later at
        the earliest.
    row_places : Out(stream)
        Where each row of a ``planned`` tile goes, before its size.
    read_request, read_data : client ports of the memory engine, in the order of ``READ_CLIENTS``
    write_request, write_data : a client port of the memory engine
    idle : Out(1)
        No tile in progress and all positions handed to the memory engine.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse: a row that is scanned holds this coordinate out of order, or beyond the end of its last tile.

    Timing
    ------
    Two cycles from a tile to the requests of its begin positions; then one row, one line a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "tile": In(stream.Signature(tile_rows())),
                "pointers": In(address_width),
                "positions": In(address_width),
                "elements": In(address_width),
                "segments": Out(stream.Signature(segment(lanes))),
                "sizes": Out(stream.Signature(segment_size())),
                "places": In(stream.Signature(placement())),
                "row_places": Out(stream.Signature(row_place())),
                "read_request": Out(stream.Signature(record_request(address_width))).array(len(READ_CLIENTS)),
                "read_data": In(stream.Signature(64 * lanes)).array(len(READ_CLIENTS)),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, aw, burst = self.lanes, self.address_width, self.burst_beats
        m.submodules.pair_reader = pairs = PairReader(lanes=lanes, address_width=aw)
        m.submodules.whole_rows = whole = WholeRows(lanes=lanes, address_width=aw, burst_beats=burst)
        m.submodules.segment_scanner = scanner = SegmentScanner(lanes=lanes, address_width=aw)
        m.submodules.position_writer = writer = WordWriter(lanes=lanes, address_width=aw, burst_beats=burst)
        connect(m, flipped(self.write_request), writer.write_request)
        connect(m, flipped(self.write_data), writer.write_data)
        connect(m, flipped(self.sizes), whole.sizes)
        connect(m, flipped(self.places), whole.places)
        connect(m, flipped(self.row_places), pairs.places)
        for n in range(2):
            m.d.comb += connected(pairs.read_request[n], self.read_request[n])
            connect(m, flipped(self.read_data[n]), pairs.read_data[n])

        tile = Signal(tile_rows())
        begun = Signal(init=1)
        want = self.tile.payload
        take = self.tile.valid & self.tile.ready
        # Told a cycle late. Only a tile that is taken ends the rest.
        ended = Signal(init=1)
        m.d.sync += ended.eq(pairs.run.ready & begun & writer.idle & whole.idle & scanner.idle & ~take)
        m.d.comb += [
            self.idle.eq(ended),
            self.tile.ready.eq(self.idle),
            whole.start.eq(take),
            *passed(want, whole, "whole rows"),
            *passed(self, whole, "elements"),
            *passed(self, scanner, "elements"),
            *passed(tile, scanner, "low high last"),
            *passed(scanner, self, "wrong coordinate"),
        ]
        with m.If(take):
            m.d.sync += [tile.eq(want), begun.eq(0)]

        writes = ~tile.whole & tile.advance
        m.submodules.next_positions = positions = StreamSkid(shape=POSITION_WIDTH)
        connect(m, positions.o, writer.words)
        m.d.comb += [
            pairs.run.valid.eq(~begun & (~writes | writer.run.ready)),
            pairs.run.payload.row.eq(tile.row),
            pairs.run.payload.rows.eq(tile.rows),
            pairs.run.payload.single.eq((tile.whole | tile.from_pointers) & ~tile.by_list),
            pairs.run.payload.planned.eq(tile.planned),
            pairs.run.payload.pointers.eq(self.pointers),
            pairs.run.payload.positions.eq(self.positions),
            writer.run.valid.eq(~begun & writes & pairs.run.ready),
            writer.run.payload.address.eq(word_address(self.positions, tile.row)),
            writer.run.payload.count.eq(tile.rows),
            positions.i.valid.eq(scanner.positions.valid & writes),
            positions.i.payload.eq(scanner.positions.payload),
            scanner.positions.ready.eq(positions.i.ready | ~writes),
        ]
        with m.If(pairs.run.valid & pairs.run.ready):
            m.d.sync += begun.eq(1)

        # Pairs, first lines of rows and segments go one of two ways.
        first, beats = self.read_request[2], self.read_data[2]
        ways = ((tile.whole, whole, whole.read_request, whole.read_data),)
        ways += ((~tile.whole, scanner, scanner.read_request[0], scanner.read_data[0]),)
        for chosen, way, request, lines in ways:
            m.d.comb += [
                way.pairs.valid.eq(pairs.pairs.valid & chosen),
                way.pairs.payload.eq(pairs.pairs.payload),
                request.ready.eq(first.ready & chosen),
                way.segments.ready.eq(self.segments.ready & chosen),
                lines.valid.eq(beats.valid & chosen),
                lines.payload.eq(beats.payload),
            ]
            with m.If(chosen):
                m.d.comb += [
                    pairs.pairs.ready.eq(way.pairs.ready),
                    first.valid.eq(request.valid),
                    first.payload.eq(request.payload),
                    self.segments.valid.eq(way.segments.valid),
                    self.segments.payload.word.eq(way.segments.payload.word),
                    self.segments.payload.begin.eq(way.segments.payload.begin),
                    beats.ready.eq(lines.ready),
                ]
        # What only rows that are read whole have needs no choice.
        m.d.comb += [
            self.segments.payload[name].eq(whole.segments.payload[name]) for name in ("length", "bumped", "beyond")
        ]
        for n in range(1, 3):
            connect(m, flipped(self.read_request[2 + n]), scanner.read_request[n])
            connect(m, flipped(self.read_data[2 + n]), scanner.read_data[n])
        return m
