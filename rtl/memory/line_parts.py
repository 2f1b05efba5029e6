"""Lines of several beats: beats of the bus joined to lines, and lines cut into beats."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.signals import signals
from ..types import read_request, write_beat, write_request

__all__ = ["LineJoiner", "LineSplitter", "PartJoiner", "line_part"]


def line_part(beat_bits: int) -> data.StructLayout:
    """A beat of the bus; ``last``: no further one belongs to its line."""
    return data.StructLayout({"beat": beat_bits, "last": 1})


def _check_parts(beat_bits: int, parts: int) -> None:
    check_power_of_two("Beat bits", beat_bits, 8, 1024)
    check_power_of_two("Beats of a line", parts, 2, 8)


class PartJoiner(Block):
    """Joins beats to lines, the first beat in the low bits.

    Parameters
    ----------
    beat_bits : int
        Power of two from 8 to 1024.
    parts : int
        Beats of a whole line: 2, 4 or 8.

    Members
    -------
    beats : In(stream(line_part))
        A line has ``parts`` beats, or less where one is ``last``.
    lines : Out(stream)
        Of ``parts`` beats; those behind a ``last`` one mean nothing. From registers.

    Timing
    ------
    ``latency`` cycles from the last beat of a line to the line; one beat a cycle.
    """

    latency = 1

    def __init__(self, *, beat_bits: int, parts: int) -> None:
        _check_parts(beat_bits, parts)
        self.beat_bits = beat_bits
        self.parts = parts
        super().__init__(
            {
                "beats": In(stream.Signature(line_part(beat_bits))),
                "lines": Out(stream.Signature(parts * beat_bits)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        joined = Signal(self.parts * self.beat_bits, reset_less=True)
        index = Signal(range(self.parts))  # of the next beat in its line
        full = Signal()
        comes, ends = signals("comes ends")
        beat = self.beats.payload
        m.d.comb += [
            self.beats.ready.eq(~full | self.lines.ready),
            comes.eq(self.beats.valid & self.beats.ready),
            ends.eq(beat.last | (index == self.parts - 1)),
            self.lines.valid.eq(full),
            self.lines.payload.eq(joined),
        ]
        with m.If(self.beats.ready):
            m.d.sync += full.eq(comes & ends)
        with m.If(comes):
            m.d.sync += [
                index.eq((index + 1) & ~ends.replicate(len(index))),
                joined.word_select(index, self.beat_bits).eq(beat.beat),
            ]
        return m


class LineJoiner(Block):
    """A client port of the memory engine for a unit that reads lines of several beats.

    Parameters
    ----------
    beat_bits, parts : int
        As :class:`PartJoiner`.
    address_width : int
        Bits of a byte address.

    Members
    -------
    request : In(stream(read_request)), lines : Out(stream)
        Byte address, aligned down to a line, and how many lines; the lines in order.
    read_request, read_data : a client port of the memory engine

    Timing
    ------
    Combinational from ``request`` to ``read_request``; ``latency`` cycles from the last beat of a line to the line; one
    request and one beat a cycle.
    """

    latency = PartJoiner.latency

    def __init__(self, *, beat_bits: int, parts: int, address_width: int) -> None:
        _check_parts(beat_bits, parts)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.beat_bits = beat_bits
        self.parts = parts
        request = read_request(address_width)
        super().__init__(
            {
                "request": In(stream.Signature(request)),
                "lines": Out(stream.Signature(parts * beat_bits)),
                "read_request": Out(stream.Signature(request)),
                "read_data": In(stream.Signature(beat_bits)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.joiner = joiner = PartJoiner(beat_bits=self.beat_bits, parts=self.parts)
        connect(m, joiner.lines, flipped(self.lines))
        m.d.comb += [
            *_beats_asked(self.request, self.read_request, self.beat_bits, self.parts),
            joiner.beats.valid.eq(self.read_data.valid),
            joiner.beats.payload.beat.eq(self.read_data.payload),
            self.read_data.ready.eq(joiner.beats.ready),
        ]
        return m


class LineSplitter(Block):
    """A client port of the memory engine for a unit that writes lines of several beats.

    Parameters
    ----------
    beat_bits, parts : int
        As :class:`PartJoiner`.
    address_width : int
        Bits of a byte address.

    Members
    -------
    request : In(stream(write_request)), lines : In(stream(write_beat))
        Byte address, aligned down to a line, and how many lines; the lines in order, with their strobes.
    write_request, write_data : a client port of the memory engine
        A line is taken with its last beat: what the memory engine has not taken is not idle.

    Timing
    ------
    Combinational both ways; one request and one beat a cycle.
    """

    latency = 0

    def __init__(self, *, beat_bits: int, parts: int, address_width: int) -> None:
        _check_parts(beat_bits, parts)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.beat_bits = beat_bits
        self.parts = parts
        request = write_request(address_width)
        super().__init__(
            {
                "request": In(stream.Signature(request)),
                "lines": In(stream.Signature(write_beat(parts * beat_bits))),
                "write_request": Out(stream.Signature(request)),
                "write_data": Out(stream.Signature(write_beat(beat_bits))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        index = Signal(range(self.parts))  # of the beat that is shown
        line, beat = self.lines.payload, self.write_data.payload
        m.d.comb += [
            *_beats_asked(self.request, self.write_request, self.beat_bits, self.parts),
            self.write_data.valid.eq(self.lines.valid),
            beat.data.eq(line.data.word_select(index, self.beat_bits)),
            beat.strobe.eq(line.strobe.word_select(index, self.beat_bits // 8)),
            self.lines.ready.eq(self.write_data.ready & (index == self.parts - 1)),
        ]
        with m.If(self.write_data.valid & self.write_data.ready):
            m.d.sync += index.eq(index + 1)
        return m


def _beats_asked(lines: Any, beats: Any, beat_bits: int, parts: int) -> list[Any]:
    """Joins the stream of requests of lines to that of requests of beats."""
    line_bits = (parts * beat_bits // 8 - 1).bit_length()
    return [
        beats.valid.eq(lines.valid),
        beats.payload.address.eq(lines.payload.address >> line_bits << line_bits),
        beats.payload.beats.eq(lines.payload.beats << (parts - 1).bit_length()),
        lines.ready.eq(beats.ready),
    ]
