"""Whether a condition has held for some cycles."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from .block import Block
from .check import check_integer

__all__ = ["SteadyFor"]


class SteadyFor(Block):
    """Tells in each cycle whether ``condition`` held in all of the ``cycles`` cycles before it.

    Parameters
    ----------
    cycles : int
        At least 1.

    Members
    -------
    condition : In(1), steady : Out(1)
        ``steady`` is a comparison of a register: it also holds in the first cycle in which ``condition`` does not.

    Timing
    ------
    One cycle; tells every cycle.
    """

    latency = 1

    def __init__(self, *, cycles: int) -> None:
        self.cycles = check_integer("Cycles", cycles, 1, 1 << 16)
        super().__init__({"condition": In(1), "steady": Out(1)})

    def build(self, platform: Any) -> Module:
        m = Module()
        held_for = Signal(range(self.cycles + 1))
        m.d.comb += self.steady.eq(held_for == self.cycles)
        with m.If(~self.condition):
            m.d.sync += held_for.eq(0)
        with m.Elif(~self.steady):
            m.d.sync += held_for.eq(held_for + 1)
        return m
