"""Looks at chunks of rows as they arrive, and asks for the next one of each row whose segment may go on."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.deep_queue import DeepQueue
from ..lib.order import below
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line

__all__ = ["FIRST_CHUNK_LINES", "NEXT_CHUNK_LINES", "ChunkPeeker", "peeked_line", "row_chunk", "row_rest", "size_chunk"]

FIRST_CHUNK_LINES = 2
NEXT_CHUNK_LINES = 16
# Lines that have been looked at and wait to be handed out.
WAITING_LINES = 16


def row_rest(lanes: int) -> data.StructLayout:
    """The part of a row from line ``line`` of its array on: up to line ``last``, not before ``line``.

    ``head``: lanes of its first line that belong to the row before. ``tail``: lanes of its last line that belong to it, 0
    for all of them.
    """
    lane = range(max(2, lanes))
    return data.StructLayout({"line": POSITION_WIDTH, "last": POSITION_WIDTH, "head": lane, "tail": lane})


def row_chunk(lanes: int) -> data.StructLayout:
    """The first ``lines`` lines of ``part``. ``single``: only one; ``over``: the row has no others."""
    lines = range(NEXT_CHUNK_LINES + 1)
    return data.StructLayout({"part": row_rest(lanes), "lines": lines, "single": 1, "over": 1})


def peeked_line(lanes: int) -> data.StructLayout:
    """A line and which of its lanes hold elements of the row (``inside``), and of these the ones behind the segment (``above``).

    ``ends``: the segment ends in it, ``over``: it does not, and this is the last line of its chunk.
    """
    return data.StructLayout({"line": line(lanes), "inside": lanes, "above": lanes, "ends": 1, "over": 1})


def size_chunk(m: Module, chunk: Any, part: Any, block: int, *, aligned: bool = False) -> None:
    """Makes ``chunk`` the lines of ``part`` up to the end of the aligned block of ``block`` lines that ``part`` begins in.

    ``aligned``: it begins at the block's begin.
    """
    bits = (block - 1).bit_length()
    begin = Const(0, bits) if aligned else part.line[:bits]
    end = Signal(bits)  # the chunk's last line in the block
    over = Signal()
    m.d.comb += [
        over.eq(~below(part.line[bits:], part.last[bits:])),
        end.eq(Mux(over, part.last[:bits], ~0)),
        chunk.part.eq(part),
        chunk.over.eq(over),
        # Of an aligned chunk without a sum behind the choice.
        chunk.lines.eq(Mux(over, part.last[:bits] + 1, block) if aligned else end - begin + 1),
        chunk.single.eq(end == begin),
    ]


class ChunkPeeker(Block):
    """Hands on the lines of each chunk up to the one that shows the segment's end.

    Parameters
    ----------
    lanes : int
    depth : int
        Rows whose chunks are under way; more than 16 of them wait in block memory.
    capacity : int
        Lines that may wait to be handed out; those above ``WAITING_LINES`` wait in block memory.

    Members
    -------
    high : In(COORDINATE_WIDTH + 1)
        As :class:`SegmentScanner`.
    rows : In(stream)
        Chunks that come.
    beats : In(stream)
        Their lines, whole chunks in order.
    lines : Out(stream)
        The lines of each, without those after the line in which a coordinate reaches ``high``.
    more : Out(stream)
        What is left of a row that has no such line and goes on beyond this chunk.
    idle : Out(1)
        No row inside. Lines may still wait.

    Timing
    ------
    Three cycles from a beat to its line, which then waits for at most ``capacity`` others; one beat a cycle.
    """

    def __init__(self, *, lanes: int, depth: int, capacity: int = WAITING_LINES) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.depth = check_integer("Queue depth", depth, 1, 1 << 16)
        self.capacity = check_integer("Lines that wait", capacity, WAITING_LINES, 1 << 16)
        super().__init__(
            {
                "high": In(COORDINATE_WIDTH + 1),
                "rows": In(stream.Signature(row_chunk(lanes))),
                "beats": In(stream.Signature(64 * lanes)),
                "lines": Out(stream.Signature(peeked_line(lanes))),
                "more": Out(stream.Signature(row_rest(lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        # A block RAM's output, the comparison with the range and what follows from it take a cycle each.
        compared_shape = data.StructLayout({"line": line(lanes), "passes": lanes})
        m.submodules.arrived = arrived = StreamRegister(shape=line(lanes))
        m.submodules.compared = compared = StreamRegister(shape=compared_shape)
        m.submodules.queue = queue = StreamQueue(shape=row_chunk(lanes), depth=self.depth, block_memory=self.depth > 16)
        m.submodules.head = head = StreamRegister(shape=row_chunk(lanes))
        if self.capacity > WAITING_LINES:
            passed = DeepQueue(shape=peeked_line(lanes), depth=WAITING_LINES, spilled=self.capacity - WAITING_LINES)
        else:
            passed = StreamQueue(shape=peeked_line(lanes), depth=WAITING_LINES)
        m.submodules.passed = passed
        m.submodules.left = left = StreamSkid(shape=row_rest(lanes))
        connect(m, flipped(self.rows), queue.i)
        connect(m, queue.o, head.i)
        connect(m, flipped(self.lines), passed.o)
        connect(m, flipped(self.more), left.o)
        m.d.comb += [
            arrived.i.valid.eq(self.beats.valid),
            arrived.i.payload.eq(self.beats.payload),
            self.beats.ready.eq(arrived.i.ready),
            compared.i.valid.eq(arrived.o.valid),
            compared.i.payload.line.eq(arrived.o.payload),
            arrived.o.ready.eq(compared.i.ready),
        ]
        for n in range(lanes):
            m.d.comb += compared.i.payload.passes[n].eq(~below(arrived.o.payload[n].coordinate, self.high))

        chunk, beat = head.o.payload, compared.o.payload
        part = chunk.part
        fresh = Signal(init=1)  # the chunk's first line is awaited
        lines_left = Signal(range(NEXT_CHUNK_LINES + 1))  # after the present line
        last = Signal()  # of the chunk
        row_over = Signal()
        in_row = Signal(lanes)
        above = Signal(lanes)
        ended = Signal()  # the segment's end has been seen, the rest of the chunk is dropped
        took = Signal()
        goes_on = Signal()
        m.d.comb += row_over.eq(last & chunk.over)
        for n in range(lanes):
            before, after = fresh & (n < part.head), row_over & (part.tail != 0) & (n >= part.tail)
            m.d.comb += in_row[n].eq(~before & ~after)
        m.d.comb += [
            above.eq(in_row & beat.passes),
            passed.i.payload.line.eq(beat.line),
            passed.i.payload.inside.eq(in_row),
            passed.i.payload.above.eq(above),
            passed.i.payload.ends.eq(above.any() | row_over),
            passed.i.payload.over.eq(last & ~above.any() & ~chunk.over),
            goes_on.eq(last & ~chunk.over & ~above.any() & ~ended),
            # There is room for what is left of a row before its last line is looked at.
            took.eq(compared.o.valid & head.o.valid & (passed.i.ready | ended) & (left.i.ready | ~last)),
            compared.o.ready.eq(head.o.valid & (passed.i.ready | ended) & (left.i.ready | ~last)),
            passed.i.valid.eq(compared.o.valid & head.o.valid & ~ended & (left.i.ready | ~last)),
            head.o.ready.eq(took & last),
            left.i.valid.eq(took & goes_on),
            left.i.payload.line.eq(part.line + chunk.lines),
            left.i.payload.last.eq(part.last),
            left.i.payload.head.eq(0),
            left.i.payload.tail.eq(part.tail),
            self.idle.eq((queue.level == 0) & ~head.o.valid & ~left.o.valid),
        ]
        with m.If(took):
            m.d.sync += [
                fresh.eq(last),
                lines_left.eq(Mux(fresh, chunk.lines, lines_left) - 1),
                last.eq(Mux(fresh, chunk.lines, lines_left) == 2),
                ended.eq(~last & (ended | above.any())),
            ]
        with m.If(head.i.valid & head.i.ready):
            m.d.sync += last.eq(head.i.payload.single)
        return m
