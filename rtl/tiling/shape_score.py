"""How many nonzeros of a tile would be found on chip if its shape were another one."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import COORDINATE_WIDTH, quadrant_counts
from .shape_changes import Change

__all__ = ["ShapeScore", "score_bits"]

TOTAL_BITS = 34  # of the sum of four 32-bit counts


def score_bits(lanes: int, line_address_width: int) -> int:
    """Bits of a score: of four times the nonzeros of four partitions."""
    return line_address_width + 1 + (lanes - 1).bit_length() + 4


class ShapeScore(Block):
    """Scores one shape after the other, as :class:`.tuning.TuningUnit` says, each in ``latency`` cycles.

    Parameters
    ----------
    lanes, line_address_width : int
        As the tuning unit's.

    Members
    -------
    start : In(1)
        Pulse; all other inputs are constant from here to ``done``.
    change : In(ArrayLayout(Change, 2))
        Of j, of k: what makes the shape of the present one.
    counts, side_k, extent_k, lines, fifo_lines : In
        As the tuning unit's.
    done : Out(1), score : Out
        Pulse, ``latency`` cycles after ``start``: ``score`` holds in this cycle.

    Timing
    ------
    ``latency`` cycles, 8; one shape at a time.
    """

    # Rows and lines of the shape, four quadrants, then their sum, what of it is resident, and the sum of that.
    latency = 8

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, COORDINATE_WIDTH)
        super().__init__(
            {
                "start": In(1),
                "change": In(data.ArrayLayout(Change, 2)),
                "counts": In(quadrant_counts()),
                "side_k": In(COORDINATE_WIDTH),
                "extent_k": In(COORDINATE_WIDTH),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "done": Out(1),
                "score": Out(score_bits(lanes, line_address_width)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        nonzero_bits = self.line_address_width + 1 + shift
        of_j, of_k = self.change[0], self.change[1]
        splits_k, splits_j = of_k == Change.HALVE, of_j == Change.HALVE
        doublings = Signal(2)
        m.d.comb += doublings.eq((of_k == Change.DOUBLE) + (of_j == Change.DOUBLE))

        # What fits beside the metadata of the shape's rows: with the FIFO-managed region, and without.
        rows = Signal(COORDINATE_WIDTH + 1)
        tall = Signal(COORDINATE_WIDTH + 1)
        data_lines = Signal(self.line_address_width + 1)
        limit = Signal(nonzero_bits)
        regular = Signal(nonzero_bits)
        m.d.comb += [
            tall.eq(Mux(of_k == Change.DOUBLE, self.side_k << 1, Mux(splits_k, self.side_k >> 1, self.side_k))),
            limit.eq(data_lines << shift),
        ]
        m.d.sync += [
            rows.eq(Mux(tall < self.extent_k, tall, self.extent_k)),
            regular.eq((data_lines - self.fifo_lines) << shift),
        ]

        # One quadrant a cycle; where only j is split, those of one column follow each other.
        step = Signal(2)
        order = Mux(splits_j & ~splits_k, Cat(step[1], step[0]), step)
        part = Signal(TOTAL_BITS)
        grown = Signal(TOTAL_BITS)
        ends = Signal()
        ended = Signal()
        weighed = Signal()
        estimate = Signal(TOTAL_BITS + 2)
        resident = Signal(nonzero_bits)
        total = Signal(nonzero_bits + 4)
        m.d.comb += [
            grown.eq(part + Array(self.counts[n] for n in range(4))[order]),
            ends.eq((splits_k & splits_j) | ((splits_k | splits_j) & step[0]) | (step == 3)),
            self.score.eq(Mux(doublings == 0, total << 2, Mux(doublings == 1, total << 1, total))),
        ]
        m.d.sync += [
            ended.eq(0),
            weighed.eq(ended),
            resident.eq(Mux(estimate <= limit, estimate, regular)),
        ]
        with m.If(weighed):
            m.d.sync += total.eq(total + resident)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.next = "LINES"
            with m.State("LINES"):
                m.d.sync += [
                    data_lines.eq(self.lines - ((rows + (self.lanes - 1)) >> shift)),
                    part.eq(0),
                    total.eq(0),
                ]
                m.next = "PARTS"
            with m.State("PARTS"):
                m.d.sync += [
                    step.eq(step + 1),
                    part.eq(Mux(ends, 0, grown)),
                    ended.eq(ends),
                    estimate.eq(grown << doublings),
                ]
                with m.If(step == 3):
                    m.next = "LAST"
            with m.State("LAST"):
                m.next = "WEIGHED"
            with m.State("WEIGHED"):
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
        return m
