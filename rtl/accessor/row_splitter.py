"""Cuts the beats of rows that follow one another in memory into the rows they hold."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.stream import StreamSkid
from ..types import POSITION_WIDTH, placed_pair, segment

__all__ = ["RowSplitter"]


class RowSplitter(Block):
    """Matches pairs with the beats that hold them: one segment word for each row and beat that meet, one a cycle.

    Between rows there may be gaps; a beat of which the next row has nothing is dropped, in a cycle of its own.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        ``start`` is high for the cycle before a run of ``rows`` rows, only while ``idle``.
    pairs, beats : In(stream)
        Rows in order; the beats that hold an element of a row that is not bumped, each once.
    segments : Out(stream)
        Combinational from ``beats``. Empty and bumped rows give one word with ``count = 0``.
    idle : Out(1)
        The run has ended and its last beat is used up.

    Timing
    ------
    Combinational from ``beats``; one word a cycle.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "pairs": In(stream.Signature(placed_pair())),
                "beats": In(stream.Signature(64 * lanes)),
                "segments": Out(stream.Signature(segment(lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        remaining = Signal(POSITION_WIDTH)  # rows not yet cut
        some_left = Signal()  # remaining != 0
        fresh = Signal(init=1)  # nothing of the present row has been handed out
        beats_left = Signal(POSITION_WIDTH + 1)  # of the present row behind the present beat, less 1
        at_last = beats_left[-1]
        open_beat = Signal()  # the beat at hand has been used in part

        # What is known of a row is worked out as it enters a register.
        shift = (lanes - 1).bit_length()
        known = data.StructLayout(
            {
                "begin": POSITION_WIDTH,
                "length": POSITION_WIDTH,
                "bumped": 1,
                "beyond": 1,
                "empty": 1,  # or bumped
                "more": POSITION_WIDTH,  # beats after its first one
                "single": 1,  # more == 0
                "apart": 1,  # nothing of it is in the last beat of the row before, if that is not full
                "first": range(lanes),
                "end": range(lanes),  # lane after the last element, modulo
            }
        )
        m.submodules.rows_at_hand = rows = StreamSkid(shape=known)
        pair, info = self.pairs.payload, rows.i.payload
        first_beat, beat_after = pair.begin >> shift, pair.end >> shift  # the row's last one where it is not full
        full = pair.end[:shift] == 0
        more = Signal(POSITION_WIDTH + 1)
        beat_before = Signal(POSITION_WIDTH)  # `beat_after` of the row before that has any
        with m.If(rows.i.valid & rows.i.ready & ~info.empty):
            m.d.sync += beat_before.eq(beat_after)
        m.d.comb += [
            rows.i.valid.eq(self.pairs.valid),
            self.pairs.ready.eq(rows.i.ready),
            info.begin.eq(pair.begin),
            info.length.eq(pair.end - pair.begin),
            info.bumped.eq(pair.bumped),
            info.beyond.eq(pair.beyond),
            info.empty.eq((pair.begin == pair.end) | pair.bumped),
            more.eq(Cat(0, beat_after) - Cat(full, first_beat)),  # less one where it is full: bit 0 borrows
            info.more.eq(more[1:]),
            info.single.eq(info.more == 0),
            info.apart.eq(first_beat != beat_before),
            info.first.eq(pair.begin),
            info.end.eq(pair.end),
        ]
        row = rows.o.payload
        out = self.segments
        word = out.payload.word
        m.d.comb += [out.payload[name].eq(row[name]) for name in ("begin", "length", "bumped", "beyond")]
        first = Signal(range(lanes))
        ends = Signal()
        fills_beat = Signal()
        m.d.comb += [
            ends.eq(row.empty | Mux(fresh, row.single, at_last)),
            first.eq(Mux(fresh, row.first, 0)),
            fills_beat.eq(~ends | (row.end == 0)),
        ]
        stale = open_beat & fresh & ~row.empty & row.apart  # the beat at hand is used up
        active = rows.o.valid & some_left & ~stale
        m.d.comb += [
            out.valid.eq(active & (row.empty | self.beats.valid)),
            word.line.eq(self.beats.payload),
            word.first.eq(first),
            word.last.eq(ends),
            rows.o.ready.eq(out.valid & out.ready & ends),
        ]
        with m.If(~row.empty):
            m.d.comb += word.count.eq(Mux(fills_beat, lanes, row.end) - first)
        with m.If(out.valid & out.ready):
            m.d.comb += self.beats.ready.eq(~row.empty & fills_beat)
            with m.If(~row.empty):
                m.d.sync += open_beat.eq(~fills_beat)
            m.d.sync += [
                fresh.eq(ends),
                beats_left.eq(Mux(fresh, row.more, beats_left) - Cat(~fresh, fresh)),
            ]
            with m.If(word.last):
                m.d.sync += [remaining.eq(remaining - 1), some_left.eq(remaining != 1)]
        # What the last beat holds beyond the run, or before a gap, belongs to nobody.
        with m.If((~some_left & open_beat) | (rows.o.valid & some_left & stale)):
            m.d.comb += self.beats.ready.eq(1)
            with m.If(self.beats.valid):
                m.d.sync += open_beat.eq(0)
        m.d.comb += self.idle.eq(~some_left & ~open_beat)
        with m.If(self.start):
            m.d.sync += [remaining.eq(self.rows), some_left.eq(self.rows != 0)]
        return m
