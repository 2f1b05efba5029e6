"""Finds, row by row, the fiber segment that lies in a coordinate range, scanning from its begin position."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect

from ..lib.block import Block
from ..lib.counter import popcount
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..storage import line_address
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line, pair, read_request, segment
from .chunk_peeker import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES, ChunkPeeker, peeked_line, row_chunk, row_rest, size_chunk
from .coordinate_check import CoordinateCheck

__all__ = ["SegmentScanner"]

# Rows whose second (or third, fourth, ...) chunks are under way.
LATER_AHEAD = 16


class SegmentScanner(Block):
    """Fetches each row from its begin position until a coordinate reaches the tile's end (HYTE section 6.2).

    Where a segment ends is not known before it has been read, so a row is fetched in chunks: first to the end of the
    aligned block of 2 lines, then to the ends of aligned blocks of 16 lines, none beyond the row::

        pairs --+--> first chunks --> ChunkPeeker --> lines -----------------+
                |                        |                                   |
                |               second chunks --> ChunkPeeker --> lines -----+--> segments, positions
                |                                    |                       |
                +--> rows                      later chunks --> ChunkPeeker --> lines

    First chunks of rows to come are requested ahead, and looked at as they arrive, so that their second and third chunks
    are on their way before the rows before have been handed out. Each kind has a client port of its own, so that none
    waits for data of another kind. Elements below the range (left by tiles that were skipped) are dropped.

    Columns of a row must not fall: an element behind one of a later tile would be lost. Each row is checked from its begin
    position to the line that ends its segment. In the last tile of a row nothing may lie beyond the range.

    Parameters
    ----------
    lanes, address_width : int
    ahead : int
        Rows whose first chunks are under way. Rows of an element or two hide the memory's latency only if they are many.

    Members
    -------
    elements : In(address_width)
        Byte address of the element array, bus-aligned.
    low, high : In(COORDINATE_WIDTH + 1)
        Coordinates ``low <= c < high`` are kept. Constant while pairs are being scanned and for 2 cycles after.
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
    """

    def __init__(self, *, lanes: int, address_width: int, ahead: int = 64) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.ahead = ahead
        super().__init__(
            {
                "elements": In(address_width),
                "low": In(COORDINATE_WIDTH + 1),
                "high": In(COORDINATE_WIDTH + 1),
                "last": In(1),
                "pairs": In(stream.Signature(pair())),
                "read_request": Out(stream.Signature(read_request(address_width))).array(3),
                "read_data": In(stream.Signature(64 * lanes)).array(3),
                "segments": Out(stream.Signature(segment(lanes))),
                "positions": Out(stream.Signature(POSITION_WIDTH)),
                "idle": Out(1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "n": self.ahead}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        peekers = [ChunkPeeker(lanes=lanes, depth=ahead) for ahead in (self.ahead, LATER_AHEAD, LATER_AHEAD)]
        for n, peeker in enumerate(peekers):
            m.submodules[f"peeker{n}"] = peeker
            m.d.comb += [
                peeker.low.eq(self.low),
                peeker.high.eq(self.high),
                peeker.beats.valid.eq(self.read_data[n].valid),
                peeker.beats.payload.eq(self.read_data[n].payload),
                self.read_data[n].ready.eq(peeker.beats.ready),
            ]
        m.submodules.queue = queue = StreamQueue(shape=_row(), depth=self.ahead, block_memory=self.ahead > 16)
        m.submodules.row = row = StreamRegister(shape=_row())
        connect(m, queue.o, row.i)
        coming = self._begin(m, peekers[0], queue)
        coming |= self._go_on(m, peekers)

        # Here: one line of the present row a cycle into the next step, chunk after chunk.
        m.submodules.step = step = StreamSkid(shape=_step(lanes))
        source = Signal(range(3))
        fresh = Signal(init=1)  # the present row has not been looked at
        line_at = Signal(POSITION_WIDTH)
        here = Signal(POSITION_WIDTH)
        come = Signal(peeked_line(lanes))
        come_valid = Signal()
        took = Signal()
        present = row.o.payload
        m.d.comb += [
            here.eq(Mux(fresh, present.line, line_at)),
            step.i.valid.eq(row.o.valid & (present.empty | come_valid)),
            step.i.payload.line.eq(come.line),
            step.i.payload.inside.eq(come.inside & (~present.empty).replicate(lanes)),
            step.i.payload.keep.eq(come.keep & (~present.empty).replicate(lanes)),
            step.i.payload.above.eq(come.above & (~present.empty).replicate(lanes)),
            step.i.payload.at.eq(here),
            step.i.payload.end.eq(present.end),
            step.i.payload.ends.eq(present.empty | come.ends),
            took.eq(step.i.valid & step.i.ready),
            row.o.ready.eq(step.i.ready & (present.empty | (come_valid & come.ends))),
        ]
        with m.Switch(source):
            for n, peeker in enumerate(peekers):
                with m.Case(n):
                    m.d.comb += [
                        come.eq(peeker.lines.payload),
                        come_valid.eq(peeker.lines.valid),
                        peeker.lines.ready.eq(step.i.ready & row.o.valid & ~present.empty),
                    ]
        with m.If(took):
            m.d.sync += [fresh.eq(step.i.payload.ends), line_at.eq(here + 1)]
            with m.If(step.i.payload.ends):
                m.d.sync += source.eq(0)
            with m.Elif(come.over):
                m.d.sync += source.eq(Mux(source == 0, 1, 2))
        self._hand_out(m, step.o)
        m.submodules.coordinate_check = check = CoordinateCheck(lanes=lanes, repeats=True)
        m.d.comb += [
            check.moved.eq(step.o.valid & step.o.ready),
            check.line.eq(step.o.payload.line),
            check.mask.eq(step.o.payload.inside),
            check.last.eq(step.o.payload.ends),
            check.high.eq(Mux(self.last, self.high, ~0)),
            self.wrong.eq(check.wrong),
            self.coordinate.eq(check.coordinate),
        ]
        idle = Cat(peeker.idle for peeker in peekers).all()
        m.d.comb += self.idle.eq(idle & ~coming & (queue.level == 0) & ~row.o.valid & ~step.o.valid)
        return m

    def _ask(self, m: Module, n: int, chunk: Any) -> None:
        """Requests a chunk from port ``n``."""
        port = self.read_request[n]
        m.d.comb += [
            port.payload.address.eq(line_address(self.elements, chunk.part.line, self.lanes)),
            port.payload.beats.eq(chunk.lines),
        ]

    def _begin(self, m: Module, first: ChunkPeeker, queue: StreamQueue) -> Value:
        """Rows to come: asks for their first chunks, remembers them. Returns whether any is on its way there."""
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        # Sums and comparisons of positions take a cycle each.
        stops = data.StructLayout({"pair": pair(), "stop": POSITION_WIDTH, "empty": 1})
        sized = data.StructLayout({"chunk": row_chunk(lanes), "row": _row()})
        ahead = data.StructLayout({"part": row_rest(lanes), "row": _row()})
        m.submodules.stopped = stopped = StreamRegister(shape=stops)
        m.submodules.rested = rested = StreamSkid(shape=ahead)
        m.submodules.sized = sized_rows = StreamRegister(shape=sized)
        came, known = self.pairs.payload, stopped.o.payload
        begin = known.pair.begin
        m.d.comb += [
            stopped.i.valid.eq(self.pairs.valid),
            self.pairs.ready.eq(stopped.i.ready),
            stopped.i.payload.pair.eq(came),
            stopped.i.payload.stop.eq((came.end + (lanes - 1)) >> shift),
            stopped.i.payload.empty.eq(came.begin == came.end),
            rested.i.valid.eq(stopped.o.valid),
            stopped.o.ready.eq(rested.i.ready),
            rested.i.payload.part.line.eq(begin >> shift),
            rested.i.payload.part.rest.eq(known.stop - (begin >> shift)),
            rested.i.payload.part.head.eq(begin[:shift]),
            rested.i.payload.part.tail.eq(known.pair.end[:shift]),
            rested.i.payload.row.line.eq(begin >> shift),
            rested.i.payload.row.end.eq(known.pair.end),
            rested.i.payload.row.empty.eq(known.empty),
            sized_rows.i.valid.eq(rested.o.valid),
            rested.o.ready.eq(sized_rows.i.ready),
            sized_rows.i.payload.row.eq(rested.o.payload.row),
        ]
        size_chunk(m, sized_rows.i.payload.chunk, rested.o.payload.part, FIRST_CHUNK_LINES)
        item = sized_rows.o
        port, rows = self.read_request[0], first.rows
        empty = item.payload.row.empty
        m.d.comb += [
            port.valid.eq(item.valid & ~empty & queue.i.ready & rows.ready),
            rows.valid.eq(item.valid & ~empty & queue.i.ready & port.ready),
            rows.payload.eq(item.payload.chunk),
            queue.i.valid.eq(item.valid & (empty | (port.ready & rows.ready))),
            queue.i.payload.eq(item.payload.row),
            item.ready.eq(queue.i.ready & (empty | (port.ready & rows.ready))),
        ]
        self._ask(m, 0, item.payload.chunk)
        return stopped.o.valid | rested.o.valid | item.valid

    def _go_on(self, m: Module, peekers: Sequence[ChunkPeeker]) -> Value:
        """Asks for second and later chunks as those before arrive. Returns whether any is about to be asked for."""
        lanes = self.lanes
        asked = []
        for n in (1, 2):
            chunk = StreamRegister(shape=row_chunk(lanes))
            m.submodules[f"asked{n}"] = chunk
            port, rows = self.read_request[n], peekers[n].rows
            m.d.comb += [
                port.valid.eq(chunk.o.valid & rows.ready),
                rows.valid.eq(chunk.o.valid & port.ready),
                rows.payload.eq(chunk.o.payload),
                chunk.o.ready.eq(port.ready & rows.ready),
            ]
            self._ask(m, n, chunk.o.payload)
            asked.append(chunk)
        seconds, laters = asked
        m.d.comb += [
            seconds.i.valid.eq(peekers[0].more.valid),
            peekers[0].more.ready.eq(seconds.i.ready),
        ]
        size_chunk(m, seconds.i.payload, peekers[0].more.payload, NEXT_CHUNK_LINES)

        # Behind a chunk that does not reach the end of its row none of another row is asked for until it is known whether
        # that row goes on: its next chunk comes through the same port.
        third, further = peekers[1].more, peekers[2].more
        open_ended = Signal()
        may_begin = Signal()
        part = Signal(row_rest(lanes))
        m.d.comb += [
            may_begin.eq(~open_ended | (peekers[2].idle & ~laters.o.valid)),
            part.eq(Mux(further.valid, further.payload, third.payload)),
            laters.i.valid.eq(further.valid | (third.valid & may_begin)),
            further.ready.eq(laters.i.ready),
            third.ready.eq(laters.i.ready & may_begin & ~further.valid),
        ]
        size_chunk(m, laters.i.payload, part, NEXT_CHUNK_LINES, aligned=True)
        with m.If(laters.i.valid & laters.i.ready):
            m.d.sync += open_ended.eq(~laters.i.payload.over)
        return seconds.o.valid | laters.o.valid

    def _hand_out(self, m: Module, step: Any) -> None:
        """What of a line belongs to the segment, and where the next one begins."""
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        item = step.payload
        kept_any = Signal()
        kept_begin = Signal(POSITION_WIDTH)
        count = Signal(range(lanes + 1))
        first = Signal(range(lanes))
        lanes_before = Signal(range(lanes))  # lanes of this line before the first one at or beyond the range
        m.d.comb += count.eq(popcount(item.keep))
        for n in reversed(range(lanes)):
            with m.If(item.keep[n]):
                m.d.comb += first.eq(n)
            with m.If(item.above[n]):
                m.d.comb += lanes_before.eq(n)

        kept_here = Signal()
        first_position = Cat(first[:shift], item.at)[:POSITION_WIDTH]
        next_position = Mux(item.above.any(), Cat(lanes_before[:shift], item.at)[:POSITION_WIDTH], item.end)
        segments, positions = self.segments, self.positions
        word = segments.payload.word
        position_taken = Signal()  # the row's next position has gone out, its last word has not
        finish = Signal()
        # Both outputs of a row's end move together or not at all.
        m.d.comb += [
            kept_here.eq(item.keep.any()),
            segments.valid.eq(step.valid & Mux(item.ends, position_taken | positions.ready, kept_here)),
            word.line.eq(item.line),
            word.first.eq(first),
            word.count.eq(count),
            word.last.eq(item.ends),
            segments.payload.begin.eq(Mux(kept_any, kept_begin, Mux(kept_here, first_position, next_position))),
            positions.valid.eq(step.valid & item.ends & ~position_taken),
            positions.payload.eq(next_position),
            finish.eq(segments.valid & segments.ready & item.ends),
            step.ready.eq(
                Mux(item.ends, (position_taken | positions.ready) & segments.ready, ~kept_here | segments.ready)
            ),
        ]
        with m.If(positions.valid & positions.ready):
            m.d.sync += position_taken.eq(1)
        with m.If(finish):
            m.d.sync += [position_taken.eq(0), kept_any.eq(0)]
        with m.Elif(step.valid & step.ready & kept_here & ~kept_any):
            m.d.sync += [kept_any.eq(1), kept_begin.eq(first_position)]


def _row() -> data.StructLayout:
    """A row whose segment is looked for from line ``line`` on; its last element lies before position ``end``."""
    return data.StructLayout({"line": POSITION_WIDTH, "end": POSITION_WIDTH, "empty": 1})


def _step(lanes: int) -> data.StructLayout:
    """A line of the present row as it was peeked at, which one it is (``at``) and where its row ends."""
    fields = {
        "line": line(lanes),
        "inside": lanes,
        "keep": lanes,
        "above": lanes,
        "at": POSITION_WIDTH,
        "end": POSITION_WIDTH,
    }
    return data.StructLayout({**fields, "ends": 1})
