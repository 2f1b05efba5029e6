"""Appends fibers to a region of memory, packed without gaps."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..mint.record_packer import RecordPacker
from ..storage import COORDINATE_WIDTH, byte_count, element_count, line_address
from ..types import POSITION_WIDTH, fiber_word, write_beat, write_request
from .line_packer import LinePacker, packed_line
from .line_writer import REQUESTS_WIDTH, LineWriter

__all__ = ["FiberAppender"]


class FiberAppender(Block):
    """Writes fibers to memory, each right behind the one before.

    Parameters
    ----------
    lanes, address_width, burst_beats : int
        As :class:`LineWriter`.
    packed : str, optional
        Value type of packed records, which the fibers become. Without, elements go to memory as they are on chip.
    keeps : bool
        The first lines of the region stay on chip.

    Members
    -------
    coordinate_bits : In, plain : In(1)
        With ``packed``, as :class:`rtl.mint.record_packer.RecordPacker`: both change only with ``restart``.
    region : In(address_width)
        Byte address of the region, bus-aligned; changes only with the cycle after ``restart``.
    capacity : In(address_width)
        Bytes that may be written from ``region`` on, counted as if each element took 8.
    restart : In(1)
        The next fiber goes to the region's begin again. Only between fibers, after a flush, while ``settled``.
    position : Out(POSITION_WIDTH)
        Elements appended since ``restart``, the next element's position.
    keep_lines : In(POSITION_WIDTH), kept : Out(stream(packed_line))
        With ``keeps``: so many lines of the region go this way, none before the first ``restart``. Changes only with ``restart``.
    words : In(stream)
        Fibers; nothing is taken beyond the capacity.
    ends : Out(stream)
        For each fiber, when its last word has been taken: the position after its last element.
    flush : In(1)
        Sends what waits for a full beat. The line goes on with further strobes afterwards.
    settled : Out(1), sent : Out(1)
        No flush of a cycle before is pending; a flush ends in this cycle.
    requests : Out(REQUESTS_WIDTH)
        As :class:`LineWriter`: in the cycle of ``sent``, those of all that was flushed.
    overflow : Out(1), needed : Out(address_width)
        A fiber does not fit; bytes that the region needs at least. Stays until reset or ``restart``.
    write_request, write_data : Out(stream), idle : Out(1)
        As :class:`LineWriter`; ``idle`` also says that no flush is pending.

    Timing
    ------
    One fiber word a cycle.
    """

    def __init__(
        self, *, lanes: int, address_width: int, burst_beats: int, packed: str | None = None, keeps: bool = False
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        self.packed = packed
        self.keeps = bool(keeps)
        keeping = {"keep_lines": In(POSITION_WIDTH), "kept": Out(stream.Signature(packed_line(lanes)))}
        packing = {"coordinate_bits": In(range(COORDINATE_WIDTH + 1)), "plain": In(1)}
        super().__init__(
            {
                **({} if packed is None else packing),
                **(keeping if keeps else {}),
                "region": In(address_width),
                "capacity": In(address_width),
                "restart": In(1),
                "position": Out(POSITION_WIDTH),
                "words": In(stream.Signature(fiber_word(lanes))),
                "ends": Out(stream.Signature(POSITION_WIDTH)),
                "flush": In(1),
                "settled": Out(1),
                "sent": Out(1),
                "requests": Out(REQUESTS_WIDTH),
                "overflow": Out(1),
                "needed": Out(address_width),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        packer: LinePacker | RecordPacker
        if self.packed is None:
            packer = LinePacker(lanes=lanes)
        else:
            packer = RecordPacker(lanes=lanes, value=self.packed)
            m.d.comb += passed(self, packer, "coordinate_bits plain")
        m.submodules.packer = packer
        m.submodules.writer = writer = LineWriter(
            lanes=lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        m.submodules.ends = ends = StreamQueue(shape=POSITION_WIDTH, depth=2)
        connect(m, flipped(self.write_request), writer.write_request)
        connect(m, flipped(self.write_data), writer.write_data)
        connect(m, flipped(self.ends), ends.o)

        word = self.words.payload
        shift = lanes.bit_length()
        bytes_after = Signal(self.address_width)
        allowed = Signal()
        flushing = Signal()  # packer and writer have not come to the end of what was flushed
        # Far from the region's end a word always fits. Near it, a word waits until its end has been compared.
        roomy = Signal()
        checked = Signal()
        fits = Signal()
        free = Signal(max(self.address_width, POSITION_WIDTH) + 1)  # elements; its highest bit: less than none
        enough = free[shift:-1].any()  # for two lines
        m.d.sync += [
            roomy.eq(~free[-1] & enough & ~self.restart),
            checked.eq(self.words.valid & ~self.words.ready & ~self.restart),
            fits.eq(~free[-1] & (enough | (free[:shift] >= word.count))),
        ]
        m.d.comb += [
            self.position.eq(packer.position),
            free.eq(element_count(self.capacity) - packer.position),
            bytes_after.eq(byte_count(packer.after)),
            allowed.eq(~flushing & (roomy | (checked & fits)) & (ends.i.ready | ~word.last)),
            packer.words.valid.eq(self.words.valid & allowed),
            packer.words.payload.eq(word),
            self.words.ready.eq(packer.words.ready & allowed),
            ends.i.valid.eq(self.words.valid & self.words.ready & word.last),
            ends.i.payload.eq(packer.after),
            packer.flush.eq(self.flush),
            packer.restart.eq(self.restart),
        ]
        line = packer.lines.payload
        keep = Signal(name="keep") if self.keeps else Const(0, 1)
        if self.keeps:
            # Known of the line in progress before a word completes it.
            with m.If(packer.words.valid & packer.words.ready):
                m.d.sync += keep.eq((packer.after >> (shift - 1)) < self.keep_lines)
            with m.If(self.restart):
                m.d.sync += keep.eq(self.keep_lines != 0)
            m.d.comb += [self.kept.valid.eq(packer.lines.valid & keep), self.kept.payload.eq(line)]
        m.d.comb += [
            writer.lines.valid.eq(packer.lines.valid & ~keep),
            packer.lines.ready.eq(Mux(keep, self.kept.ready, writer.lines.ready) if self.keeps else writer.lines.ready),
            writer.lines.payload.address.eq(line_address(self.region, line.index, lanes)),
            writer.lines.payload.data.eq(line.data),
            writer.flush.eq(packer.flushed),
            self.settled.eq(~flushing),
            self.requests.eq(writer.requests),
            self.idle.eq(~self.flush & ~flushing & writer.idle),
        ]
        words = Cat(bit.replicate(2) for bit in line.mask) if self.packed is None else line.words
        m.d.comb += writer.lines.payload.words.eq(words)
        m.d.comb += self.sent.eq(writer.flushed)
        with m.If(self.flush):
            m.d.sync += flushing.eq(1)
        with m.Elif(packer.idle & writer.flushed):
            m.d.sync += flushing.eq(0)
        with m.If(self.words.valid & packer.idle & ~roomy & checked & ~fits):
            m.d.sync += [self.overflow.eq(1), self.needed.eq(bytes_after)]
        with m.If(self.restart):
            m.d.sync += self.overflow.eq(0)
        return m
