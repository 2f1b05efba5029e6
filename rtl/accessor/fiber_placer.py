"""Places of the nonzeros of a matrix's rows: what leaves an accessor becomes what an encoder takes."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..arith.arithmetic import narrowed, value_bits
from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.signals import signals
from ..lib.stream import StreamRegister
from ..mint.converter.streams import COORDINATE_BITS, POSITION_BITS, placed_vector
from ..types import fiber_word

__all__ = ["FiberPlacer"]


class FiberPlacer(Block):
    """Takes all rows of one matrix in order and says where in it each nonzero lies.

    Parameters
    ----------
    lanes : int
        Nonzeros of a word, power of two from 1 to 16.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    rows, columns : In(33), keyed : In(1)
        Shape, each 1 to 2^32. A position is ``row * columns + column``, or with ``keyed`` the row above the column, as
        :class:`rtl.mint.converter.position_maker.PositionMaker` has them. Constant from the first word on.
    words : In(stream(fiber_word))
        A row after the other. After the last row nothing is taken.
    placed : Out(stream(placed_vector))
        From registers. A row without nonzeros is a vector without them; ``last`` ends the matrix.
    complete : Out(1)
        The last row has come.

    Timing
    ------
    One cycle, a word a cycle. A position is a sum: the rows before are added up.
    """

    latency = 1

    def __init__(self, *, lanes: int, value: str) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value = value
        self.value_bits = value_bits(value)
        super().__init__(
            {
                **dict.fromkeys(("rows", "columns"), In(COORDINATE_BITS + 1)),
                "keyed": In(1),
                "words": In(stream.Signature(fiber_word(lanes))),
                "placed": Out(stream.Signature(placed_vector(lanes, self.value_bits))),
                "complete": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.placed = placed = StreamRegister(shape=self.placed.payload.shape())
        connect(m, placed.o, flipped(self.placed))
        row = Signal(COORDINATE_BITS)  # the present one
        first_place = Signal(POSITION_BITS)  # of the present row
        goes, last_row = signals("goes last_row")
        word, vector = self.words.payload, placed.i.payload
        m.d.comb += [
            last_row.eq(row == self.rows - 1),
            self.words.ready.eq(placed.i.ready & ~self.complete),
            placed.i.valid.eq(self.words.valid & ~self.complete),
            goes.eq(placed.i.valid & placed.i.ready),
            vector.present.eq(Cat(word.count > n for n in range(self.lanes))),
            vector.last.eq(word.last & last_row),
        ]
        for n in range(self.lanes):
            nonzero = word.line[n]
            m.d.comb += [
                vector.positions[n].eq(first_place + nonzero.coordinate),
                vector.values[n].eq(narrowed(nonzero.value, self.value)),
            ]
        with m.If(goes & word.last):
            m.d.sync += [
                row.eq(row + 1),
                first_place.eq(first_place + Mux(self.keyed, 1 << COORDINATE_BITS, self.columns)),
                self.complete.eq(last_row),
            ]
        return m
