"""Answers whether a tile of one operand holds anything, from a bit map in memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import POSITION_WIDTH, read_request

__all__ = ["TileMap"]


class TileMap(Block):
    """Looks up one bit; the beat read last is kept, so that a walk along the map reads each beat once.

    Members
    -------
    map : In(address_width)
        Byte address of the map, bus-aligned; 0 when there is none (nothing is then known).
    index : In(POSITION_WIDTH), ask : In(1)
        Look up bit ``index``; ``ask`` is a pulse, ``index`` stays until ``done``.
    done, known, occupied : Out(1)
        The answer is there; there is a map; the bit.
    clear : In(1)
        Forget the beat.
    read_request, read_data : a client port of the memory engine
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        super().__init__(
            {
                "map": In(address_width),
                "index": In(POSITION_WIDTH),
                "ask": In(1),
                "clear": In(1),
                "done": Out(1),
                "known": Out(1),
                "occupied": Out(1),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        bits = (64 * self.lanes - 1).bit_length()
        beat = Signal(64 * self.lanes)
        holds = Signal(POSITION_WIDTH - bits)
        held = Signal()
        m.d.comb += [
            self.known.eq(self.map != 0),
            self.occupied.eq(beat.bit_select(self.index[:bits], 1)),
            self.read_request.payload.address.eq(self.map + (self.index[bits:] << (bits - 3))),
            self.read_request.payload.beats.eq(1),
        ]
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.ask):
                    m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(~self.known | (held & (holds == self.index[bits:]))):
                    m.d.comb += self.done.eq(1)
                    m.next = "HOLD"
                with m.Else():
                    m.d.comb += self.read_request.valid.eq(1)
                    with m.If(self.read_request.ready):
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += self.read_data.ready.eq(1)
                with m.If(self.read_data.valid):
                    m.d.sync += [beat.eq(self.read_data.payload), holds.eq(self.index[bits:]), held.eq(1)]
                    m.next = "CHECK"
            with m.State("HOLD"):
                m.d.comb += self.done.eq(1)
                with m.If(self.ask):
                    m.next = "CHECK"
        with m.If(self.clear):
            m.d.sync += held.eq(0)
        return m
