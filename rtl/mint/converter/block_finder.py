"""Blocks of entries from their rows and columns."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.stream import StreamQueue, StreamRegister
from ...regs.converter_map import BLOCK_BITS
from ..divmod import ReciprocalDivmod
from .streams import COORDINATE_BITS, block_group, cell_group

__all__ = ["BlockFinder"]


class BlockFinder(Block):
    """Row and column of an entry, divided by those of a block (MINT, figure 8e, step 2), by two reciprocals.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Members
    -------
    sides : In(stream({rows, columns}))
        Rows and columns of a block, each at least 1, before the first entry. Taken when nothing is inside.
    by_block : In(1), by_row : In(1)
        Else cells go through at once, without blocks; the row of the matrix is the row of a cell, not its column. Constant while
        an entry is inside.
    cells : In(stream(cell_group)), blocks : Out(stream(block_group))
        Every entry of the one comes out of the other, in order.

    Timing
    ------
    ``latency`` cycles, none where it finds nothing, a group a cycle; the first one ``ReciprocalDivmod.load_latency`` cycles
    after ``sides``.
    """

    def __init__(self, *, lanes: int, value_bits: int) -> None:
        check_power_of_two("Lanes", lanes, 1, 16)
        check_power_of_two("Value bits", value_bits, 8, 32)
        self.lanes = lanes
        self.value_bits = value_bits
        sizes = {"lanes": lanes, "width": COORDINATE_BITS, "divisor_width": BLOCK_BITS + 1}
        self._divmods = {name: ReciprocalDivmod(**sizes) for name in ("rows", "columns")}
        sides = data.StructLayout(dict.fromkeys(self._divmods, BLOCK_BITS + 1))
        super().__init__(
            {
                "sides": In(stream.Signature(sides)),
                "by_block": In(1),
                "by_row": In(1),
                "cells": In(stream.Signature(cell_group(lanes, value_bits))),
                "blocks": Out(stream.Signature(block_group(lanes, value_bits))),
            }
        )

    @property
    def latency(self) -> int:
        return self._divmods["rows"].latency + 2

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "v": self.value_bits}

    def build(self, platform: Any) -> Module:
        m = Module()
        cells = self.cells.payload
        # What the dividers have inside, and one more so that they never wait.
        m.submodules.along = along = StreamQueue(shape=cells.shape(), depth=self._divmods["rows"].latency + 1)
        shape = self.blocks.payload.shape()
        m.submodules.multiplied = multiplied = StreamRegister(shape=shape)
        m.submodules.placed = placed = StreamRegister(shape=shape)
        rows, columns = self._divmods["rows"], self._divmods["columns"]
        m.submodules.rows, m.submodules.columns = rows, columns
        # The two dividers are alike, so that one is ready when the other is.
        enters = Signal()
        m.d.comb += [
            self.sides.ready.eq(rows.divisor.ready),
            enters.eq(self.cells.valid & self.cells.ready & self.by_block),
            along.i.valid.eq(enters),
            along.i.payload.eq(cells),
            along.o.ready.eq(rows.results.valid & multiplied.i.ready),
            multiplied.i.valid.eq(rows.results.valid),
            multiplied.o.ready.eq(placed.i.ready),
            placed.i.valid.eq(multiplied.o.valid),
            placed.i.payload.eq(multiplied.o.payload),
            placed.o.ready.eq(self.blocks.ready),
        ]
        with m.If(self.by_block):
            m.d.comb += [
                self.cells.ready.eq(rows.dividends.ready & along.i.ready),
                self.blocks.valid.eq(placed.o.valid),
                self.blocks.payload.eq(placed.o.payload),
            ]
        with m.Else():
            m.d.comb += [
                self.cells.ready.eq(self.blocks.ready),
                self.blocks.valid.eq(self.cells.valid),
                *(self.blocks.payload[name].eq(cells[name]) for name in cells.shape().members),
            ]
        wide = Signal(BLOCK_BITS + 1)
        with m.If(self.sides.valid & self.sides.ready):
            m.d.sync += wide.eq(self.sides.payload.columns)
        for name, divmod, other in (("rows", rows, "columns"), ("columns", columns, "rows")):
            m.d.comb += [
                divmod.divisor.valid.eq(self.sides.valid),
                divmod.divisor.payload.eq(self.sides.payload[name]),
                divmod.dividends.valid.eq(enters),
                divmod.results.ready.eq(multiplied.i.ready),
                *(
                    divmod.dividends.payload[n].eq(Mux(self.by_row, cells[name][n], cells[other][n]))
                    for n in range(self.lanes)
                ),
            ]
        found, product = multiplied.i.payload, multiplied.o.payload
        m.d.comb += [found[name].eq(along.o.payload[name]) for name in cells.shape().members]
        for n in range(self.lanes):
            m.d.comb += [
                found.block_rows[n].eq(rows.results.payload.quotients[n]),
                found.block_columns[n].eq(columns.results.payload.quotients[n]),
                found.inner_rows[n].eq(rows.results.payload.remainders[n]),
                found.places[n].eq(columns.results.payload.remainders[n]),
                placed.i.payload.places[n].eq(product.inner_rows[n] * wide + product.places[n]),
            ]
        return m
