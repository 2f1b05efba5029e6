"""Puts a tile's fiber segments into a partition of the SRAM, bumping those that do not fit."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.order import below
from ..lib.passed import passed
from ..lib.stream import StreamQueue, StreamRegister
from ..types import POSITION_WIDTH, ring_place, row_place, segment, sram_write
from .line_packer import LinePacker
from .partition_layout import PartitionLayout
from .segment_entries import SegmentEntries
from .segment_placement import REMEMBERED_SEGMENTS, SegmentPlacement, placement, segment_size
from .segment_sums import SegmentSums
from .settled_segments import SettledSegments

__all__ = ["SegmentLoader"]

# Places that have come before their segments.
PLACES_UNDER_WAY = 128


class SegmentLoader(Block):
    """Buffering mode of HYTE section 6.3: what a :class:`FiberReader` delivers is packed into the partition.

    Data grow from the partition's first line, one metadata entry for each fiber segment from its last line downwards. A
    tile that fits may use all lines between, the FIFO-managed region included, which lies before the metadata
    (Tailors 3.3: only the first overwriting fill takes it out of the buffet). Segments that end in the region are
    remembered: up to ``REMEMBERED_SEGMENTS`` that are not empty. The first segment that does not fit, or that would be one
    too many to remember, clears the region: it, all after it and those remembered are bumped, that is, their entries
    point into memory, from where they are streamed at each use.

    With ``gathered`` the partition is a ring: ``ring`` says which lines take the segments, behind which entries of metadata
    theirs follow, and how many segments at the tile's begin are in place already. What does not fit these lines is bumped.

    With ``planned`` each segment has lines and an entry of its own, which ``planned_places`` says. So many segments as
    ``ring.lines`` are put in place, those after them are bumped.

    Parameters
    ----------
    lanes, line_address_width : int
    fifo_region : bool
        False: there is no FIFO-managed region and nothing to remember; ``fifo_lines`` is 0. Nor are there windows, or plans.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH), whole : In(1)
        Pulse while ``ready``, as the reader takes its tile: segments of the tile; its rows are read whole.
    gathered : In(1), ring : In(ring_place)
        With ``fifo_region``, as ``start``.
    planned : In(1), planned_places : In(stream)
        With ``fifo_region`` and ``gathered``, constant during a tile: where each segment goes, before its size.
    misplaced : Out(1), misplaced_segment : Out(POSITION_WIDTH)
        Pulse: with ``planned``, the lines of a segment would reach beyond those for data, or there is no such entry; which of the
        tile's segments it is, counted from 0, those kept included.
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
        Of the tile loaded last. Stable while ``idle``.
    settled : Out(POSITION_WIDTH)
        With ``fifo_region``, while not ``idle``: segments from the tile's first on that can be read already and will not
        move, none of them in the FIFO-managed region. It follows the writes and may lag behind them. Of those kept, the
        ones whose line of entries takes new ones, too, come with these. With ``planned`` they do not wait: an entry is a lane
        of its own, which a write of another one in its line leaves as it is.
    occupied : Out(line_address_width + 1)
        Lines in use by its data and metadata; with ``gathered`` up to the highest one since they began anew, with ``planned``
        up to the highest one that the tile loads.
    fifo_base : Out(line_address_width)
        First line of the FIFO-managed region; changes only with ``start``.

    Timing
    ------
    One segment word a cycle. ``idle`` is high some cycles after the last line was granted, ``ready`` at most
    ``REMEMBERED_SEGMENTS`` cycles later.
    """

    def __init__(self, *, lanes: int, line_address_width: int, fifo_region: bool = True) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        self.fifo_region = bool(fifo_region)
        windowed = {
            "settled": Out(POSITION_WIDTH),
            "gathered": In(1),
            "ring": In(ring_place()),
            "planned": In(1),
            "planned_places": In(stream.Signature(row_place())),
            "misplaced": Out(1),
            "misplaced_segment": Out(POSITION_WIDTH),
        }
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

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, law = self.lanes, self.line_address_width
        shift = (lanes - 1).bit_length()
        remembered = REMEMBERED_SEGMENTS if self.fifo_region else 0
        layout = PartitionLayout(lanes=lanes, line_address_width=law, has_ring=self.fifo_region)
        m.submodules.layout = layout
        m.submodules.sums = sums = SegmentSums(lanes=lanes, line_address_width=law)
        # Of rows that are read whole the reader asks first what becomes of them; of others it is known in step with the sums.
        m.submodules.placement = places = SegmentPlacement(remembered=remembered)
        m.submodules.entries = entries = SegmentEntries(lanes=lanes, line_address_width=law, remembered=remembered)
        m.submodules.packer = packer = LinePacker(lanes=lanes, has_apart=self.fifo_region)
        # Left through a queue, so that neither SRAM port waits for the other.
        m.submodules.lines_out = lines_out = StreamQueue(shape=self.sram_write[0].payload.shape(), depth=2)
        connect(m, flipped(self.sram_write[0]), lines_out.o)
        connect(m, flipped(self.sram_write[1]), entries.write)
        connect(m, flipped(self.segments), sums.segments)

        whole = Signal()
        unsettled: Value = Const(0)
        flushed = Signal(init=1)
        place = Signal(placement())  # what becomes of the word at hand
        with m.If(self.start):
            m.d.sync += [whole.eq(self.whole), flushed.eq(0)]
        if self.fifo_region:
            m.d.comb += [
                *passed(self, layout, "gathered ring"),
                entries.beyond.eq(place.beyond),
                entries.forget.eq(flushed),
            ]
        m.d.comb += [
            *passed(self, layout, "start rows base lines fifo_lines"),
            *passed(layout, self, "fifo_base"),
            *passed(self, sums, "start"),
            *passed(layout, sums, "kept place_entry entry last_entry top origin"),
            sums.whole.eq(whole),
            # Memory does not answer before the limits are known.
            places.start.eq(self.start),
            places.load.eq(layout.starting[1]),
            *passed(layout, places, "limit regular"),
        ]

        item, step = sums.summed.payload, places.steps
        gone = Signal()
        planned: Value = self.planned if self.fifo_region else Const(0)
        m.d.comb += [
            step.valid.eq(self.row_sizes.valid | (sums.stepping & ~whole)),
            step.payload.eq(Mux(whole, self.row_sizes.payload, sums.step)),
            sums.planned.eq(planned),
            self.row_sizes.ready.eq(step.ready),
            self.row_places.valid.eq(places.places.valid),
            self.row_places.payload.eq(places.places.payload),
            places.places.ready.eq(self.row_places.ready | (gone & ~whole)),
        ]

        empty = item.word.count == 0
        valid = sums.summed.valid
        m.d.comb += [
            place.eq(Mux(whole, item.place, places.places.payload)),
            packer.restart.eq(self.start),
            packer.words.valid.eq(valid & entries.free & ~place.bumped & ~empty),
            packer.words.payload.line.eq(item.word.line),
            packer.words.payload.count.eq(item.word.count),
            packer.words.payload.last.eq(item.word.last),
            *passed(item, entries.word, "entry memory_begin position total"),
            entries.word.last.eq(item.word.last),
            entries.valid.eq(valid),
            entries.bumped.eq(place.bumped),
            entries.packs.eq(packer.words.ready | empty),
            sums.summed.ready.eq(entries.goes),
            gone.eq(valid & sums.summed.ready),
        ]
        filled = Signal(POSITION_WIDTH)  # nonzeros of segments that are in place
        kept = Signal(POSITION_WIDTH)  # those before the first remembered segment
        overflowed = Signal()
        ended = gone & item.word.last
        _count(m, self, gone, ended, item, place, entries, (filled, kept, overflowed))

        out = packer.lines
        m.d.comb += [
            lines_out.i.valid.eq(out.valid),
            out.ready.eq(lines_out.i.ready),
            lines_out.i.payload.address.eq(Mux(planned, 0, layout.data_base) + out.payload.index),
            lines_out.i.payload.mask.eq(out.payload.mask),
            lines_out.i.payload.line.eq(out.payload.data),
        ]
        if self.fifo_region:
            lines = _place_apart(m, self, layout, sums, step, packer, place, ended, whole)
            unsettled = _settle(m, self, layout, sums, place, ended, lines)
        # The last line goes out when every segment has been packed.
        emptied = sums.idle & packer.idle
        used = Mux(planned, 0, (Mux(overflowed, kept, filled) + (lanes - 1)) >> shift)
        measured = Signal()  # how far the tile has reached
        reached = Signal(law + 1)
        # Lines before the tile's data. A sum of two a cycle: it is a cycle late, and what follows one more.
        apart = Signal(law + 1)
        m.d.sync += [
            apart.eq(layout.metadata_lines + layout.first_line),
            measured.eq(packer.flush),
            reached.eq(apart + used),
        ]
        m.d.comb += [
            packer.flush.eq(~flushed & self.reader_idle & emptied & ~layout.starting.any() & ~self.start),
            self.idle.eq(emptied & flushed & entries.idle & (lines_out.level == 0)),
            self.ready.eq(self.idle & ~entries.remembers & ~unsettled),
        ]
        with m.If(layout.starting[0] & (~layout.chained | planned)):
            m.d.sync += self.occupied.eq(layout.metadata_lines)
        with m.If(packer.flush):
            m.d.sync += flushed.eq(1)
        with m.If(measured & (~layout.chained | below(self.occupied, reached))):
            m.d.sync += self.occupied.eq(reached)
        return m


def _place_apart(
    m: Module,
    loader: SegmentLoader,
    layout: PartitionLayout,
    sums: SegmentSums,
    step: Any,
    packer: LinePacker,
    place: Any,
    ended: Value,
    whole: Value,
) -> Value:
    """Segments whose lines and entries the plan says. Returns the lines of data that the tile's segments take so far."""
    lanes, item = loader.lanes, sums.summed.payload
    shift = (lanes - 1).bit_length()
    m.submodules.row_places = queue = StreamQueue(shape=row_place(), depth=PLACES_UNDER_WAY, block_memory=True)
    # What the block memory answers late in its cycle goes into a register before entries are compared.
    m.submodules.row_place = told = StreamRegister(shape=row_place())
    connect(m, flipped(loader.planned_places), queue.i)
    connect(m, queue.o, told.i)
    connect(m, told.o, sums.row_places)
    earlier = Signal(POSITION_WIDTH)  # lines of the segments before
    own = Signal(POSITION_WIDTH)
    lines = Signal(POSITION_WIDTH)
    m.d.comb += [
        own.eq((Mux(loader.planned, item.total, item.reach) + (lanes - 1)) >> shift),
        lines.eq(earlier + own),
        packer.apart.eq(loader.planned),
        packer.line.eq(item.position >> shift),
    ]
    with m.If(loader.planned & whole):
        m.d.comb += [step.payload.nonzeros.eq(lanes), step.payload.some.eq(1)]  # so many segments fit as ``ring.lines``
    stays = ended & loader.planned & ~place.bumped
    with m.If(stays):
        m.d.sync += earlier.eq(lines)
    with m.If(loader.start):
        m.d.sync += earlier.eq(0)

    # A step behind: where the segment ends, and whether the partition does before.
    line_end = Signal(POSITION_WIDTH)
    last = Signal(data.StructLayout({"ended": 1, "stays": 1, "outside": 1, "number": POSITION_WIDTH}))
    used = Signal(POSITION_WIDTH)
    apart = Signal(signed(loader.line_address_width + 2))  # lines of entries, less those before the partition
    m.d.sync += [
        apart.eq(layout.metadata_lines - loader.base),
        line_end.eq((item.position >> shift) + own),
        last.ended.eq(ended & loader.planned),
        last.stays.eq(stays & (item.total != 0)),
        last.outside.eq(item.outside),
        last.number.eq(item.segments - 1),
    ]
    m.d.comb += [
        used.eq(line_end + apart),
        loader.misplaced.eq(last.ended & (last.outside | last.stays & below(layout.fifo_base, line_end))),
        loader.misplaced_segment.eq(last.number),
    ]
    with m.If(last.stays & below(loader.occupied, used)):
        m.d.sync += loader.occupied.eq(used)
    return lines


