"""Positions of a tile's rows of C on their way to memory, and the count of the rows that are still to come."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.signals import signals
from ..storage import word_address
from ..types import POSITION_WIDTH, write_beat, write_request
from .word_writer import WordWriter

__all__ = ["TilePositions"]


class TilePositions(Block):
    """Writes where a tile's first row begins, then each row's end; says when the last row has come.

    Positions replace those of the k step before, of which a row's two are read before it can end. Only the first would be
    replaced without waiting for any row: it waits for ``first_free``.

    Parameters
    ----------
    lanes, address_width, burst_beats : int
        See :class:`WordWriter`.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH), silent : In(1)
        Pulse while ``settled``: a tile of so many rows begins; ``silent``: its rows stay on chip and write no positions.
    region : In(address_width), first_row : In(POSITION_WIDTH)
        The array and the index of the first row's position in it. Constant from the cycle after ``start`` until ``settled``.
    base : In(POSITION_WIDTH), first_free : In(1)
        Where the first row begins; the word in its place is no longer needed.
    ends : In(stream(POSITION_WIDTH))
        End of each row; none is taken of a silent tile.
    row_done : In(1)
        Pulse: a row of a silent tile has ended; of others there is none.
    open : Out(1)
        The rows' elements may come: the base has been taken.
    rows_left : Out(POSITION_WIDTH)
        Rows that have not ended.
    flush : Out(1)
        Pulse behind the last row.
    settled, idle : Out(1)
        The last row's end has been taken and flushed; everything has been handed to the memory engine.
    write_request, write_data : Out(stream)
        A client port of the memory engine.

    Timing
    ------
    One row a cycle; 3 cycles more for a tile that writes positions, 1 for a silent one.
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.burst_beats = check_power_of_two("Longest burst", burst_beats, 1, 256)
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "silent": In(1),
                "region": In(address_width),
                "first_row": In(POSITION_WIDTH),
                "base": In(POSITION_WIDTH),
                "first_free": In(1),
                "ends": In(stream.Signature(POSITION_WIDTH)),
                "row_done": In(1),
                "open": Out(1),
                "rows_left": Out(POSITION_WIDTH),
                "flush": Out(1),
                "settled": Out(1),
                "idle": Out(1),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.writer = writer = WordWriter(
            lanes=self.lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        connect(m, flipped(self.write_request), writer.write_request)
        connect(m, flipped(self.write_data), writer.write_data)
        some = Signal()  # the tile has rows
        ended, written = signals("ended written")  # a row ends in this cycle; its end is written
        over = self.rows_left == 0  # a cycle after the last row
        m.d.comb += [
            writer.run.payload.address.eq(word_address(self.region, self.first_row)),
            writer.run.payload.count.eq(self.rows_left + 1),
            writer.words.payload.eq(self.ends.payload),
            ended.eq(self.row_done | written),
            self.idle.eq(writer.idle),
        ]
        with m.If(ended | (self.settled & self.start)):
            m.d.sync += self.rows_left.eq(Mux(self.settled, self.rows, self.rows_left - 1))
        with m.FSM(init="SETTLED"):
            with m.State("SETTLED"):
                m.d.comb += [self.settled.eq(1), self.open.eq(1)]
                with m.If(self.start):
                    m.d.sync += some.eq(self.rows != 0)
                    m.next = "BEGIN"
                    with m.If(self.silent):
                        m.next = "COUNT"
                        with m.If(self.rows == 0):
                            m.next = "SETTLED"
            with m.State("BEGIN"):
                m.d.comb += writer.run.valid.eq(1)
                with m.If(writer.run.ready):
                    m.next = "BASE"
            with m.State("BASE"):
                m.d.comb += [writer.words.valid.eq(self.first_free), writer.words.payload.eq(self.base)]
                with m.If(self.first_free & writer.words.ready):
                    m.next = "SETTLED"
                    with m.If(some):
                        m.next = "ROWS"
            with m.State("ROWS"):
                m.d.comb += [
                    self.open.eq(1),
                    writer.words.valid.eq(self.ends.valid),
                    self.ends.ready.eq(writer.words.ready),
                    written.eq(self.ends.valid & self.ends.ready),
                    self.flush.eq(over),
                ]
                with m.If(over):
                    m.next = "SETTLED"
            with m.State("COUNT"):
                m.d.comb += [self.open.eq(1), self.flush.eq(over)]
                with m.If(over):
                    m.next = "SETTLED"
        return m
