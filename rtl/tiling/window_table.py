"""Reads which coordinates along k each tile along i spans, and where their rows of B go, from a table in memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..storage import line_bytes
from ..types import COORDINATE_WIDTH, ENTRY_WIDTH, LINE_WIDTH, read_request

__all__ = ["WindowTable", "window"]

# Of 64-bit lanes, in an entry.
ENTRY_LANES = 2


def window() -> data.StructLayout:
    """Coordinates from ``begin`` on, ``size`` of them; none where a tile has nothing to do. The rest as in ``ring_place``."""
    places = {"line": LINE_WIDTH, "lines": LINE_WIDTH}
    sizes = {"size": ENTRY_WIDTH, "kept": ENTRY_WIDTH - 1, "early": 1, "metadata": LINE_WIDTH}
    return data.StructLayout({"begin": COORDINATE_WIDTH, **places, **sizes})


class WindowTable(Block):
    """Looks up one window of 16 bytes; the beat read last is kept.

    Parameters
    ----------
    lanes : int
        64-bit lanes of a beat, power of two from 2.
    address_width : int

    Members
    -------
    table_address : In(address_width)
        Byte address of the table, bus-aligned.
    index : In(COORDINATE_WIDTH), ask : In(1)
        Look up window ``index``. ``ask`` is a pulse, ``index`` stays until ``done``.
    done : Out(1), window : Out(window)
        The answer is there, until the next ``ask``. From registers.
    clear : In(1)
        Forget the beat.
    read_request, read_data : a client port of the memory engine

    Timing: 3 cycles from ``ask`` to ``done`` where the beat is at hand.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        if lanes < ENTRY_LANES:
            raise ValueError(f"a beat holds a window of {ENTRY_LANES} lanes at least, not {lanes} lanes")
        self.lanes = lanes
        self.address_width = address_width
        super().__init__(
            {
                "table_address": In(address_width),
                "index": In(COORDINATE_WIDTH),
                "ask": In(1),
                "clear": In(1),
                "done": Out(1),
                "window": Out(window()),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        per_beat = self.lanes // ENTRY_LANES
        lane_bits = (per_beat - 1).bit_length()
        line_bits = (line_bytes(self.lanes) - 1).bit_length()
        beat = Signal(data.ArrayLayout(window(), per_beat))
        beat_index = Signal(COORDINATE_WIDTH - lane_bits)  # of the beat that is kept
        beat_valid = Signal()
        hit = Signal()
        wanted = self.index[lane_bits:]
        m.d.comb += [
            self.read_request.payload.address.eq(self.table_address + (wanted << line_bits)),
            self.read_request.payload.beats.eq(1),
        ]
        m.d.sync += hit.eq(beat_valid & (beat_index == wanted))
        with m.If(self.ask):
            m.d.sync += self.done.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.ask):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(hit):
                    m.d.sync += [self.window.eq(beat[self.index[:lane_bits]]), self.done.eq(1)]
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += self.read_request.valid.eq(1)
                    with m.If(self.read_request.ready):
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += self.read_data.ready.eq(1)
                with m.If(self.read_data.valid):
                    m.d.sync += [beat.eq(self.read_data.payload), beat_index.eq(wanted), beat_valid.eq(1)]
                    m.next = "LOOK"
        with m.If(self.clear):
            m.d.sync += beat_valid.eq(0)
        return m
