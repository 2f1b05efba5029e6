"""One of several entries, a cycle later: registers held at 0 instead of multiplexers."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block

__all__ = ["EntrySelect"]


class EntrySelect(Block):
    """Gives the entry of the source that was chosen in the cycle before.

    Parameters
    ----------
    width : int
        Bits of an entry.
    sources : int
        Sources to choose from.

    Members
    -------
    chosen : In(sources)
        At most one bit is set.
    source : In(ArrayLayout(width, sources))
        Their entries.
    entry : Out(width)
        The chosen one; 0 where none was.

    Timing
    ------
    Latency 1, one entry a cycle. A register for each source, and one gate behind them.
    """

    latency = 1

    def __init__(self, *, width: int, sources: int) -> None:
        for what, number in (("Entry width", width), ("Sources of an entry", sources)):
            if not isinstance(number, int) or number < 1:
                raise ValueError(f"{what} must be a positive integer, not {number!r}")
        self.width = width
        self.sources = sources
        super().__init__({"chosen": In(sources), "source": In(data.ArrayLayout(width, sources)), "entry": Out(width)})

    def build(self, platform: Any) -> Module:
        m = Module()
        entries = [Signal(self.width, name=f"entry{n}") for n in range(self.sources)]
        for n, entry in enumerate(entries):
            with m.If(self.chosen[n]):
                m.d.sync += entry.eq(self.source[n])
            with m.Else():
                m.d.sync += entry.eq(0)
        m.d.comb += self.entry.eq(reduce(or_, entries))
        return m
