"""Packs nonzeros into words of a fiber."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import fiber_word, line
from .common import check_power_of_two, merged_nonzero

__all__ = ["FiberPacker"]

# Deeper queues are kept in block RAM.
LARGEST_LUT_QUEUE = 32


class FiberPacker(Block):
    """Fills words lane by lane; a word goes when it is full or the job ends.

    Parameters
    ----------
    lanes : int
        Nonzeros in a word, power of two.
    queue_lines : int
        Words that may wait, at least 1; at least 2 for a word every cycle. Fibers leave in job order, so a PE
        works on while it waits for its turn only as long as its fiber fits in here.

    Members
    -------
    nonzero : In(merged_nonzero)
        Taken in every cycle with ``advance``.
    advance : Out(1)
        There is room for a word. From registers.
    ended : Out(1)
        A job's last word enters the queue.
    fiber : Out(stream(fiber_word))
    waiting : Out(1)
        Words are in the queue. From registers.

    Timing
    ------
    One nonzero an advancing cycle.
    """

    def __init__(self, *, lanes: int, queue_lines: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        if not isinstance(queue_lines, int) or queue_lines < 1:
            raise ValueError(f"Output queue must hold a positive number of lines, not {queue_lines!r}")
        self.queue_lines = queue_lines
        super().__init__(
            {
                "nonzero": In(merged_nonzero()),
                "advance": Out(1),
                "ended": Out(1),
                "fiber": Out(stream.Signature(fiber_word(lanes))),
                "waiting": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.words = words = StreamQueue(
            shape=fiber_word(self.lanes),
            depth=self.queue_lines,
            block_memory=self.queue_lines > LARGEST_LUT_QUEUE,
        )
        connect(m, words.o, flipped(self.fiber))
        nonzero = self.nonzero
        lane = Signal(range(self.lanes))
        partial_line = Signal(line(self.lanes))
        came = Signal()
        full = Signal()
        m.d.comb += [
            self.advance.eq(words.i.ready),
            self.waiting.eq(words.level != 0),
            self.ended.eq(came & nonzero.last),
            came.eq(nonzero.valid & self.advance),
            full.eq(lane.all()),
            words.i.valid.eq(nonzero.valid & (full | nonzero.last)),
            words.i.payload.count.eq(Mux(nonzero.void, 0, lane + 1)),
            words.i.payload.last.eq(nonzero.last),
        ]
        for n in range(self.lanes):
            now = words.i.payload.line[n]
            m.d.comb += [
                now.coordinate.eq(Mux(lane == n, nonzero.coordinate, partial_line[n].coordinate)),
                now.value.eq(Mux(lane == n, nonzero.value, partial_line[n].value)),
            ]
        with m.If(came):
            lanes = Array(partial_line[n].as_value() for n in range(self.lanes))
            m.d.sync += [
                lanes[lane].eq(Cat(nonzero.coordinate, nonzero.value)),
                lane.eq(Mux(nonzero.last, 0, lane + 1)),
            ]
        return m
