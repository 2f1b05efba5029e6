"""Segment entries: writes the metadata of segments, and again of those that leave the FIFO-managed region."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, sram_write
from .lookup import segment_entry
from .segment_sums import entry_place

__all__ = ["SegmentEntries"]


def entry_fields(lanes: int, line_address_width: int) -> data.StructLayout:
    """What a word of :func:`.segment_sums.summed_word` tells of its segment's metadata; ``last`` ends the segment."""
    places = {
        "entry": entry_place(lanes, line_address_width),
        "memory_begin": POSITION_WIDTH,
        "position": POSITION_WIDTH,
    }
    return data.StructLayout({**places, "total": POSITION_WIDTH - 1, "last": 1})


class SegmentEntries(Block):
    """Writes an entry for each segment, with its last word; before that of the first bumped one, the remembered ones again.

    Parameters
    ----------
    lanes, line_address_width : int
        As :class:`.segment_sums.SegmentSums`.
    remembered : int
        Segments in the FIFO-managed region that can be taken back; 0: there is no such region.

    Members
    -------
    word : In(entry_fields), valid : In(1), bumped : In(1), beyond : In(1)
        A word, and what becomes of its segment; ``beyond`` where segments are remembered.
    packs : In(1), free : Out(1), goes : Out(1)
        The word is empty or can be packed; its entry can be written, or it has none to write; so that it goes, if there is one.
    forget : In(1)
        Where segments are remembered. The tile is at its end: one remembered segment a cycle is forgotten.
    remembers : Out(1)
        Some segment is remembered.
    took_back : Out(1), nonzeros : Out(POSITION_WIDTH)
        A remembered segment of so many nonzeros is written again, as bumped.
    write : Out(stream), idle : Out(1)
        To the SRAM, a cycle later; nothing waits to be written.

    Timing
    ------
    One cycle from a word to its entry; one entry a cycle.
    """

    latency = 1

    def __init__(self, *, lanes: int, line_address_width: int, remembered: int) -> None:
        if not isinstance(remembered, int) or remembered < 0:
            raise ValueError(f"Remembered segments must be a number from 0 on, not {remembered!r}")
        self.lanes = lanes
        self.line_address_width = line_address_width
        self.remembered = remembered
        super().__init__(
            {
                "word": In(entry_fields(lanes, line_address_width)),
                "valid": In(1),
                "bumped": In(1),
                **({"beyond": In(1), "forget": In(1)} if remembered else {}),
                "packs": In(1),
                **dict.fromkeys(("free", "goes"), Out(1)),
                "remembers": Out(1),
                "took_back": Out(1),
                "nonzeros": Out(POSITION_WIDTH),
                "write": Out(stream.Signature(sram_write(lanes, line_address_width))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        # Left through a queue, so that neither SRAM port waits for the other.
        m.submodules.entries = entries = StreamQueue(shape=self.write.payload.shape(), depth=2)
        connect(m, flipped(self.write), entries.o)
        word, bumped = self.word, self.bumped
        entry = Signal(segment_entry())
        goes_to = Signal(entry_place(self.lanes, self.line_address_width))
        # Remembered segments are bumped first. Whether this one is bumped is known last.
        turn = Mux(bumped, ~self.remembers, self.packs)
        m.d.comb += [
            self.free.eq(entries.i.ready | ~word.last),
            self.goes.eq(self.free & turn),
            self.idle.eq(entries.level == 0),
            entry.bumped.eq(bumped),
            entry.length.eq(word.total),
            entry.position.eq(Mux(bumped, word.memory_begin, word.position)),
            goes_to.eq(word.entry),
            entries.i.valid.eq(self.valid & word.last & turn),
            entries.i.payload.address.eq(goes_to.address),
            entries.i.payload.mask.eq(Const(1) << goes_to.lane),
            entries.i.payload.line.eq(entry.as_value().replicate(self.lanes)),
        ]
        if self.remembered:
            self._remember(m, entries, entry, goes_to)
        return m

    def _remember(self, m: Module, entries: StreamQueue, entry: Any, goes_to: Value) -> None:
        """Segments in the FIFO-managed region, in case that their entries have to be written again."""
        word = self.word
        shape = {"entry": goes_to.shape(), "begin": POSITION_WIDTH, "length": POSITION_WIDTH - 1}
        m.submodules.remembered = remembered = StreamQueue(
            shape=data.StructLayout(shape), depth=self.remembered, block_memory=self.remembered > 32
        )
        old = remembered.o.payload
        m.d.comb += [
            self.nonzeros.eq(old.length),
            remembered.i.valid.eq(self.valid & self.packs & entries.i.ready & word.last & self.beyond & ~self.bumped),
            remembered.i.payload.entry.eq(word.entry),
            remembered.i.payload.begin.eq(word.memory_begin),
            remembered.i.payload.length.eq(word.total),
            remembered.o.ready.eq(Mux(self.valid & self.bumped, entries.i.ready, self.forget)),
        ]
        # One that has entered is there before it comes out.
        with m.If(remembered.i.valid & remembered.i.ready):
            m.d.sync += self.remembers.eq(1)
        with m.Elif(remembered.o.valid & remembered.o.ready & (remembered.level == 1)):
            m.d.sync += self.remembers.eq(0)
        with m.If(self.valid & self.bumped & remembered.o.valid):
            m.d.comb += [
                self.took_back.eq(entries.i.ready),
                entries.i.valid.eq(1),
                entry.length.eq(old.length),
                entry.position.eq(old.begin),
                goes_to.eq(old.entry),
            ]
