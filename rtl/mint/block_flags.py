"""Block flags: which blocks of a row of blocks are occupied."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from ..lib.check import check_power_of_two
from .pipeline import StreamPipeline

__all__ = ["BlockFlags", "flagged_vector", "touching_vector"]


def _lane(columns: int, **more: int) -> data.StructLayout:
    return data.StructLayout({"present": 1, "column": (columns - 1).bit_length(), **more})


def touching_vector(inputs: int, columns: int) -> data.StructLayout:
    """Nonzeros by the block column they lie in; ``last``: the last vector of a row of blocks."""
    return data.StructLayout({"last": 1, "items": data.ArrayLayout(_lane(columns), inputs)})


def flagged_vector(inputs: int, columns: int) -> data.StructLayout:
    """The same, with ``fresh`` for each nonzero, and the flags of all block columns."""
    items = data.ArrayLayout(_lane(columns, fresh=1), inputs)
    return data.StructLayout({"last": 1, "items": items, "flags": columns})


class BlockFlags(StreamPipeline):
    """Keeps a flag for each block of a row of blocks and tells which nonzeros are the first of theirs.

    CSR to BSR (MINT, section V.B) reads the rows of one row of blocks, several nonzeros a cycle, each with the block column
    that it lies in. Where ``last`` is set, ``flags`` has the occupied blocks: their number goes to the pointers, their columns
    to the column numbers, and prefix sums of the flags number them from left to right. The next vector begins a row of
    blocks of its own, with all flags 0.

    Parameters
    ----------
    inputs : int
        Lanes of a vector, a power of two from 1 to 32.
    columns : int
        Block columns, a power of two from 2 to 1024. A wider matrix is converted in strips of so many.

    Members
    -------
    i : In(stream of ``touching_vector``)
        Block columns in any order, with repetitions; lanes may be absent.
    o : Out(stream of ``flagged_vector``)
        The vector as it came. ``fresh``: no nonzero before it in this row of blocks, in this vector or an earlier one, lies in
        its block. ``flags``: bit n, block column n is occupied, by this vector or an earlier one.

    Timing
    ------
    One vector a cycle; it is at ``o`` after ``latency`` cycles. ``o`` comes straight from registers; ``i.ready`` follows
    ``o.ready`` at once. A reset clears the flags.
    """

    latency = 2

    def __init__(self, *, inputs: int = 8, columns: int = 64) -> None:
        self.inputs = check_power_of_two("Inputs", inputs, 1, 32)
        self.columns = check_power_of_two("Block columns", columns, 2, 1024)
        super().__init__(taken=touching_vector(inputs, columns), given=flagged_vector(inputs, columns))

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, arrives = self._handshakes(m)
        last = self._register(m, advance, self.i.payload.last, "last1")
        items = [self._register(m, advance, self.i.payload.items[lane], f"item{lane}") for lane in range(self.inputs)]
        repeats = [
            self._register(m, advance, Value.cast(self._repeats(lane)), f"repeats{lane}") for lane in range(self.inputs)
        ]

        flags = Signal(self.columns)
        m.d.comb += flags.eq(Mux(self.o.payload.last, 0, self.o.payload.flags))
        touched = [Mux(item.present, Const(1, self.columns) << item.column, 0)[: self.columns] for item in items]
        # A cycle without a vector leaves the flags where they are.
        with m.If(advance & arrives):
            m.d.sync += [self.o.payload.last.eq(last), self.o.payload.flags.eq(reduce(or_, touched, flags))]
            for lane, item in enumerate(items):
                marked = self.o.payload.items[lane]
                m.d.sync += [
                    marked.present.eq(item.present),
                    marked.column.eq(item.column),
                    marked.fresh.eq(item.present & ~repeats[lane] & ~flags.bit_select(item.column, 1)),
                ]
        return m

    def _repeats(self, lane: int) -> Value:
        """Whether a lane before this one has the same block column."""
        items = self.i.payload.items
        return Cat(items[n].present & (items[n].column == items[lane].column) for n in range(lane)).any()
