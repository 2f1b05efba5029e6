"""Sees fibers whose coordinates are out of order or out of bounds."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.signals import signals
from ..types import COORDINATE_WIDTH, line

__all__ = ["CoordinateCheck"]


class CoordinateCheck(Block):
    """Watches fibers line by line: coordinates must rise, from ``low`` on and below ``high``.

    A fiber that passes is no longer than its bounds are apart. Partitions and regions of C count on that.

    Parameters
    ----------
    lanes : int
        Lanes of a line, at least 1.
    repeats : bool
        A coordinate may stand several times in a row. Else each one must be above the one before it.

    Members
    -------
    moved : In(1), line : In(line(lanes)), mask : In(lanes), last : In(1), kind : In(1)
        A line moves in this cycle. The lanes of ``mask`` hold the fiber's coordinates; they are neighbours, and only a
        fiber's first line may begin after lane 0. ``last`` ends the fiber. Lines of fibers of the two kinds may alternate.
    low, high : In
        Bounds, constant while lines come and for 2 cycles after.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse, 2 cycles after the line: ``coordinate``, which means something then only, is out of order or out of bounds.
        ``high`` is compared with the fiber's last coordinate only, which is its highest one or comes after one that is
        out of order.

    Timing
    ------
    ``latency`` cycles, 2, from a line to its finding; one line a cycle.
    """

    latency = 2

    def __init__(self, *, lanes: int, repeats: bool = False) -> None:
        if lanes < 1:
            raise ValueError(f"Number of lanes must be a positive integer, not {lanes!r}")
        self.lanes = lanes
        self.repeats = bool(repeats)
        super().__init__(
            {
                "moved": In(1),
                "line": In(line(lanes)),
                "mask": In(lanes),
                "last": In(1),
                "kind": In(1),
                "low": In(COORDINATE_WIDTH),
                "high": In(COORDINATE_WIDTH + 1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        kind = Signal()
        last = Signal()
        mask = Signal(self.lanes)
        at = [Signal(COORDINATE_WIDTH, reset_less=True, name=f"coordinate{n}") for n in range(self.lanes)]
        m.d.sync += [last.eq(self.moved & self.last), mask.eq(Mux(self.moved, self.mask, 0))]
        m.d.sync += [coordinate.eq(self.line[n].coordinate) for n, coordinate in enumerate(at)]

        # Of the fiber of the present kind, and of that of the other one: they change places when lines of that one come.
        fresh, other_fresh = signals("fresh other_fresh", init=1)  # no coordinate of the fiber has come
        bound = Signal(COORDINATE_WIDTH)  # the fiber's last coordinate so far, or the lower bound
        other_last = Signal(COORDINATE_WIDTH)
        newest = Signal(COORDINATE_WIDTH)
        still_fresh = Signal()
        changes = Signal()
        m.d.comb += [
            newest.eq(bound),
            still_fresh.eq(last | (fresh & ~mask.any())),
            changes.eq(self.moved & (self.kind != kind)),
        ]
        for n, coordinate in enumerate(at):
            with m.If(mask[n]):
                m.d.comb += newest.eq(coordinate)
        next_fresh = Mux(changes, other_fresh, still_fresh)
        m.d.sync += [fresh.eq(next_fresh), bound.eq(Mux(next_fresh, self.low, Mux(changes, other_last, newest)))]
        with m.If(changes):
            m.d.sync += [kind.eq(self.kind), other_fresh.eq(still_fresh), other_last.eq(newest)]

        wrong = Signal(self.lanes)
        too_high = last & (mask.any() | ~fresh) & (newest >= self.high)
        for n, coordinate in enumerate(at):
            paired = mask[n - 1] if n else Const(0)  # a coordinate that is in the same line
            below = Mux(paired, at[n - 1], bound)
            # A bit more at the end tells whether an equal coordinate is wrong.
            distinct = 0 if self.repeats else paired | ~fresh
            m.d.comb += wrong[n].eq(mask[n] & (Cat(0, coordinate) < Cat(distinct, below)))
        # The last one that is wrong is told; that of the last lane is the newest one.
        m.d.sync += [self.wrong.eq(wrong.any() | too_high), self.coordinate.eq(newest)]
        for n, coordinate in enumerate(at[:-1]):
            with m.If(wrong[n] & ~wrong[n + 1 :].any()):
                m.d.sync += self.coordinate.eq(coordinate)
        return m
