"""Hands out the nonzeros of fiber segments a line at a time."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.passed import passed
from ..types import COORDINATE_WIDTH, line, row_part, segment_word

__all__ = ["PartAligner"]


class PartAligner(Block):
    """Turns segment words into parts of rows, from their first nonzero on; an empty word leaves only where it ends a segment.

    Parameters
    ----------
    lanes : int
        Nonzeros in a word at most, power of two.

    Members
    -------
    words : In(stream), base : In(COORDINATE_WIDTH)
        As :class:`.unroller.Unroller`.
    selections : Out(stream of ``row_part``)

    Timing
    ------
    Combinational; one word a cycle.
    """

    latency = 0

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        super().__init__(
            {
                "words": In(stream.Signature(segment_word(lanes))),
                "base": In(COORDINATE_WIDTH),
                "selections": Out(stream.Signature(row_part(lanes))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        word, out = self.words.payload, self.selections
        tells = Signal()
        aligned = Signal(line(self.lanes))
        m.d.comb += [
            tells.eq((word.count != 0) | word.last),
            aligned.eq(word.line.as_value() >> Cat(Const(0, 6), word.first)),
            out.valid.eq(self.words.valid & tells),
            self.words.ready.eq(out.ready | ~tells),
            *passed(word, out.payload, "count last"),
        ]
        for n in range(self.lanes):
            item = out.payload["items"][n]
            m.d.comb += [item.index.eq(aligned[n].coordinate - self.base), item.weight.eq(aligned[n].value)]
        return m
