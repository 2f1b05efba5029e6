"""Puts a tile's fiber segments into a partition of the SRAM, bumping those that do not fit."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, segment_word, sram_write
from .line_packer import LinePacker
from .lookup import segment_entry

__all__ = ["SegmentLoader"]


class SegmentLoader(Block):
    """Buffering mode of HYTE section 6.3: what a :class:`FiberReader` delivers is packed into the partition.

    Data grow from the partition's first line, one metadata entry for each fiber segment from its last line downwards.
    The lines between what both may use and the FIFO-managed region hold segments until one does not fit; that
    segment and all after it are bumped: their entries point into memory, from where they are streamed at each use.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH), whole : In(1)
        Pulse while ``idle``, as the reader takes its tile: segments of the tile; its rows are read whole.
    base, lines, fifo_lines : In
        The partition, and how much of it is the FIFO-managed region. ``lines`` exceeds metadata plus ``fifo_lines``.
    limit : Out(POSITION_WIDTH)
        Elements that stay resident, for the reader.
    words : In(stream), begin, length : In(POSITION_WIDTH), bumped : In(1), reader_idle : In(1)
        From the reader.
    sram_write : Out(stream).array(2)
        Data lines; metadata entries.
    idle : Out(1)
        Loaded and every line written.
    nonzeros, bumped_elements : Out(POSITION_WIDTH)
        Of the tile loaded last; stable while ``idle``.
    occupied : Out(line_address_width + 1)
        Lines in use by its data and metadata.
    """

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = lanes
        self.line_address_width = line_address_width
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "whole": In(1),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "limit": Out(POSITION_WIDTH),
                "words": In(stream.Signature(segment_word(lanes))),
                "begin": In(POSITION_WIDTH),
                "length": In(POSITION_WIDTH),
                "bumped": In(1),
                "reader_idle": In(1),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "idle": Out(1),
                "nonzeros": Out(POSITION_WIDTH),
                "bumped_elements": Out(POSITION_WIDTH),
                "occupied": Out(line_address_width + 1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "s": self.line_address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        m.submodules.packer = packer = LinePacker(lanes=lanes)
        # The reader's word, moved down to lane 0, waits here together with what is known of its segment.
        placed = data.StructLayout(
            {"word": segment_word(lanes), "begin": POSITION_WIDTH, "length": POSITION_WIDTH, "bumped": 1}
        )
        m.submodules.queue = queue = StreamQueue(shape=placed, depth=2)
        # Both leave through queues, so that neither SRAM port waits for the other.
        m.submodules.entries = entries = StreamQueue(shape=self.sram_write[1].payload.shape(), depth=2)
        m.submodules.lines_out = lines_out = StreamQueue(shape=self.sram_write[0].payload.shape(), depth=2)
        connect(m, flipped(self.sram_write[0]), lines_out.o)
        connect(m, flipped(self.sram_write[1]), entries.o)

        metadata_lines = Signal(self.line_address_width + 1)
        limit = self.limit
        whole = Signal()
        flushed = Signal(init=1)
        m.d.comb += [
            self.idle.eq((queue.level == 0) & packer.idle & flushed & (entries.level == 0) & (lines_out.level == 0)),
            metadata_lines.eq((self.rows + (lanes - 1)) >> shift),
            packer.restart.eq(self.start),
        ]
        index = Signal(POSITION_WIDTH)  # of the present segment in the tile
        begin = Signal(POSITION_WIDTH)  # where its first element went in the partition
        length = Signal(POSITION_WIDTH)  # elements of it seen before the present word
        overflowed = Signal()
        with m.If(self.start):
            m.d.sync += [
                limit.eq((self.lines - metadata_lines - self.fifo_lines) << shift),
                whole.eq(self.whole),
                index.eq(0),
                begin.eq(0),
                length.eq(0),
                overflowed.eq(0),
                flushed.eq(0),
                self.nonzeros.eq(0),
                self.bumped_elements.eq(0),
                self.occupied.eq(metadata_lines),
            ]

        m.d.comb += [
            queue.i.valid.eq(self.words.valid),
            self.words.ready.eq(queue.i.ready),
            queue.i.payload.word.line.eq(
                self.words.payload.line.as_value() >> Cat(Const(0, 6), self.words.payload.first)
            ),
            queue.i.payload.word.count.eq(self.words.payload.count),
            queue.i.payload.word.last.eq(self.words.payload.last),
            queue.i.payload.begin.eq(self.begin),
            queue.i.payload.length.eq(self.length),
            queue.i.payload.bumped.eq(self.bumped),
        ]
        item = queue.o.payload
        total = Signal(POSITION_WIDTH)
        bumped = Signal()
        entry_free = entries.i.ready | ~item.word.last
        m.d.comb += [
            total.eq(Mux(whole & item.bumped, item.length, length + item.word.count)),
            bumped.eq(overflowed | item.bumped | (begin + total > limit)),
            packer.words.valid.eq(queue.o.valid & ~bumped & entry_free & (item.word.count != 0)),
            packer.words.payload.line.eq(item.word.line),
            packer.words.payload.count.eq(item.word.count),
            queue.o.ready.eq(entry_free & (packer.words.ready | bumped | (item.word.count == 0))),
        ]
        moved = Signal()
        m.d.comb += moved.eq(queue.o.valid & queue.o.ready)
        entry = Signal(segment_entry())
        m.d.comb += [
            entry.bumped.eq(bumped),
            entry.length.eq(total),
            entry.position.eq(Mux(bumped, item.begin, (self.base << shift) + begin)),
            entries.i.valid.eq(queue.o.valid & item.word.last & (packer.words.ready | bumped | (item.word.count == 0))),
            entries.i.payload.address.eq(self.base + self.lines - 1 - (index >> shift)),
            entries.i.payload.mask.eq(1 << index[:shift]),
            entries.i.payload.line.eq(entry.as_value().replicate(lanes)),
        ]
        with m.If(moved):
            m.d.sync += [overflowed.eq(bumped), length.eq(total)]
            with m.If(item.word.last):
                m.d.sync += [index.eq(index + 1), length.eq(0), self.nonzeros.eq(self.nonzeros + total)]
                with m.If(bumped):
                    m.d.sync += self.bumped_elements.eq(self.bumped_elements + total)
                with m.Else():
                    m.d.sync += begin.eq(begin + total)

        out = packer.lines
        m.d.comb += [
            lines_out.i.valid.eq(out.valid),
            out.ready.eq(lines_out.i.ready),
            lines_out.i.payload.address.eq(self.base + out.payload.index),
            lines_out.i.payload.mask.eq(out.payload.mask),
            lines_out.i.payload.line.eq(out.payload.data),
        ]
        # The last line goes out when every segment has been packed.
        m.d.comb += packer.flush.eq(~flushed & self.reader_idle & (queue.level == 0) & packer.idle & ~self.start)
        with m.If(packer.flush):
            m.d.sync += [flushed.eq(1), self.occupied.eq(self.occupied + ((begin + (lanes - 1)) >> shift))]
        return m
