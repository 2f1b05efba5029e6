"""Writes the fibers of rows that are merged in several steps to scratch memory, and tells when they are there."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..storage import element_count, line_bytes
from ..types import POSITION_WIDTH, fiber_word, scratch_fiber, scratch_places, sram_write, write_beat, write_request
from .fiber_appender import FiberAppender
from .line_packer import packed_line
from .line_writer import REQUESTS_WIDTH
from .scratch_ring import ScratchRing

__all__ = ["ScratchWriter"]

PENDING = 8  # fibers whose writes are not acknowledged yet
LINES_WIDTH = 4  # counts lines on their way to the SRAM: two wait before the ring, two in it


class ScratchWriter(Block):
    """Writes scratch fibers into one slot of scratch memory for each long row under way, without waiting for memory.

    The region is cut into ``scratch_slots`` equal parts, each a whole number of lines. A row's fibers lie in its slot one after
    another, each flushed at its end, so that what is written depends on the fibers alone. The first lines of each slot stay on
    chip (:class:`ScratchRing`). A fiber is told when the SRAM has its lines and the memory engine has retired the last request
    that holds any of it.

    Members
    -------
    region, capacity : In(address_width)
        Byte address and bytes of all slots together. Constant while not ``idle``.
    base : In(line_address_width), lines : In(line_address_width + 1)
        Lines of the SRAM for the first lines of slots. Fewer than two times the margin of :class:`ScratchRing` are as none.
        Constant while not ``idle``.
    words : In(stream), first : In(1), slot : In
        Fibers; the first one of a row begins the row's slot anew. Nothing is taken beyond the slot, nor while ``results``
        wait.
    open : Out(1)
        Words may leave the collector: there are lines for all that may be on its way.
    merged_out : In(1)
        The oldest row with a slot needs it no longer.
    results : Out(stream(scratch_fiber))
        Each fiber, in order, when it can be read back.
    places : Out(scratch_places)
        Where the lines of the slots lie.
    sram_write : Out(stream(sram_write))
        A write port of the banked SRAM.
    retired : In(1)
        The memory engine's ``write_retired`` of this client.
    overflow : Out(1), needed : Out(address_width)
        A fiber does not fit its slot; bytes that the region needs at least. Stays until reset.
    write_request, write_data : Out(stream)
        A client port of the memory engine.
    idle : Out(1)
        Nothing is inside, all fibers have been told.

    Timing
    ------
    A word a cycle; four cycles between fibers, one more where a row begins.
    """

    def __init__(
        self, *, lanes: int, address_width: int, line_address_width: int, burst_beats: int, scratch_slots: int
    ) -> None:
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1024)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 30)
        self.lanes = lanes
        self.address_width = address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "region": In(address_width),
                "capacity": In(address_width),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "words": In(stream.Signature(fiber_word(lanes))),
                "first": In(1),
                "slot": In(range(max(2, scratch_slots))),
                "open": Out(1),
                "merged_out": In(1),
                "results": Out(stream.Signature(scratch_fiber(scratch_slots))),
                "places": Out(scratch_places(address_width, line_address_width, scratch_slots)),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))),
                "retired": In(1),
                "overflow": Out(1),
                "needed": Out(address_width),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        aw = self.address_width
        line_bits = (line_bytes(self.lanes) - 1).bit_length()
        slot_bits = (self.scratch_slots - 1).bit_length()
        m.submodules.appender = appender = FiberAppender(
            lanes=self.lanes, address_width=aw, burst_beats=self.burst_beats, keeps=True
        )
        m.submodules.ring = ring = ScratchRing(
            lanes=self.lanes, line_address_width=self.line_address_width, scratch_slots=self.scratch_slots
        )
        connect(m, flipped(self.write_request), appender.write_request)
        connect(m, flipped(self.write_data), appender.write_data)
        # Left through a register, so that no word waits for what the ring finds of its line in the same cycle.
        m.submodules.kept = kept = StreamSkid(shape=packed_line(self.lanes))
        connect(m, appender.kept, kept.i)
        connect(m, kept.o, ring.kept)
        connect(m, ring.sram_write, flipped(self.sram_write))
        pending_shape = data.StructLayout({"fiber": scratch_fiber(self.scratch_slots), "requests": REQUESTS_WIDTH})
        m.submodules.pending = pending = StreamQueue(shape=pending_shape, depth=PENDING)
        m.submodules.told = told = StreamRegister(shape=scratch_fiber(self.scratch_slots))
        connect(m, flipped(self.results), told.o)

        # Where the row's slot begins.
        slot_capacity = Signal(aw)
        present = Signal.like(self.slot)
        offset = Signal(aw)
        start: Any = Const(0, aw)
        for n in range(slot_bits):
            start = start + Mux(self.slot[n], slot_capacity << n, 0)
        m.d.comb += [
            slot_capacity.eq(Cat(Const(0, line_bits), self.capacity[line_bits + slot_bits :])),
            appender.region.eq(self.region + offset),
            appender.capacity.eq(slot_capacity),
            self.overflow.eq(appender.overflow),
            self.needed.eq(((appender.needed + ((1 << line_bits) - 1)) >> line_bits) << (line_bits + slot_bits)),
            *passed(self, ring, "base lines merged_out"),
            *passed(ring, self, "open"),
            ring.row.eq(self.slot),
            ring.row_begins.eq(appender.restart),
            appender.keep_lines.eq(ring.keep_lines),
            *passed(self, self.places, "base lines"),
            self.places.kept.eq(ring.keep_lines),
            self.places.begins.eq(ring.begins),
            self.places.region.eq(element_count(self.region)),
            self.places.slot_lines.eq(slot_capacity >> line_bits),
        ]

        word = self.words.payload
        fresh = Signal()  # the slot has been begun anew for the fiber at hand
        allowed = Signal()
        taken = Signal()
        first_element = Signal(POSITION_WIDTH)
        m.d.comb += [
            appender.restart.eq(self.words.valid & self.first & ~fresh & appender.settled & ~kept.o.valid),
            allowed.eq((~self.first | fresh) & (pending.level <= PENDING - 2) & (~told.o.valid | self.results.ready)),
            appender.words.payload.eq(word),
            appender.words.valid.eq(self.words.valid & allowed),
            self.words.ready.eq(appender.words.ready & allowed),
            appender.ends.ready.eq(1),
            taken.eq(self.words.valid & self.words.ready),
            appender.flush.eq(taken & word.last),
        ]
        with m.If(appender.restart):
            m.d.sync += [fresh.eq(1), first_element.eq(0), present.eq(self.slot), offset.eq(start)]
        # Nothing is taken between a fiber's last word and the end of its flush.
        with m.If(appender.sent):
            m.d.sync += [fresh.eq(0), first_element.eq(appender.position)]

        # A fiber waits for its own lines, not for those behind them: lines given to the ring as it ends, and lines in the SRAM.
        m.submodules.ends = ends = StreamQueue(shape=LINES_WIDTH, depth=PENDING)
        given, given_now, written = signals("given given_now written", LINES_WIDTH)
        excess = Signal(LINES_WIDTH)
        lands = Signal()
        landed = Signal(range(PENDING + 1))  # fibers that wait for memory alone
        m.d.comb += [
            given_now.eq(given + (kept.i.valid & kept.i.ready)),
            ends.i.valid.eq(appender.sent),
            ends.i.payload.eq(given_now),
            excess.eq(written - ends.o.payload),
            lands.eq(ends.o.valid & ~excess[-1]),
            ends.o.ready.eq(lands),
        ]
        m.d.sync += [
            given.eq(given_now),
            written.eq(written + (self.sram_write.valid & self.sram_write.ready)),
            landed.eq(landed + lands - (pending.o.valid & pending.o.ready)),
        ]

        retired = Signal(REQUESTS_WIDTH)
        surplus = Signal(REQUESTS_WIDTH)
        arrived = ~surplus[-1] & (lands | (landed != 0))
        m.d.sync += retired.eq(retired + self.retired)
        m.d.comb += [
            pending.i.valid.eq(appender.sent),
            pending.i.payload.fiber.slot.eq(present),
            pending.i.payload.fiber.position.eq(first_element),
            pending.i.payload.fiber.length.eq(appender.position - first_element),
            pending.i.payload.requests.eq(appender.requests),
            surplus.eq(retired - pending.o.payload.requests),
            told.i.valid.eq(pending.o.valid & arrived),
            told.i.payload.eq(pending.o.payload.fiber),
            pending.o.ready.eq(told.i.ready & arrived),
            self.idle.eq(
                appender.idle & ~kept.o.valid & ring.idle & ~appender.sent & (pending.level == 0) & ~told.o.valid
            ),
        ]
        return m
