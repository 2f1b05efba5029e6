"""Reads rows of an operand whole, one run of memory for rows that follow one another."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..types import POSITION_WIDTH, pair, placed_pair, record_request, segment
from .row_splitter import RowSplitter
from .run_requester import RunRequester
from .segment_placement import placement, segment_size

__all__ = ["WholeRows"]

# Rows asked for and not yet come: rows of a nonzero each, or none, hide the latency of memory, too.
ROWS_UNDER_WAY = 128


class WholeRows(Block):
    """Says how long each row is, learns what becomes of it, and reads it unless it is bumped.

    What the partition can hold is known before rows are read.

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
    start : In(1)
        High in the cycle before a run's first pair; only while ``idle``.
    whole : In(1), rows : In(POSITION_WIDTH)
        With ``start``: the run is of ``rows`` whole rows; else of none.
    elements : In(address_width)
        Byte address of the nonzeros' array, bus-aligned; constant during a run.
    pairs : In(stream)
        Where each row begins and ends.
    sizes : Out(stream), places : In(stream)
        How long each row is, and what becomes of it (:class:`SegmentPlacement`), a cycle later at the earliest.
    read_request : Out(stream), read_data : In(stream)
        A client port of the memory engine.
    segments : Out(stream)
        The rows in order; empty and bumped ones are one word with ``count = 0``.
    idle : Out(1)
        The run has ended and its last beat is used up.

    Timing
    ------
    Three cycles from a pair to its size, one from its place to the row's part in a request (:class:`RunRequester`); one row,
    one beat a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "start": In(1),
                "whole": In(1),
                "rows": In(POSITION_WIDTH),
                "elements": In(address_width),
                "pairs": In(stream.Signature(pair())),
                "sizes": Out(stream.Signature(segment_size())),
                "places": In(stream.Signature(placement())),
                "read_request": Out(stream.Signature(record_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "segments": Out(stream.Signature(segment(lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        sized = data.StructLayout({"row": pair(), "size": segment_size()})
        m.submodules.requester = requester = RunRequester(
            lanes=lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        m.submodules.splitter = splitter = RowSplitter(lanes=lanes)
        m.submodules.come = come = StreamSkid(shape=pair())
        m.submodules.row_lengths = row_lengths = StreamRegister(
            shape=data.StructLayout({"row": pair(), "length": POSITION_WIDTH})
        )
        m.submodules.sized_rows = sized_rows = StreamRegister(shape=sized)
        m.submodules.placed_rows = placed_rows = StreamSkid(shape=pair())  # in step with `places`
        m.submodules.row_pairs = row_pairs = StreamQueue(shape=placed_pair(), depth=ROWS_UNDER_WAY, block_memory=True)
        # What the block memory answers late in its cycle goes into a register before lengths are worked out.
        m.submodules.row_pair = row_pair = StreamRegister(shape=placed_pair())
        connect(m, flipped(self.pairs), come.i)
        connect(m, row_pairs.o, row_pair.i)
        connect(m, row_pair.o, splitter.pairs)
        connect(m, requester.read_request, flipped(self.read_request))
        connect(m, flipped(self.read_data), splitter.beats)
        connect(m, splitter.segments, flipped(self.segments))
        row, place = placed_rows.o.payload, self.places.payload
        placed = placed_rows.o.valid & self.places.valid
        asked = requester.pairs.ready | place.bumped
        m.d.comb += [
            *passed(self, requester, "start elements"),
            splitter.start.eq(self.start & self.whole),
            splitter.rows.eq(self.rows),
            row_lengths.i.valid.eq(come.o.valid),
            come.o.ready.eq(row_lengths.i.ready),
            row_lengths.i.payload.row.eq(come.o.payload),
            row_lengths.i.payload.length.eq(come.o.payload.end - come.o.payload.begin),
            sized_rows.i.valid.eq(row_lengths.o.valid),
            row_lengths.o.ready.eq(sized_rows.i.ready),
            sized_rows.i.payload.row.eq(row_lengths.o.payload.row),
            sized_rows.i.payload.size.nonzeros.eq(row_lengths.o.payload.length),
            sized_rows.i.payload.size.some.eq(row_lengths.o.payload.length != 0),
            sized_rows.i.payload.size.last.eq(1),
            self.sizes.valid.eq(sized_rows.o.valid & placed_rows.i.ready),
            self.sizes.payload.eq(sized_rows.o.payload.size),
            placed_rows.i.valid.eq(sized_rows.o.valid & self.sizes.ready),
            placed_rows.i.payload.eq(sized_rows.o.payload.row),
            sized_rows.o.ready.eq(placed_rows.i.ready & self.sizes.ready),
            row_pairs.i.valid.eq(placed & asked),
            row_pairs.i.payload.begin.eq(row.begin),
            row_pairs.i.payload.end.eq(row.end),
            row_pairs.i.payload.bumped.eq(place.bumped),
            row_pairs.i.payload.beyond.eq(place.beyond),
            requester.pairs.valid.eq(placed & row_pairs.i.ready & ~place.bumped),
            requester.pairs.payload.eq(row),
            placed_rows.o.ready.eq(self.places.valid & row_pairs.i.ready & asked),
            self.places.ready.eq(placed_rows.o.valid & row_pairs.i.ready & asked),
            *passed(splitter, self, "idle"),
        ]
        return m
