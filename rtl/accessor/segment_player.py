"""Hands out the fiber segments of a tile that is in place: resident ones from the SRAM, bumped ones from memory."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
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

        rows_left = Signal(POSITION_WIDTH)
        m.d.comb += [
            self.idle.eq((rows_left == 0) & (pieces.level == 0)),
            requester.start.eq(self.start),
            requester.elements.eq(self.elements),
        ]

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
        lane = Signal(range(lanes))
        done = Signal(POSITION_WIDTH)  # elements of the present segment in pieces already found
        known = Signal()
        known_in_memory = Signal()
        known_line = Signal(POSITION_WIDTH)  # of the piece before that was not empty
        entry = Signal(segment_entry())
        at = Signal(POSITION_WIDTH)
        left = Signal(POSITION_WIDTH)
        room = Signal(range(lanes + 1))
        empty = Signal()
        out = pieces.i.payload
        line_index = at >> shift
        m.d.comb += [
            entry.eq(metadata.o.payload.word_select(lane, 64)),
            at.eq(entry.position + done),
            left.eq(entry.length - done),
            room.eq(lanes - at[:shift]),
            empty.eq(entry.length == 0),
            out.in_memory.eq(entry.bumped),
            out.first.eq(at[:shift]),
            out.count.eq(Mux(left < room, left, room)),
            out.last.eq(left <= room),
            out.fresh.eq(~empty & ~(known & (known_in_memory == entry.bumped) & (known_line == line_index))),
            line_address.eq(line_index),
        ]
        active = Signal()
        found = Signal()
        begins_bumped = entry.bumped & ~empty & (done == 0)
        m.d.comb += [
            active.eq((rows_left != 0) & metadata.o.valid & pieces.i.ready),
            wants_line.eq(active & out.fresh & ~entry.bumped & (lines_asked != DATA_LINES)),
            requester.pairs.valid.eq(active & begins_bumped),
            requester.pairs.payload.begin.eq(entry.position),
            requester.pairs.payload.end.eq(entry.position + entry.length),
            found.eq(active & (~out.fresh | entry.bumped | asks_line) & (~begins_bumped | requester.pairs.ready)),
            pieces.i.valid.eq(found),
            metadata.o.ready.eq(found & out.last & ((lane == lanes - 1) | (rows_left == 1))),
        ]
        with m.If(found):
            m.d.sync += done.eq(done + out.count)
            with m.If(~empty):
                m.d.sync += [known.eq(1), known_in_memory.eq(entry.bumped), known_line.eq(line_index)]
            with m.If(out.last):
                m.d.sync += [done.eq(0), lane.eq(lane + 1), rows_left.eq(rows_left - 1)]
        with m.If(self.start):
            m.d.sync += [
                rows_left.eq(self.rows),
                metadata_left.eq((self.rows + (lanes - 1)) >> shift),
                metadata_at.eq(self.metadata_line),
                lane.eq(0),
                known.eq(0),
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
