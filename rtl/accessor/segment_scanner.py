"""Finds, row by row, the fiber segment that lies in a coordinate range, scanning from its begin position."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line, pair, read_request, segment_word
from .chunk_peeker import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES, ChunkPeeker, chunk_end, row_chunk

__all__ = ["SegmentScanner"]


class SegmentScanner(Block):
    """Fetches each row from its begin position until a coordinate reaches the tile's end (HYTE section 6.2).

    Where a segment ends is not known before it has been read, so a row is fetched in chunks: first to the end of the
    aligned block of 2 lines, then to the ends of aligned blocks of 16 lines, none beyond the row::

        pairs --+--> first chunks --> ChunkPeeker --> lines -----------------+
                |                        |                                   |
                |               second chunks --> ChunkPeeker --> lines -----+--> words, positions
                |                                    |                       |
                +--> rows                       third and later chunks ------+

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
        peekers = [ChunkPeeker(lanes=lanes, ahead=self.ahead) for _ in range(2)]
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

        # Third chunks, as the second ones arrive. Behind one that does not reach the end of its row none is asked for
        # until that row is over: its next chunk comes through the same port.
        third_port, third = self.read_request[2], peekers[1].more
        thirds = Signal(range(self.ahead + 1))  # rows whose third chunk was asked for and that are not over
        open_ended = Signal()
        asked_third = Signal()
        third_row_over = Signal()
        asking = Signal()
        m.d.comb += [
            asked_third.eq(third.valid & third_port.ready & ~asking & ~(open_ended & (thirds != 0))),
            third.ready.eq(asked_third),
        ]
        m.d.sync += thirds.eq(thirds + asked_third - third_row_over)
        with m.If(asked_third):
            m.d.sync += open_ended.eq(third.payload.to != (third.payload.end + (lanes - 1)) >> shift)
        sources = [peekers[0].lines, peekers[1].lines, self.read_data[2]]

        # Here: one line of the present row a cycle.
        row = queue.o.payload
        fresh = Signal(init=1)  # the present row has not been looked at
        line_at = Signal(POSITION_WIDTH)
        chunk_to = Signal(POSITION_WIDTH)
        source = Signal(range(3))
        kept_any = Signal()
        kept_begin = Signal(POSITION_WIDTH)
        discard = Signal(range(NEXT_CHUNK_LINES + 1))
        waiting = Signal()  # for the present row's next chunk to be known

        here_line = Signal(POSITION_WIDTH)
        here_to = Signal(POSITION_WIDTH)
        here_source = Signal(range(3))
        first_to = chunk_end(row.begin >> shift, FIRST_CHUNK_LINES, row.end, lanes)
        m.d.comb += [
            here_line.eq(Mux(fresh, row.begin >> shift, line_at)),
            here_to.eq(Mux(fresh, first_to, chunk_to)),
            here_source.eq(Mux(fresh, 0, source)),
        ]
        beat = Signal(line(lanes))
        beat_valid = Signal()
        with m.Switch(here_source):
            for n, lines in enumerate(sources):
                with m.Case(n):
                    m.d.comb += [beat.eq(lines.payload), beat_valid.eq(lines.valid)]
        inside = Signal(lanes)
        below = Signal(lanes)
        above = Signal(lanes)
        for n in range(lanes):
            index = Signal(POSITION_WIDTH, name=f"index{n}")
            m.d.comb += [
                index.eq((here_line << shift) | n),
                inside[n].eq((index >= row.begin) & (index < row.end)),
                below[n].eq(inside[n] & (beat[n].coordinate < self.low)),
                above[n].eq(inside[n] & (beat[n].coordinate >= self.high)),
            ]
        keep = Signal(lanes)
        count = Signal(range(lanes + 1))
        first = Signal(range(lanes))
        before = Signal(range(lanes + 1))  # lanes of this line before the first one at or beyond the range
        m.d.comb += [
            keep.eq(inside & ~below & ~above),
            count.eq(sum(keep[n] for n in range(lanes))),
            before.eq(lanes),
        ]
        for n in reversed(range(lanes)):
            with m.If(keep[n]):
                m.d.comb += first.eq(n)
            with m.If(above[n]):
                m.d.comb += before.eq(n)

        empty = row.begin == row.end
        row_stop = (row.end + (lanes - 1)) >> shift
        stop = above.any() | (here_line + 1 == row_stop)
        next_position = Mux(above.any(), (here_line << shift) + before, row.end)
        present = Signal()
        m.d.comb += present.eq(queue.o.valid & (discard == 0) & ~waiting)

        words, positions = self.words, self.positions
        finish = Signal()
        m.d.comb += [
            words.payload.line.eq(beat),
            words.payload.first.eq(first),
            self.begin.eq(Mux(kept_any, kept_begin, Mux(count != 0, (here_line << shift) + first, next_position))),
            positions.payload.eq(next_position),
            # Both outputs of a row's end move together or not at all.
            finish.eq(words.valid & words.ready & words.payload.last),
        ]
        ready_to_end = Signal()
        position_taken = Signal()  # the row's next position has gone out, its last word has not
        m.d.comb += [
            ready_to_end.eq(present & (empty | (beat_valid & stop))),
            positions.valid.eq(ready_to_end & ~position_taken),
        ]
        with m.If(positions.valid & positions.ready):
            m.d.sync += position_taken.eq(1)
        with m.If(ready_to_end):
            m.d.comb += [
                words.valid.eq(position_taken | positions.ready),
                words.payload.count.eq(Mux(empty, 0, count)),
                words.payload.last.eq(1),
            ]
        with m.Elif(present & beat_valid):
            m.d.comb += [words.valid.eq(count != 0), words.payload.count.eq(count)]

        took_beat = Signal()
        with m.If(present & ~empty & beat_valid):
            m.d.comb += took_beat.eq(Mux(stop, finish, (count == 0) | words.ready))
        with m.If(took_beat), m.Switch(here_source):
            for n, lines in enumerate(sources):
                with m.Case(n):
                    m.d.comb += lines.ready.eq(1)

        with m.If(finish):
            m.d.comb += queue.o.ready.eq(1)
            m.d.sync += [fresh.eq(1), kept_any.eq(0), position_taken.eq(0), source.eq(here_source)]
            # What is left of other chunks has been dropped by the peekers.
            with m.If(~empty & (here_source == 2)):
                m.d.comb += third_row_over.eq(1)
                m.d.sync += discard.eq(here_to - here_line - 1)
        with m.Elif(took_beat):
            m.d.sync += [fresh.eq(0), line_at.eq(here_line + 1), chunk_to.eq(here_to), source.eq(here_source)]
            with m.If((count != 0) & ~kept_any):
                m.d.sync += [kept_any.eq(1), kept_begin.eq((here_line << shift) + first)]
            with m.If(here_line + 1 == here_to):
                m.d.sync += waiting.eq(1)
        with m.If(discard != 0):
            m.d.comb += sources[2].ready.eq(1)
            with m.If(sources[2].valid):
                m.d.sync += discard.eq(discard - 1)

        m.d.comb += self.idle.eq((discard == 0) & (queue.level == 0) & peekers[0].idle & peekers[1].idle)

        # The row goes on beyond its chunk. Second and third ones are asked for by the peekers, later ones here.
        more = Signal(row_chunk())
        known = Signal()
        m.d.comb += [
            asking.eq(waiting & (source == 2)),
            more.line.eq(line_at),
            more.to.eq(chunk_end(line_at, NEXT_CHUNK_LINES, row.end, lanes)),
            third_port.valid.eq(Mux(asking, 1, third.valid & ~(open_ended & (thirds != 0)))),
            known.eq(waiting & ((source != 2) | third_port.ready)),
        ]
        with m.If(asking):
            ask(third_port, more)
        with m.Else():
            ask(third_port, third.payload)
        with m.If(known):
            m.d.sync += [waiting.eq(0), chunk_to.eq(more.to), source.eq(Mux(source == 0, 1, 2))]
        return m
