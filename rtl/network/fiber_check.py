"""Sees rows of C that cannot be: operands whose coordinates are out of order or outside their tile."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import COORDINATE_WIDTH, fiber_word

__all__ = ["FiberCheck"]


class FiberCheck(Block):
    """Watches fibers: coordinates must rise, from ``low`` on and below ``high``.

    Then no fiber is longer than its tile is wide, which is what partitions and regions of C count on.

    Parameters
    ----------
    lanes : int

    Members
    -------
    moved : In(1), word : In(fiber_word(lanes)), kind : In(1)
        A word moves in this cycle. Words of fibers of the two kinds may alternate.
    low, high : In
        Bounds, constant while words come and for 2 cycles after.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse, 2 cycles after the word: a coordinate is not above the one before it or not within the bounds.
    """

    latency = 2

    def __init__(self, *, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(
            {
                "moved": In(1),
                "word": In(fiber_word(lanes)),
                "kind": In(1),
                "low": In(COORDINATE_WIDTH),
                "high": In(COORDINATE_WIDTH + 1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes}

    def build(self, platform: Any) -> Module:
        m = Module()
        moved = Signal()
        kind = Signal()
        last = Signal()
        count = Signal(range(self.lanes + 1))
        at = [Signal(COORDINATE_WIDTH, reset_less=True, name=f"coordinate{n}") for n in range(self.lanes)]
        m.d.sync += [moved.eq(self.moved), kind.eq(self.kind), last.eq(self.word.last), count.eq(self.word.count)]
        m.d.sync += [coordinate.eq(self.word.line[n].coordinate) for n, coordinate in enumerate(at)]

        fresh = Array(Signal(init=1, name=f"fresh{n}") for n in range(2))
        before = Array(
            Signal(COORDINATE_WIDTH, name=f"before{n}") for n in range(2)
        )  # the last one of the fiber so far
        end = Signal(COORDINATE_WIDTH)
        m.d.comb += end.eq(before[kind])
        for n, coordinate in enumerate(at):
            with m.If(count == n + 1):
                m.d.comb += end.eq(coordinate)
        m.d.sync += self.wrong.eq(0)
        with m.If(moved):
            m.d.sync += [fresh[kind].eq(last), before[kind].eq(end)]
            with m.If(last & ((count != 0) | ~fresh[kind]) & (end >= self.high)):
                m.d.sync += [self.wrong.eq(1), self.coordinate.eq(end)]
            for n, coordinate in enumerate(at):
                falls = (
                    coordinate <= at[n - 1]
                    if n
                    else Mux(fresh[kind], coordinate < self.low, coordinate <= before[kind])
                )
                with m.If((count > n) & falls):
                    m.d.sync += [self.wrong.eq(1), self.coordinate.eq(coordinate)]
        return m
