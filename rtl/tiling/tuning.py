"""Dynamic tuning: chooses the next tile shape from the four counters of the tile just loaded (HYTE section 6.4)."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..types import COORDINATE_WIDTH, quadrant_counts
from .shape_changes import CANDIDATES, STAY, Change, LegalChanges
from .shape_score import ShapeScore, score_bits

__all__ = ["LEVEL_BITS", "TuningUnit", "tune_config"]

# How far a side may be halved below what the scheme says, as a power of two: bits of that power.
LEVEL_BITS = 3
SETTLE_CYCLES = 5  # until the counters have seen the last word


def tune_config() -> data.StructLayout:
    """Register TUNING: whether shapes are tuned, and how often T_j and T_k of the scheme may be halved."""
    return data.StructLayout({"enable": 1, "level": data.ArrayLayout(LEVEL_BITS, 2)})


class TuningUnit(Block):
    """Estimates the hit rates of nine shapes and picks one; multiplies and divides by nothing but powers of two.

    With f = 1, 2 or 4 for none, one or two doubled sides, a shape scores ``4 / f * sum(resident(f * part))`` over the
    parts of the tile that halved sides leave; ``resident(n)`` is n where n nonzeros fit with the FIFO-managed region, else
    what fits without. Scores are hit rates times four times the tile's nonzeros, so they compare as they are. The first of
    ``CANDIDATES`` is taken than which the best is not more than 5 % better (20 best > 21 score): larger shapes come first,
    then the present one. ``sw.golden.tuning`` says the same.

    Members
    -------
    start : In(1)
        Pulse: the tile is in place. All other inputs are constant from here to ``done``.
    counts : In(quadrant_counts)
        Complete ``SETTLE_CYCLES`` later.
    side_k, side_j, extent_k, extent_j : In(COORDINATE_WIDTH)
        The present shape; how long the ranks are.
    movable, halvable : In(2)
        Bit 0 for j, 1 for k: the side may change; it may be halved once more.
    lines, fifo_lines : In
        B's partition.
    done : Out(1)
        Pulse: ``change`` holds in this cycle. At most ``longest`` cycles after ``start``.
    change : Out(ArrayLayout(Change, 2))
        Of j, of k.

    Timing
    ------
    At most ``longest`` cycles; one decision at a time.
    """

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, COORDINATE_WIDTH)
        # Settling, then for each candidate its score and a comparison of two cycles.
        self.longest = SETTLE_CYCLES + (ShapeScore.latency + 3) * len(CANDIDATES) + 3
        super().__init__(
            {
                "start": In(1),
                "counts": In(quadrant_counts()),
                "side_k": In(COORDINATE_WIDTH),
                "side_j": In(COORDINATE_WIDTH),
                "extent_k": In(COORDINATE_WIDTH),
                "extent_j": In(COORDINATE_WIDTH),
                "movable": In(2),
                "halvable": In(2),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "done": Out(1),
                "change": Out(data.ArrayLayout(Change, 2)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {"lanes": self.lanes, "line_address_width": self.line_address_width}
        m.submodules.changes = changes = LegalChanges(**sizes)
        m.submodules.shape = shape = ShapeScore(**sizes)
        m.d.comb += [
            *passed(self, changes, "side_k side_j extent_k extent_j movable halvable lines fifo_lines"),
            *passed(self, shape, "counts side_k extent_k lines fifo_lines"),
        ]
        candidate = Signal(range(len(CANDIDATES)))
        chosen = Signal.like(candidate)
        coded = {0: Change.STAY, 1: Change.DOUBLE, -1: Change.HALVE}
        for number, change in ((candidate, shape.change), (chosen, self.change)):
            with m.Switch(number):
                for n, (k, j) in enumerate(CANDIDATES):
                    with m.Case(n):
                        m.d.comb += [change[0].eq(coded[j]), change[1].eq(coded[k])]

        width = score_bits(**sizes)
        best = Signal(width)
        best_known = Signal()
        scores = [Signal(width, name=f"score{n}") for n in range(len(CANDIDATES))]
        against = Signal.like(candidate)
        against_times_21 = Signal(width + 5)
        best_times_20 = Signal(width + 5)
        settling = Signal(range(SETTLE_CYCLES + 1))
        occupied = Cat(*(self.counts[n] for n in range(4))).any()
        other = Array(scores)[against]
        m.d.sync += [
            against_times_21.eq((other << 4) + (other << 2) + other),
            best_times_20.eq((best << 4) + (best << 2)),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [candidate.eq(0), settling.eq(0), best_known.eq(0)]
                with m.If(self.start):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += settling.eq(settling + 1)
                with m.If(settling == SETTLE_CYCLES - 1):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += shape.start.eq(1)
                m.next = "SCORE"
            with m.State("SCORE"):
                with m.If(shape.done):
                    with m.If(changes.legal.bit_select(candidate, 1) & (~best_known | (shape.score > best))):
                        m.d.sync += [best.eq(shape.score), best_known.eq(1)]
                    for n, kept in enumerate(scores):
                        with m.If(candidate == n):
                            m.d.sync += kept.eq(shape.score)
                    m.d.sync += [candidate.eq(candidate + 1), against.eq(0)]
                    m.next = "START"
                    with m.If(candidate == len(CANDIDATES) - 1):
                        m.next = "TIMES"
            with m.State("TIMES"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                better = best_times_20 > against_times_21
                m.d.sync += [chosen.eq(against), against.eq(against + 1)]
                m.next = "TIMES"
                with m.If(~occupied):
                    m.d.sync += chosen.eq(STAY)
                    m.next = "DONE"
                with m.Elif(~better & changes.legal.bit_select(against, 1)):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
        return m
