"""Takes the entries of segments out of lines, and works out which lines hold each segment."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.stream import StreamRegister, StreamSkid
from ..types import POSITION_WIDTH, pair
from .lookup import segment_entry

__all__ = ["EntryUnpacker", "segment_lines"]


def segment_lines(lanes: int) -> data.StructLayout:
    """The lines that hold a segment, of the SRAM or, ``bumped``, of the nonzeros' array in memory.

    ``line``: of its first nonzero; ``more``: lines after it; ``single``: none; ``shares``: it is the last line of the segment
    that is not empty before it. ``first``: lane of the first nonzero; ``end``: lane after the last one, modulo ``lanes``.
    """
    fields = {"line": POSITION_WIDTH, "more": POSITION_WIDTH, "single": 1, "shares": 1}
    return data.StructLayout({**fields, "first": range(lanes), "end": range(lanes), "empty": 1, "bumped": 1})


class EntryUnpacker(Block):
    """Turns lines of entries (:func:`segment_entry`) into segments, a sum or a comparison of positions a cycle.

    Parameters
    ----------
    lanes : int
        Entries, and nonzeros, in a line; power of two from 2 to 64.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        Pulse while nothing is inside: entries of the tile, at least 1.
    entries : In(stream)
        Their lines; lanes after the last entry hold nothing.
    runs : Out(stream)
        Where each bumped segment that is not empty lies in memory. Its ``valid`` waits until the segment can go on, and
        that waits for its ``ready``.
    segments : Out(stream)
        Straight from registers.

    Timing
    ------
    Four cycles from a line to its first segment, two to its first run; one segment a cycle.
    """

    latency = 4

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "entries": In(stream.Signature(64 * lanes)),
                "runs": Out(stream.Signature(pair())),
                "segments": Out(stream.Signature(segment_lines(lanes))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        span = data.StructLayout({"begin": POSITION_WIDTH, "end": POSITION_WIDTH, "empty": 1, "bumped": 1})
        lines = data.StructLayout({"span": span, "last": POSITION_WIDTH})
        m.submodules.entries = entries = StreamSkid(shape=segment_entry())
        m.submodules.spans = spans = StreamRegister(shape=span)
        m.submodules.spanned = spanned = StreamRegister(shape=lines)
        m.submodules.segments = segments = StreamSkid(shape=segment_lines(lanes))
        connect(m, segments.o, flipped(self.segments))

        lane = Signal(range(lanes))
        entries_left = Signal(POSITION_WIDTH)
        m.d.comb += [
            entries.i.valid.eq(self.entries.valid & (entries_left != 0)),
            entries.i.payload.eq(self.entries.payload.word_select(lane, 64)),
            self.entries.ready.eq(entries.i.ready & (entries_left != 0) & ((lane == lanes - 1) | (entries_left == 1))),
        ]
        with m.If(entries.i.valid & entries.i.ready):
            m.d.sync += [lane.eq(lane + 1), entries_left.eq(entries_left - 1)]

        entry = entries.o.payload
        m.d.comb += [
            spans.i.valid.eq(entries.o.valid),
            entries.o.ready.eq(spans.i.ready),
            spans.i.payload.begin.eq(entry.position),
            spans.i.payload.end.eq(entry.position + entry.length),
            spans.i.payload.empty.eq(entry.length == 0),
            spans.i.payload.bumped.eq(entry.bumped),
        ]
        # Those in memory are asked for from here.
        place = spans.o.payload
        asks = place.bumped & ~place.empty
        m.d.comb += [
            self.runs.valid.eq(spans.o.valid & asks & spanned.i.ready),
            self.runs.payload.begin.eq(place.begin),
            self.runs.payload.end.eq(place.end),
            spanned.i.valid.eq(spans.o.valid & (~asks | self.runs.ready)),
            spans.o.ready.eq(spanned.i.ready & (~asks | self.runs.ready)),
            spanned.i.payload.span.eq(place),
            spanned.i.payload.last.eq((place.end - 1)[:POSITION_WIDTH] >> shift),
        ]
        item, known = spanned.o.payload, segments.i.payload
        line = item.span.begin >> shift
        some = Signal()  # a segment that is not empty came before
        line_before = Signal(POSITION_WIDTH)  # its last line
        before_bumped = Signal()
        m.d.comb += [
            segments.i.valid.eq(spanned.o.valid),
            spanned.o.ready.eq(segments.i.ready),
            known.line.eq(line),
            known.more.eq(item.last - line),
            known.single.eq(item.span.empty | (known.more == 0)),
            known.shares.eq(some & (before_bumped == item.span.bumped) & (line_before == line)),
            known.first.eq(item.span.begin),
            known.end.eq(item.span.end),
            known.empty.eq(item.span.empty),
            known.bumped.eq(item.span.bumped),
        ]
        with m.If(segments.i.valid & segments.i.ready & ~item.span.empty):
            m.d.sync += [some.eq(1), line_before.eq(item.last), before_bumped.eq(item.span.bumped)]
        with m.If(self.start):
            m.d.sync += [lane.eq(0), entries_left.eq(self.rows), some.eq(0)]
        return m
