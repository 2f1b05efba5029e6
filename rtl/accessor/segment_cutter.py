"""Cuts the segment of a tile out of the lines of its row."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.counter import popcount
from ..types import POSITION_WIDTH, segment
from .row_lines import row_line

__all__ = ["SegmentCutter"]


class SegmentCutter(Block):
    """Gives what belongs to the segment of each line of a row, and where the next tile's segment begins.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.

    Members
    -------
    steps : In(stream)
        Lines, row after row; the last of each ``ends`` its segment.
    segments : Out(stream)
        The segment of each row, a word for each line that holds some of it. ``count = 0, last = 1`` ends one that is empty or
        whose end shows only in the line after it.
    positions : Out(stream)
        For each row, once: the position of the first nonzero behind the segment. It leaves with the row's last word or before
        it; that word's ``valid`` waits for it.

    Timing
    ------
    Combinational from ``steps``; one line a cycle.
    """

    latency = 0

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        super().__init__(
            {
                "steps": In(stream.Signature(row_line(lanes))),
                "segments": Out(stream.Signature(segment(lanes))),
                "positions": Out(stream.Signature(POSITION_WIDTH)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, step = self.lanes, self.steps
        shift = (lanes - 1).bit_length()
        item = step.payload
        kept_any = Signal()
        kept_begin = Signal(POSITION_WIDTH)
        count = Signal(range(lanes + 1))
        first = Signal(range(lanes))
        lanes_before = Signal(range(lanes))  # lanes of this line before the first one at or beyond the range
        m.d.comb += count.eq(popcount(item.keep))
        for n in reversed(range(lanes)):
            with m.If(item.keep[n]):
                m.d.comb += first.eq(n)
            with m.If(item.above[n]):
                m.d.comb += lanes_before.eq(n)

        kept_here = item.kept
        first_position = Cat(first[:shift], item.at)[:POSITION_WIDTH]
        next_position = Mux(item.passes, Cat(lanes_before[:shift], item.at)[:POSITION_WIDTH], item.end)
        # Both lie in this line, but for a row's end.
        begin = Cat(
            Mux(kept_here, first_position[:shift], next_position[:shift]),
            Mux(kept_here | item.passes, item.at, item.end >> shift),
        )[:POSITION_WIDTH]
        segments, positions = self.segments, self.positions
        word = segments.payload.word
        position_taken = Signal()  # the row's next position has gone out, its last word has not
        finish = Signal()
        # The last word does not leave before the position.
        m.d.comb += [
            segments.valid.eq(step.valid & Mux(item.ends, position_taken | positions.ready, kept_here)),
            word.line.eq(item.line),
            word.first.eq(first),
            word.count.eq(count),
            word.last.eq(item.ends),
            segments.payload.begin.eq(Mux(kept_any, kept_begin, begin)),
            positions.valid.eq(step.valid & item.ends & ~position_taken),
            positions.payload.eq(next_position),
            finish.eq(segments.valid & segments.ready & item.ends),
            step.ready.eq(
                Mux(item.ends, (position_taken | positions.ready) & segments.ready, ~kept_here | segments.ready)
            ),
        ]
        with m.If(positions.valid & positions.ready):
            m.d.sync += position_taken.eq(1)
        with m.If(finish):
            m.d.sync += [position_taken.eq(0), kept_any.eq(0)]
        with m.Elif(step.valid & step.ready & kept_here & ~kept_any):
            m.d.sync += [kept_any.eq(1), kept_begin.eq(first_position)]
        return m
