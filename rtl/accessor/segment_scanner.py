"""Finds, row by row, the fiber segment that lies in a coordinate range, scanning from its begin position."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, pair, record_request, segment
from .chunk_peeker import ChunkPeeker
from .coordinate_check import CoordinateCheck
from .first_chunks import FirstChunks
from .next_chunks import NextChunks
from .row_lines import RowLines, scanned_row
from .segment_cutter import SegmentCutter

__all__ = ["SegmentScanner"]

# Rows whose second (or third, fourth, ...) chunks are under way.
LATER_AHEAD = 16
# Lines of first chunks that may wait: rows behind one that waits for its second chunk are looked at meanwhile. With 16 a run
# that loads 256 rows of 9 nonzeros, cut along j, took 1.7 times as long on `server`, whose memory is 100 cycles away.
FIRST_LINES = 64


class SegmentScanner(Block):
    """Fetches each row from its begin position until a coordinate reaches the tile's end (HYTE section 6.2).

    Where a segment ends is not known before it has been read, so a row is fetched in chunks: first to the end of the
    aligned block of 2 lines, then to the ends of aligned blocks of 16 lines, none beyond the row::

        pairs --> FirstChunks --> ChunkPeeker --> lines ----------------------+
                       |               |                                      |
                       |          NextChunks --> ChunkPeeker --> lines -------+--> RowLines --> SegmentCutter --> segments,
                       |               |              |                       |        ^                          positions
                       |          NextChunks <--------+--> ChunkPeeker --> lines       |
                       +--> rows ------------------------------------------------------+

    First chunks of rows to come are requested early, and looked at as they arrive, so that their second and third chunks
    are on their way before the rows before have been handed out. Each kind has a client port of its own, so that none
    waits for data of another kind. Elements below the range (left by tiles that were skipped) are dropped.

    Columns of a row must not fall: an element behind one of a later tile would be lost. Each row is checked from its begin
    position to the line that ends its segment. In the last tile of a row nothing may lie beyond the range.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width : int
        Bits of a byte address, 8 to 64.
    rows : int
        Rows whose first chunks are under way, 2 to 1024. Rows of an element or two hide the latency of memory only if they
        are many.

    Members
    -------
    elements : In(address_width)
        Byte address of the element array, bus-aligned.
    low, high : In(COORDINATE_WIDTH + 1)
        Coordinates ``low <= c < high`` are kept. Constant from a pair on until ``idle``.
    last : In(1)
        No row has an element at or beyond ``high``. Constant as ``high``.
    pairs : In(stream)
        Where each row begins (at or before the segment) and ends.
    read_request, read_data : three client ports of the memory engine
        0 first chunks, 1 second ones, 2 those after them.
    segments : Out(stream)
        The segment of each row; ``count = 0, last = 1`` ends one that is empty or whose end shows only in the line after it.
    positions : Out(stream)
        For each row, once: the position of the first element at or beyond ``high``, the next tile's begin position.
    idle : Out(1)
        No row under way and no beat left to drop.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse: this one is below the one before it in its row, or, with ``last``, at or beyond ``high``.

    Timing
    ------
    Two cycles from a pair to its request, six from a beat to the segment's word; one row, one line a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int, rows: int = 64) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.rows = check_integer("Rows under way", rows, 2, 1024)
        super().__init__(
            {
                "elements": In(address_width),
                "low": In(COORDINATE_WIDTH + 1),
                "high": In(COORDINATE_WIDTH + 1),
                "last": In(1),
                "pairs": In(stream.Signature(pair())),
                "read_request": Out(stream.Signature(record_request(address_width))).array(3),
                "read_data": In(stream.Signature(64 * lanes)).array(3),
                "segments": Out(stream.Signature(segment(lanes))),
                "positions": Out(stream.Signature(POSITION_WIDTH)),
                "idle": Out(1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, aw = self.lanes, self.address_width
        m.submodules.first_chunks = first = FirstChunks(lanes=lanes, address_width=aw)
        m.submodules.next_chunks = following = NextChunks(lanes=lanes, address_width=aw)
        m.submodules.queue = queue = StreamQueue(shape=scanned_row(), depth=self.rows, block_memory=self.rows > 16)
        m.submodules.row_lines = lines = RowLines(lanes=lanes)
        m.submodules.cutter = cutter = SegmentCutter(lanes=lanes)
        m.submodules.coordinate_check = check = CoordinateCheck(lanes=lanes, repeats=True)
        peekers = [ChunkPeeker(lanes=lanes, depth=self.rows, capacity=FIRST_LINES)]
        peekers += [ChunkPeeker(lanes=lanes, depth=LATER_AHEAD) for _ in range(2)]
        requests = (first.read_request, *following.read_request)
        chunks = (first.chunks, *following.chunks)
        for n, peeker in enumerate(peekers):
            m.submodules[f"peeker{n}"] = peeker
            connect(m, flipped(self.read_request[n]), requests[n])
            connect(m, flipped(self.read_data[n]), peeker.beats)
            connect(m, chunks[n], peeker.rows)
            connect(m, peeker.more, following.more[n])
            connect(m, peeker.lines, lines.lines[n])
            m.d.comb += passed(self, peeker, "high")
        connect(m, flipped(self.pairs), first.pairs)
        connect(m, first.rows, queue.i)
        connect(m, queue.o, lines.rows)
        connect(m, lines.steps, cutter.steps)
        connect(m, cutter.segments, flipped(self.segments))
        connect(m, cutter.positions, flipped(self.positions))
        step = lines.steps
        quiet = Cat(peeker.idle for peeker in peekers).all() & (queue.level == 0)
        m.d.comb += [
            *passed(self, first, "elements"),
            *passed(self, lines, "low"),
            *passed(self, following, "elements"),
            following.later_idle.eq(peekers[2].idle),
            check.moved.eq(step.valid & step.ready),
            check.line.eq(step.payload.line),
            check.mask.eq(step.payload.inside),
            check.last.eq(step.payload.ends),
            check.high.eq(Mux(self.last, self.high, ~0)),
            *passed(check, self, "wrong coordinate"),
            self.idle.eq(quiet & first.idle & following.idle & lines.idle),
        ]
        return m
