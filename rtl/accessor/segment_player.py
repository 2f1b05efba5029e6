"""Hands out the fiber segments of a tile that is in place: resident ones from the SRAM, bumped ones from memory."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..types import POSITION_WIDTH, line, read_request, segment_word, sram_response
from .lookup import segment_entry
from .run_requester import RunRequester

__all__ = ["SegmentPlayer"]

METADATA_LINES = 2
DATA_LINES = 8
PIECES = 16


class SegmentPlayer(Block):
    """Walks the metadata that a :class:`SegmentLoader` left and gives the words of each segment, one a cycle.

    A piece is what one line holds of one segment. Pieces are found ahead, and their lines asked for, from the SRAM or from
    memory; each line is read once, since segments lie in rising order in both. Bumped segments come through the reader's
    queue of the memory engine: each use of the tile reads them again.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        Pulse while ``idle``: segments of the tile, at least 1.
    metadata_line : In(line_address_width)
        Line of the first entries; the lines below hold those that follow.
    elements : In(address_width)
        Byte address of the element array, bus-aligned.
    sram_request, sram_response : a read port of the banked SRAM
    read_request, read_data : a client port of the memory engine
    words : Out(stream)
        The segments in row order.
    idle : Out(1)
        No row is left to look up, and no piece is on its way.
    event_resident, event_bumped : Out(range(lanes + 1))
        Elements handed out in this cycle, by where they came from.
    """

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int, burst_beats: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.line_address_width = line_address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "metadata_line": In(line_address_width),
                "elements": In(address_width),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "words": Out(stream.Signature(segment_word(lanes))),
                "idle": Out(1),
                "event_resident": Out(range(lanes + 1)),
                "event_bumped": Out(range(lanes + 1)),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "s": self.line_address_width, "b": self.burst_beats}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, law = self.lanes, self.line_address_width
        shift = (lanes - 1).bit_length()
        piece = data.StructLayout(
            {"fresh": 1, "in_memory": 1, "first": range(lanes), "count": range(lanes + 1), "last": 1}
        )
        ask = data.StructLayout({"address": law, "metadata": 1})
        m.submodules.requester = requester = RunRequester(
            lanes=lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        m.submodules.asks = asks = StreamQueue(shape=ask, depth=2)
        m.submodules.kinds = kinds = StreamQueue(shape=1, depth=METADATA_LINES + DATA_LINES)
        m.submodules.metadata = metadata = StreamQueue(shape=64 * lanes, depth=METADATA_LINES)
        m.submodules.lines = lines = StreamQueue(shape=64 * lanes, depth=DATA_LINES)
        m.submodules.pieces = pieces = StreamQueue(shape=piece, depth=PIECES)
        connect(m, flipped(self.read_request), requester.read_request)

        rows_left = Signal(POSITION_WIDTH)  # segments whose last piece has not been found
        m.d.comb += [
            self.idle.eq((rows_left == 0) & (pieces.level == 0)),
            requester.start.eq(self.start),
            requester.elements.eq(self.elements),
        ]
        segments = self._segments(m, metadata, requester)

        # What is asked of the SRAM has room when it comes back; answers come in the order of the grants.
        metadata_asked = Signal(range(METADATA_LINES + 1))  # lines asked for or held
        lines_asked = Signal(range(DATA_LINES + 1))
        metadata_left = Signal(POSITION_WIDTH)  # lines not yet asked for
        metadata_at = Signal(law)
        wants_metadata = Signal()
        wants_line = Signal()
        line_address = Signal(law)
        m.d.comb += [
            wants_metadata.eq((metadata_left != 0) & (metadata_asked != METADATA_LINES)),
            asks.i.valid.eq(wants_metadata | wants_line),
            asks.i.payload.metadata.eq(wants_metadata),
            asks.i.payload.address.eq(Mux(wants_metadata, metadata_at, line_address)),
            self.sram_request.valid.eq(asks.o.valid),
            self.sram_request.payload.eq(asks.o.payload.address),
            asks.o.ready.eq(self.sram_request.ready),
            kinds.i.valid.eq(self.sram_request.valid & self.sram_request.ready),
            kinds.i.payload.eq(asks.o.payload.metadata),
            kinds.o.ready.eq(self.sram_response.valid),
            metadata.i.valid.eq(self.sram_response.valid & kinds.o.payload),
            lines.i.valid.eq(self.sram_response.valid & ~kinds.o.payload),
            metadata.i.payload.eq(self.sram_response.line),
            lines.i.payload.eq(self.sram_response.line),
        ]
        asks_metadata = wants_metadata & asks.i.ready
        asks_line = wants_line & ~wants_metadata & asks.i.ready
        m.d.sync += [
            metadata_asked.eq(metadata_asked + asks_metadata - (metadata.o.valid & metadata.o.ready)),
            lines_asked.eq(lines_asked + asks_line - (lines.o.valid & lines.o.ready)),
        ]
        with m.If(asks_metadata):
            m.d.sync += [metadata_left.eq(metadata_left - 1), metadata_at.eq(metadata_at - 1)]

        # One piece a cycle.
        fresh = Signal(init=1)  # the segment's first piece is awaited
        lines_left = Signal(POSITION_WIDTH)
        at_last = Signal()
        line_at = Signal(law)
        segment = segments.payload
        here = Signal(law)
        ends = Signal()
        first = Signal(range(lanes))
        out = pieces.i.payload
        m.d.comb += [
            ends.eq(Mux(fresh, segment.single, at_last)),
            here.eq(Mux(fresh, segment.line, line_at)),
            first.eq(Mux(fresh, segment.first, 0)),
            out.in_memory.eq(segment.bumped),
            out.first.eq(first),
            out.last.eq(ends),
            out.fresh.eq(~segment.empty & ~(fresh & segment.shares)),
            line_address.eq(here),
        ]
        with m.If(~segment.empty):
            m.d.comb += out.count.eq(Mux(ends & (segment.end != 0), segment.end, lanes) - first)
        active = Signal()
        found = Signal()
        m.d.comb += [
            active.eq(segments.valid & pieces.i.ready),
            wants_line.eq(active & out.fresh & ~segment.bumped & (lines_asked != DATA_LINES)),
            found.eq(active & (~out.fresh | segment.bumped | asks_line)),
            pieces.i.valid.eq(found),
            segments.ready.eq(found & ends),
        ]
        with m.If(found):
            m.d.sync += [
                fresh.eq(ends),
                line_at.eq(here + 1),
                lines_left.eq(Mux(fresh, segment.more, lines_left) - 1),
                at_last.eq(Mux(fresh, segment.more, lines_left) == 1),
            ]
            with m.If(ends):
                m.d.sync += rows_left.eq(rows_left - 1)
        with m.If(self.start):
            m.d.sync += [
                rows_left.eq(self.rows),
                metadata_left.eq((self.rows + (lanes - 1)) >> shift),
                metadata_at.eq(self.metadata_line),
            ]

        # Pieces meet their lines; the line before is kept for a segment that goes on in it or begins in it.
        head = pieces.o.payload
        held = Signal(line(lanes))
        beat = Signal(line(lanes))
        words = self.words
        used = Signal()
        m.d.comb += [
            beat.eq(Mux(head.in_memory, self.read_data.payload, lines.o.payload)),
            words.valid.eq(pieces.o.valid & (~head.fresh | Mux(head.in_memory, self.read_data.valid, lines.o.valid))),
            words.payload.line.eq(Mux(head.fresh, beat, held)),
            words.payload.first.eq(head.first),
            words.payload.count.eq(head.count),
            words.payload.last.eq(head.last),
            used.eq(words.valid & words.ready),
            pieces.o.ready.eq(used),
            lines.o.ready.eq(used & head.fresh & ~head.in_memory),
            self.read_data.ready.eq(used & head.fresh & head.in_memory),
            self.event_resident.eq(Mux(used & ~head.in_memory, head.count, 0)),
            self.event_bumped.eq(Mux(used & head.in_memory, head.count, 0)),
        ]
        with m.If(used & head.fresh):
            m.d.sync += held.eq(beat)
        return m

    def _segments(self, m: Module, metadata: StreamQueue, requester: RunRequester) -> Any:
        """Entries out of the metadata lines, and what is to be known of each: a sum or comparison of positions a cycle."""
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        span = data.StructLayout({"begin": POSITION_WIDTH, "end": POSITION_WIDTH, "empty": 1, "bumped": 1})
        lines = data.StructLayout({"span": span, "last": POSITION_WIDTH})
        known = data.StructLayout(
            {
                "line": POSITION_WIDTH,  # of the first element
                "more": POSITION_WIDTH,  # lines behind it
                "single": 1,  # none
                "shares": 1,  # it is the last line of the segment before
                "first": range(lanes),  # lane of the first element
                "end": range(lanes),  # lane after the last element, modulo
                "empty": 1,
                "bumped": 1,
            }
        )
        m.submodules.entries = entries = StreamSkid(shape=segment_entry())
        m.submodules.spans = spans = StreamRegister(shape=span)
        m.submodules.spanned = spanned = StreamRegister(shape=lines)
        m.submodules.segments = segments = StreamSkid(shape=known)

        lane = Signal(range(lanes))
        entries_left = Signal(POSITION_WIDTH)
        m.d.comb += [
            entries.i.valid.eq(metadata.o.valid & (entries_left != 0)),
            entries.i.payload.eq(metadata.o.payload.word_select(lane, 64)),
            metadata.o.ready.eq(entries.i.ready & (entries_left != 0) & ((lane == lanes - 1) | (entries_left == 1))),
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
            requester.pairs.valid.eq(spans.o.valid & asks & spanned.i.ready),
            requester.pairs.payload.begin.eq(place.begin),
            requester.pairs.payload.end.eq(place.end),
            spanned.i.valid.eq(spans.o.valid & (~asks | requester.pairs.ready)),
            spans.o.ready.eq(spanned.i.ready & (~asks | requester.pairs.ready)),
            spanned.i.payload.span.eq(place),
            spanned.i.payload.last.eq((place.end - 1)[:POSITION_WIDTH] >> shift),
        ]
        item, info = spanned.o.payload, segments.i.payload
        line = item.span.begin >> shift
        some = Signal()  # a segment that is not empty came before
        line_before = Signal(POSITION_WIDTH)  # its last line
        before_bumped = Signal()
        m.d.comb += [
            segments.i.valid.eq(spanned.o.valid),
            spanned.o.ready.eq(segments.i.ready),
            info.line.eq(line),
            info.more.eq(item.last - line),
            info.single.eq(item.span.empty | (item.last == line)),
            info.shares.eq(some & (before_bumped == item.span.bumped) & (line_before == line)),
            info.first.eq(item.span.begin),
            info.end.eq(item.span.end),
            info.empty.eq(item.span.empty),
            info.bumped.eq(item.span.bumped),
        ]
        with m.If(segments.i.valid & segments.i.ready & ~item.span.empty):
            m.d.sync += [some.eq(1), line_before.eq(item.last), before_bumped.eq(item.span.bumped)]
        with m.If(self.start):
            m.d.sync += [lane.eq(0), entries_left.eq(self.rows), some.eq(0)]
        return segments.o
