"""Packs the nonzeros of fibers into records of a width that is chosen at run time, without gaps between them."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import narrowed, value_bits
from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.signals import signals
from ..storage import COORDINATE_WIDTH, VALUE_WIDTH
from ..types import POSITION_WIDTH, fiber_word
from .bit_packer import BitPacker

__all__ = ["RecordPacker", "packed_words"]

RECORD_WIDTH = COORDINATE_WIDTH + VALUE_WIDTH


def packed_words(lanes: int) -> data.StructLayout:
    """A beat of a packed run: its index in the run, its bits, and a bit for each of its 32-bit words that holds new ones."""
    return data.StructLayout({"index": POSITION_WIDTH, "data": RECORD_WIDTH * lanes, "words": 2 * lanes})


class RecordPacker(Block):
    """Makes records of the elements of fiber words, and beats of the records. What :class:`rtl.accessor.line_packer.LinePacker`
    does for elements as they are on chip.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 1 to 16.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    coordinate_bits : In, plain : In(1)
        Bits of a coordinate, 0 to 32; records are elements as they are on chip. Constant from a restart to the next.
    words : In(stream)
        Elements from lane 0.
    lines : Out(stream)
        Completed beats, in order, and after a flush the one that is not complete. That comes again when more of it is known.
    position, after : Out(POSITION_WIDTH)
        Elements taken since ``restart``, and with the word at hand.
    flush : In(1), flushed : Out(1)
        Pulse: hands out all that was taken. High for the cycle in which that ends.
    restart : In(1)
        Pulse: begin at position 0. Only while ``idle``, when no word was offered since a flush has ended.
    idle : Out(1)
        No flush is pending.

    Timing
    ------
    ``latency`` cycles from a word to the beat that it completes; one word a cycle, or one beat where words are longer.
    """

    def __init__(self, *, lanes: int, value: str) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value = value
        self.value_bits = value_bits(value)
        self.packer = BitPacker(beat_bits=RECORD_WIDTH * lanes, lanes=lanes, width=RECORD_WIDTH)
        super().__init__(
            {
                "coordinate_bits": In(range(COORDINATE_WIDTH + 1)),
                "plain": In(1),
                "words": In(stream.Signature(fiber_word(lanes))),
                "lines": Out(stream.Signature(packed_words(lanes))),
                **dict.fromkeys(("position", "after"), Out(POSITION_WIDTH)),
                "flush": In(1),
                "flushed": Out(1),
                "restart": In(1),
                "idle": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        return self.packer.latency

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.packer = packer = self.packer
        opened = Signal()  # the packer has a region
        flushing, ending = signals("flushing ending")  # a flush is pending; the packer has been told
        next_bit = Signal(range(RECORD_WIDTH * self.lanes))  # where the next record begins in its beat
        width = Signal(range(RECORD_WIDTH + 1))
        word, group = self.words.payload, packer.groups.payload
        take, ends = signals("take ends")
        m.d.comb += [
            width.eq(Mux(self.plain, RECORD_WIDTH, self.coordinate_bits + self.value_bits)),
            packer.region.valid.eq(self.words.valid & ~opened & ~flushing),
            packer.region.payload.start.eq(next_bit),
            packer.region.payload.width.eq(width),
            ends.eq(flushing & opened & ~ending),
            packer.groups.valid.eq((self.words.valid & opened & ~flushing) | ends),
            self.words.ready.eq(packer.groups.ready & opened & ~flushing),
            take.eq(self.words.valid & self.words.ready),
            group.count.eq(Mux(ends, 0, word.count)),
            group.last.eq(ends),
            self.idle.eq(~flushing),
        ]
        for n in range(self.lanes):
            m.d.comb += group.records[n].eq(self._record(word.line[n]))
        with m.If(packer.region.valid & packer.region.ready):
            m.d.sync += opened.eq(1)
        with m.If(ends & packer.groups.ready):
            m.d.sync += ending.eq(1)
        m.d.comb += self.after.eq(self.position + word.count)
        with m.If(take):
            m.d.sync += [self.position.eq(self.after), next_bit.eq(next_bit + word.count * width)]
        with m.If(self.flush):
            m.d.sync += flushing.eq(1)
        with m.Elif(self.flushed):
            m.d.sync += [flushing.eq(0), ending.eq(0), opened.eq(0)]
        self._hand_out(m, flushing & ~opened)
        with m.If(self.restart):
            m.d.sync += [self.position.eq(0), next_bit.eq(0)]
        return m

    def _record(self, nonzero: Any) -> Any:
        """The bits of the value, the coordinate above them."""
        packed = Cat(narrowed(nonzero.value, self.value), nonzero.coordinate)
        return Mux(self.plain, Cat(nonzero.coordinate, nonzero.value), packed)

    def _hand_out(self, m: Module, nothing: Any) -> None:
        """Beats of the packer. What a flush hands out of a beat is kept until the beat is completed.

        ``nothing``: a flush is pending, and there is nothing to hand out.
        """
        beat = self.packer.beats.payload
        kept = Signal(RECORD_WIDTH * self.lanes)
        first = Signal(init=1)  # a region's first beat is awaited
        index = Signal(POSITION_WIDTH)
        out = self.lines
        some, gone = signals("some gone")
        m.d.comb += [
            some.eq(beat.bytes != 0),
            out.valid.eq(self.packer.beats.valid & some),
            out.payload.index.eq(index),
            out.payload.data.eq(beat.data | Mux(first, kept, 0)),
            self.packer.beats.ready.eq(out.ready | ~some),
            gone.eq(self.packer.beats.valid & self.packer.beats.ready),
            self.flushed.eq((gone & beat.last) | nothing),
        ]
        for n in range(2 * self.lanes):
            m.d.comb += out.payload.words[n].eq(beat.strobe[4 * n : 4 * n + 4].any())
        with m.If(gone):
            m.d.sync += first.eq(beat.last)
            with m.If(beat.last):
                m.d.sync += kept.eq(out.payload.data)
            with m.Else():
                m.d.sync += index.eq(index + 1)
        with m.If(self.restart):
            m.d.sync += [kept.eq(0), index.eq(0)]
