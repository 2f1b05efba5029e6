"""Answers whether a tile of one operand holds anything, from a bit map in memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, read_request

__all__ = ["TileMap"]


class TileMap(Block):
    """Looks up one bit; the beat read last is kept, so that a walk along the map reads each beat once.

    Parameters
    ----------
    lanes, address_width : int
    ranged : bool
        A tile is a rectangle of cells with a bit each: they are looked at row by row, one in two cycles, until one is
        set.

    Members
    -------
    map : In(address_width)
        Byte address of the map, bus-aligned; 0 when there is none (nothing is then known).
    index : In(POSITION_WIDTH), ask : In(1)
        Look up bit ``index``. ``ask`` is a pulse, ``index`` stays until ``done``.
    rows, columns : In(COORDINATE_WIDTH)
        With ``ranged``: cells of the tile, each way at least 1. Taken with ``ask``.
    stride : In(COORDINATE_WIDTH)
        With ``ranged``: cells of a whole row of the map; constant.
    done, known, occupied : Out(1)
        The answer is there; there is a map; the bit.
    clear : In(1)
        Forget the beat.
    read_request, read_data : a client port of the memory engine

    Timing
    ------
    Of a single cell, two cycles where the beat is at hand, else those of memory; of a rectangle a cell in two cycles.
    """

    def __init__(self, *, lanes: int, address_width: int, ranged: bool = False) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.ranged = bool(ranged)
        rectangle = ("rows", "columns", "stride") if self.ranged else ()
        super().__init__(
            {
                **{name: In(COORDINATE_WIDTH) for name in rectangle},
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

    def build(self, platform: Any) -> Module:
        m = Module()
        bits = (64 * self.lanes - 1).bit_length()
        beat = Signal(64 * self.lanes)
        holds = Signal(POSITION_WIDTH - bits)
        beat_valid = Signal()
        index = Signal(POSITION_WIDTH)
        last = Signal()  # no cell follows
        hit = Signal()  # the beat holds the cell, or there is no map
        answered = Signal()
        m.d.sync += self.known.eq(self.map != 0)
        m.d.comb += self.done.eq(answered)
        m.d.comb += [
            self.read_request.payload.address.eq(self.map + (index[bits:] << (bits - 3))),
            self.read_request.payload.beats.eq(1),
        ]
        follow = Signal()
        if self.ranged:
            row_begin = Signal(POSITION_WIDTH)
            columns = Signal(COORDINATE_WIDTH)
            columns_left = Signal(COORDINATE_WIDTH)
            rows_left = Signal(COORDINATE_WIDTH)
            row_ends = Signal()
            with m.If(self.ask):
                m.d.sync += [
                    index.eq(self.index),
                    row_begin.eq(self.index),
                    columns.eq(self.columns),
                    columns_left.eq(self.columns),
                    rows_left.eq(self.rows),
                ]
            with m.Elif(follow):
                m.d.sync += [columns_left.eq(columns_left - 1), index.eq(index + 1)]
                with m.If(row_ends):
                    m.d.sync += [
                        columns_left.eq(columns),
                        rows_left.eq(rows_left - 1),
                        row_begin.eq(row_begin + self.stride),
                        index.eq(row_begin + self.stride),
                    ]
        else:
            m.d.comb += [index.eq(self.index), last.eq(1)]
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.ask):
                    m.d.sync += answered.eq(0)
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += [
                    hit.eq(~self.known | (beat_valid & (holds == index[bits:]))),
                    self.occupied.eq(beat.bit_select(index[:bits], 1)),
                ]
                if self.ranged:
                    one_column = columns_left == 1
                    m.d.sync += [row_ends.eq(one_column), last.eq(~self.known | (one_column & (rows_left == 1)))]
                m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(hit):
                    with m.If(self.occupied | last):
                        m.d.comb += self.done.eq(1)
                        m.d.sync += answered.eq(1)
                        m.next = "IDLE"
                    with m.Else():
                        m.d.comb += follow.eq(1)
                        m.next = "LOOK"
                with m.Else():
                    m.d.comb += self.read_request.valid.eq(1)
                    with m.If(self.read_request.ready):
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += self.read_data.ready.eq(1)
                with m.If(self.read_data.valid):
                    m.d.sync += [beat.eq(self.read_data.payload), holds.eq(index[bits:]), beat_valid.eq(1)]
                    m.next = "LOOK"
        with m.If(self.clear):
            m.d.sync += beat_valid.eq(0)
        return m
