"""Joins pieces of segments with the lines that hold them."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..types import line, segment_word
from .piece_finder import piece

__all__ = ["PieceWords"]


class PieceWords(Block):
    """Makes a word of each piece; the line before is kept for a segment that begins in it.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.

    Members
    -------
    pieces : In(stream)
    lines : In(stream), beats : In(stream)
        Lines of fresh pieces, from the SRAM and from memory, each in the order of their pieces.
    words : Out(stream)
        A word for each piece.
    event_resident, event_bumped : Out(range(lanes + 1))
        Nonzeros handed out in this cycle, by where they came from.

    Timing
    ------
    Combinational from pieces and lines; one word a cycle.
    """

    latency = 0

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        super().__init__(
            {
                "pieces": In(stream.Signature(piece(lanes))),
                "lines": In(stream.Signature(64 * lanes)),
                "beats": In(stream.Signature(64 * lanes)),
                "words": Out(stream.Signature(segment_word(lanes))),
                "event_resident": Out(range(lanes + 1)),
                "event_bumped": Out(range(lanes + 1)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, head, words = self.lanes, self.pieces.payload, self.words
        kept_line = Signal(line(lanes))
        arrived = Signal(line(lanes))
        arrives = Signal()
        used = Signal()
        m.d.comb += [
            arrived.eq(Mux(head.in_memory, self.beats.payload, self.lines.payload)),
            arrives.eq(Mux(head.in_memory, self.beats.valid, self.lines.valid)),
            words.valid.eq(self.pieces.valid & (~head.fresh | arrives)),
            words.payload.line.eq(Mux(head.fresh, arrived, kept_line)),
            words.payload.first.eq(head.first),
            words.payload.count.eq(head.count),
            words.payload.last.eq(head.last),
            used.eq(words.valid & words.ready),
            self.pieces.ready.eq(used),
            self.lines.ready.eq(used & head.fresh & ~head.in_memory),
            self.beats.ready.eq(used & head.fresh & head.in_memory),
            self.event_resident.eq(Mux(used & ~head.in_memory, head.count, 0)),
            self.event_bumped.eq(Mux(used & head.in_memory, head.count, 0)),
        ]
        with m.If(used & head.fresh):
            m.d.sync += kept_line.eq(arrived)
        return m
