"""Blocks of entries from their rows and columns; rows of a dense tensor from the numbers of its fibers."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.signals import signals
from ...lib.stream import StreamQueue, StreamRegister
from ...regs.converter_map import BLOCK_BITS
from ..divmod import ReciprocalDivmod
from .streams import COORDINATE_BITS, block_group, cell_group

__all__ = ["BlockFinder"]


class BlockFinder(Block):
    """Row and column of an entry, divided by those of a block (MINT, figure 8e, step 2), by two reciprocals.

    A dense tensor comes as a matrix with a row for each fiber: its number, divided by the second extent, is i, and j is what
    remains.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    tensors, fibers, has_blocks : bool
        Entries have a coordinate before their row; it divides numbers of fibers; it divides by blocks.

    Members
    -------
    sides : In(stream({rows, columns}))
        Rows and columns of a block, each at least 1, before the first entry. Taken when nothing is inside. Rows are the second
        extent of a tensor.
    by_block : In(1), by_row : In(1)
        Else cells go through at once, without blocks; the row of the matrix is the row of a cell, not its column. Constant while
        an entry is inside.
    by_fiber : In(1)
        With ``fibers``: rows are numbers of fibers, and become i (``outers``) and j (``rows``). Not together with ``by_block``.
    cells : In(stream(cell_group)), blocks : Out(stream(block_group))
        Every entry of the one comes out of the other, in order.

    Timing
    ------
    ``latency`` cycles, none where it finds nothing, a group a cycle; the first one ``ReciprocalDivmod.load_latency`` cycles
    after ``sides``.
    """

    def __init__(
        self, *, lanes: int, value_bits: int, tensors: bool = False, fibers: bool = False, has_blocks: bool = True
    ) -> None:
        if fibers > tensors or not (fibers or has_blocks):
            raise ValueError("Fibers must be of tensors, and there must be fibers or blocks")
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.tensors, self.fibers, self.has_blocks = bool(tensors), bool(fibers), bool(has_blocks)
        # Both as wide, so that one is ready when the other is.
        self.side_bits = COORDINATE_BITS + 1 if fibers else BLOCK_BITS + 1
        width = max(COORDINATE_BITS, self.side_bits)
        sizes = {"lanes": lanes, "width": width, "divisor_width": self.side_bits}
        self._divmods = {name: ReciprocalDivmod(**sizes) for name in ("rows", "columns")[: 2 if has_blocks else 1]}
        sides = data.StructLayout(dict.fromkeys(("rows", "columns"), self.side_bits))
        super().__init__(
            {
                "sides": In(stream.Signature(sides)),
                "by_block": In(1),
                "by_row": In(1),
                **({"by_fiber": In(1)} if fibers else {}),
                "cells": In(stream.Signature(cell_group(lanes, value_bits, self.tensors))),
                "blocks": Out(stream.Signature(block_group(lanes, value_bits, self.tensors))),
            }
        )

    @property
    def latency(self) -> int:
        return self._divmods["rows"].latency + 2

    def build(self, platform: Any) -> Module:
        m = Module()
        cells = self.cells.payload
        divided = cell_group(self.lanes, self.value_bits)
        # What the dividers have inside, and one more so that they never wait.
        m.submodules.along = along = StreamQueue(shape=divided, depth=self._divmods["rows"].latency + 1)
        shape = self.blocks.payload.shape()
        m.submodules.multiplied = multiplied = StreamRegister(shape=shape)
        m.submodules.placed = placed = StreamRegister(shape=shape)
        rows = self._divmods["rows"]
        enters, divides = signals("enters divides")
        m.d.comb += [
            self.sides.ready.eq(rows.divisor.ready),
            divides.eq(self.by_block | (self.by_fiber if self.fibers else 0)),
            enters.eq(self.cells.valid & self.cells.ready & divides),
            along.i.valid.eq(enters),
            *(along.i.payload[name].eq(cells[name]) for name in divided.members),
            along.o.ready.eq(rows.results.valid & multiplied.i.ready),
            multiplied.i.valid.eq(rows.results.valid),
            multiplied.o.ready.eq(placed.i.ready),
            placed.i.valid.eq(multiplied.o.valid),
            placed.i.payload.eq(multiplied.o.payload),
            placed.o.ready.eq(self.blocks.ready),
        ]
        with m.If(divides):
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
        for name, divmod in self._divmods.items():
            other = "columns" if name == "rows" else "rows"
            m.submodules[name] = divmod
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
        found = multiplied.i.payload
        m.d.comb += [found[name].eq(along.o.payload[name]) for name in divided.members]
        if self.has_blocks:
            self._place(m, found, multiplied.o.payload, placed.i.payload)
        if self.fibers:
            with m.If(self.by_fiber):
                for n in range(self.lanes):
                    m.d.comb += [
                        found.outers[n].eq(rows.results.payload.quotients[n]),
                        found.rows[n].eq(rows.results.payload.remainders[n]),
                    ]
        return m

    def _place(self, m: Module, found: Any, product: Any, placed: Any) -> None:
        """Blocks by number, and places inside them."""
        wide = Signal(BLOCK_BITS + 1)
        with m.If(self.sides.valid & self.sides.ready):
            m.d.sync += wide.eq(self.sides.payload.columns)
        rows, columns = (self._divmods[name].results.payload for name in ("rows", "columns"))
        for n in range(self.lanes):
            m.d.comb += [
                found.block_rows[n].eq(rows.quotients[n]),
                found.block_columns[n].eq(columns.quotients[n]),
                found.inner_rows[n].eq(rows.remainders[n]),
                found.places[n].eq(columns.remainders[n]),
                placed.places[n].eq(product.inner_rows[n] * wide + product.places[n]),
            ]
