"""Accessor of B: loads a tile's fiber segments into the partition, bumping those that do not fit."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, read_request, segment_word, sram_write, tile, write_beat, write_request
from .fiber_reader import REMEMBERED_SEGMENTS, FiberReader
from .line_packer import LinePacker
from .lookup import segment_entry

__all__ = ["AccessorB"]


class AccessorB(Block):
    """Buffering mode of HYTE section 6.3 over B's part of a tile (``T_k x T_j``).

    Data grow from the partition's first line, one metadata entry for each fiber segment from its last line downwards. A
    tile that fits may use all lines between, the FIFO-managed region included, which lies before the metadata
    (Tailors 3.3: only the first overwriting fill takes it out of the buffet). Segments that end in the region are
    remembered: up to ``REMEMBERED_SEGMENTS`` that are not empty. The first segment that does not fit, or that would be one
    too many to remember, clears the region: it, all after it and those remembered are bumped, that is, their entries
    point into memory, from where they are streamed through the region at each use.

    Members
    -------
    tile : In(stream)
        Tiles whose B part is to be loaded. Taken when the one before is in place.
    base, lines, fifo_lines : In
        The partition, and how much of it is the FIFO-managed region. ``lines`` exceeds metadata plus ``fifo_lines``.
    pointers, positions, elements : In(address_width)
    sram_write : Out(stream).array(2)
        Data lines; metadata entries.
    idle : Out(1)
        Loaded, every line written and every position handed to the memory engine.
    nonzeros, bumped_elements : Out(POSITION_WIDTH)
        Of the tile loaded last; stable while ``idle``.
    occupied : Out(line_address_width + 1)
        Lines in use by its data and metadata.
    fifo_base : Out(line_address_width)
        First line of the FIFO-managed region; changes only when a tile is taken.
    """

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int, burst_beats: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.line_address_width = line_address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "tile": In(stream.Signature(tile())),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "pointers": In(address_width),
                "positions": In(address_width),
                "elements": In(address_width),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "read_request": Out(stream.Signature(read_request(address_width))).array(4),
                "read_data": In(stream.Signature(64 * lanes)).array(4),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
                "nonzeros": Out(POSITION_WIDTH),
                "bumped_elements": Out(POSITION_WIDTH),
                "occupied": Out(line_address_width + 1),
                "fifo_base": Out(line_address_width),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "s": self.line_address_width, "b": self.burst_beats}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        m.submodules.reader = reader = FiberReader(
            lanes=lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
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
        for n in range(4):
            connect(m, flipped(self.read_request[n]), reader.read_request[n])
            connect(m, flipped(self.read_data[n]), reader.read_data[n])
        connect(m, flipped(self.write_request), reader.write_request)
        connect(m, flipped(self.write_data), reader.write_data)

        # Segments in the FIFO-managed region, in case that their entries have to be written again.
        memory_segment = data.StructLayout(
            {"index": POSITION_WIDTH, "begin": POSITION_WIDTH, "length": POSITION_WIDTH - 1}
        )
        m.submodules.remembered = remembered = StreamQueue(shape=memory_segment, depth=REMEMBERED_SEGMENTS)

        want = self.tile.payload
        take = Signal()
        rows = reader.tile.payload
        metadata_lines = Signal(self.line_address_width + 1)
        limit = Signal(POSITION_WIDTH)  # elements that data lines hold, the FIFO-managed region's included
        regular = Signal(POSITION_WIDTH)  # the same without the region
        whole = Signal()
        flushed = Signal(init=1)
        m.d.comb += [
            self.idle.eq(
                reader.idle & (queue.level == 0) & packer.idle & flushed & (entries.level == 0) & (lines_out.level == 0)
            ),
            take.eq(self.tile.valid & self.tile.ready),
            # What was remembered of the tile before is forgotten first.
            self.tile.ready.eq(self.idle & (remembered.level == 0) & reader.tile.ready),
            reader.tile.valid.eq(self.tile.valid & self.idle & (remembered.level == 0)),
            rows.row.eq(want.begin_k),
            rows.rows.eq(want.size_k),
            rows.low.eq(want.begin_j),
            rows.high.eq(want.begin_j + want.size_j),
            rows.whole.eq(want.whole_j),
            rows.from_pointers.eq(want.from_pointers_b),
            rows.advance.eq(want.advance_b),
            reader.pointers.eq(self.pointers),
            reader.positions.eq(self.positions),
            reader.elements.eq(self.elements),
            reader.limit.eq(limit),
            reader.regular.eq(regular),
            metadata_lines.eq((want.size_k + (lanes - 1)) >> shift),
            packer.restart.eq(take),
        ]
        index = Signal(POSITION_WIDTH)  # of the present segment in the tile
        begin = Signal(POSITION_WIDTH)  # where its first element went in the partition
        length = Signal(POSITION_WIDTH)  # elements of it seen before the present word
        overflowed = Signal()
        kept = Signal(POSITION_WIDTH)  # elements before the first remembered segment
        with m.If(take):
            m.d.sync += [
                limit.eq((self.lines - metadata_lines) << shift),
                regular.eq((self.lines - metadata_lines - self.fifo_lines) << shift),
                whole.eq(want.whole_j),
                index.eq(0),
                begin.eq(0),
                length.eq(0),
                kept.eq(0),
                overflowed.eq(0),
                flushed.eq(0),
                self.nonzeros.eq(0),
                self.bumped_elements.eq(0),
                self.occupied.eq(metadata_lines),
                self.fifo_base.eq(self.base + self.lines - metadata_lines - self.fifo_lines),
            ]

        m.d.comb += [
            queue.i.valid.eq(reader.words.valid),
            reader.words.ready.eq(queue.i.ready),
            queue.i.payload.word.line.eq(
                reader.words.payload.line.as_value() >> Cat(Const(0, 6), reader.words.payload.first)
            ),
            queue.i.payload.word.count.eq(reader.words.payload.count),
            queue.i.payload.word.last.eq(reader.words.payload.last),
            queue.i.payload.begin.eq(reader.begin),
            queue.i.payload.length.eq(reader.length),
            queue.i.payload.bumped.eq(reader.bumped),
        ]
        item = queue.o.payload
        total = Signal(POSITION_WIDTH)
        bumped = Signal()
        ends_beyond = Signal()
        clearing = Signal()  # remembered segments are bumped first
        moved = Signal()
        free = Signal()  # nothing keeps the word at hand but the packer
        packed = Signal()
        m.d.comb += [
            total.eq(Mux(whole & item.bumped, item.length, length + item.word.count)),
            ends_beyond.eq((total != 0) & (begin + total > regular)),
            bumped.eq(overflowed | item.bumped | (begin + total > limit) | (ends_beyond & ~remembered.i.ready)),
            clearing.eq(queue.o.valid & bumped & remembered.o.valid),
            free.eq(~clearing & (entries.i.ready | ~item.word.last)),
            packed.eq(packer.words.ready | bumped | (item.word.count == 0)),
            packer.words.valid.eq(queue.o.valid & ~bumped & free & (item.word.count != 0)),
            packer.words.payload.line.eq(item.word.line),
            packer.words.payload.count.eq(item.word.count),
            queue.o.ready.eq(free & packed),
            remembered.i.valid.eq(moved & item.word.last & ends_beyond & ~bumped),
            remembered.i.payload.index.eq(index),
            remembered.i.payload.begin.eq(item.begin),
            remembered.i.payload.length.eq(total),
            remembered.o.ready.eq(Mux(clearing, entries.i.ready, flushed)),
        ]
        old = remembered.o.payload
        entry = Signal(segment_entry())
        entry_index = Signal(POSITION_WIDTH)
        m.d.comb += [
            moved.eq(queue.o.valid & queue.o.ready),
            entry.bumped.eq(bumped),
            entry.length.eq(Mux(clearing, old.length, total)),
            entry.position.eq(Mux(clearing, old.begin, Mux(bumped, item.begin, (self.base << shift) + begin))),
            entry_index.eq(Mux(clearing, old.index, index)),
            entries.i.valid.eq(clearing | (queue.o.valid & item.word.last & packed)),
            entries.i.payload.address.eq(self.base + self.lines - 1 - (entry_index >> shift)),
            entries.i.payload.mask.eq(1 << entry_index[:shift]),
            entries.i.payload.line.eq(entry.as_value().replicate(lanes)),
        ]
        with m.If(clearing & entries.i.ready):
            m.d.sync += [overflowed.eq(1), self.bumped_elements.eq(self.bumped_elements + old.length)]
        with m.If(moved):
            m.d.sync += [overflowed.eq(bumped), length.eq(total)]
            with m.If(item.word.last):
                m.d.sync += [index.eq(index + 1), length.eq(0), self.nonzeros.eq(self.nonzeros + total)]
                with m.If(bumped):
                    m.d.sync += self.bumped_elements.eq(self.bumped_elements + total)
                with m.Else():
                    m.d.sync += begin.eq(begin + total)
                    with m.If(begin + total <= regular):
                        m.d.sync += kept.eq(begin + total)

        out = packer.lines
        m.d.comb += [
            lines_out.i.valid.eq(out.valid),
            out.ready.eq(lines_out.i.ready),
            lines_out.i.payload.address.eq(self.base + out.payload.index),
            lines_out.i.payload.mask.eq(out.payload.mask),
            lines_out.i.payload.line.eq(out.payload.data),
        ]
        # The last line goes out when every segment has been packed.
        m.d.comb += packer.flush.eq(~flushed & reader.idle & (queue.level == 0) & packer.idle & ~take)
        with m.If(packer.flush):
            m.d.sync += [
                flushed.eq(1),
                self.occupied.eq(self.occupied + ((Mux(overflowed, kept, begin) + (lanes - 1)) >> shift)),
            ]
        return m
