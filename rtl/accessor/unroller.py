"""Hands out the nonzeros of fiber segments one by one."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..types import COORDINATE_WIDTH, line, segment_word, selection

__all__ = ["Unroller"]


class Unroller(Block):
    """Turns segment words into selections, one a cycle; words are held in a register, so ``words`` sees no long path.

    Parameters
    ----------
    lanes : int
        Nonzeros in a word at most, power of two.

    Members
    -------
    words : In(stream)
        Segments in row order.
    base : In(COORDINATE_WIDTH)
        The coordinate that has index 0. It holds while words come and leave.
    selections : Out(stream)
        Their nonzeros in order; for a segment that ends with an empty word an item that is not ``present``.

    Timing
    ------
    One cycle from a word to its first nonzero; one nonzero a cycle.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        super().__init__(
            {
                "words": In(stream.Signature(segment_word(lanes))),
                "base": In(COORDINATE_WIDTH),
                "selections": Out(stream.Signature(selection())),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        held = Signal(line(self.lanes))
        lane = Signal(range(self.lanes))
        left = Signal(range(self.lanes + 1))
        last = Signal()
        ending = Signal()  # an end without a nonzero is waiting

        out = self.selections
        m.d.comb += [
            out.valid.eq((left != 0) | ending),
            out.payload.index.eq(held[lane].coordinate - self.base),
            out.payload.weight.eq(held[lane].value),
            out.payload.present.eq(left != 0),
            out.payload.last.eq(Mux(left != 0, last & (left == 1), 1)),
        ]
        leaves = Signal()
        m.d.comb += [
            leaves.eq(out.ready & (left <= 1)),
            self.words.ready.eq(leaves | ~out.valid),
        ]
        with m.If(out.valid & out.ready):
            with m.If(left != 0):
                m.d.sync += [left.eq(left - 1), lane.eq(lane + 1)]
            with m.Else():
                m.d.sync += ending.eq(0)
        word = self.words.payload
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += [
                held.eq(word.line),
                lane.eq(word.first),
                left.eq(word.count),
                last.eq(word.last),
                ending.eq((word.count == 0) & word.last),
            ]
        return m
