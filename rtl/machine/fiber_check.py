"""Checks the columns of the rows of C that an engine hands over."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib.wiring import In, Out

from ..accessor.coordinate_check import CoordinateCheck
from ..lib.check import check_power_of_two
from ..lib.passed import passed
from ..lib.unit import Fault, Unit
from ..types import COORDINATE_WIDTH, fiber_word

__all__ = ["FiberCheck"]


class FiberCheck(Unit):
    """Ends a run in which a fiber's columns do not rise or leave the tile: partitions and regions of C count on them.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 1 to 64.

    Members
    -------
    moved : In(1), word : In(fiber_word), scratch : In(1)
        A word of a fiber moves in this cycle; of one that the engine wants to have back.
    begin_j, size_j, columns : In(COORDINATE_WIDTH), assembling : In(1)
        The columns of the tile that fibers are of; while C is assembled they have all ``columns``. Constant while words come
        and for 2 cycles after.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse: this column is out of order or out of bounds.

    Timing
    ------
    Two cycles (:class:`CoordinateCheck`); one word a cycle.
    """

    latency = CoordinateCheck.latency

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        super().__init__(
            {
                "moved": In(1),
                "word": In(fiber_word(lanes)),
                "scratch": In(1),
                "begin_j": In(COORDINATE_WIDTH),
                "size_j": In(COORDINATE_WIDTH),
                "columns": In(COORDINATE_WIDTH),
                "assembling": In(1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def faults(self) -> Sequence[Fault]:
        return (Fault("bad_row", self.wrong, self.coordinate),)

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.coordinate_check = check = CoordinateCheck(lanes=self.lanes)
        word, assembling = self.word, self.assembling
        m.d.comb += [
            *passed(self, check, "moved"),
            *passed(word, check, "line last"),
            check.mask.eq(Cat(word.count > n for n in range(self.lanes))),
            check.kind.eq(self.scratch),
            check.low.eq(Mux(assembling, 0, self.begin_j)),
            check.high.eq(Mux(assembling, self.columns, self.begin_j + self.size_j)),
            *passed(check, self, "wrong coordinate"),
        ]
        return m
