"""Hands out where the partial rows of the k step before lie: on chip, or in memory if they were spilled."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import POSITION_WIDTH, partial_fiber, sram_response
from .lookup import segment_entry

__all__ = ["KeptRows"]


class KeptRows(Block):
    """Reads the entries of a tile's rows from the SRAM, one line of them at a time.

    Parameters
    ----------
    lanes : int
        64-bit lanes of an SRAM line, an entry each; power of two.
    line_address_width : int
        Bits of an SRAM line address.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        Pulse while ``idle``: so many rows are to be handed out.
    first_line : In(line_address_width + 1)
        Line of the first entries; those that follow lie in the lines below. Constant until ``idle``.
    sram_request, sram_response
        A read port of the banked SRAM.
    partials : Out(stream(partial_fiber))
        The rows in order.
    idle : Out(1)
        No row is left to be handed out.

    Timing
    ------
    One row a cycle, and one access to the SRAM for every ``lanes`` of them.
    """

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 30)
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "first_line": In(line_address_width + 1),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "partials": Out(stream.Signature(partial_fiber())),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        left = Signal(POSITION_WIDTH)
        at = Signal(POSITION_WIDTH)
        asked = Signal()
        present = Signal()
        entry_line = Signal(64 * lanes)
        out = self.partials
        entry = Signal(segment_entry())
        m.d.comb += [
            entry.eq(entry_line.word_select(at[:shift], 64)),
            out.valid.eq((left != 0) & present),
            out.payload.in_memory.eq(entry.bumped),
            out.payload.position.eq(entry.position),
            out.payload.length.eq(entry.length),
            self.sram_request.valid.eq((left != 0) & ~present & ~asked),
            self.sram_request.payload.eq(self.first_line - (at >> shift)),
            self.idle.eq(left == 0),
        ]
        with m.If(self.sram_request.valid & self.sram_request.ready):
            m.d.sync += asked.eq(1)
        with m.If(self.sram_response.valid):
            m.d.sync += [entry_line.eq(self.sram_response.line), present.eq(1), asked.eq(0)]
        with m.If(out.valid & out.ready):
            m.d.sync += [left.eq(left - 1), at.eq(at + 1)]
            with m.If(at[:shift] == lanes - 1):
                m.d.sync += present.eq(0)
        with m.If(self.start):
            m.d.sync += [left.eq(self.rows), at.eq(0), present.eq(0), asked.eq(0)]
        return m
