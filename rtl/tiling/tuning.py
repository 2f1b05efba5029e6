"""Dynamic tuning: chooses the next tile shape from the four counters of the tile just loaded (HYTE section 6.4)."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, enum
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import COORDINATE_WIDTH, quadrant_counts

__all__ = ["CANDIDATES", "LEVEL_BITS", "Change", "TuningUnit", "tune_config"]

# How far a side may be halved below what the scheme says, as a power of two: bits of that power.
LEVEL_BITS = 3

# Changes of (T_k, T_j): 1 doubled, 0 as it is, -1 halved. Of those that do as well the first is taken.
CANDIDATES = ((1, 1), (1, 0), (0, 1), (0, 0), (1, -1), (-1, 1), (0, -1), (-1, 0), (-1, -1))
STAY = CANDIDATES.index((0, 0))
TOTAL_BITS = 34  # of the sum of four 32-bit counts
SETTLE_CYCLES = 5  # until the counters have seen the last word


class Change(enum.Enum, shape=2):
    """What becomes of one side of the tile."""

    STAY = 0
    DOUBLE = 1
    HALVE = 2


def tune_config() -> data.StructLayout:
    """Register TUNING: whether shapes are tuned, and how often T_j and T_k of the scheme may be halved."""
    return data.StructLayout({"enable": 1, "level": data.ArrayLayout(LEVEL_BITS, 2)})


class TuningUnit(Block):
    """Estimates the hit rates of nine shapes and picks one; multiplies and divides by nothing but powers of two.

    With f = 1, 2 or 4 for none, one or two doubled sides, a shape scores ``4 / f * sum(resident(f * part))`` over the
    parts of the tile that halved sides leave; ``resident(n)`` is n where n elements fit with the FIFO-managed region, else
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
    """

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = lanes
        self.line_address_width = line_address_width
        # Settling, nine cycles for each score and two for each comparison.
        self.longest = SETTLE_CYCLES + 11 * len(CANDIDATES) + 3
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

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "s": self.line_address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        room_bits = self.line_address_width + 1 + shift
        score_bits = room_bits + 4

        # Which candidates keep tiles aligned, in bounds and their metadata in the partition. Inputs stand still while the
        # unit settles, so that each step may have a register.
        doubled = Signal(COORDINATE_WIDTH + 1)
        most_rows = Signal(COORDINATE_WIDTH + 1)
        may_double = Signal(2)
        may_halve = Signal(2)
        m.d.sync += [
            doubled.eq(Mux(self.side_k << 1 < self.extent_k, self.side_k << 1, self.extent_k)),
            most_rows.eq((self.lines - self.fifo_lines - 1) << shift),
            may_double[0].eq(self.movable[0] & (self.side_j < self.extent_j) & ~self.side_j[-1]),
            may_double[1].eq(
                self.movable[1] & (self.side_k < self.extent_k) & ~self.side_k[-1] & (doubled <= most_rows)
            ),
            may_halve.eq(self.movable & self.halvable),
        ]
        legal = Signal(len(CANDIDATES))
        for n, changes in enumerate(CANDIDATES):
            allowed = [
                {1: may_double[side], -1: may_halve[side], 0: 1}[c] for side, c in zip((1, 0), changes, strict=True)
            ]
            m.d.sync += legal[n].eq(Cat(*(allowed[0], allowed[1])).all() if n != STAY else 1)

        candidate = Signal(range(len(CANDIDATES)))
        coded = {0: Change.STAY, 1: Change.DOUBLE, -1: Change.HALVE}
        of_k = Signal(Change)
        of_j = Signal(Change)
        is_legal = Signal()
        with m.Switch(candidate):
            for n, (k, j) in enumerate(CANDIDATES):
                with m.Case(n):
                    m.d.comb += [of_k.eq(coded[k]), of_j.eq(coded[j]), is_legal.eq(legal[n])]
        splits_k = of_k == Change.HALVE
        splits_j = of_j == Change.HALVE
        doublings = Signal(2)
        m.d.comb += doublings.eq((of_k == Change.DOUBLE) + (of_j == Change.DOUBLE))

        # Room beside the metadata of the candidate's rows.
        rows = Signal(COORDINATE_WIDTH + 1)
        tall = Signal(COORDINATE_WIDTH + 1)
        data_lines = Signal(self.line_address_width + 1)
        limit = Signal(room_bits)
        regular = Signal(room_bits)
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
        held = Signal(room_bits)
        score = Signal(score_bits)
        final_score = Signal(score_bits)
        m.d.comb += [
            grown.eq(part + Array(self.counts[n] for n in range(4))[order]),
            ends.eq((splits_k & splits_j) | ((splits_k | splits_j) & step[0]) | (step == 3)),
            final_score.eq(Mux(doublings == 0, score << 2, Mux(doublings == 1, score << 1, score))),
        ]
        m.d.sync += [weighed.eq(ended), held.eq(Mux(estimate <= limit, estimate, regular))]
        with m.If(weighed):
            m.d.sync += score.eq(score + held)

        best = Signal(score_bits)
        best_known = Signal()
        scores = [Signal(score_bits, name=f"score{n}") for n in range(len(CANDIDATES))]
        against = Signal.like(candidate)
        against_times_21 = Signal(score_bits + 5)
        best_times_20 = Signal(score_bits + 5)
        settling = Signal(range(SETTLE_CYCLES + 1))
        chosen = Signal.like(candidate)
        occupied = Cat(*(self.counts[n] for n in range(4))).any()
        other = Array(scores)[against]
        m.d.sync += [
            ended.eq(0),
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
                    m.next = "ROWS"
            with m.State("ROWS"):
                m.next = "ROOM"
            with m.State("ROOM"):
                m.d.sync += [
                    data_lines.eq(self.lines - ((rows + (self.lanes - 1)) >> shift)),
                    step.eq(0),
                    part.eq(0),
                    score.eq(0),
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
                m.next = "SCORE"
            with m.State("SCORE"):
                with m.If(is_legal & (~best_known | (final_score > best))):
                    m.d.sync += [best.eq(final_score), best_known.eq(1)]
                for n, kept in enumerate(scores):
                    with m.If(candidate == n):
                        m.d.sync += kept.eq(final_score)
                m.d.sync += [candidate.eq(candidate + 1), against.eq(0)]
                m.next = "ROWS"
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
                with m.Elif(~better & legal.bit_select(against, 1)):
                    m.next = "DONE"
            with m.State("DONE"):
                with m.Switch(chosen):
                    for n, (k, j) in enumerate(CANDIDATES):
                        with m.Case(n):
                            m.d.comb += [self.change[0].eq(coded[j]), self.change[1].eq(coded[k])]
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
        return m
