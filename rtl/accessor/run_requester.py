"""Turns the pairs of consecutive whole rows into as few memory requests as the bus allows, each beat asked for once."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import POSITION_WIDTH, pair, read_request

__all__ = ["RunRequester"]


class RunRequester(Block):
    """Requests the elements of rows that follow one another in memory, with or without gaps between them.

    Rows of a tile that spans the whole contracted (or output) rank are one run of memory. Pairs are collected until
    ``burst_beats`` beats are wanted, a gap or the end comes, or no further pair is at hand, so that neither long nor empty
    rows hold anything up. Which beats are read does not depend on timing: each beat that holds an element of a row, once.

    Members
    -------
    start : In(1)
        Clears the memory of the last beat asked for; high for a cycle before a run's first pair.
    elements : In(address_width)
        Byte address of the element array, bus-aligned; constant during a run.
    pairs : In(stream)
        Rows in order; always taken unless a request is waiting.
    read_request : Out(stream)
    idle : Out(1)
        Nothing is waiting to be requested.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "start": In(1),
                "elements": In(address_width),
                "pairs": In(stream.Signature(pair())),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "b": self.burst_beats}

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        byte_shift = shift + 3
        wanted_from = Signal(POSITION_WIDTH)  # beats, relative to the array
        wanted_to = Signal(POSITION_WIDTH)
        asked_to = Signal(POSITION_WIDTH)
        pending = wanted_to - wanted_from

        begin_beat = self.pairs.payload.begin >> shift
        end_beat = (self.pairs.payload.end + (self.lanes - 1)) >> shift
        nonempty = self.pairs.payload.begin != self.pairs.payload.end
        has_pending = Signal()
        full = Signal()
        gap = Signal()  # the pair at hand begins behind what is wanted, not in it
        m.d.comb += [
            has_pending.eq(wanted_to != wanted_from),
            full.eq(pending >= self.burst_beats),
            gap.eq(has_pending & self.pairs.valid & nonempty & (begin_beat > wanted_to)),
            self.idle.eq(~has_pending),
            self.pairs.ready.eq(~full & ~gap),
            self.read_request.valid.eq(has_pending & (full | gap | ~self.pairs.valid)),
            self.read_request.payload.address.eq(self.elements + (wanted_from << byte_shift)),
            self.read_request.payload.beats.eq(pending),
        ]
        # A request once shown must not change while it waits, so pairs are held back from then on.
        waiting = Signal()
        m.d.sync += waiting.eq(self.read_request.valid & ~self.read_request.ready)
        with m.If(waiting):
            m.d.comb += [self.pairs.ready.eq(0), self.read_request.valid.eq(1)]

        with m.If(self.read_request.valid & self.read_request.ready):
            m.d.sync += [asked_to.eq(wanted_to), wanted_from.eq(wanted_to)]
        with m.If(self.pairs.valid & self.pairs.ready & nonempty):
            first = Mux(begin_beat < asked_to, asked_to, begin_beat)
            with m.If(~has_pending):
                m.d.sync += [wanted_from.eq(Mux(end_beat > asked_to, first, end_beat)), wanted_to.eq(end_beat)]
            with m.Else():
                m.d.sync += wanted_to.eq(end_beat)
        with m.If(self.start):
            m.d.sync += [asked_to.eq(0), wanted_from.eq(0), wanted_to.eq(0), waiting.eq(0)]
        return m
