"""Counts the nonzeros of a tile by quadrants while it is loaded."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.counter import popcount
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, quadrant_counts, segment_word

__all__ = ["QuadrantCounters"]


class QuadrantCounters(Block):
    """Counts the nonzeros of a tile's quadrants (HYTE section 6.4), from the words of a :class:`FiberReader`.

    Rows of a whole tile that are bumped are not read, so that where their elements lie is not known: there each row counts
    as spread evenly, the odd element in the low half.

    Members
    -------
    start : In(1), whole : In(1)
        Pulse: a tile begins, its rows are read whole.
    half_rows : In(POSITION_WIDTH), middle : In(COORDINATE_WIDTH + 1)
        Rows in the low half along k; first coordinate of the high half along j. Constant until the last word.
    moved : In(1), word : In(segment_word), length : In(POSITION_WIDTH)
        A word has been handed over; with the last one of a whole row, how many elements the row has.
    counts : Out(quadrant_counts)
        Of the present tile, ``latency`` cycles after the last word.

    Timing
    ------
    ``latency`` cycles, 4, from a word to its counts; one word a cycle.
    """

    latency = 4

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        super().__init__(
            {
                "start": In(1),
                "whole": In(1),
                "half_rows": In(POSITION_WIDTH),
                "middle": In(COORDINATE_WIDTH + 1),
                "moved": In(1),
                "word": In(segment_word(lanes)),
                "length": In(POSITION_WIDTH),
                "counts": Out(quadrant_counts()),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        # The word is late in its cycle: it comes out of comparisons with the tile's range.
        word = Signal(segment_word(lanes))
        length = Signal(POSITION_WIDTH)
        moved = Signal()
        m.d.sync += [word.eq(self.word), length.eq(self.length), moved.eq(self.moved & ~self.start)]
        whole = Signal()
        row = Signal(POSITION_WIDTH)
        # Which lanes are held in the low half; how many there are is counted in the cycle after.
        low_lanes = Signal(lanes)
        taken = Signal()
        count = Signal.like(word.count)
        last = Signal()
        halves = [Signal(POSITION_WIDTH, name=f"half{n}") for n in range(2)]  # of a whole row
        for n in range(lanes):
            held = (n >= word.first) & (n < word.first + word.count)
            m.d.sync += low_lanes[n].eq(held & (word.line[n].coordinate < self.middle))
        m.d.sync += [
            taken.eq(moved & ~self.start),
            count.eq(word.count),
            last.eq(word.last),
            halves[0].eq((length + 1) >> 1),
            halves[1].eq(length >> 1),
        ]

        low = Signal(POSITION_WIDTH)  # elements of this word in the low half along j
        high = Signal(POSITION_WIDTH)
        m.d.comb += [low.eq(popcount(low_lanes)), high.eq(count - low)]
        with m.If(whole):
            m.d.comb += [low.eq(Mux(last, halves[0], 0)), high.eq(Mux(last, halves[1], 0))]
        amounts = [Signal(POSITION_WIDTH, name=f"amount{n}") for n in range(2)]
        high_rows = Signal()
        arrived = Signal()
        m.d.sync += [
            arrived.eq(taken),
            high_rows.eq(row >= self.half_rows),
            amounts[0].eq(low),
            amounts[1].eq(high),
        ]
        with m.If(taken & last):
            m.d.sync += row.eq(row + 1)
        for n in range(4):
            with m.If(arrived & (high_rows == n >> 1)):
                m.d.sync += self.counts[n].eq(self.counts[n] + amounts[n & 1])
        with m.If(self.start):
            m.d.sync += [whole.eq(self.whole), row.eq(0), arrived.eq(0)]
            m.d.sync += [self.counts[n].eq(0) for n in range(4)]
        return m
