"""Cuts segments into pieces, each what one line holds of one segment, and asks for the lines of those in the SRAM."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import POSITION_WIDTH
from .entry_unpacker import segment_lines

__all__ = ["PieceFinder", "piece"]


def piece(lanes: int) -> data.StructLayout:
    """``count`` nonzeros from lane ``first`` of a line; ``last``: they end their segment. ``count`` is 0 in an empty one.

    ``fresh``: the line has not been read for a piece before this one. ``in_memory``: it comes from memory, not from the SRAM.
    """
    fields = {"fresh": 1, "in_memory": 1, "first": range(lanes), "count": range(lanes + 1), "last": 1}
    return data.StructLayout(fields)


class PieceFinder(Block):
    """Gives the pieces of each segment in order.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    line_address_width : int
        Bits of an SRAM line address, 1 to 32.

    Members
    -------
    segments : In(stream)
        Taken with the segment's last piece.
    wanted : Out(stream)
        Line of each fresh piece that is in the SRAM. ``valid`` waits for ``pieces.ready``.
    pieces : Out(stream)
        Its ``valid`` waits for ``wanted.ready`` where the piece wants a line.

    Timing
    ------
    Combinational from ``segments``; one piece a cycle.
    """

    latency = 0

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        super().__init__(
            {
                "segments": In(stream.Signature(segment_lines(lanes))),
                "wanted": Out(stream.Signature(line_address_width)),
                "pieces": Out(stream.Signature(piece(lanes))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, law = self.lanes, self.line_address_width
        fresh = Signal(init=1)  # the segment's first piece is awaited
        lines_left = Signal(POSITION_WIDTH)
        at_last = Signal()
        line_at = Signal(law)
        segment = self.segments.payload
        here = Signal(law)
        ends = Signal()
        first = Signal(range(lanes))
        out = self.pieces.payload
        m.d.comb += [
            ends.eq(Mux(fresh, segment.single, at_last)),
            here.eq(Mux(fresh, segment.line, line_at)),
            first.eq(Mux(fresh, segment.first, 0)),
            out.in_memory.eq(segment.bumped),
            out.first.eq(first),
            out.last.eq(ends),
            out.fresh.eq(~segment.empty & ~(fresh & segment.shares)),
            self.wanted.payload.eq(here),
        ]
        with m.If(~segment.empty):
            m.d.comb += out.count.eq(Mux(ends & (segment.end != 0), segment.end, lanes) - first)
        active = Signal()
        found = Signal()
        m.d.comb += [
            active.eq(self.segments.valid & self.pieces.ready),
            self.wanted.valid.eq(active & out.fresh & ~segment.bumped),
            found.eq(active & (~out.fresh | segment.bumped | self.wanted.ready)),
            self.pieces.valid.eq(found),
            self.segments.ready.eq(found & ends),
        ]
        with m.If(found):
            m.d.sync += [
                fresh.eq(ends),
                line_at.eq(here + 1),
                lines_left.eq(Mux(fresh, segment.more, lines_left) - 1),
                at_last.eq(Mux(fresh, segment.more, lines_left) == 1),
            ]
        return m
