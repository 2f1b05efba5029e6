"""What lets a stream use a pipeline that never stands still: a queue behind it, and no more inside than the queue takes."""

from typing import Any

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer
from ...lib.stream import StreamQueue

__all__ = ["CreditQueue"]


class CreditQueue(Block):
    """Sends an item into the pipeline only where the queue has a place for what comes back.

    Parameters
    ----------
    asked, answered : ShapeLike
        Items that go into the pipeline, and those that come out of it, one for each.
    depth : int
        Places of the queue, 1 to 256. A pipeline of so many cycles less two is filled.

    Members
    -------
    i : In(stream(asked)), o : Out(stream(answered))
    open : In(1)
        Items may be sent.
    sent : Out(1), item : Out(asked), back : In(1), answer : In(answered)
        The pipeline's ends.

    Timing
    ------
    No cycle to the pipeline, one behind it; an item a cycle.
    """

    latency = 1

    def __init__(self, *, asked: ShapeLike, answered: ShapeLike, depth: int) -> None:
        self.depth = check_integer("Depth", depth, 1, 256)
        self.asked = asked
        self.answered = answered
        super().__init__(
            {
                "i": In(stream.Signature(asked)),
                "o": Out(stream.Signature(answered)),
                "open": In(1),
                "sent": Out(1),
                "item": Out(asked),
                "back": In(1),
                "answer": In(answered),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = StreamQueue(shape=self.answered, depth=self.depth)
        connect(m, queue.o, flipped(self.o))
        credits = Signal(range(self.depth + 1), init=self.depth)
        taken = self.o.valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(self.open & (credits != 0)),
            self.sent.eq(self.i.valid & self.i.ready),
            self.item.eq(self.i.payload),
            queue.i.valid.eq(self.back),
            queue.i.payload.eq(self.answer),
        ]
        m.d.sync += credits.eq(credits - self.sent + taken)
        return m
