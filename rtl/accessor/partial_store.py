"""Keeps the partial rows of a C tile on chip from one k step to the next; those that may not fit go to memory."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, fiber_word, partial_fiber, sram_response, sram_write
from .kept_rows import KeptRows
from .line_packer import LinePacker
from .lookup import segment_entry

__all__ = ["PartialStore"]


class PartialStore(Block):
    """Keeps partial rows of C on chip: buffering mode, for orders with k innermost.

    The partition has two halves. Each k step writes one and reads the other. In each, rows grow from the low end and
    their entries, 8 bytes a row, from the high end (as B's, HYTE section 6.3); an entry says where the row lies and how
    long it is. A row is kept only when the most that it can hold, ``bound`` elements, is free: what has begun on
    chip ends there. The others are spilled: handed on to memory, with an entry that points there.

    Members
    -------
    base, lines : In
        The partition. ``lines`` is even and each half exceeds the metadata of ``rows`` rows.
    half : In(1)
        Which half is written; constant while rows are outstanding.
    rows : In(POSITION_WIDTH)
        Rows of the tile.
    tile_begins : In(1)
        Pulse before a tile's first row, only while ``idle``.
    words, bound : In(stream), In
        Fibers of the rows in order; ``bound`` holds with every word of a fiber.
        A fiber's first word is taken in its second cycle.
    spilled : Out(stream), spill_position : In(POSITION_WIDTH)
        Words of rows that go to memory; where the next of them goes.
    row_done : Out(1)
        Pulse for each row.
    flush : In(1)
        Pulse after the last row.
    read_begin : In(1), read_rows : In
        Pulse: hand out the rows of the other half.
    partials : Out(stream)
        Where each row of the other half lies, on chip or in memory, in row order.
    sram_write : Out(stream).array(2), sram_request, sram_response
        Ports of the banked SRAM.
    occupied : Out
        Lines in use in both halves.
    idle : Out(1)
        Nothing waits to be written, no row to be handed out, and no flush is asked for.

    Timing
    ------
    One fiber word a cycle, and one cycle more for each fiber.
    """

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 30)
        law = line_address_width
        super().__init__(
            {
                "base": In(law),
                "lines": In(law + 1),
                "half": In(1),
                "rows": In(POSITION_WIDTH),
                "tile_begins": In(1),
                "words": In(stream.Signature(fiber_word(lanes))),
                "bound": In(POSITION_WIDTH),
                "spilled": Out(stream.Signature(fiber_word(lanes))),
                "spill_position": In(POSITION_WIDTH),
                "row_done": Out(1),
                "flush": In(1),
                "read_begin": In(1),
                "read_rows": In(POSITION_WIDTH),
                "partials": Out(stream.Signature(partial_fiber())),
                "sram_write": Out(stream.Signature(sram_write(lanes, law))).array(2),
                "sram_request": Out(stream.Signature(law)),
                "sram_response": In(sram_response(lanes)),
                "occupied": Out(law + 1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, law = self.lanes, self.line_address_width
        shift = (lanes - 1).bit_length()
        write_shape = sram_write(lanes, law)
        m.submodules.packer = packer = LinePacker(lanes=lanes)
        m.submodules.lines_out = lines_out = StreamQueue(shape=write_shape, depth=2)
        m.submodules.entries = entries = StreamQueue(shape=write_shape, depth=2)
        connect(m, flipped(self.sram_write[0]), lines_out.o)
        connect(m, flipped(self.sram_write[1]), entries.o)

        # What the tile and the half decide stands in registers, one cycle behind them.
        half_lines = Signal(law + 1)
        metadata_lines = Signal(law + 1)
        write_base = Signal(law + 1)
        write_entries = Signal(law + 1)  # line of the first entry
        read_entries = Signal(law + 1)
        capacity = Signal(POSITION_WIDTH)  # nonzeros that the rows of a half may take
        m.d.comb += [half_lines.eq(self.lines >> 1), metadata_lines.eq((self.rows + (lanes - 1)) >> shift)]
        m.d.sync += [
            write_base.eq(self.base + Mux(self.half, half_lines, 0)),
            write_entries.eq(self.base + Mux(self.half, self.lines - 1, half_lines - 1)),
            read_entries.eq(self.base + Mux(self.half, half_lines - 1, self.lines - 1)),
            capacity.eq((half_lines - metadata_lines) << shift),
        ]

        # Writing. Whether a row stays, and where it begins, is decided in the cycle before its first word is taken.
        begun = Signal()
        index = Signal(POSITION_WIDTH)
        decided = Signal()
        kept = Signal()
        left = Signal(POSITION_WIDTH)  # nonzeros of `capacity` that are free
        first_element = Signal(POSITION_WIDTH)
        length = Signal(POSITION_WIDTH)
        word = self.words.payload
        total = length + word.count
        m.d.sync += begun.eq(self.tile_begins)
        m.d.comb += [
            packer.words.payload.eq(word),
            self.spilled.payload.eq(word),
            packer.restart.eq(self.tile_begins),
            packer.flush.eq(self.flush),
        ]
        free = decided & (entries.i.ready | ~word.last)
        m.d.comb += [
            packer.words.valid.eq(self.words.valid & kept & free),
            self.spilled.valid.eq(self.words.valid & ~kept & free),
            self.words.ready.eq(free & Mux(kept, packer.words.ready, self.spilled.ready)),
        ]
        moved = self.words.valid & self.words.ready
        entry = Signal(segment_entry())
        m.d.comb += [
            entry.bumped.eq(~kept),
            entry.length.eq(total),
            entry.position.eq(Mux(kept, (write_base << shift) + first_element, first_element)),
            entries.i.valid.eq(moved & word.last),
            entries.i.payload.address.eq(write_entries - (index >> shift)),
            entries.i.payload.mask.eq(1 << index[:shift]),
            entries.i.payload.line.eq(entry.as_value().replicate(lanes)),
            self.row_done.eq(moved & word.last),
        ]
        with m.If(~decided & self.words.valid & ~self.tile_begins & ~begun):
            m.d.sync += [
                decided.eq(1),
                kept.eq(self.bound <= left),
                first_element.eq(Mux(self.bound <= left, packer.position, self.spill_position)),
            ]
        with m.If(moved):
            m.d.sync += [decided.eq(~word.last), length.eq(Mux(word.last, 0, total))]
            with m.If(kept):
                m.d.sync += left.eq(left - word.count)
            with m.If(word.last):
                m.d.sync += index.eq(index + 1)
        with m.If(self.tile_begins):
            m.d.sync += [index.eq(0), decided.eq(0), length.eq(0)]
        with m.If(begun):
            m.d.sync += left.eq(capacity)
        line = packer.lines
        m.d.comb += [
            lines_out.i.valid.eq(line.valid),
            line.ready.eq(lines_out.i.ready),
            lines_out.i.payload.address.eq(write_base + line.payload.index),
            lines_out.i.payload.mask.eq(line.payload.mask),
            lines_out.i.payload.line.eq(line.payload.data),
        ]
        held = [Signal(law + 1, name=f"held{n}") for n in range(2)]
        used = metadata_lines + ((packer.position + (lanes - 1)) >> shift)
        for n in range(2):
            with m.If(self.flush & (self.half == n)):
                m.d.sync += held[n].eq(used)
        m.d.comb += self.occupied.eq(held[0] + held[1])

        m.submodules.kept_rows = kept_rows = KeptRows(lanes=lanes, line_address_width=law)
        connect(m, flipped(self.sram_request), kept_rows.sram_request)
        connect(m, kept_rows.partials, flipped(self.partials))
        m.d.comb += [
            *passed(self, kept_rows, "sram_response"),
            kept_rows.start.eq(self.read_begin),
            kept_rows.rows.eq(self.read_rows),
            kept_rows.first_line.eq(read_entries),
        ]
        m.d.comb += self.idle.eq(
            packer.idle & (lines_out.level == 0) & (entries.level == 0) & kept_rows.idle & ~self.flush
        )
        return m
