"""What the forms of the prefix sum share: ports, the pipeline around a network of adders, the running offset."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data

from ...lib.check import check_integer, check_power_of_two
from ..pipeline import StreamPipeline

__all__ = ["Level", "PrefixSum", "sums_shape", "values_shape"]

#: One level of a network: by the lane of each adder, the lane whose sum it adds to that of its own.
Level = Mapping[int, int]


def values_shape(inputs: int, width: int) -> data.StructLayout:
    return data.StructLayout({"first": 1, "values": data.ArrayLayout(width, inputs)})


def sums_shape(inputs: int, sum_width: int) -> data.StructLayout:
    return data.StructLayout({"first": 1, "sums": data.ArrayLayout(sum_width, inputs)})


class PrefixSum(StreamPipeline):
    """Inclusive prefix sums of arrays that come as vectors of ``inputs`` values, one vector a cycle.

    Lane n of a vector gets the sum of all values of its array up to its own: those in lanes 0 to n of its vector, and those
    of the vectors before it. Forms differ in their network of adders, and so in area and latency, and in nothing else.

    A level of the network is one pipeline stage. Behind the network a row of ``inputs`` adders adds the offset, the last sum
    of the vector before (MINT, section V.A), which is in the output register at that time.

    Parameters
    ----------
    inputs : int
        Lanes of a vector, a power of two from 2 to 64.
    width : int
        Bits of a value, 1 to 64, without a sign.
    sum_width : int, optional
        Bits of a sum, ``width`` (default) to 128. Sums are exact modulo 2**``sum_width``: none is lost where the sum of an
        array fits, and the upper bits of one that does not fit are cut off. Sums within the network are no wider than they
        can become.

    Members
    -------
    i : In(stream of ``values_shape``)
        ``values``, lane 0 before lane 1. ``first``: the vector begins an array, its offset is 0. So does the first vector
        after a reset, whatever it says. An array that does not fill its last vector ends with zeros.
    o : Out(stream of ``sums_shape``)
        ``sums`` and ``first`` of the vector, in order.

    Timing
    ------
    One vector a cycle. Its sums are at ``o`` after ``latency`` cycles: one for each level and one for the offset. ``o`` comes
    straight from registers; ``i.ready`` follows ``o.ready`` at once.
    """

    def __init__(self, *, inputs: int = 32, width: int = 32, sum_width: int | None = None) -> None:
        self.inputs = check_power_of_two("Inputs", inputs, 2, 64)
        self.width = check_integer("Value width", width, 1, 64)
        sum_width = width if sum_width is None else sum_width
        check_integer("Sum width", sum_width, width, 128)
        self.sum_width = sum_width
        super().__init__(taken=values_shape(inputs, width), given=sums_shape(inputs, sum_width))

    @classmethod
    def network(cls, inputs: int) -> Sequence[Level]:
        """Each level adds sums of the one before; the last has in every lane the sum of the lanes up to it."""
        raise TypeError(f"{cls.__name__} does not say how its adders are joined")

    def levels(self) -> Sequence[Level]:
        """The network of as many inputs as there are."""
        return self.network(self.inputs)

    @property
    def adders(self) -> int:
        """Adders of the network; the row behind it has ``inputs`` more."""
        return sum(len(level) for level in self.levels())

    @property
    def depth(self) -> int:
        """Levels of the network."""
        return len(self.levels())

    @property
    def latency(self) -> int:
        return self.depth + 1

    def carry(self, m: Module, payload: Value) -> Value:
        """What goes along with each vector, at ``o``: it moves when they do."""
        for n in range(self.latency):
            following = Signal(len(payload), name=f"along{n}", reset_less=True)
            with m.If(self.i.ready):
                m.d.sync += following.eq(payload)
            payload = following
        return payload

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, arrives = self._handshakes(m)
        first: Any = self.i.payload.first
        sums: list[Any] = [self.i.payload.values[lane] for lane in range(self.inputs)]
        spans = [1] * self.inputs  # lanes that each sum is of: they end with its own
        for number, level in enumerate(self.levels()):
            total = [spans[lane] + (spans[level[lane]] if lane in level else 0) for lane in range(self.inputs)]
            totals = [
                self._added(m, sums[lane], sums[level[lane]], total[lane], f"level{number}_lane{lane}")
                if lane in level
                else sums[lane]
                for lane in range(self.inputs)
            ]
            sums = [self._register(m, advance, value, f"sum{number}_lane{lane}") for lane, value in enumerate(totals)]
            first = self._register(m, advance, first, f"first{number}")
            spans = total

        offset = Signal(self.sum_width)
        m.d.comb += offset.eq(Mux(first, 0, self.o.payload.sums[self.inputs - 1]))
        # A cycle without a vector leaves the last sum where it is.
        with m.If(advance & arrives):
            m.d.sync += self.o.payload.first.eq(first)
            m.d.sync += [self.o.payload.sums[lane].eq(sums[lane] + offset) for lane in range(self.inputs)]
        return m

    def _added(self, m: Module, left: Value, right: Value, span: int, name: str) -> Signal:
        """The sum of two sums, which is of ``span`` values."""
        largest = span * ((1 << self.width) - 1)
        total = Signal(min(self.sum_width, largest.bit_length()), name=name)
        m.d.comb += total.eq(left + right)
        return total
