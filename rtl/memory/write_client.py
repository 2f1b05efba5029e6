"""One client of the write engine: its data are collected, its requests cut into bursts of what has been collected."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue, StreamRegister
from ..types import write_beat, write_request
from .read_engine import BLOCK_MEMORY_DEPTH
from .request_splitter import RequestSplitter, burst_limit, burst_request

__all__ = ["WriteClient"]


class WriteClient(Block):
    """Holds a client's beats, gives its bursts when all of their beats have arrived, and knows what is not acknowledged.

    Parameters
    ----------
    data_width : int
        Bits of a beat, a power of two from 8 to 1024.
    address_width : int
        Bits of a byte address, 13 to 64.
    depth : int
        Beats held, at least 2. Bursts are at most half as long.
    outstanding : int
        Bursts issued and not acknowledged, at least 1.
    burst_beats : int
        Longest burst that ``bursts`` can show, a power of two from 1 to 256.

    Members
    -------
    request : In(stream), data : In(stream)
        Byte address and beats; data with strobes, which may come before their request.
    bursts : Out(stream)
        Straight from registers.
    beats : Out(stream)
        Those of the bursts, in order.
    acknowledged : In(1)
        Pulse: the oldest burst that was taken is in memory. The parent has no more than ``outstanding`` of them under way.
    idle : Out(1)
        Every accepted request and every accepted beat has been acknowledged. Low from the cycle after the first of them was
        accepted.

    Timing
    ------
    Three cycles from request and data to the burst; one burst, one beat a cycle.
    """

    latency = RequestSplitter.latency

    def __init__(self, *, data_width: int, address_width: int, depth: int, outstanding: int, burst_beats: int) -> None:
        self.data_width = check_power_of_two("Data width", data_width, 8, 1024)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.depth = check_integer("Queue depth", depth, 2, 1 << 16)
        self.outstanding = check_integer("Outstanding bursts", outstanding, 1, 1 << 16)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        self.line_bytes = data_width // 8
        line_width = address_width - (self.line_bytes - 1).bit_length()
        burst = burst_request(line_address_width=line_width, burst_beats=burst_beats)
        super().__init__(
            {
                "request": In(stream.Signature(write_request(address_width))),
                "data": In(stream.Signature(write_beat(data_width))),
                "bursts": Out(stream.Signature(burst)),
                "beats": Out(stream.Signature(write_beat(data_width))),
                "acknowledged": In(1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        depth = self.depth
        m.submodules.splitter = splitter = RequestSplitter(
            address_width=self.address_width,
            line_bytes=self.line_bytes,
            limit=burst_limit(burst_beats=self.burst_beats, line_bytes=self.line_bytes, capacity=depth),
            burst_beats=self.burst_beats,
            credit_limit=depth,
            credit_init=0,
        )
        # A word leaves block RAM near the end of a cycle, so it waits in a register to be chosen among those of all clients.
        shape = write_beat(self.data_width)
        in_block = depth >= BLOCK_MEMORY_DEPTH
        m.submodules.queue = queue = StreamQueue(shape=shape, depth=depth - in_block, block_memory=in_block)
        beats = queue.o
        if in_block:
            m.submodules.next_beat = next_beat = StreamRegister(shape=shape)
            connect(m, queue.o, next_beat.i)
            beats = next_beat.o
        connect(m, flipped(self.request), splitter.request)
        connect(m, flipped(self.data), queue.i)
        connect(m, splitter.burst, flipped(self.bursts))
        connect(m, beats, flipped(self.beats))

        # Credit: beats in the queue that no burst has claimed yet. Bursts without an acknowledgement are counted.
        pending = Signal(range(self.outstanding + 2))  # one may wait for its turn
        m.d.comb += [
            splitter.earned.eq(queue.i.valid & queue.i.ready),
            self.idle.eq(~splitter.busy & (splitter.credit == 0) & (pending == 0)),
        ]
        m.d.sync += pending.eq(pending + (splitter.burst.valid & splitter.burst.ready) - self.acknowledged)
        return m
