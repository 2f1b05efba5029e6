"""Cuts the beats of a contiguous run of rows into the rows they hold."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import POSITION_WIDTH, placed_pair, segment_word

__all__ = ["RowSplitter"]


class RowSplitter(Block):
    """Matches pairs with the beats of their run: one segment word for each row and beat that meet, one a cycle.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        ``start`` is high for the cycle before a run of ``rows`` rows; only while ``idle``.
    pairs, beats : In(stream)
        Rows in order; the beats from the first element to the last, each once.
    words : Out(stream)
        Combinational from ``beats``. Empty and bumped rows give one word with ``count = 0``.
    idle : Out(1)
        The run has ended and its last beat is used up.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "pairs": In(stream.Signature(placed_pair())),
                "beats": In(stream.Signature(64 * lanes)),
                "words": Out(stream.Signature(segment_word(lanes))),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        remaining = Signal(POSITION_WIDTH)  # rows not yet cut
        done = Signal(POSITION_WIDTH)  # elements of the present row already handed out
        open_beat = Signal()  # the beat at hand has been used in part

        begin, end = self.pairs.payload.begin, self.pairs.payload.end
        at = Signal(POSITION_WIDTH)
        left = Signal(POSITION_WIDTH)
        first = Signal(range(lanes))
        room = Signal(range(lanes + 1))
        count = Signal(range(lanes + 1))
        empty = Signal()
        m.d.comb += [
            at.eq(begin + done),
            left.eq(end - at),
            first.eq(at),
            room.eq(lanes - first),
            count.eq(Mux(left < room, left, room)),
            empty.eq((left == 0) | self.pairs.payload.bumped),
        ]
        out = self.words
        active = self.pairs.valid & (remaining != 0)
        m.d.comb += [
            out.valid.eq(active & (empty | self.beats.valid)),
            out.payload.line.eq(self.beats.payload),
            out.payload.first.eq(first),
            out.payload.count.eq(Mux(empty, 0, count)),
            out.payload.last.eq(empty | (left <= room)),
            self.pairs.ready.eq(out.valid & out.ready & out.payload.last),
        ]
        fills_beat = count == room
        with m.If(out.valid & out.ready):
            m.d.comb += self.beats.ready.eq(~empty & fills_beat)
            with m.If(~empty):
                m.d.sync += open_beat.eq(~fills_beat)
            m.d.sync += done.eq(Mux(out.payload.last, 0, done + count))
            with m.If(out.payload.last):
                m.d.sync += remaining.eq(remaining - 1)
        # What the last beat holds beyond the run belongs to nobody.
        with m.If((remaining == 0) & open_beat):
            m.d.comb += self.beats.ready.eq(1)
            with m.If(self.beats.valid):
                m.d.sync += open_beat.eq(0)
        m.d.comb += self.idle.eq((remaining == 0) & ~open_beat)
        with m.If(self.start):
            m.d.sync += remaining.eq(self.rows)
        return m
