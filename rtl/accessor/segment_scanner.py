"""Finds, row by row, the fiber segment that lies in a coordinate range, scanning from its begin position."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line, pair, read_request, segment_word
from .chunk_peeker import FIRST_CHUNK_LINES, ChunkPeeker, chunk_end, peeked_line

__all__ = ["SegmentScanner"]


class SegmentScanner(Block):
    """Fetches each row from its begin position until a coordinate reaches the tile's end (HYTE section 6.2).

    Where a segment ends is not known before it has been read, so a row is fetched in chunks: first to the end of the
    aligned block of 2 lines, then to the ends of aligned blocks of 16 lines, none beyond the row::

        pairs --+--> first chunks --> ChunkPeeker --> lines -----------------+
                |                        |                                   |
                |               second chunks --> ChunkPeeker --> lines -----+--> words, positions
                |                                    |                       |
                +--> rows                      later chunks --> ChunkPeeker --> lines

    First chunks of rows to come are requested ahead, and looked at as they arrive, so that their second and third chunks
    are on their way before the rows before have been handed out. Each kind has a client port of its own, so that none
    waits for data of another kind. Elements below the range (left by tiles that were skipped) are dropped.

    Members
    -------
    elements : In(address_width)
        Byte address of the element array, bus-aligned.
    low, high : In(COORDINATE_WIDTH + 1)
        Coordinates ``low <= c < high`` are kept. Constant while pairs are being scanned.
    pairs : In(stream)
        Where each row begins (at or before the segment) and ends.
    read_request, read_data : three client ports of the memory engine
        0 first chunks, 1 second ones, 2 those after them.
    words : Out(stream)
        The segment; ``count = 0, last = 1`` ends one that is empty or whose end shows only in the line after it.
    begin : Out(POSITION_WIDTH)
        Position of the present segment's first kept element; holds with a word whose ``last`` is set or ``count > 0``.
    positions : Out(stream)
        For each row, once: the position of the first element at or beyond ``high``, the next tile's begin position.
    idle : Out(1)
        No row under way and no beat left to drop.
    """

    def __init__(self, *, lanes: int, address_width: int, ahead: int = 16) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.ahead = ahead
        super().__init__(
            {
                "elements": In(address_width),
                "low": In(COORDINATE_WIDTH + 1),
                "high": In(COORDINATE_WIDTH + 1),
                "pairs": In(stream.Signature(pair())),
                "read_request": Out(stream.Signature(read_request(address_width))).array(3),
                "read_data": In(stream.Signature(64 * lanes)).array(3),
                "words": Out(stream.Signature(segment_word(lanes))),
                "begin": Out(POSITION_WIDTH),
                "positions": Out(stream.Signature(POSITION_WIDTH)),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "n": self.ahead}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        byte_shift = shift + 3

        def ask(port: Any, chunk: Any) -> None:
            m.d.comb += [
                port.payload.address.eq(self.elements + (chunk.line << byte_shift)),
                port.payload.beats.eq(chunk.to - chunk.line),
            ]

        # Ahead: ask for first chunks, remember the rows.
        m.submodules.queue = queue = StreamQueue(shape=pair(), depth=self.ahead)
        peekers = [ChunkPeeker(lanes=lanes, ahead=self.ahead) for _ in range(3)]
        for n, peeker in enumerate(peekers):
            m.submodules[f"peeker{n}"] = peeker
            m.d.comb += [
                peeker.high.eq(self.high),
                peeker.beats.valid.eq(self.read_data[n].valid),
                peeker.beats.payload.eq(self.read_data[n].payload),
                self.read_data[n].ready.eq(peeker.beats.ready),
            ]
        ahead = self.pairs.payload
        first_port, firsts = self.read_request[0], peekers[0].rows
        ahead_empty = ahead.begin == ahead.end
        m.d.comb += [
            firsts.payload.begin.eq(ahead.begin),
            firsts.payload.end.eq(ahead.end),
            firsts.payload.line.eq(ahead.begin >> shift),
            firsts.payload.to.eq(chunk_end(ahead.begin >> shift, FIRST_CHUNK_LINES, ahead.end, lanes)),
            first_port.valid.eq(self.pairs.valid & ~ahead_empty & queue.i.ready & firsts.ready),
            firsts.valid.eq(self.pairs.valid & ~ahead_empty & queue.i.ready & first_port.ready),
            queue.i.payload.eq(ahead),
            queue.i.valid.eq(self.pairs.valid & (ahead_empty | (first_port.ready & firsts.ready))),
            self.pairs.ready.eq(queue.i.ready & (ahead_empty | (first_port.ready & firsts.ready))),
        ]
        ask(first_port, firsts.payload)

        # Second chunks, as the first ones arrive.
        second_port, seconds = self.read_request[1], peekers[1].rows
        m.d.comb += [
            seconds.payload.eq(peekers[0].more.payload),
            second_port.valid.eq(peekers[0].more.valid & seconds.ready),
            seconds.valid.eq(peekers[0].more.valid & second_port.ready),
            peekers[0].more.ready.eq(second_port.ready & seconds.ready),
        ]
        ask(second_port, seconds.payload)

        # Later chunks, as those before arrive. Behind one that does not reach the end of its row none of another row is
        # asked for until it is known whether that row goes on: its next chunk comes through the same port.
        later_port, laters = self.read_request[2], peekers[2].rows
        third, further = peekers[1].more, peekers[2].more
        open_ended = Signal()
        may_begin = Signal()
        asked = Signal()
        m.d.comb += [
            may_begin.eq(~open_ended | peekers[2].idle),
            laters.payload.eq(Mux(further.valid, further.payload, third.payload)),
            asked.eq(further.valid | (third.valid & may_begin)),
            later_port.valid.eq(asked & laters.ready),
            laters.valid.eq(asked & later_port.ready),
            further.ready.eq(later_port.ready & laters.ready),
            third.ready.eq(later_port.ready & laters.ready & may_begin & ~further.valid),
        ]
        ask(later_port, laters.payload)
        with m.If(laters.valid & laters.ready):
            m.d.sync += open_ended.eq(laters.payload.to != (laters.payload.end + (lanes - 1)) >> shift)

        # Here: one line of the present row a cycle into the next step, chunk after chunk.
        step_shape = data.StructLayout(
            {"line": line(lanes), "inside": lanes, "at": POSITION_WIDTH, "end": POSITION_WIDTH, "ends": 1}
        )
        m.submodules.step = step = StreamRegister(shape=step_shape)
        row = queue.o.payload
        source = Signal(range(3))
        fresh = Signal(init=1)  # the present row has not been looked at
        line_at = Signal(POSITION_WIDTH)
        here = Signal(POSITION_WIDTH)
        empty = Signal()
        come = Signal(peeked_line(lanes))
        come_valid = Signal()
        took = Signal()
        m.d.comb += [
            here.eq(Mux(fresh, row.begin >> shift, line_at)),
            empty.eq(row.begin == row.end),
            step.i.valid.eq(queue.o.valid & (empty | come_valid)),
            step.i.payload.line.eq(come.line),
            step.i.payload.at.eq(here),
            step.i.payload.end.eq(row.end),
            step.i.payload.ends.eq(empty | come.ends),
            took.eq(step.i.valid & step.i.ready),
            queue.o.ready.eq(took & step.i.payload.ends),
        ]
        with m.Switch(source):
            for n, peeker in enumerate(peekers):
                with m.Case(n):
                    m.d.comb += [
                        come.eq(peeker.lines.payload),
                        come_valid.eq(peeker.lines.valid),
                        peeker.lines.ready.eq(took & ~empty),
                    ]
        for n in range(lanes):
            index = Signal(POSITION_WIDTH, name=f"index{n}")
            m.d.comb += [
                index.eq((here << shift) | n),
                step.i.payload.inside[n].eq((index >= row.begin) & (index < row.end)),
            ]
        with m.If(took):
            m.d.sync += [fresh.eq(step.i.payload.ends), line_at.eq(here + 1)]
            with m.If(step.i.payload.ends):
                m.d.sync += source.eq(0)
            with m.Elif(come.over):
                m.d.sync += source.eq(Mux(source == 0, 1, 2))
        self._hand_out(m, step.o)
        idle = Cat(peeker.idle for peeker in peekers).all()
        m.d.comb += self.idle.eq(idle & (queue.level == 0) & ~step.o.valid)
        return m

    def _hand_out(self, m: Module, step: Any) -> None:
        """What of a line belongs to the segment, and where the next one begins."""
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        item = step.payload
        kept_any = Signal()
        kept_begin = Signal(POSITION_WIDTH)
        above = Signal(lanes)
        keep = Signal(lanes)
        count = Signal(range(lanes + 1))
        first = Signal(range(lanes))
        before = Signal(range(lanes + 1))  # lanes of this line before the first one at or beyond the range
        for n in range(lanes):
            coordinate = item.line[n].coordinate
            m.d.comb += [
                above[n].eq(item.inside[n] & (coordinate >= self.high)),
                keep[n].eq(item.inside[n] & (coordinate >= self.low) & (coordinate < self.high)),
            ]
        m.d.comb += [count.eq(sum(keep[n] for n in range(lanes))), before.eq(lanes)]
        for n in reversed(range(lanes)):
            with m.If(keep[n]):
                m.d.comb += first.eq(n)
            with m.If(above[n]):
                m.d.comb += before.eq(n)

        place = item.at << shift
        next_position = Mux(above.any(), place + before, item.end)
        words, positions = self.words, self.positions
        position_taken = Signal()  # the row's next position has gone out, its last word has not
        finish = Signal()
        # Both outputs of a row's end move together or not at all.
        m.d.comb += [
            words.valid.eq(step.valid & Mux(item.ends, position_taken | positions.ready, count != 0)),
            words.payload.line.eq(item.line),
            words.payload.first.eq(first),
            words.payload.count.eq(count),
            words.payload.last.eq(item.ends),
            self.begin.eq(Mux(kept_any, kept_begin, Mux(count != 0, place + first, next_position))),
            positions.valid.eq(step.valid & item.ends & ~position_taken),
            positions.payload.eq(next_position),
            finish.eq(words.valid & words.ready & item.ends),
            step.ready.eq(Mux(item.ends, finish, (count == 0) | words.ready)),
        ]
        with m.If(positions.valid & positions.ready):
            m.d.sync += position_taken.eq(1)
        with m.If(finish):
            m.d.sync += [position_taken.eq(0), kept_any.eq(0)]
        with m.Elif(step.valid & step.ready & (count != 0) & ~kept_any):
            m.d.sync += [kept_any.eq(1), kept_begin.eq(place + first)]
