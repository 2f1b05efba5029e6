"""Collects lines at consecutive addresses into write bursts."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue, StreamSkid
from ..storage import line_bytes
from ..types import write_beat, write_request

__all__ = ["REQUESTS_WIDTH", "LineWriter", "addressed_line"]

REQUESTS_WIDTH = 12  # far more requests than can be on their way


def addressed_line(lanes: int, address_width: int) -> data.StructLayout:
    """A bus beat, its bus-aligned byte address and a strobe bit for each 4-byte word."""
    return data.StructLayout({"address": address_width, "data": 64 * lanes, "words": 2 * lanes})


class LineWriter(Block):
    """Writes lines to memory, consecutive ones as one burst.

    Members
    -------
    lines : In(stream)
        In any address order; a line that does not follow the one before begins a new burst.
    flush : In(1)
        Sends what has been collected, a line taken in this cycle included; until then up to ``burst_beats - 1`` lines wait.
        Lines are not taken from the next cycle on until ``flushed``.
    flushed : Out(1), requests : Out(REQUESTS_WIDTH)
        High for the cycle in which all lines taken before a flush have been looked at; the requests that they and those
        before make, modulo. When the memory engine has retired that many, these lines are in memory.
    write_request, write_data : Out(stream)
        A client port of the memory engine. A request comes after the beats of its burst: the client's queue must hold
        ``burst_beats`` of them.
    idle : Out(1)
        Everything taken has been handed to the memory engine.

    Timing
    ------
    A line a cycle, also across bursts.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "lines": In(stream.Signature(addressed_line(lanes, address_width))),
                "flush": In(1),
                "flushed": Out(1),
                "requests": Out(REQUESTS_WIDTH),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.requests = requests = StreamQueue(shape=write_request(self.address_width), depth=4)
        connect(m, flipped(self.write_request), requests.o)

        # Whether a line follows the one before is known when it comes to be written.
        placed = data.StructLayout({"line": self.lines.payload.shape(), "breaks": 1})
        m.submodules.placed = queue = StreamSkid(shape=placed)
        following = Signal(self.address_width)
        due = Signal()  # a flush waits for the lines before it
        came = self.lines.payload
        m.d.comb += [
            queue.i.valid.eq(self.lines.valid & ~due),
            self.lines.ready.eq(queue.i.ready & ~due),
            queue.i.payload.line.eq(came),
            queue.i.payload.breaks.eq(came.address != following),
            self.flushed.eq(due & ~queue.o.valid),
        ]
        with m.If(queue.i.valid & queue.i.ready):
            m.d.sync += following.eq(came.address + line_bytes(self.lanes))
        with m.If(self.flush):
            m.d.sync += due.eq(1)
        with m.Elif(self.flushed):
            m.d.sync += due.eq(0)

        base = Signal(self.address_width)
        collected = Signal(range(self.burst_beats + 1))
        flushing = Signal()
        made = Signal(REQUESTS_WIDTH)

        line = queue.o.payload.line
        beats = self.write_data
        send = Signal()
        takes = Signal()  # a line may be taken, also in the cycle of a request: full bursts follow one another
        full = collected == self.burst_beats
        m.d.comb += [
            send.eq((collected != 0) & (full | (queue.o.valid & queue.o.payload.breaks) | flushing)),
            requests.i.valid.eq(send),
            requests.i.payload.address.eq(base),
            requests.i.payload.beats.eq(collected),
            takes.eq(~send | requests.i.ready),
            queue.o.ready.eq(beats.ready & takes),
            beats.valid.eq(queue.o.valid & takes),
            beats.payload.data.eq(line.data),
        ]
        for n in range(2 * self.lanes):
            m.d.comb += beats.payload.strobe[4 * n : 4 * n + 4].eq(line.words[n].replicate(4))

        with m.If(send & requests.i.ready):
            m.d.sync += [collected.eq(0), made.eq(made + 1)]
        with m.If(queue.o.valid & queue.o.ready):
            m.d.sync += collected.eq(Mux(send, 1, collected + 1))
            with m.If(send | (collected == 0)):
                m.d.sync += base.eq(line.address)
        with m.If(self.flushed):
            m.d.sync += flushing.eq(1)
        with m.Elif((collected == 0) | (send & requests.i.ready)):
            m.d.sync += flushing.eq(0)
        m.d.comb += self.requests.eq(made + (collected != 0))
        empty = ~due & ~queue.o.valid & (collected == 0) & ~flushing
        m.d.comb += self.idle.eq(empty & (requests.level == 0))
        return m
