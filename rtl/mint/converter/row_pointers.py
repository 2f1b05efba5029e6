"""Row pointers of a CSR matrix from the rows of its entries."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.counter import popcount
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from ...regs.converter_map import POINTER_BITS
from ..records import low_mask, record_group
from .streams import COORDINATE_BITS, cell_group

__all__ = ["RowPointers"]


class RowPointers(Block):
    """Pointer r is the number of entries in the rows before r.

    It is known when an entry of row r or a later one comes, or the last group.

    Parameters
    ----------
    lanes : int
        Entries and pointers a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Members
    -------
    cells : In(stream(cell_group))
        Rows rise.
    rows : In(33), pointer_bits : In(range(41))
        Of the matrix; of a pointer. Constant while an entry is inside.
    pointers : Out(stream(record_group))
        ``rows`` + 1 of them. From registers.
    overflow : Out(1), number : Out(64)
        Entries are more than a pointer holds; how many came. They stay until the reset, and nothing is taken any more.

    Timing
    ------
    One cycle; ``lanes`` pointers a cycle, and a group of entries with the last pointers that it tells.
    """

    latency = 1

    def __init__(self, *, lanes: int, value_bits: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        super().__init__(
            {
                "cells": In(stream.Signature(cell_group(lanes, value_bits))),
                "rows": In(COORDINATE_BITS + 1),
                "pointer_bits": In(range(POINTER_BITS + 1)),
                "pointers": Out(stream.Signature(record_group(lanes, POINTER_BITS))),
                "overflow": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.pointers = pointers = StreamRegister(shape=self.pointers.payload.shape())
        connect(m, pointers.o, flipped(self.pointers))
        group = self.cells.payload
        entries = Signal(POINTER_BITS + 1)  # of the groups before
        row = Signal(COORDINATE_BITS + 2)  # of the next pointer
        used = Cat(group.count > n for n in range(lanes))
        # The last row of which this group tells the pointer.
        reach = Signal(COORDINATE_BITS + 2)
        m.d.comb += reach.eq(row - 1)
        for n in range(lanes):
            with m.If(used[n]):
                m.d.comb += reach.eq(group.rows[n])
        with m.If(group.last):
            m.d.comb += reach.eq(self.rows)

        due = Signal(COORDINATE_BITS + 2)
        total = Signal(POINTER_BITS + 1)
        limit = Cat(low_mask(self.pointer_bits, POINTER_BITS))
        spills = Signal()
        done, goes = signals("done goes")
        m.d.comb += [
            due.eq(reach + 1 - row),
            done.eq(due <= lanes),
            total.eq(entries + group.count),
            spills.eq(total > limit),
            pointers.i.valid.eq(self.cells.valid & (due != 0) & ~spills & ~self.overflow),
            pointers.i.payload.count.eq(Mux(done, due, lanes)),
            pointers.i.payload.last.eq(group.last & done),
            goes.eq(self.cells.valid & ~spills & ~self.overflow & (pointers.i.ready | (due == 0))),
            self.cells.ready.eq(goes & done),
        ]
        for n in range(lanes):
            here = Signal(COORDINATE_BITS + 2, name=f"row{n}")
            before = Cat(used[k] & (group.rows[k] < here) for k in range(lanes))
            m.d.comb += [here.eq(row + n), pointers.i.payload.records[n].eq(entries + popcount(before))]
        with m.If(goes):
            m.d.sync += row.eq(row + pointers.i.payload.count)
            with m.If(done):
                m.d.sync += entries.eq(total)
                with m.If(group.last):
                    m.d.sync += [row.eq(0), entries.eq(0)]
        with m.If(self.cells.valid & spills & ~self.overflow):
            m.d.sync += [self.overflow.eq(1), self.number.eq(total)]
        return m
