"""Rows of the entries of a CSR matrix from its row pointers."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.counter import popcount
from ...lib.onehot import onehot_select
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from ...regs.converter_map import POINTER_BITS
from ..records import record_group
from .streams import COORDINATE_BITS, field_group, row_vector

__all__ = ["RowExpander"]


class RowExpander(Block):
    """Gives each entry its row: the number of pointers that are not above the entry's number, less 1.

    One group of pointers and one of entries are at hand. Entries below the last pointer at hand have a row, since all pointers
    not above them have come. A group is done with when the other one reaches beyond it, so an empty row costs a pointer and no
    cycle of its own.

    Parameters
    ----------
    lanes : int
        Entries and pointers a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Members
    -------
    pointers : In(stream(record_group)), entries : In(stream(field_group))
        All row pointers, the first and the one behind the last row among them; all entries, the column in ``second``. Groups are
        never empty, but for one that ends no entries.
    cells : Out(stream(row_vector))
        From registers. ``last`` comes after all pointers were seen.
    error : Out(1), number : Out(64)
        Pointers do not begin at 0, fall, or do not end at the number of entries; the number of the first pointer at hand.
        It stays until the reset, and nothing is taken any more.

    Timing
    ------
    One cycle; a group of entries, of pointers or both a cycle.
    """

    latency = 1

    def __init__(self, *, lanes: int, value_bits: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        super().__init__(
            {
                "pointers": In(stream.Signature(record_group(lanes, POINTER_BITS))),
                "entries": In(stream.Signature(field_group(lanes, value_bits))),
                "cells": Out(stream.Signature(row_vector(lanes, value_bits))),
                "error": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.cells = cells = StreamRegister(shape=self.cells.payload.shape())
        connect(m, cells.o, flipped(self.cells))

        pointers, entries = self.pointers.payload, self.entries.payload
        used = Signal(lanes)
        marks = [Signal(POINTER_BITS, name=f"mark{n}") for n in range(lanes)]
        m.d.comb += used.eq(Cat(pointers.count > n for n in range(lanes)))
        m.d.comb += [mark.eq(pointers.records[n]) for n, mark in enumerate(marks)]
        mark = Signal(POINTER_BITS)  # the last one at hand
        m.d.comb += mark.eq(onehot_select(Cat(pointers.count == n + 1 for n in range(lanes)), marks))
        floor = Signal(POINTER_BITS)  # entries below it have left
        former = Signal(POINTER_BITS)  # the pointer before those at hand
        origin = Signal(POINTER_BITS)  # number of the entry in lane 0
        seen = Signal(COORDINATE_BITS + 1)  # pointers before those at hand
        ending = Signal(POINTER_BITS + 1)

        both = Signal()
        wrong = Signal()
        pointers_done, entries_done, over = signals("pointers_done entries_done over")
        present = Signal(lanes)
        m.d.comb += [
            both.eq(self.pointers.valid & self.entries.valid & ~self.error),
            ending.eq(origin + entries.count),
            pointers_done.eq(mark <= ending),
            entries_done.eq((ending <= mark) & (~entries.last | pointers.last)),
            over.eq(pointers.last & entries.last & (mark == ending)),
        ]
        for n in range(lanes):
            entry = Signal(POINTER_BITS, name=f"entry{n}")
            passed = Cat(used[k] & (marks[k] <= entry) for k in range(lanes))
            m.d.comb += [
                entry.eq(origin + n),
                present[n].eq((entries.count > n) & (entry >= floor) & (entry < mark)),
                cells.i.payload.rows[n].eq(seen + popcount(passed) - 1),
                cells.i.payload.columns[n].eq(entries.second[n]),
                cells.i.payload.values[n].eq(entries.values[n]),
            ]

        falls = Cat(used[n + 1] & (marks[n + 1] < marks[n]) for n in range(lanes - 1))
        m.d.comb += wrong.eq(
            falls.any()
            | (marks[0] < former)
            | ((seen == 0) & (marks[0] != 0))
            | (pointers.last & pointers_done & ~over)
            | (entries.last & (ending < mark))
        )
        goes = Signal()
        m.d.comb += [
            cells.i.valid.eq(both & ~wrong & (present.any() | over)),
            cells.i.payload.present.eq(present),
            cells.i.payload.last.eq(over),
            goes.eq(both & ~wrong & (cells.i.ready | ~(present.any() | over))),
            self.pointers.ready.eq(goes & pointers_done),
            self.entries.ready.eq(goes & entries_done),
            self.number.eq(seen),
        ]
        with m.If(both & wrong):
            m.d.sync += self.error.eq(1)
        with m.If(goes):
            m.d.sync += floor.eq(Mux(pointers_done, mark, ending))
            with m.If(pointers_done):
                m.d.sync += [seen.eq(seen + pointers.count), former.eq(mark)]
            with m.If(entries_done):
                m.d.sync += origin.eq(ending)
        return m
