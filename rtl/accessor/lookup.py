"""Turns each element of A into a leaf: where the fiber of B that it selects lies, and how long it is."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue, StreamRegister
from ..storage import element_count, word_bytes, word_index
from ..types import ENTRY_WIDTH, POSITION_WIDTH, VALUE_WIDTH, leaf_item, read_request, selection, sram_response

__all__ = ["FiberLookup", "segment_entry"]


def segment_entry() -> data.StructLayout:
    """Metadata of a fiber segment in its partition, 8 bytes.

    ``position`` counts elements from SRAM line 0, or, for a bumped segment, from the begin of the element array in memory.
    """
    return data.StructLayout({"position": POSITION_WIDTH, "length": POSITION_WIDTH - 1, "bumped": 1})


class FiberLookup(Block):
    """Looks up fiber segments in the SRAM (buffering mode) or in a pointer array in memory (streaming mode).

    Parameters
    ----------
    lanes, address_width : int
    line_address_width : int
        Bits of an SRAM line address.
    pending : int
        Lookups under way, at least the SRAM's latency plus two.

    Members
    -------
    streaming : In(1)
        Take (begin, end) from the words ``index`` and ``index + 1`` at ``pointers``; else take entry ``index`` of the
        partition's metadata, ``lanes`` to a line, downwards from line ``metadata_line``. Configuration is constant while busy.
    entry, entries : In(ENTRY_WIDTH), origin : In(POSITION_WIDTH)
        Entries form a ring: the first fiber, ``origin``, has entry ``entry``, and entry 0 comes after entry ``entries - 1``.
        All 0: no ring, as always in streaming mode.
    metadata_line, pointers, elements, unit : In
        First metadata line; byte addresses of the pointer and of the element array; ``unit`` of the leaves made.
    selections : In(stream), leaves : Out(stream)
        In order, one a cycle.
    sram_request, sram_response : a read port of the banked SRAM
    read_request, read_data : a client port of the memory engine
    idle : Out(1)
        Nothing is being looked up.
    event_stall : Out(1)
        A selection waits because too many are under way.

    Timing
    ------
    Five cycles from a selection to its leaf where the SRAM grants at once; one lookup a cycle, where memory is read one for
    each beat or two of pointers.
    """

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int, pending: int = 32) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        self.pending = check_integer("Pending requests", pending, 1, 4096)
        super().__init__(
            {
                "streaming": In(1),
                "unit": In(1),
                "metadata_line": In(line_address_width),
                "entry": In(ENTRY_WIDTH),
                "entries": In(ENTRY_WIDTH),
                "origin": In(POSITION_WIDTH),
                "pointers": In(address_width),
                "elements": In(address_width),
                "selections": In(stream.Signature(selection())),
                "leaves": Out(stream.Signature(leaf_item(address_width))),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "idle": Out(1),
                "event_stall": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        words_per_beat = 2 * lanes

        waiting = data.StructLayout({"weight": VALUE_WIDTH, "present": 1, "last": 1, "place": range(words_per_beat)})
        m.submodules.pending = pending = StreamQueue(shape=waiting, depth=self.pending)
        m.submodules.oldest = oldest = StreamRegister(shape=waiting)
        connect(m, pending.o, oldest.i)
        m.submodules.lines = lines = StreamQueue(shape=64 * lanes, depth=8)
        under_way = Signal(range(9))  # SRAM reads asked for whose line has not been used: `lines` has room for them

        # Where the entry is.
        m.submodules.placed = placed = StreamRegister(shape=selection())
        wrapped = Signal(signed(POSITION_WIDTH + 1))  # the entry, where it comes after the last one
        start = Signal(POSITION_WIDTH)
        back = Signal(signed(POSITION_WIDTH + 1))
        from_origin = Signal.like(back)
        m.d.sync += [start.eq(from_origin), back.eq(from_origin - self.entries)]
        m.d.comb += [
            from_origin.eq(self.entry - self.origin),
            wrapped.eq(self.selections.payload.index + back),
            placed.i.valid.eq(self.selections.valid),
            self.selections.ready.eq(placed.i.ready),
            placed.i.payload.eq(self.selections.payload),
            placed.i.payload.index.eq(Mux(wrapped[-1], self.selections.payload.index + start, wrapped)),
        ]

        # Ask.
        want = placed.o.payload
        word = word_index(self.pointers) + want.index
        place = Signal(range(words_per_beat))
        straddles = Signal()
        asked = Signal()
        m.d.comb += [
            place.eq(Mux(self.streaming, word, want.index[:shift])),
            straddles.eq(place == words_per_beat - 1),
            self.sram_request.payload.eq(self.metadata_line - (want.index >> shift)),
            self.read_request.payload.address.eq(word_bytes(word)),
            self.read_request.payload.beats.eq(Mux(straddles, 2, 1)),
            pending.i.payload.weight.eq(want.weight),
            pending.i.payload.present.eq(want.present),
            pending.i.payload.last.eq(want.last),
            pending.i.payload.place.eq(place),
        ]
        ask = placed.o.valid & want.present & pending.i.ready
        m.d.comb += [
            self.sram_request.valid.eq(ask & ~self.streaming & (under_way != 8)),
            self.read_request.valid.eq(ask & self.streaming),
            asked.eq(Mux(self.streaming, self.read_request.ready, self.sram_request.ready & (under_way != 8))),
            pending.i.valid.eq(placed.o.valid & (~want.present | asked)),
            placed.o.ready.eq(pending.i.ready & (~want.present | asked)),
            self.idle.eq((pending.level == 0) & ~oldest.o.valid & ~placed.o.valid),
            self.event_stall.eq(placed.o.valid & ~placed.o.ready),
        ]
        m.d.comb += [lines.i.valid.eq(self.sram_response.valid), lines.i.payload.eq(self.sram_response.line)]
        m.d.sync += under_way.eq(
            under_way + (self.sram_request.valid & self.sram_request.ready) - (lines.o.valid & lines.o.ready)
        )

        # Answer.
        head = oldest.o.payload
        out = self.leaves
        entry = Signal(segment_entry())
        first_word = Signal(32)
        second_word = Signal(32)
        kept_begin = Signal(32)  # the last word of the beat before
        beat = self.read_data.payload
        # What the oldest one waits for, found as it comes: its way to `ready` begins with registers.
        from_memory = Signal()
        begin_missing = Signal()
        known = Signal()
        next_one = pending.o.payload
        from_two_beats = self.streaming & next_one.present & (next_one.place == words_per_beat - 1)
        with m.If(oldest.i.ready):
            m.d.sync += [
                from_memory.eq(self.streaming & next_one.present),
                begin_missing.eq(pending.o.valid & from_two_beats),
            ]
        with m.Elif(self.read_data.valid):
            m.d.sync += begin_missing.eq(0)
        with m.If(begin_missing):
            m.d.sync += kept_begin.eq(beat[-32:])
        m.d.comb += [
            entry.eq(lines.o.payload.word_select(head.place[:shift], 64)),
            first_word.eq(Cat(beat[:-32], kept_begin).word_select(head.place, 32)),
            # After the last word comes the first one.
            second_word.eq(beat.word_select((head.place + 1)[: len(head.place)], 32)),
            known.eq(Mux(from_memory, self.read_data.valid & ~begin_missing, lines.o.valid | ~head.present)),
            out.valid.eq(oldest.o.valid & known),
            oldest.o.ready.eq(known & out.ready),
        ]
        length = Signal(POSITION_WIDTH)
        found = out.payload.leaf
        m.d.comb += [
            # What is subtracted is 0 for an entry: selected behind the words, the length would be late.
            length.eq(Mux(self.streaming, second_word, entry.length) - Mux(self.streaming, first_word, 0)),
            out.payload.present.eq(head.present & (length != 0)),
            found.length.eq(length),
            found.weight.eq(head.weight),
            found.unit.eq(self.unit),
            found.last.eq(head.last),
            found.in_memory.eq(self.streaming | entry.bumped),
            found.position.eq(
                Mux(
                    found.in_memory,
                    element_count(self.elements) + Mux(self.streaming, first_word, entry.position),
                    entry.position,
                )
            ),
        ]
        used = out.valid & out.ready
        m.d.comb += [
            lines.o.ready.eq(used & head.present & ~self.streaming),
            self.read_data.ready.eq(begin_missing | (used & from_memory)),
        ]
        return m
