"""Sees fibers whose coordinates are out of order or out of bounds."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
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
        Pulse, 2 cycles after the line: ``coordinate`` is out of order or out of bounds. ``high`` is compared with the
        fiber's last coordinate only, which is its highest one or comes after one that is out of order.

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

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes} | ({"r": 1} if self.repeats else {})

    def build(self, platform: Any) -> Module:
        m = Module()
        moved = Signal()
        kind = Signal()
        last = Signal()
        mask = Signal(self.lanes)
        at = [Signal(COORDINATE_WIDTH, reset_less=True, name=f"coordinate{n}") for n in range(self.lanes)]
        m.d.sync += [moved.eq(self.moved), kind.eq(self.kind), last.eq(self.last), mask.eq(self.mask)]
        m.d.sync += [coordinate.eq(self.line[n].coordinate) for n, coordinate in enumerate(at)]

        fresh = Array(Signal(init=1, name=f"fresh{n}") for n in range(2))  # no coordinate of the fiber has come
        before = Array(Signal(COORDINATE_WIDTH, name=f"before{n}") for n in range(2))  # the fiber's last one so far
        newest = Signal(COORDINATE_WIDTH)
        m.d.comb += newest.eq(before[kind])
        for n, coordinate in enumerate(at):
            with m.If(mask[n]):
                m.d.comb += newest.eq(coordinate)

        def falls(coordinate: Signal, other: Any) -> Any:
            return coordinate < other if self.repeats else coordinate <= other

        m.d.sync += self.wrong.eq(0)
        with m.If(moved):
            m.d.sync += [fresh[kind].eq(last | (fresh[kind] & ~mask.any())), before[kind].eq(newest)]
            with m.If(last & (mask.any() | ~fresh[kind]) & (newest >= self.high)):
                m.d.sync += [self.wrong.eq(1), self.coordinate.eq(newest)]
            for n, coordinate in enumerate(at):
                first = Mux(fresh[kind], coordinate < self.low, falls(coordinate, before[kind]))
                wrong = Mux(mask[n - 1], falls(coordinate, at[n - 1]), first) if n else first
                with m.If(mask[n] & wrong):
                    m.d.sync += [self.wrong.eq(1), self.coordinate.eq(coordinate)]
        return m
