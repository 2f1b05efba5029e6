"""Where the partial rows of the k step before lie in memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, partial_fiber, read_request
from .pair_reader import PairReader

__all__ = ["PartialRows"]

FOUND_AHEAD = 16


class PartialRows(Block):
    """Reads the positions that a tile's rows left in the k step before and gives each row as a partial fiber in memory.

    Parameters
    ----------
    lanes, address_width : int
        See :class:`PairReader`.

    Members
    -------
    start : In(1)
        Pulse while ``idle``: ``rows`` rows are wanted, from index ``row`` of the array ``positions`` on. The three are
        constant from the cycle after it until ``idle``.
    partials : Out(stream(partial_fiber))
        The rows in order.
    first_read : Out(1)
        The first position has been read since ``start``.
    idle : Out(1)
        The positions have been asked for, and no row waits to be handed out.
    read_request, read_data
        A client port of the memory engine.

    Timing
    ------
    One row a cycle, 16 of them ahead.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        super().__init__(
            {
                "start": In(1),
                "row": In(POSITION_WIDTH),
                "rows": In(POSITION_WIDTH),
                "positions": In(address_width),
                "partials": Out(stream.Signature(partial_fiber())),
                "first_read": Out(1, init=1),
                "idle": Out(1),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.reader = reader = PairReader(lanes=self.lanes, address_width=self.address_width)
        m.submodules.fibers = fibers = StreamQueue(shape=partial_fiber(), depth=FOUND_AHEAD)
        # Pointers alone are read, so the reader's second port stays unused.
        connect(m, flipped(self.read_request), reader.read_request[0])
        connect(m, flipped(self.read_data), reader.read_data[0])
        connect(m, fibers.o, flipped(self.partials))
        asked = Signal(init=1)
        pair = reader.pairs.payload
        m.d.comb += [
            reader.run.valid.eq(~asked),
            reader.run.payload.row.eq(self.row),
            reader.run.payload.rows.eq(self.rows),
            reader.run.payload.single.eq(1),
            reader.run.payload.pointers.eq(self.positions),
            fibers.i.valid.eq(reader.pairs.valid),
            fibers.i.payload.in_memory.eq(1),
            fibers.i.payload.position.eq(pair.begin),
            fibers.i.payload.length.eq(pair.end - pair.begin),
            reader.pairs.ready.eq(fibers.i.ready),
            self.idle.eq(asked & (fibers.level == 0)),
        ]
        with m.If(reader.run.valid & reader.run.ready):
            m.d.sync += asked.eq(1)
        with m.If(reader.pairs.valid & reader.pairs.ready):
            m.d.sync += self.first_read.eq(1)
        with m.If(self.start):
            m.d.sync += [asked.eq(0), self.first_read.eq(0)]
        return m
