"""Puts a tile's fiber segments into a partition of the SRAM, bumping those that do not fit."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister
from ..types import LINE_WIDTH, POSITION_WIDTH, SLOT_WIDTH, fiber_word, ring_place, segment, sram_write
from .line_packer import LinePacker
from .lookup import segment_entry
from .segment_placement import REMEMBERED_SEGMENTS, SegmentPlacement, placement, segment_size

__all__ = ["SegmentLoader"]


class SegmentLoader(Block):
    """Buffering mode of HYTE section 6.3: what a :class:`FiberReader` delivers is packed into the partition.

    Data grow from the partition's first line, one metadata entry for each fiber segment from its last line downwards. A
    tile that fits may use all lines between, the FIFO-managed region included, which lies before the metadata
    (Tailors 3.3: only the first overwriting fill takes it out of the buffet). Segments that end in the region are
    remembered: up to ``REMEMBERED_SEGMENTS`` that are not empty. The first segment that does not fit, or that would be one
    too many to remember, clears the region: it, all after it and those remembered are bumped, that is, their entries
    point into memory, from where they are streamed at each use.

    With ``windows`` the partition is a ring: ``ring`` says which lines take the segments, behind which entries of metadata
    theirs follow, and how many segments at the tile's begin are in place already. What does not fit these lines is bumped.

    Parameters
    ----------
    lanes, line_address_width : int
    fifo_region : bool
        False: there is no FIFO-managed region and nothing to remember; ``fifo_lines`` is 0. Nor are there windows.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH), whole : In(1)
        Pulse while ``ready``, as the reader takes its tile: segments of the tile; its rows are read whole.
    windows : In(1), ring : In(ring_place)
        With ``fifo_region``, as ``start``.
    base, lines, fifo_lines : In
        The partition, and how much of it is the FIFO-managed region. ``lines`` exceeds metadata plus ``fifo_lines``.
    row_sizes : In(stream), row_places : Out(stream)
        Of the rows of a tile that is read whole, ahead of reading them (:class:`SegmentPlacement`).
    segments : In(stream), reader_idle : In(1)
        From the reader.
    sram_write : Out(stream).array(2)
        Data lines; metadata entries.
    idle : Out(1), ready : Out(1)
        Loaded and every line written; what was remembered has been forgotten, too.
    nonzeros, bumped_elements : Out(POSITION_WIDTH)
        Of the tile loaded last; stable while ``idle``.
    settled : Out(POSITION_WIDTH)
        With ``fifo_region``, while not ``idle``: segments from the tile's first on that can be read already and will not
        move, none of them in the FIFO-managed region. It follows the writes and may lag behind them. Of those kept, the
        ones whose line of entries takes new ones, too, come with these.
    occupied : Out(line_address_width + 1)
        Lines in use by its data and metadata; with ``windows`` up to the highest one since they began anew.
    fifo_base : Out(line_address_width)
        First line of the FIFO-managed region; changes only with ``start``.
    """

    def __init__(self, *, lanes: int, line_address_width: int, fifo_region: bool = True) -> None:
        self.lanes = lanes
        self.line_address_width = line_address_width
        self.fifo_region = bool(fifo_region)
        windowed = {"settled": Out(POSITION_WIDTH), "windows": In(1), "ring": In(ring_place())}
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "whole": In(1),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "row_sizes": In(stream.Signature(segment_size())),
                "row_places": Out(stream.Signature(placement())),
                "segments": In(stream.Signature(segment(lanes))),
                "reader_idle": In(1),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "idle": Out(1),
                "ready": Out(1),
                "nonzeros": Out(POSITION_WIDTH),
                "bumped_elements": Out(POSITION_WIDTH),
                **(windowed if self.fifo_region else {}),
                "occupied": Out(line_address_width + 1),
                "fifo_base": Out(line_address_width),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "s": self.line_address_width, "f": int(self.fifo_region)}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        m.submodules.packer = packer = LinePacker(lanes=lanes)
        # The reader's word, moved down to lane 0, waits here together with what is known of its segment.
        m.submodules.queue = queue = StreamQueue(shape=segment(lanes), depth=2)
        # Both leave through queues, so that neither SRAM port waits for the other.
        m.submodules.entries = entries = StreamQueue(shape=self.sram_write[1].payload.shape(), depth=2)
        m.submodules.lines_out = lines_out = StreamQueue(shape=self.sram_write[0].payload.shape(), depth=2)
        connect(m, flipped(self.sram_write[0]), lines_out.o)
        connect(m, flipped(self.sram_write[1]), entries.o)

        # Segments in the FIFO-managed region, in case that their entries have to be written again.
        remembered = None
        remembers: Value = Const(0, 1)
        if self.fifo_region:
            memory_segment = data.StructLayout(
                {
                    "address": self.line_address_width,
                    "lane": max(1, shift),
                    "begin": POSITION_WIDTH,
                    "length": POSITION_WIDTH - 1,
                }
            )
            m.submodules.remembered = remembered = StreamQueue(shape=memory_segment, depth=REMEMBERED_SEGMENTS)
            remembers = remembered.o.valid

        # Of rows that are read whole the reader asks first what becomes of them; of others it is known in step with the sums.
        m.submodules.placement = places = SegmentPlacement(remembered=REMEMBERED_SEGMENTS if self.fifo_region else 0)
        # What a word adds up to is worked out in the step before it is packed. There everything counts as fitting: after the
        # first segment that does not, no place matters any more.
        summed_shape = data.StructLayout(
            {
                "word": fiber_word(lanes),
                "memory_begin": POSITION_WIDTH,
                "place": placement(),  # where rows are read whole
                "total": POSITION_WIDTH,  # elements of the segment up to this word
                "reach": POSITION_WIDTH,  # elements of the tile up to this word
                "position": POSITION_WIDTH,  # where the segment's first element goes
                "address": self.line_address_width,  # of its entry
                "lane": max(1, shift),
                "segments": POSITION_WIDTH,  # up to this one, those kept included
            }
        )
        m.submodules.summed = summed = StreamRegister(shape=summed_shape)

        metadata_lines = Signal(self.line_address_width + 1)
        whole = Signal()
        unsettled = Signal()  # what has been written has not all been told
        starting = Signal(3)  # one cycle after `start`, two, three
        flushed = Signal(init=1)
        m.d.sync += starting.eq(Cat(self.start, starting))
        m.d.comb += [
            self.idle.eq(
                (queue.level == 0)
                & ~summed.o.valid
                & packer.idle
                & flushed
                & (entries.level == 0)
                & (lines_out.level == 0)
            ),
            self.ready.eq(self.idle & ~remembers & ~unsettled),
            packer.restart.eq(self.start),
        ]
        index = Signal(POSITION_WIDTH)  # of the present segment in the tile
        slot = Signal(SLOT_WIDTH)  # its entry
        last_slot = Signal(SLOT_WIDTH)  # after which entry 0 comes
        line = Signal(LINE_WIDTH)  # the first one for data, counted from the partition's
        data_base = Signal(self.line_address_width)
        at = Signal(POSITION_WIDTH)  # elements before the present word
        segment_at = Signal(POSITION_WIDTH)  # before the present segment
        length = Signal(POSITION_WIDTH)  # elements of it seen before the present word
        top = Signal(self.line_address_width)  # line of the first entry
        origin = Signal(POSITION_WIDTH)  # place of the partition's first element
        filled = Signal(POSITION_WIDTH)  # elements of segments that are in place
        kept = Signal(POSITION_WIDTH)  # those before the first remembered segment
        overflowed = Signal()
        with m.If(self.start):
            m.d.sync += [
                metadata_lines.eq((self.rows + (lanes - 1)) >> shift),
                kept.eq(0),
                filled.eq(0),
                whole.eq(self.whole),
                index.eq(0),
                slot.eq(0),
                last_slot.eq(~0),
                line.eq(0),
                at.eq(0),
                segment_at.eq(0),
                length.eq(0),
                overflowed.eq(0),
                flushed.eq(0),
                top.eq(self.base + self.lines - 1),
                self.nonzeros.eq(0),
                self.bumped_elements.eq(0),
            ]
        # Memory does not answer in these cycles, so nothing needs the limits yet.
        data_lines = Signal(self.line_address_width + 1)
        with m.If(starting[0]):
            m.d.sync += [data_lines.eq(self.lines - metadata_lines), data_base.eq(self.base + line)]
        regular_lines = (data_lines - self.fifo_lines)[: self.line_address_width + 1]
        m.d.comb += [
            places.start.eq(self.start),
            places.load.eq(starting[1]),
            places.limit.eq(data_lines << shift),
            places.regular.eq(regular_lines << shift),
        ]
        with m.If(starting[1]):
            m.d.sync += [
                self.fifo_base.eq(self.base + regular_lines),
                origin.eq(data_base << shift),
            ]
        chained: Value = Const(0)
        if self.fifo_region:
            chained = self._begin_window(m, starting, metadata_lines, places, (index, slot, last_slot, line))

        came = self.segments.payload.word
        m.d.comb += [
            queue.i.valid.eq(self.segments.valid),
            self.segments.ready.eq(queue.i.ready),
            queue.i.payload.eq(self.segments.payload),
            queue.i.payload.word.line.eq(came.line.as_value() >> Cat(Const(0, 6), came.first)),
        ]
        head = queue.o.payload
        count = head.word.count
        sums = summed.i.payload
        step = places.steps
        m.d.comb += [
            summed.i.valid.eq(queue.o.valid),
            queue.o.ready.eq(summed.i.ready),
            step.valid.eq(self.row_sizes.valid | (queue.o.valid & ~whole)),
            step.payload.nonzeros.eq(count),
            step.payload.last.eq(head.word.last),
            self.row_sizes.ready.eq(step.ready),
            self.row_places.valid.eq(places.places.valid),
            self.row_places.payload.eq(places.places.payload),
            places.places.ready.eq(self.row_places.ready | (summed.o.valid & summed.o.ready & ~whole)),
            sums.word.line.eq(head.word.line),
            sums.word.count.eq(count),
            sums.word.last.eq(head.word.last),
            sums.memory_begin.eq(head.begin),
            sums.place.bumped.eq(head.bumped),
            sums.place.beyond.eq(head.beyond),
            sums.total.eq(Mux(whole & head.bumped, head.length, length + count)),
            sums.reach.eq(at + count),
            sums.position.eq(origin + segment_at),
            sums.address.eq(top - (slot >> shift)),
            sums.lane.eq(slot[:shift]),
            sums.segments.eq(index + 1),
        ]
        with m.If(self.row_sizes.valid):
            m.d.comb += step.payload.eq(self.row_sizes.payload)
        with m.If(summed.i.valid & summed.i.ready):
            m.d.sync += [at.eq(sums.reach), length.eq(length + count)]
            with m.If(head.word.last):
                m.d.sync += [index.eq(sums.segments), segment_at.eq(sums.reach), length.eq(0)]
                m.d.sync += slot.eq(Mux(slot == last_slot, 0, slot + 1))

        item = summed.o.payload
        bumped = Signal()
        ends_beyond = Signal()
        moved = Signal()
        free = Signal()  # nothing keeps the word at hand but the packer
        word_packed = Signal()
        m.d.comb += [
            ends_beyond.eq(Mux(whole, item.place.beyond, places.places.payload.beyond)),
            bumped.eq(Mux(whole, item.place.bumped, places.places.payload.bumped)),
            # Remembered segments are bumped first.
            free.eq(~(bumped & remembers) & (entries.i.ready | ~item.word.last)),
            word_packed.eq(packer.words.ready | bumped | (item.word.count == 0)),
            packer.words.valid.eq(summed.o.valid & ~bumped & free & (item.word.count != 0)),
            packer.words.payload.line.eq(item.word.line),
            packer.words.payload.count.eq(item.word.count),
            summed.o.ready.eq(free & word_packed),
            moved.eq(summed.o.valid & summed.o.ready),
        ]
        entry = Signal(segment_entry())
        lane = Signal(max(1, shift))
        m.d.comb += [
            entry.bumped.eq(bumped),
            entry.length.eq(item.total),
            entry.position.eq(Mux(bumped, item.memory_begin, item.position)),
            lane.eq(item.lane),
            entries.i.valid.eq(summed.o.valid & item.word.last & word_packed & ~(bumped & remembers)),
            entries.i.payload.address.eq(item.address),
            entries.i.payload.mask.eq(1 << lane),
            entries.i.payload.line.eq(entry.as_value().replicate(lanes)),
        ]
        more_bumped = Signal(POSITION_WIDTH)
        m.d.sync += more_bumped.eq(0)
        with m.If(more_bumped != 0):
            m.d.sync += self.bumped_elements.eq(self.bumped_elements + more_bumped)
        if remembered is not None:
            old = remembered.o.payload
            m.d.comb += [
                remembered.i.valid.eq(moved & item.word.last & ends_beyond & ~bumped),
                remembered.i.payload.address.eq(item.address),
                remembered.i.payload.lane.eq(item.lane),
                remembered.i.payload.begin.eq(item.memory_begin),
                remembered.i.payload.length.eq(item.total),
                remembered.o.ready.eq(flushed),
            ]
            with m.If(summed.o.valid & bumped & remembers):
                m.d.comb += [
                    remembered.o.ready.eq(entries.i.ready),
                    entries.i.valid.eq(1),
                    entry.length.eq(old.length),
                    entry.position.eq(old.begin),
                    entries.i.payload.address.eq(old.address),
                    lane.eq(old.lane),
                ]
                with m.If(entries.i.ready):
                    m.d.sync += [overflowed.eq(1), more_bumped.eq(old.length)]
        with m.If(moved):
            m.d.sync += overflowed.eq(bumped)
            with m.If(item.word.last):
                m.d.sync += self.nonzeros.eq(self.nonzeros + item.total)
                with m.If(bumped):
                    m.d.sync += more_bumped.eq(item.total)
                with m.Else():
                    m.d.sync += filled.eq(item.reach)
                    # An empty segment ends nowhere, but it may stand beyond.
                    with m.If(~ends_beyond & (item.total != 0)):
                        m.d.sync += kept.eq(item.reach)

        out = packer.lines
        m.d.comb += [
            lines_out.i.valid.eq(out.valid),
            out.ready.eq(lines_out.i.ready),
            lines_out.i.payload.address.eq(data_base + out.payload.index),
            lines_out.i.payload.mask.eq(out.payload.mask),
            lines_out.i.payload.line.eq(out.payload.data),
        ]
        if self.fifo_region:
            # One that finds no room is skipped; those after it stand for it. A line of metadata that is still being
            # written must not be read.
            checkpoint = data.StructLayout({"segments": POSITION_WIDTH, "lines": self.line_address_width + 1})
            m.submodules.checkpoints = checkpoints = StreamQueue(shape=checkpoint, depth=4)
            m.d.comb += unsettled.eq(checkpoints.o.valid)
            whole_line = item.lane == lanes - 1  # of entries
            self._settle(
                m, checkpoints, moved & item.word.last, whole_line, ends_beyond | bumped, item.segments, item.reach
            )
        # The last line goes out when every segment has been packed.
        emptied = (queue.level == 0) & ~summed.o.valid & packer.idle & ~starting.any()
        m.d.comb += packer.flush.eq(~flushed & self.reader_idle & emptied & ~self.start)
        used = (Mux(overflowed, kept, filled) + (lanes - 1)) >> shift
        reached = Signal(self.line_address_width + 1)
        m.d.comb += reached.eq(metadata_lines + line + used)
        with m.If(starting[0] & ~chained):
            m.d.sync += self.occupied.eq(metadata_lines)
        with m.If(packer.flush):
            m.d.sync += flushed.eq(1)
            with m.If(~chained | (reached > self.occupied)):
                m.d.sync += self.occupied.eq(reached)
        return m

    def _begin_window(
        self,
        m: Module,
        starting: Signal,
        metadata_lines: Signal,
        places: SegmentPlacement,
        begins: tuple[Signal, Signal, Signal, Signal],
    ) -> Signal:
        """With ``windows`` other places and limits than those of a tile that begins anew; returns whether segments were kept."""
        shift = (self.lanes - 1).bit_length()
        index, slot, last_slot, line = begins
        ring = self.ring
        windows = Signal()
        chained = Signal()
        lines = Signal(LINE_WIDTH)
        entries = Signal(SLOT_WIDTH)
        first = Signal(SLOT_WIDTH + 1)  # entry of the first segment that comes, perhaps one turn too far
        with m.If(self.start):
            m.d.sync += [windows.eq(self.windows), chained.eq(self.windows & (ring.kept != 0))]
            with m.If(self.windows):
                m.d.sync += [
                    metadata_lines.eq(ring.metadata),
                    index.eq(ring.kept),
                    first.eq(ring.slot + ring.kept),
                    entries.eq(ring.metadata << shift),
                    last_slot.eq((ring.metadata << shift) - 1),
                    line.eq(ring.line),
                    lines.eq(ring.lines),
                ]
        with m.If(windows):
            with m.If(starting[0]):
                m.d.sync += slot.eq(Mux(first >= entries, first - entries, first))
            with m.If(starting[1]):
                m.d.comb += [places.limit.eq(lines << shift), places.regular.eq(lines << shift)]
                # Kept segments whose line of entries takes new ones wait for these.
                new = slot[:shift]
                m.d.sync += self.settled.eq(Mux(index < new, 0, index - new))
        return chained

    def _settle(
        self,
        m: Module,
        checkpoints: StreamQueue,
        ended: Value,
        whole_line: Value,
        ends: Value,
        segments: Value,
        elements: Value,
    ) -> None:
        """Follows what has been written: after ``segments`` of them, ``elements`` lie in the partition."""
        lanes, count = self.lanes, self.line_address_width + 1
        lines = Signal(count)
        entries = Signal(POSITION_WIDTH)
        reached = Signal()  # the checkpoint at hand has been written
        over = Signal()  # segments from here on may still move
        at = checkpoints.o.payload
        line_written = self.sram_write[0].valid & self.sram_write[0].ready
        entry_written = self.sram_write[1].valid & self.sram_write[1].ready
        m.d.comb += [
            checkpoints.i.valid.eq(ended & ~over & ~ends & whole_line),
            checkpoints.i.payload.segments.eq(segments),
            checkpoints.i.payload.lines.eq((elements + (lanes - 1)) >> (lanes - 1).bit_length()),
            checkpoints.o.ready.eq(reached),
        ]
        m.d.sync += reached.eq(
            checkpoints.o.valid & ~reached & (lines >= at.lines) & (entries >= at.segments) & ~self.start
        )
        m.d.sync += [lines.eq(lines + line_written), entries.eq(entries + entry_written)]
        with m.If(ended & ends):
            m.d.sync += over.eq(1)
        with m.If(checkpoints.o.valid & checkpoints.o.ready):
            m.d.sync += self.settled.eq(at.segments)
        with m.If(self.start):
            m.d.sync += [lines.eq(0), entries.eq(Mux(self.windows, self.ring.kept, 0)), over.eq(0), self.settled.eq(0)]
