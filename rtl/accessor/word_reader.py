"""Reads a run of 32-bit words (pointers, positions) from memory and hands them out one a cycle."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..storage import WORD_BYTES
from ..types import POSITION_WIDTH, read_request

__all__ = ["WordReader", "word_run"]


def word_run(address_width: int) -> data.StructLayout:
    """A run of ``count`` 32-bit words from the word-aligned byte ``address``."""
    return data.StructLayout({"address": address_width, "count": POSITION_WIDTH})


class WordReader(Block):
    """Streams ``count`` consecutive 32-bit words of memory, one a cycle.

    Parameters
    ----------
    lanes : int
        Elements in a bus beat (a beat is ``8 * lanes`` bytes).
    address_width : int
        Bits of a byte address.

    Members
    -------
    run : In(stream)
        Where to read; ``count = 0`` reads nothing. Taken when the run before has ended.
    read_request, read_data : Out(stream), In(stream)
        A client port of the memory engine. One request per run: the beats that hold its words.
    words : Out(stream)
        The words in order; combinational from ``read_data``.

    Timing
    ------
    Combinational from ``read_data``; one word a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        check_power_of_two("Lanes", lanes, 1, 64)
        check_integer("Address width", address_width, 8, 64)
        self.lanes = lanes
        self.address_width = address_width
        super().__init__(
            {
                "run": In(stream.Signature(word_run(address_width))),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "words": Out(stream.Signature(32)),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        words_per_beat = 2 * self.lanes
        beat_bytes = words_per_beat * WORD_BYTES
        offset_bits = (beat_bytes - 1).bit_length()

        remaining = Signal(POSITION_WIDTH)
        index = Signal(range(words_per_beat))
        requested = Signal(init=1)
        request = Signal.like(self.read_request.payload)

        first_word = self.run.payload.address[2:offset_bits]
        covered = Signal(POSITION_WIDTH + 1)
        m.d.comb += [
            covered.eq(first_word + self.run.payload.count + (words_per_beat - 1)),
            self.run.ready.eq((remaining == 0) & requested),
            self.read_request.valid.eq(~requested),
            self.read_request.payload.eq(request),
        ]
        with m.If(self.run.valid & self.run.ready & (self.run.payload.count != 0)):
            m.d.sync += [
                remaining.eq(self.run.payload.count),
                index.eq(first_word),
                requested.eq(0),
                request.address.eq(self.run.payload.address),
                request.beats.eq(covered >> (offset_bits - 2)),
            ]
        with m.If(self.read_request.valid & self.read_request.ready):
            m.d.sync += requested.eq(1)

        ends_beat = (index == words_per_beat - 1) | (remaining == 1)
        m.d.comb += [
            self.words.valid.eq(self.read_data.valid & (remaining != 0)),
            self.words.payload.eq(self.read_data.payload.word_select(index, 32)),
            self.read_data.ready.eq(self.words.valid & self.words.ready & ends_beat),
        ]
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += [remaining.eq(remaining - 1), index.eq(Mux(ends_beat, 0, index + 1))]
        return m
