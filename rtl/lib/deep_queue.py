"""A deep queue whose items are as soon at its output as those of a short one."""

from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from .block import Block
from .check import check_integer
from .stream import StreamQueue, StreamRegister

__all__ = ["DeepQueue"]


class DeepQueue(Block):
    """First-in first-out queue: ``depth`` items at its front in LUT RAM, ``spilled`` and one more behind them in block memory.

    What comes while the front is full goes to block memory, and so does what comes behind it.

    Parameters
    ----------
    shape : ShapeLike
        Payload of both streams.
    depth : int
        At least 4: so many hide the latency of block memory.
    spilled : int
        At least 3.

    Members
    -------
    i : In(stream), o : Out(stream)
        ``i.ready`` and ``o.valid`` depend on registers only.

    Timing
    ------
    One cycle from an empty queue's ``i`` to its ``o``; an item a cycle. While block memory holds a single item, up to two cycles
    pass without one at ``o``.
    """

    latency = 1

    def __init__(self, *, shape: ShapeLike, depth: int, spilled: int) -> None:
        self.depth = check_integer("Queue depth", depth, 4, 1 << 16)
        self.spilled = check_integer("Items in block memory", spilled, 3, 1 << 16)
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.front = front = StreamQueue(shape=self.shape, depth=self.depth)
        m.submodules.spill = spill = StreamQueue(shape=self.shape, depth=self.spilled, block_memory=True)
        # A word of block memory waits a cycle in a register, so that its way to LUT RAM is short.
        m.submodules.back = back = StreamRegister(shape=self.shape)
        straight = Signal(init=1)  # nothing is behind the front
        connect(m, spill.o, back.i)
        connect(m, front.o, flipped(self.o))
        m.d.comb += [
            front.i.valid.eq(Mux(straight, self.i.valid, back.o.valid)),
            front.i.payload.eq(Mux(straight, self.i.payload, back.o.payload)),
            back.o.ready.eq(front.i.ready),
            spill.i.valid.eq(self.i.valid & ~(straight & front.i.ready)),
            spill.i.payload.eq(self.i.payload),
            self.i.ready.eq(spill.i.ready),
        ]
        # Block memory is empty, and the item in `back`, if there is one, leaves.
        m.d.sync += straight.eq(~spill.i.valid & (spill.level == 0) & back.i.ready)
        return m
