"""Rows of a tile out of the entries of a matrix: what a decoder gives becomes what a fiber reader would."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import value_bits, widened
from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.signals import signals
from ..mint.converter.streams import COORDINATE_BITS, cell_group
from ..types import selection

__all__ = ["RowShaper", "tile_of_rows"]


def tile_of_rows() -> data.StructLayout:
    """``rows`` rows from row ``begin`` on; ``empty``: whatever the matrix has in them."""
    return data.StructLayout({"begin": COORDINATE_BITS, "rows": COORDINATE_BITS, "empty": 1})


class RowShaper(Block):
    """Takes the entries of one matrix in row-major order and hands out each row of a tile, one entry a cycle.

    A row's last entry leaves when the one that follows it is known, so that it can say that it is the last. The entries of later
    tiles wait for these.

    Parameters
    ----------
    lanes : int
        Entries in a group at most, power of two from 1 to 16.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    cells : In(stream(cell_group))
        Entries by rising row and column; a group may be empty. ``last`` ends the matrix: nothing is taken after it.
    tile : In(stream(tile_of_rows))
        Begins do not fall. Taken when the rows of the tile before have been handed out.
    selections : Out(stream(selection))
        ``index`` is the column. A row without an entry is one item that is not ``present``.
    idle : Out(1)
        No tile in progress.
    waiting : Out(1), over : Out(1)
        An entry is at hand; all of them have left.
    starved : Out(1)
        An item of the tile is wanted, and none is known.
    stray : Out(1), number : Out(64)
        The entry at hand lies in a row before those that are wanted: no tile has taken it. How many came before it.

    Timing
    ------
    Two cycles from a group to its first entry, one from a tile; one item a cycle.
    """

    def __init__(self, *, lanes: int, value: str) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value = value
        self.value_bits = value_bits(value)
        super().__init__(
            {
                "cells": In(stream.Signature(cell_group(lanes, self.value_bits))),
                "tile": In(stream.Signature(tile_of_rows())),
                "selections": Out(stream.Signature(selection())),
                "idle": Out(1),
                "waiting": Out(1),
                "over": Out(1),
                "starved": Out(1),
                "stray": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        names = ("rows", "columns", "values")
        shape = self.cells.payload.shape()
        # The group that entries come from, and how many of it are left; the last group has come.
        group = Signal(data.StructLayout({name: shape[name].shape for name in names}), reset_less=True)
        lane = Signal(range(self.lanes))
        left = Signal(range(self.lanes + 1))
        complete = Signal()
        entry = Signal(data.StructLayout({"row": COORDINATE_BITS, "column": COORDINATE_BITS, "value": self.value_bits}))
        row = Signal(COORDINATE_BITS)
        rows_left = Signal(COORDINATE_BITS)
        empty = Signal()

        next_row = group.rows[lane]
        known = Signal()  # what follows the entry at hand
        row_ends = Signal()  # with it
        mine, nothing = signals("mine nothing")  # the row at hand has this entry, none
        goes, leaves, moves, comes = signals("goes leaves moves comes")
        out, cells = self.selections, self.cells
        active = ~self.idle
        m.d.comb += [
            self.idle.eq(rows_left == 0),
            self.over.eq(complete & (left == 0) & ~self.waiting),
            known.eq((left != 0) | complete),
            row_ends.eq((left == 0) | (next_row != entry.row)),
            mine.eq(~empty & self.waiting & (entry.row == row)),
            nothing.eq(empty | self.over | (self.waiting & (entry.row > row))),
            self.stray.eq(active & ~empty & self.waiting & (entry.row < row)),
            out.valid.eq(active & ((mine & known) | nothing)),
            out.payload.present.eq(mine),
            out.payload.last.eq(~mine | row_ends),
            self.starved.eq(active & ~out.valid & out.ready),
            goes.eq(out.valid & out.ready),
            leaves.eq(goes & mine),
            moves.eq((left != 0) & (~self.waiting | leaves)),
            cells.ready.eq(~complete & ((left == 0) | (moves & (left == 1)))),
            comes.eq(cells.valid & cells.ready),
            self.tile.ready.eq(self.idle),
        ]
        with m.If(mine):  # an entry of a later tile may come while an empty row is offered
            m.d.comb += [out.payload.index.eq(entry.column), out.payload.weight.eq(widened(entry.value, self.value))]
        with m.If(leaves):
            m.d.sync += [self.waiting.eq(0), self.number.eq(self.number + 1)]
        with m.If(moves):
            m.d.sync += [
                self.waiting.eq(1),
                entry.row.eq(next_row),
                entry.column.eq(group.columns[lane]),
                entry.value.eq(group.values[lane]),
                lane.eq(lane + 1),
                left.eq(left - 1),
            ]
        with m.If(comes):
            m.d.sync += [
                *(group[name].eq(cells.payload[name]) for name in names),
                lane.eq(0),
                left.eq(cells.payload.count),
                complete.eq(cells.payload.last),
            ]
        with m.If(goes & out.payload.last):
            m.d.sync += [row.eq(row + 1), rows_left.eq(rows_left - 1)]
        want = self.tile.payload
        with m.If(self.tile.valid & self.tile.ready):
            m.d.sync += [row.eq(want.begin), rows_left.eq(want.rows), empty.eq(want.empty)]
        return m