def _settle(
    m: Module, loader: SegmentLoader, layout: PartitionLayout, sums: SegmentSums, place: Any, ended: Value, lines: Value
) -> Value:
    """Tells which segments can be read already; ``lines`` of data up to the present one. Returns whether more is to be told."""
    item, planned = sums.summed.payload, loader.planned
    m.submodules.settling = settling = SettledSegments(lanes=loader.lanes, line_address_width=loader.line_address_width)
    data_write, entry_write = loader.sram_write
    m.d.comb += [
        *passed(loader, settling, "start"),
        *passed(layout, settling, "kept place_kept"),
        *passed(sums, settling, "index"),
        # Entries that the plan places are told one by one: to write one leaves the others of its line as they are.
        settling.entry_lane.eq(Mux(planned, 0, sums.entry_lane)),
        settling.line_written.eq(data_write.valid & data_write.ready),
        settling.entry_written.eq(entry_write.valid & entry_write.ready),
        settling.ended.eq(ended),
        settling.segments.eq(item.segments),
        settling.lines.eq(lines),
        settling.whole_line.eq(planned | (item.entry.lane == loader.lanes - 1)),
        settling.moves.eq(place.beyond | place.bumped),
        *passed(settling, loader, "settled"),
    ]
    return settling.pending


def _count(
    m: Module,
    loader: SegmentLoader,
    gone: Value,
    ended: Value,
    item: Any,
    place: Any,
    entries: SegmentEntries,
    sums: tuple[Signal, Signal, Signal],
) -> None:
    """Nonzeros of the tile, those that are bumped, and those in place with or without the FIFO-managed region."""
    filled, kept, overflowed = sums
    more_bumped = Signal(POSITION_WIDTH)
    bumps = Signal()  # so many
    bumped = ended & place.bumped
    m.d.sync += [bumps.eq(bumped), more_bumped.eq(item.total)]
    with m.If(bumps):
        m.d.sync += loader.bumped_elements.eq(loader.bumped_elements + more_bumped)
    if loader.fifo_region:
        with m.If(entries.took_back):
            m.d.sync += [overflowed.eq(1), bumps.eq(1), more_bumped.eq(entries.nonzeros)]
    with m.If(gone):
        m.d.sync += overflowed.eq(place.bumped)
    with m.If(ended):
        m.d.sync += loader.nonzeros.eq(loader.nonzeros + item.total)
    with m.If(ended & ~place.bumped):
        m.d.sync += filled.eq(item.reach)
    # An empty segment ends nowhere, but it may stand beyond.
    with m.If(ended & ~place.bumped & ~place.beyond & (item.total != 0)):
        m.d.sync += kept.eq(item.reach)
    # A tile begins while no word is inside. Zeros come last, so that they are resets and no choices.
    with m.If(loader.start):
        m.d.sync += [
            kept.eq(0),
            filled.eq(0),
            overflowed.eq(0),
            loader.nonzeros.eq(0),
            loader.bumped_elements.eq(0),
        ]
