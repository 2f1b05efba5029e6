"""Reads a run of 32-bit words (pointers, positions) from memory and hands them out one a cycle."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..storage import WORD_BYTES
from ..types import BEATS_WIDTH, POSITION_WIDTH, read_request

__all__ = ["WordReader", "word_run"]


def word_run(address_width: int) -> data.StructLayout:
    """A run of ``count`` 32-bit words from the word-aligned byte ``address``; of one ``more`` where ``count`` is not 0."""
    return data.StructLayout({"address": address_width, "count": POSITION_WIDTH, "more": 1})


class WordReader(Block):
    """Streams a run of consecutive 32-bit words of memory, one a cycle.

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
        A client port of the memory engine. One request per run: the beats that hold its words. The first of them
        comes a cycle after the request was offered, or later.
    words : Out(stream)
        The words in order; combinational from ``read_data``.

    Timing
    ------
    Combinational from ``read_data``; one word a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        super().__init__(
            {
                "run": In(stream.Signature(word_run(address_width))),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "words": Out(stream.Signature(32)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        words_per_beat = 2 * self.lanes
        beat_bytes = words_per_beat * WORD_BYTES
        offset_bits = (beat_bytes - 1).bit_length()

        index = Signal(range(words_per_beat))
        last_index = Signal.like(index)  # of the run's last word in its beat
        beats = Signal(BEATS_WIDTH)  # that are not used up, the present one included
        requested = Signal(init=1)
        address = Signal(self.address_width)
        idle = Signal(init=1)
        last_beat = Signal()  # beats == 1

        run, request = self.run.payload, self.read_request
        first_word = run.address[2:offset_bits]
        take = self.run.valid & self.run.ready
        # One sum sizes a run, and takes a beat off it that is used up.
        left = Signal(len(index) + BEATS_WIDTH)
        used = Signal()
        m.d.comb += [
            left.eq(
                Mux(idle, run.count, Cat(last_index, beats))
                + Mux(idle, first_word + run.more + (words_per_beat - 1), -words_per_beat)
            ),
            self.run.ready.eq(idle & requested),
            request.valid.eq(~requested),
            request.payload.address.eq(address),
            request.payload.beats.eq(beats),
        ]
        with m.If(take):
            m.d.sync += [index.eq(first_word), address.eq(run.address)]
            m.d.sync += [idle.eq(run.count == 0), requested.eq(run.count == 0)]
        with m.If(request.valid & request.ready):
            m.d.sync += requested.eq(1)
        with m.If(take | used):
            m.d.sync += Cat(last_index, beats).eq(left)
        # Of a run that is taken a cycle later, before memory can answer.
        m.d.sync += last_beat.eq((beats[2:] == 0) & (beats[:2] == Mux(used, 2, 1)))

        words = self.words
        ends_beat = (index == words_per_beat - 1) | ((index == last_index) & last_beat)
        m.d.comb += [
            words.valid.eq(self.read_data.valid & ~idle),
            words.payload.eq(self.read_data.payload.word_select(index, 32)),
            used.eq(words.valid & words.ready & ends_beat),
            self.read_data.ready.eq(used),
        ]
        with m.If(used & last_beat):
            m.d.sync += idle.eq(1)
        with m.If(words.valid & words.ready):
            m.d.sync += index.eq(index + 1)
        return m
