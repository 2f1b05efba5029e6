"""Writes runs of 32-bit words (positions, pointers) to memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..storage import WORD_BYTES
from ..types import POSITION_WIDTH, write_beat, write_request
from .line_writer import LineWriter
from .word_reader import word_run

__all__ = ["WordWriter"]


class WordWriter(Block):
    """Packs ``count`` words into beats from a word-aligned address on; only those words' bytes are strobed.

    Members
    -------
    run : In(stream), words : In(stream)
        ``run`` is taken when the run before has been packed; its words follow, one a cycle.
    write_request, write_data : Out(stream)
        A client port of the memory engine.
    idle : Out(1)
        No run in progress and everything handed to the memory engine.

    Timing
    ------
    One word a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "run": In(stream.Signature(word_run(address_width))),
                "words": In(stream.Signature(32)),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.writer = writer = LineWriter(
            lanes=self.lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        connect(m, flipped(self.write_request), writer.write_request)
        connect(m, flipped(self.write_data), writer.write_data)

        words_per_beat = 2 * self.lanes
        offset_bits = (WORD_BYTES * words_per_beat - 1).bit_length()
        beat_address = Signal(self.address_width - offset_bits)
        remaining = Signal(POSITION_WIDTH)
        more = Signal()  # remaining != 0
        index = Signal(range(words_per_beat))
        held = Signal(64 * self.lanes)
        present = Signal(words_per_beat)
        complete = Signal()  # the held line is to be written

        m.d.comb += [
            self.run.ready.eq(~more & ~complete),
            self.words.ready.eq(more & ~complete),
            writer.lines.valid.eq(complete),
            writer.lines.payload.address.eq(beat_address << offset_bits),
            writer.lines.payload.data.eq(held),
            writer.lines.payload.words.eq(present),
            self.idle.eq(~more & ~complete & writer.idle),
        ]
        with m.If(self.run.valid & self.run.ready):
            m.d.sync += [
                remaining.eq(self.run.payload.count),
                more.eq(self.run.payload.count != 0),
                beat_address.eq(self.run.payload.address >> offset_bits),
                index.eq(self.run.payload.address[2:offset_bits]),
                present.eq(0),
            ]
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += [
                held.word_select(index, 32).eq(self.words.payload),
                present.bit_select(index, 1).eq(1),
                index.eq(index + 1),
                remaining.eq(remaining - 1),
                more.eq(remaining != 1),
                complete.eq((index == words_per_beat - 1) | (remaining == 1)),
            ]
        with m.If(complete & writer.lines.ready):
            m.d.sync += [complete.eq(0), present.eq(0), beat_address.eq(beat_address + 1), index.eq(0)]
            m.d.comb += writer.flush.eq(~more)
        return m
