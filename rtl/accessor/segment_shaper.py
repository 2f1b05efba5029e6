"""Segments of a tile out of the entries of a matrix: what a decoder gives becomes what a fiber reader would."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import value_bits, widened
from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.signals import signals
from ..mint.converter.streams import COORDINATE_BITS, cell_group
from ..types import segment

__all__ = ["SegmentShaper", "rows_of_tile"]


def rows_of_tile() -> data.StructLayout:
    """``rows`` rows from row ``begin`` on."""
    return data.StructLayout({"begin": COORDINATE_BITS, "rows": COORDINATE_BITS})


class SegmentShaper(Block):
    """Takes the entries of one matrix in row-major order and hands out each row of a tile, the entries of a group together.

    A word leaves when the entry behind it is known, so that it can say whether it ends its row. Entries of rows before those that
    are wanted are left out, those of later tiles wait for these.

    Parameters
    ----------
    group : int
        Entries in a group at most, power of two from 1 to 16.
    lanes : int
        64-bit elements in a line, power of two, ``group`` at least.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    cells : In(stream(cell_group))
        Entries by rising row and column; a group may be empty. ``last`` ends the matrix: nothing is taken after it.
    tile : In(stream(rows_of_tile))
        Begins do not fall. Taken when the rows of the tile before have been handed out.
    segments : Out(stream(segment))
        A segment for each row: words of as many entries as a group has of it, one without an entry for an empty row. Beside the
        word all is 0.
    drop : In(1)
        No tile wants what is left. Only while ``idle``.
    idle : Out(1), over : Out(1)
        No tile in progress; also, all entries have left.
    starved : Out(1)
        A word is wanted, and none is known.

    Timing
    ------
    A cycle from a group to its first word; one word a cycle.
    """

    def __init__(self, *, group: int, lanes: int, value: str) -> None:
        self.group = check_power_of_two("Entries of a group", group, 1, 16)
        self.lanes = check_power_of_two("Lanes", lanes, group, 64)
        self.value = value
        self.value_bits = value_bits(value)
        super().__init__(
            {
                "cells": In(stream.Signature(cell_group(group, self.value_bits))),
                "tile": In(stream.Signature(rows_of_tile())),
                "segments": Out(stream.Signature(segment(lanes))),
                "drop": In(1),
                "idle": Out(1),
                "over": Out(1),
                "starved": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        names = ("rows", "columns", "values")
        cells, out = self.cells, self.segments
        shape = cells.payload.shape()
        # The group that entries come from, and which of it are left; the last group has come.
        group = Signal(data.StructLayout({name: shape[name].shape for name in names}), reset_less=True)
        left = Signal(self.group)
        complete = Signal()
        row, rows_left = signals("row rows_left", COORDINATE_BITS)

        own, later = signals("own later", self.group)  # entries of the row at hand, of those behind it
        rest = Signal(self.group)  # what is left after this cycle
        follows, known = signals("follows known")  # entries come next, and whether the row ends is known
        active, old, goes, comes = signals("active old goes comes")
        m.d.comb += [
            self.idle.eq(rows_left == 0),
            active.eq(~self.idle),
            self.over.eq(complete & (left == 0)),
            own.eq(Cat(left[n] & (group.rows[n] == row) for n in range(self.group))),
            later.eq(Cat(left[n] & (group.rows[n] > row) for n in range(self.group))),
            old.eq((left & ~own & ~later).any()),
            follows.eq(cells.valid & (cells.payload.count != 0)),
            known.eq(later.any() | complete | ((left != 0) & follows)),
            out.valid.eq(active & ~old & known),
            goes.eq(out.valid & out.ready),
            self.starved.eq(active & ~out.valid & out.ready),
            rest.eq(left),
            # An empty group says nothing; another one comes when its place is free.
            cells.ready.eq(~complete & ((rest == 0) | (cells.payload.count == 0))),
            comes.eq(cells.valid & cells.ready),
            self.tile.ready.eq(self.idle),
        ]
        with m.If(self.drop):
            m.d.comb += rest.eq(0)
        with m.Elif(active & old):
            m.d.comb += rest.eq(own | later)
        with m.Elif(goes):
            m.d.comb += rest.eq(later)

        word = out.payload.word
        m.d.comb += [
            word.count.eq(sum(own)),
            word.last.eq(later.any() | complete | (cells.payload.rows[0] != row)),
        ]
        for n in reversed(range(self.group)):
            with m.If(own[n]):
                m.d.comb += word.first.eq(n)
            m.d.comb += [
                word.line[n].coordinate.eq(group.columns[n]),
                word.line[n].value.eq(widened(group.values[n], self.value)),
            ]

        m.d.sync += left.eq(rest)
        with m.If(comes):
            m.d.sync += complete.eq(cells.payload.last)
            with m.If(cells.payload.count != 0):
                m.d.sync += left.eq(Cat(cells.payload.count > n for n in range(self.group)))
                m.d.sync += [group[name].eq(cells.payload[name]) for name in names]
        with m.If(goes & word.last):
            m.d.sync += [row.eq(row + 1), rows_left.eq(rows_left - 1)]
        with m.If(self.tile.valid & self.tile.ready):
            m.d.sync += [row.eq(self.tile.payload.begin), rows_left.eq(self.tile.payload.rows)]
        return m
