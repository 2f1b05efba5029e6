"""Sees columns of B whose rows do not rise, or lie outside the tile."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.signals import signals
from ..types import COORDINATE_WIDTH, POSITION_WIDTH
from .common import index_width

__all__ = ["ColumnCheck"]


class ColumnCheck(Block):
    """Watches the nonzeros that go to weight-stationary PEs: rows of a column must rise, from ``low`` on and below ``high``.

    A PE compares what passes with entries of which each row stands once, and passes those that overflow in the order of their
    rows: a row that stands twice, or after a larger one, would be lost in silence. A nonzero is compared with the one that its
    PE got before it, also in another part of the column. Where a PE begins its parts anew, it has had that one earlier.

    Parameters
    ----------
    pes : int
        PEs, 1 to 256.

    Members
    -------
    moved : In(1), pe : In, index : In(POSITION_WIDTH), row : In(COORDINATE_WIDTH)
        In this cycle a PE gets nonzero ``index`` of its column. With index 0 the column begins.
    low : In(COORDINATE_WIDTH), high : In(COORDINATE_WIDTH + 1)
        Bounds, constant while nonzeros come and in the cycle after.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse, 2 cycles after the nonzero, and its row.

    Timing
    ------
    ``latency`` cycles, 2; one nonzero a cycle.
    """

    latency = 2

    def __init__(self, *, pes: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 256)
        super().__init__(
            {
                "moved": In(1),
                "pe": In(index_width(pes)),
                "index": In(POSITION_WIDTH),
                "row": In(COORDINATE_WIDTH),
                "low": In(COORDINATE_WIDTH),
                "high": In(COORDINATE_WIDTH + 1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        # Of each PE the nonzero that would be its next one, and the row of the last one.
        expected = data.StructLayout({"index": POSITION_WIDTH, "row": COORDINATE_WIDTH})
        m.submodules.expected_of_pes = table = Memory(shape=expected, depth=self.pes, init=[])
        put, get = table.write_port(), table.read_port(domain="comb")
        moved, follows = signals("moved follows")
        row, last_row = signals("row last_row", COORDINATE_WIDTH)
        m.d.comb += [
            get.addr.eq(self.pe),
            put.addr.eq(self.pe),
            put.data.index.eq(self.index + 1),
            put.data.row.eq(self.row),
            put.en.eq(self.moved),
        ]
        m.d.sync += [
            moved.eq(self.moved),
            row.eq(self.row),
            follows.eq((self.index != 0) & (self.index == get.data.index)),
            last_row.eq(get.data.row),
            self.wrong.eq(moved & ((row < self.low) | (row >= self.high) | (follows & (row <= last_row)))),
            self.coordinate.eq(row),
        ]
        return m
