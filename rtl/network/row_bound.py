"""Row bound: how long the fiber of a row may become."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import COORDINATE_WIDTH, POSITION_WIDTH

__all__ = ["RowBound"]


class RowBound(Block):
    """Bounds a row's fiber: by the nonzeros of its leaves, or the columns if there are fewer. A leaf a cycle.

    Members
    -------
    columns : In(COORDINATE_WIDTH)
    row_ends : In(1)
        Pulse: the row is done with. What is added in the same cycle is of the next one.
    adds : In(1), length : In(POSITION_WIDTH)
        A leaf of so many nonzeros.
    bound : Out(POSITION_WIDTH)
        Of the leaves up to the cycle before. A sum that POSITION_WIDTH bits do not hold stays at the largest value.

    Timing
    ------
    One cycle; one leaf a cycle.
    """

    latency = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "columns": In(COORDINATE_WIDTH),
                "row_ends": In(1),
                "adds": In(1),
                "length": In(POSITION_WIDTH),
                "bound": Out(POSITION_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        gathered = Signal(POSITION_WIDTH)
        fresh = Signal(init=1)  # no leaf of the row has come: what is gathered is of another row
        grown = gathered + self.length
        m.d.comb += self.bound.eq(Mux(fresh, 0, Mux(gathered < self.columns, gathered, self.columns)))
        # Whether a leaf comes is known late: it enables, and selects nothing.
        with m.If(self.row_ends | self.adds):
            m.d.sync += [
                fresh.eq(~self.adds),
                gathered.eq(grown[:POSITION_WIDTH] | grown[POSITION_WIDTH].replicate(POSITION_WIDTH)),
            ]
            with m.If(self.row_ends | fresh):
                m.d.sync += gathered.eq(self.length)
        return m
