"""Looks at chunks of rows as they arrive, and asks for the next one of each row whose segment may go on."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line

__all__ = ["FIRST_CHUNK_LINES", "NEXT_CHUNK_LINES", "ChunkPeeker", "chunk_end", "peeked_line", "row_chunk"]

FIRST_CHUNK_LINES = 2
NEXT_CHUNK_LINES = 16


def row_chunk() -> data.StructLayout:
    """Lines ``line`` to before ``to`` of the row whose elements lie from position ``begin`` to before ``end``."""
    return data.StructLayout(dict.fromkeys(("begin", "end", "line", "to"), POSITION_WIDTH))


def peeked_line(lanes: int) -> data.StructLayout:
    """A line; ``ends``: the segment ends in it, ``over``: it does not, and this is the last line of its chunk."""
    return data.StructLayout({"line": 64 * lanes, "ends": 1, "over": 1})


def chunk_end(line_index: Value, lines: int, row_end: Value, lanes: int) -> Value:
    """First line after the aligned block of ``lines`` that holds ``line_index``, not beyond the row."""
    block_bits = (lines - 1).bit_length()
    block = ((line_index >> block_bits) + 1) << block_bits
    stop = (row_end + (lanes - 1)) >> (lanes - 1).bit_length()
    return Mux(block < stop, block, stop)[:POSITION_WIDTH]


class ChunkPeeker(Block):
    """Hands on the lines of each chunk up to the one that shows the segment's end.

    Parameters
    ----------
    lanes : int
    ahead : int
        Rows, and lines, that wait inside.

    Members
    -------
    high : In(COORDINATE_WIDTH + 1)
        As :class:`SegmentScanner`.
    rows : In(stream)
        Chunks that come, none of them empty.
    beats : In(stream)
        Their lines, whole chunks in order.
    lines : Out(stream)
        The lines of each, without those after the line in which a coordinate reaches ``high``.
    more : Out(stream)
        The next chunk of a row that has no such line and goes on beyond this chunk. Taken before its row leaves.
    idle : Out(1)
        No row inside. Lines may still wait.
    """

    def __init__(self, *, lanes: int, ahead: int) -> None:
        self.lanes = lanes
        self.ahead = ahead
        super().__init__(
            {
                "high": In(COORDINATE_WIDTH + 1),
                "rows": In(stream.Signature(row_chunk())),
                "beats": In(stream.Signature(64 * lanes)),
                "lines": Out(stream.Signature(peeked_line(lanes))),
                "more": Out(stream.Signature(row_chunk())),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "n": self.ahead}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        m.submodules.queue = queue = StreamQueue(shape=row_chunk(), depth=self.ahead)
        m.submodules.passed = passed = StreamQueue(shape=peeked_line(lanes), depth=self.ahead)
        connect(m, flipped(self.rows), queue.i)
        connect(m, flipped(self.lines), passed.o)

        row = queue.o.payload
        fresh = Signal(init=1)
        line_at = Signal(POSITION_WIDTH)
        ended = Signal()  # the segment's end has been seen, the rest of the chunk is dropped
        asking = Signal()
        here = Signal(POSITION_WIDTH)
        beat = Signal(line(lanes))
        above = Signal(lanes)
        m.d.comb += [here.eq(Mux(fresh, row.line, line_at)), beat.eq(self.beats.payload)]
        for n in range(lanes):
            index = Signal(POSITION_WIDTH, name=f"index{n}")
            m.d.comb += [
                index.eq((here << shift) | n),
                above[n].eq((index >= row.begin) & (index < row.end) & (beat[n].coordinate >= self.high)),
            ]
        took = Signal()
        done = Signal()
        row_over = row.to == (row.end + (lanes - 1)) >> shift
        chunk_over = here + 1 == row.to
        m.d.comb += [
            passed.i.payload.line.eq(self.beats.payload),
            passed.i.payload.ends.eq(above.any() | (chunk_over & row_over)),
            passed.i.payload.over.eq(chunk_over & ~above.any() & ~row_over),
            passed.i.valid.eq(self.beats.valid & queue.o.valid & ~asking & ~ended),
            self.beats.ready.eq(queue.o.valid & ~asking & (passed.i.ready | ended)),
            took.eq(self.beats.valid & self.beats.ready),
            self.more.valid.eq(asking),
            self.more.payload.begin.eq(row.begin),
            self.more.payload.end.eq(row.end),
            self.more.payload.line.eq(row.to),
            self.more.payload.to.eq(chunk_end(row.to, NEXT_CHUNK_LINES, row.end, lanes)),
            self.idle.eq(queue.level == 0),
        ]
        with m.If(took):
            m.d.sync += [fresh.eq(0), line_at.eq(here + 1), ended.eq(ended | above.any())]
            with m.If(chunk_over):
                with m.If(ended | above.any() | row_over):
                    m.d.comb += done.eq(1)
                with m.Else():
                    m.d.sync += asking.eq(1)
        with m.If(asking & self.more.ready):
            m.d.comb += done.eq(1)
        with m.If(done):
            m.d.comb += queue.o.ready.eq(1)
            m.d.sync += [fresh.eq(1), ended.eq(0), asking.eq(0)]
        return m
