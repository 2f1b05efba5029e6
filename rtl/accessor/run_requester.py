"""Turns the pairs of consecutive whole rows into as few memory requests as the bus allows, each beat asked for once."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.order import below
from ..lib.stream import StreamRegister, StreamSkid
from ..storage import line_address
from ..types import BEATS_WIDTH, POSITION_WIDTH, pair, record_request

__all__ = ["RunRequester"]


class RunRequester(Block):
    """Requests the elements of rows that follow one another in memory, with or without gaps between them.

    Rows of a tile that spans the whole contracted (or output) rank are one run of memory. Pairs are collected until
    ``burst_beats`` (a power of two) beats are wanted, a gap or the end comes, or no further pair is at hand, so that
    neither long nor empty rows hold anything up. Which beats are read does not depend on timing: each beat that holds an
    element of a row, once.

    Members
    -------
    start : In(1)
        Clears the memory of the last beat asked for; high for a cycle before a run's first pair.
    elements : In(address_width)
        Byte address of the element array, bus-aligned; constant during a run.
    pairs : In(stream)
        Rows in order; always taken unless a request is waiting. A row is part of a request three cycles later.
    read_request : Out(stream)
        Lines from an address on, for a client port of the memory engine. ``follows`` where there is no gap before them.
    idle : Out(1)
        Nothing is waiting to be requested.

    Timing
    ------
    Three cycles from a pair to the request it is part of; one row a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "start": In(1),
                "elements": In(address_width),
                "pairs": In(stream.Signature(pair())),
                "read_request": Out(stream.Signature(record_request(address_width))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()

        # Beats that hold each row, relative to the array; then those that the row before does not hold.
        rows = data.StructLayout({"begin": POSITION_WIDTH, "end": POSITION_WIDTH, "some": 1})
        news = data.StructLayout({"begin": POSITION_WIDTH, "end": POSITION_WIDTH, "gap": 1})
        m.submodules.covered = covered = StreamSkid(shape=rows)
        m.submodules.news = fresh = StreamRegister(shape=news)
        m.submodules.sized = sized = StreamRegister(
            shape=data.StructLayout({"begin": POSITION_WIDTH, "beats": POSITION_WIDTH, "gap": 1})
        )
        row, new = covered.o.payload, fresh.o.payload
        end_before = Signal(POSITION_WIDTH)  # where the rows before end
        more = Signal()
        gap = Signal()
        m.d.comb += [
            covered.i.valid.eq(self.pairs.valid),
            self.pairs.ready.eq(covered.i.ready),
            covered.i.payload.begin.eq(self.pairs.payload.begin >> shift),
            covered.i.payload.end.eq((self.pairs.payload.end + (self.lanes - 1)) >> shift),
            covered.i.payload.some.eq(self.pairs.payload.begin != self.pairs.payload.end),
            more.eq(row.some & below(end_before, row.end)),
            gap.eq(below(end_before, row.begin)),
            fresh.i.valid.eq(covered.o.valid & more),
            covered.o.ready.eq(fresh.i.ready | ~more),
            fresh.i.payload.begin.eq(Mux(gap, row.begin, end_before)),
            fresh.i.payload.end.eq(row.end),
            fresh.i.payload.gap.eq(gap),
            sized.i.valid.eq(fresh.o.valid),
            fresh.o.ready.eq(sized.i.ready),
            sized.i.payload.begin.eq(new.begin),
            sized.i.payload.beats.eq(new.end - new.begin),
            sized.i.payload.gap.eq(new.gap),
        ]
        with m.If(covered.o.valid & covered.o.ready & more):
            m.d.sync += end_before.eq(row.end)

        # Rows are collected until there is enough for a burst, or nothing to add.
        wanted_from = Signal(POSITION_WIDTH)
        pending = Signal(BEATS_WIDTH)
        follows = Signal()
        full = Signal()
        some = Signal()
        coming = sized.o.payload
        request = self.read_request
        bits = (self.burst_beats - 1).bit_length()
        long = coming.beats[bits:].any()
        fills = (pending[:bits] + coming.beats[:bits])[bits]  # while `pending` is less than a burst
        nothing_comes = ~covered.o.valid & ~fresh.o.valid & ~sized.o.valid
        waiting = Signal()  # a request once shown must not change while it waits
        sent = Signal()
        m.d.comb += [
            request.valid.eq(some & (full | waiting | (sized.o.valid & coming.gap) | nothing_comes)),
            request.payload.address.eq(line_address(self.elements, wanted_from, self.lanes)),
            request.payload.beats.eq(pending),
            request.payload.follows.eq(follows),
            sent.eq(request.valid & request.ready),
            # A row that comes meets a request that can be sent where there is no place for it.
            sized.o.ready.eq(~some | request.ready | ~(full | waiting | coming.gap)),
            self.idle.eq(~some & nothing_comes),
        ]
        m.d.sync += waiting.eq(request.valid & ~request.ready)
        with m.If(sized.o.valid & sized.o.ready):
            m.d.sync += some.eq(1)
            with m.If(~some | sent):
                m.d.sync += [
                    wanted_from.eq(coming.begin),
                    pending.eq(coming.beats),
                    follows.eq(~coming.gap),
                    full.eq(long),
                ]
            with m.Else():
                m.d.sync += [pending.eq(pending + coming.beats), full.eq(long | fills)]
        with m.Elif(sent):
            m.d.sync += [some.eq(0), full.eq(0)]
        with m.If(self.start):
            m.d.sync += [end_before.eq(0), some.eq(0), full.eq(0), waiting.eq(0)]
        return m
