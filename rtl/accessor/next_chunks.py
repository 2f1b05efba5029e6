"""Asks for second and later chunks of rows, as those before them arrive."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.signals import signals
from ..lib.stream import StreamRegister
from ..storage import line_address
from ..types import record_request
from .chunk_peeker import NEXT_CHUNK_LINES, row_chunk, row_rest, size_chunk

__all__ = ["NextChunks"]


class NextChunks(Block):
    """Asks memory for the chunk that follows, of each row whose segment goes on: up to ``NEXT_CHUNK_LINES`` lines.

    Second chunks have a port, all later ones have another. Behind a later chunk that does not reach the end of its row none of
    another row is asked for until it is known whether that row goes on: its next chunk comes through the same port.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width : int
        Bits of a byte address, 8 to 64.

    Members
    -------
    elements : In(address_width)
        Byte address of the nonzeros' array, bus-aligned.
    more : In(stream).array(3)
        What is left of rows whose first, second, later chunk did not show the segment's end.
    later_idle : In(1)
        No later chunk is under way or waits to be looked at.
    read_request : Out(stream).array(2), chunks : Out(stream).array(2)
        Second chunks, later chunks. A request and its chunk leave in one cycle, so that each one's ``valid`` waits for the
        ``ready`` of the other.
    idle : Out(1)
        No chunk is about to be asked for.

    Timing
    ------
    One cycle from ``more`` to the request; one chunk a cycle on each port.
    """

    latency = 1

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        super().__init__(
            {
                "elements": In(address_width),
                "more": In(stream.Signature(row_rest(lanes))).array(3),
                "later_idle": In(1),
                "read_request": Out(stream.Signature(record_request(address_width))).array(2),
                "chunks": Out(stream.Signature(row_chunk(lanes))).array(2),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.seconds = seconds = StreamRegister(shape=row_chunk(lanes))
        m.submodules.laters = laters = StreamRegister(shape=row_chunk(lanes))
        for n, chunk in enumerate((seconds.o, laters.o)):
            request, chunks = self.read_request[n], self.chunks[n]
            m.d.comb += [
                request.valid.eq(chunk.valid & chunks.ready),
                request.payload.address.eq(line_address(self.elements, chunk.payload.part.line, lanes)),
                request.payload.beats.eq(chunk.payload.lines),
                chunks.valid.eq(chunk.valid & request.ready),
                chunks.payload.eq(chunk.payload),
                chunk.ready.eq(request.ready & chunks.ready),
            ]
        second, third, further = self.more
        m.d.comb += [seconds.i.valid.eq(second.valid), second.ready.eq(seconds.i.ready)]
        size_chunk(m, seconds.i.payload, second.payload, NEXT_CHUNK_LINES)

        open_ended = Signal()  # the later chunk asked for last does not reach the end of its row
        may_begin = Signal()
        # Both are sized, and one is chosen last: `further.valid` comes late, and a comparison would follow it.
        further_chunk, third_chunk = signals("further_chunk third_chunk", row_chunk(lanes))
        size_chunk(m, further_chunk, further.payload, NEXT_CHUNK_LINES, aligned=True)
        size_chunk(m, third_chunk, third.payload, NEXT_CHUNK_LINES, aligned=True)
        m.d.comb += [
            may_begin.eq(~open_ended | (self.later_idle & ~laters.o.valid)),
            laters.i.payload.eq(Mux(further.valid, further_chunk, third_chunk)),
            laters.i.valid.eq(further.valid | (third.valid & may_begin)),
            further.ready.eq(laters.i.ready),
            third.ready.eq(laters.i.ready & may_begin & ~further.valid),
            self.idle.eq(~seconds.o.valid & ~laters.o.valid),
        ]
        with m.If(laters.i.valid & laters.i.ready):
            m.d.sync += open_ended.eq(~laters.i.payload.over)
        return m
