"""Asks for the first chunks of rows to come."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamRegister, StreamSkid
from ..storage import line_address
from ..types import POSITION_WIDTH, pair, record_request
from .chunk_peeker import FIRST_CHUNK_LINES, row_chunk, row_rest, size_chunk
from .row_lines import scanned_row

__all__ = ["FirstChunks"]


class FirstChunks(Block):
    """Works out the first chunk of each row, asks memory for it, and remembers chunk and row.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width : int
        Bits of a byte address, 8 to 64.

    Members
    -------
    elements : In(address_width)
        Byte address of the nonzeros' array, bus-aligned.
    pairs : In(stream)
        Where each row begins and ends.
    read_request : Out(stream), chunks : Out(stream)
        The first chunk of each row that is not empty: up to the end of the aligned block of ``FIRST_CHUNK_LINES`` lines.
    rows : Out(stream)
        Every row, in order. What there is of a row on the three ports leaves in one cycle: each one's ``valid`` waits for the
        ``ready`` of the others.
    idle : Out(1)
        No row inside.

    Timing
    ------
    Two cycles from a pair to its request; one row a cycle.
    """

    latency = 2

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        super().__init__(
            {
                "elements": In(address_width),
                "pairs": In(stream.Signature(pair())),
                "read_request": Out(stream.Signature(record_request(address_width))),
                "chunks": Out(stream.Signature(row_chunk(lanes))),
                "rows": Out(stream.Signature(scanned_row())),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        # Sums and comparisons of positions take a cycle each.
        known_row = data.StructLayout({"pair": pair(), "last": POSITION_WIDTH, "empty": 1})
        sized = data.StructLayout({"chunk": row_chunk(lanes), "row": scanned_row()})
        m.submodules.waiting = waiting = StreamSkid(shape=known_row)
        m.submodules.sized = sized_rows = StreamRegister(shape=sized)
        came, row = self.pairs.payload, waiting.o.payload
        part = Signal(row_rest(lanes))
        m.d.comb += [
            waiting.i.valid.eq(self.pairs.valid),
            self.pairs.ready.eq(waiting.i.ready),
            waiting.i.payload.pair.eq(came),
            waiting.i.payload.last.eq((came.end - 1)[:POSITION_WIDTH] >> shift),
            waiting.i.payload.empty.eq(came.begin == came.end),
            part.line.eq(row.pair.begin >> shift),
            part.last.eq(row.last),
            part.head.eq(row.pair.begin[:shift]),
            part.tail.eq(row.pair.end[:shift]),
            sized_rows.i.valid.eq(waiting.o.valid),
            waiting.o.ready.eq(sized_rows.i.ready),
            sized_rows.i.payload.row.line.eq(part.line),
            sized_rows.i.payload.row.end.eq(row.pair.end),
            sized_rows.i.payload.row.empty.eq(row.empty),
        ]
        size_chunk(m, sized_rows.i.payload.chunk, part, FIRST_CHUNK_LINES)
        item = sized_rows.o
        request, chunks, rows = self.read_request, self.chunks, self.rows
        chunk, empty = item.payload.chunk, item.payload.row.empty
        m.d.comb += [
            request.valid.eq(item.valid & ~empty & rows.ready & chunks.ready),
            request.payload.address.eq(line_address(self.elements, chunk.part.line, lanes)),
            request.payload.beats.eq(chunk.lines),
            chunks.valid.eq(item.valid & ~empty & rows.ready & request.ready),
            chunks.payload.eq(chunk),
            rows.valid.eq(item.valid & (empty | (request.ready & chunks.ready))),
            rows.payload.eq(item.payload.row),
            item.ready.eq(rows.ready & (empty | (request.ready & chunks.ready))),
            self.idle.eq(~waiting.o.valid & ~item.valid),
        ]
        return m
