"""Looks at the first chunk of each row as it arrives, and asks for the second where the row's segment may go on."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line, pair, read_request

__all__ = ["FIRST_CHUNK_LINES", "NEXT_CHUNK_LINES", "ChunkPeeker", "chunk_end"]

FIRST_CHUNK_LINES = 2
NEXT_CHUNK_LINES = 16


def chunk_end(line_index: Value, lines: int, row_end: Value, lanes: int) -> Value:
    """First line after the aligned block of ``lines`` that holds ``line_index``, not beyond the row."""
    block_bits = (lines - 1).bit_length()
    block = ((line_index >> block_bits) + 1) << block_bits
    stop = (row_end + (lanes - 1)) >> (lanes - 1).bit_length()
    return Mux(block < stop, block, stop)[:POSITION_WIDTH]


class ChunkPeeker(Block):
    """Hands on the lines of first chunks up to the one that shows the segment's end.

    Parameters
    ----------
    lanes, address_width : int
    ahead : int
        Rows, and lines, that wait inside.

    Members
    -------
    elements : In(address_width), high : In(COORDINATE_WIDTH + 1)
        As :class:`SegmentScanner`.
    rows : In(stream)
        Rows that are not empty, whose first chunks come.
    beats : In(stream)
        First chunks, whole, in the order of the rows.
    lines : Out(stream)
        The lines of each first chunk, without those after the line in which a coordinate reaches ``high``.
    read_request : Out(stream)
        Second chunks, for rows that have no such line and go on beyond their first chunk.
    idle : Out(1)
        No row inside. Lines may still wait.
    """

    def __init__(self, *, lanes: int, address_width: int, ahead: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.ahead = ahead
        super().__init__(
            {
                "elements": In(address_width),
                "high": In(COORDINATE_WIDTH + 1),
                "rows": In(stream.Signature(pair())),
                "beats": In(stream.Signature(64 * lanes)),
                "lines": Out(stream.Signature(64 * lanes)),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "n": self.ahead}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        m.submodules.queue = queue = StreamQueue(shape=pair(), depth=self.ahead)
        m.submodules.passed = passed = StreamQueue(shape=64 * lanes, depth=self.ahead)
        connect(m, flipped(self.rows), queue.i)
        connect(m, flipped(self.lines), passed.o)

        row = queue.o.payload
        fresh = Signal(init=1)
        line_at = Signal(POSITION_WIDTH)
        ended = Signal()  # the segment's end has been seen, the rest of the chunk is dropped
        asking = Signal()
        here = Signal(POSITION_WIDTH)
        chunk_to = Signal(POSITION_WIDTH)
        beat = Signal(line(lanes))
        above = Signal(lanes)
        m.d.comb += [
            here.eq(Mux(fresh, row.begin >> shift, line_at)),
            chunk_to.eq(chunk_end(row.begin >> shift, FIRST_CHUNK_LINES, row.end, lanes)),
            beat.eq(self.beats.payload),
        ]
        for n in range(lanes):
            index = Signal(POSITION_WIDTH, name=f"index{n}")
            m.d.comb += [
                index.eq((here << shift) | n),
                above[n].eq((index >= row.begin) & (index < row.end) & (beat[n].coordinate >= self.high)),
            ]
        took = Signal()
        chunk_over = here + 1 == chunk_to
        row_over = chunk_to == (row.end + (lanes - 1)) >> shift
        m.d.comb += [
            passed.i.payload.eq(self.beats.payload),
            passed.i.valid.eq(self.beats.valid & queue.o.valid & ~asking & ~ended),
            self.beats.ready.eq(queue.o.valid & ~asking & (passed.i.ready | ended)),
            took.eq(self.beats.valid & self.beats.ready),
        ]
        done = Signal()
        with m.If(took):
            m.d.sync += [fresh.eq(0), line_at.eq(here + 1), ended.eq(ended | above.any())]
            with m.If(chunk_over):
                with m.If(ended | above.any() | row_over):
                    m.d.comb += done.eq(1)
                with m.Else():
                    m.d.sync += asking.eq(1)

        more_to = Signal(POSITION_WIDTH)
        m.d.comb += [
            more_to.eq(chunk_end(chunk_to, NEXT_CHUNK_LINES, row.end, lanes)),
            self.read_request.valid.eq(asking),
            self.read_request.payload.address.eq(self.elements + (chunk_to << (shift + 3))),
            self.read_request.payload.beats.eq(more_to - chunk_to),
        ]
        with m.If(asking & self.read_request.ready):
            m.d.comb += done.eq(1)
        with m.If(done):
            m.d.comb += queue.o.ready.eq(1)
            m.d.sync += [fresh.eq(1), ended.eq(0), asking.eq(0)]
        m.d.comb += self.idle.eq(queue.level == 0)
        return m
