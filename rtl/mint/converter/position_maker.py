"""Row-major positions of entries from their rows and columns."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib.wiring import In

from ...lib.check import check_power_of_two
from ..pipeline import StreamPipeline
from .streams import COORDINATE_BITS, POSITION_BITS, placed_vector, row_vector

__all__ = ["PositionMaker"]


class PositionMaker(StreamPipeline):
    """Position = row x columns + column, and whether the entry lies in the matrix.

    Where it is ``keyed`` the row is above the column instead: these rise as positions do, and
    :class:`rtl.mint.converter.cell_finder.CellFinder` takes them apart without a divider.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    multiplies : bool
        False: all are keyed.
    tensors : bool
        Entries have a coordinate before their row.

    Members
    -------
    i : In(stream(row_vector)), o : Out(stream(placed_vector))
        As :class:`rtl.mint.pipeline.StreamPipeline`.
    rows, columns : In(33), keyed : In(1)
        Shape, each 1 to 2^32; constant while an entry is inside.
    outers : In(33)
        With ``tensors``, the first extent.

    Timing
    ------
    Three cycles, a vector a cycle.
    """

    latency = 3

    def __init__(self, *, lanes: int, value_bits: int, multiplies: bool = True, tensors: bool = False) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.multiplies = bool(multiplies)
        self.tensors = bool(tensors)
        names = ("rows", "columns", "outers") if tensors else ("rows", "columns")
        shape = {name: In(COORDINATE_BITS + 1) for name in names}
        super().__init__(
            taken=row_vector(lanes, value_bits, self.tensors),
            given=placed_vector(lanes, value_bits, self.tensors),
            others=shape | {"keyed": In(1)},
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, _ = self._handshakes(m)
        half = COORDINATE_BITS // 2

        def kept(value: Any, name: str, cycles: int) -> Any:
            for n in range(cycles):
                value = self._register(m, advance, value, f"{name}_{n}")
            return value

        outside = []
        for n in range(self.lanes):
            row, column = self.i.payload.rows[n], self.i.payload.columns[n]
            present = self.i.payload.present[n]
            beyond = (row >= self.rows) | (column >= self.columns)
            if self.tensors:
                outer = self.i.payload.outers[n]
                beyond = beyond | (outer >= self.outers)
                outer = kept(outer, f"outer{n}", 2)
                with m.If(advance):
                    m.d.sync += self.o.payload.outers[n].eq(outer)
            outside.append(kept(present & beyond, f"outside{n}", 2))
            upper = kept(row[:COORDINATE_BITS], f"row{n}", 2) << COORDINATE_BITS
            if self.multiplies:
                low = self._register(m, advance, row[:half] * self.columns, f"low{n}")
                high = self._register(m, advance, row[half:COORDINATE_BITS] * self.columns, f"high{n}")
                product = self._register(m, advance, (low + (high << half))[:POSITION_BITS], f"product{n}")
                upper = Mux(self.keyed, upper, product)
            column = kept(column, f"column{n}", 2)
            value = kept(self.i.payload.values[n], f"value{n}", 2)
            with m.If(advance):
                m.d.sync += [
                    self.o.payload.positions[n].eq(upper + column),
                    self.o.payload.values[n].eq(value),
                ]
        present = kept(self.i.payload.present, "present", 2)
        last = kept(self.i.payload.last, "last", 2)
        with m.If(advance):
            m.d.sync += [
                self.o.payload.outside.eq(Cat(*outside)),
                self.o.payload.present.eq(present),
                self.o.payload.last.eq(last),
            ]
        return m
