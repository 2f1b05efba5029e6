"""Segment sums: what the words of a tile's segments add up to, and where the segment's data and entry go."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.order import below
from ..lib.stream import StreamRegister, StreamSkid
from ..types import ENTRY_WIDTH, POSITION_WIDTH, fiber_word, row_place, segment
from .segment_placement import placement, segment_size

__all__ = ["SegmentSums", "entry_place", "summed_word"]


def entry_place(lanes: int, line_address_width: int) -> data.StructLayout:
    """A metadata entry in the SRAM: its line and its lane."""
    return data.StructLayout({"address": line_address_width, "lane": max(1, (lanes - 1).bit_length())})


def summed_word(lanes: int, line_address_width: int) -> data.StructLayout:
    """A word of a segment, from lane 0 on.

    ``memory_begin``: position in memory of the segment's first nonzero; ``position``: where it goes, counted from SRAM line 0.
    ``place``: where rows are read whole. ``total``, ``reach``: nonzeros of the segment, of the tile, up to this word.
    ``entry``: where its metadata go; ``outside``: there are not so many entries. ``segments``: of the tile up to this one,
    those kept included.
    """
    positions = ("memory_begin", "total", "reach", "position", "segments")
    fields: dict[str, Any] = {"word": fiber_word(lanes), "place": placement(), "outside": 1}
    fields["entry"] = entry_place(lanes, line_address_width)
    return data.StructLayout({**fields, **dict.fromkeys(positions, POSITION_WIDTH)})


class SegmentSums(Block):
    """Counts nonzeros and segments word by word, in the step before they are packed.

    Here every segment counts as fitting: after the first one that does not, no place matters any more.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, a power of two.
    line_address_width : int

    Members
    -------
    start : In(1), kept : In(POSITION_WIDTH)
        Pulse: a tile begins, and so many of its segments are in place.
    place_entry : In(1), entry : In(ENTRY_WIDTH), last_entry : In(ENTRY_WIDTH)
        Pulse: the next segment has entry ``entry``, which is 0 without it. After entry ``last_entry`` comes entry 0.
    top, origin : In
        Line of entry 0; place of the tile's first nonzero. They hold while words come.
    whole : In(1)
        Rows are read whole: a bumped one has its length with its only word.
    planned : In(1), row_places : In(stream)
        The plan says where each segment and its entry go. A place is taken with the last word of its segment.
    segments : In(stream), summed : Out(stream)
        Two cycles at least from one to the other, one word a cycle.
    step : Out(segment_size), stepping : Out(1)
        A word is summed in this cycle: what :class:`.segment_placement.SegmentPlacement` is to know of it.
    index : Out(POSITION_WIDTH), entry_lane : Out
        Number of the segment at hand, and the lane of its entry.
    idle : Out(1)
        No word is inside.

    Timing
    ------
    Two cycles; one word a cycle.
    """

    latency = 2

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        if not isinstance(lanes, int) or lanes < 1 or lanes & (lanes - 1):
            raise ValueError(f"Lanes must be a power of two, not {lanes!r}")
        self.lanes = lanes
        self.line_address_width = line_address_width
        super().__init__(
            {
                "start": In(1),
                "kept": In(POSITION_WIDTH),
                "place_entry": In(1),
                "entry": In(ENTRY_WIDTH),
                "last_entry": In(ENTRY_WIDTH),
                "top": In(line_address_width),
                "origin": In(POSITION_WIDTH),
                "whole": In(1),
                "planned": In(1),
                "row_places": In(stream.Signature(row_place())),
                "segments": In(stream.Signature(segment(lanes))),
                "summed": Out(stream.Signature(summed_word(lanes, line_address_width))),
                "step": Out(segment_size()),
                "stepping": Out(1),
                "index": Out(POSITION_WIDTH),
                "entry_lane": Out((lanes - 1).bit_length()),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        # The reader's word, moved down to lane 0, waits here together with what is known of its segment.
        m.submodules.word = word = StreamRegister(shape=segment(self.lanes))
        # The word after it does not wait to be told whether it goes.
        m.submodules.summed = summed = StreamSkid(shape=summed_word(self.lanes, self.line_address_width))
        connect(m, flipped(self.summed), summed.o)
        entry = Signal(ENTRY_WIDTH)  # entry of the present segment
        at = Signal(POSITION_WIDTH)  # nonzeros before the present word
        segment_at = Signal(POSITION_WIDTH)  # before the present segment
        length = Signal(POSITION_WIDTH)  # of it, before the present word
        place = self.row_places.payload
        known = Signal()  # where the segment goes
        goes_to = Signal(ENTRY_WIDTH)
        came, head, sums = self.segments.payload, word.o.payload, summed.i.payload
        count = head.word.count
        m.d.comb += [
            word.i.valid.eq(self.segments.valid),
            self.segments.ready.eq(word.i.ready),
            word.i.payload.eq(came),
            word.i.payload.word.line.eq(_moved_down(came.word.line, came.word.first)),
            word.i.payload.bumped.eq(self.whole & came.bumped),
            known.eq(~self.planned | self.row_places.valid),
            summed.i.valid.eq(word.o.valid & known),
            word.o.ready.eq(summed.i.ready & known),
            self.row_places.ready.eq(self.planned & word.o.valid & summed.i.ready & head.word.last),
            goes_to.eq(Mux(self.planned, place.entry, entry)),
            self.stepping.eq(summed.i.valid & summed.i.ready),
            self.step.nonzeros.eq(count),
            self.step.some.eq(count != 0),
            self.step.last.eq(head.word.last),
            self.entry_lane.eq(entry[:shift]),
            self.idle.eq(~word.o.valid & ~summed.o.valid),
            sums.word.line.eq(head.word.line),
            sums.word.count.eq(count),
            sums.word.last.eq(head.word.last),
            sums.memory_begin.eq(head.begin),
            sums.place.bumped.eq(head.bumped),
            sums.place.beyond.eq(head.beyond),
            sums.total.eq(Mux(head.bumped, head.length, length + count)),
            sums.reach.eq(at + count),
            sums.position.eq(self.origin + Mux(self.planned, place.line << shift, segment_at)),
            sums.entry.address.eq(self.top - (goes_to >> shift)),
            sums.entry.lane.eq(goes_to[:shift]),
            sums.outside.eq(self.planned & below(self.last_entry, place.entry)),
            sums.segments.eq(self.index + 1),
        ]
        ended = self.stepping & head.word.last
        with m.If(self.stepping):
            m.d.sync += [at.eq(sums.reach), length.eq(length + count)]
        with m.If(ended):
            m.d.sync += [self.index.eq(sums.segments), segment_at.eq(sums.reach), entry.eq(entry + 1)]
        # A tile begins while no word is inside. Zeros come last, so that they are resets and no choices.
        with m.If(self.place_entry):
            m.d.sync += entry.eq(self.entry)
        with m.If(ended | self.start):
            m.d.sync += length.eq(0)
        with m.If((ended & (entry == self.last_entry)) | self.start):
            m.d.sync += entry.eq(0)
        with m.If(self.start):
            m.d.sync += [self.index.eq(self.kept), at.eq(0), segment_at.eq(0)]
        return m


def _moved_down(line: Any, first: Value) -> Value:
    """The nonzeros from lane ``first`` on, from lane 0 on. Lanes behind them hold anything."""
    lanes = [lane.as_value() for lane in line]
    for bit in range(len(first)):
        step = 1 << bit
        lanes = [
            Mux(first[bit], lanes[n + step], lane) if n + step < len(lanes) else lane for n, lane in enumerate(lanes)
        ]
    return Cat(lanes)
