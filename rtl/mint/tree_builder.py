"""Tree builder: the nodes of a CSF tree from sorted coordinates."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.onehot import onehot_select
from ..lib.stream import StreamRegister
from .prefix_sum import FORMS

__all__ = ["TreeBuilder", "grown_vector", "sorted_vector"]

RANKS = ("i", "j", "k")


def sorted_vector(inputs: int, width: int) -> data.StructLayout:
    """Entries by their coordinates, in lanes 0 to ``count`` - 1; ``last`` ends the tensor."""
    item = data.StructLayout(dict.fromkeys(RANKS, width))
    return data.StructLayout({"items": data.ArrayLayout(item, inputs), "count": range(inputs + 1), "last": 1})


def grown_vector(inputs: int, width: int, count_bits: int) -> data.StructLayout:
    """The same, with what the tree has at each entry, and how many ``entries`` came before the vector."""
    item = data.StructLayout(
        {**dict.fromkeys(RANKS, width), "new_i": 1, "new_j": 1, "falls": 1, "fibers": count_bits},
    )
    return data.StructLayout(
        {"items": data.ArrayLayout(item, inputs), "count": range(inputs + 1), "entries": count_bits, "last": 1}
    )


class TreeBuilder(Block):
    """Tells at which entries of a tensor of order 3 a node of its CSF tree begins, and numbers the nodes.

    A comparator for each lane finds the entries whose i, or whose i or j, is not that of the entry before; a prefix sum counts
    the latter (MINT, figure 8f, step 6). So the arrays of CSF are: ``ids_0``, i of the entries with ``new_i``; ``ptrs_1``, their
    ``fibers`` less 1, and the last ``fibers``; ``ids_1``, j of the entries with ``new_j``; ``ptrs_2``, their numbers, and the
    number of all entries; ``ids_2``, every k.

    Parameters
    ----------
    inputs : int
        Lanes of a vector, a power of two from 2 to 32.
    width : int
        Bits of a coordinate, 1 to 32.
    count_bits : int
        Bits of a number of entries, 8 to 64: a tensor has fewer than 2 to the power of it.
    form : str
        Network of the prefix sum, one of :data:`rtl.mint.prefix_sum.FORMS`.

    Members
    -------
    i : In(stream of ``sorted_vector``)
        Entries, sorted by i, j, k. A vector may be empty.
    o : Out(stream of ``grown_vector``)
        The entries in their order. ``new_i``: the first of its i. ``new_j``: the first of its i, j, a fiber. ``falls``: not above
        the entry before, in which case the tensor is not sorted or has a place twice. ``fibers``: those up to and with that of
        the entry. In lanes without an entry the flags are 0, and ``fibers`` goes on.

    Timing
    ------
    One vector a cycle; it is at ``o`` after ``latency`` cycles, one more than the prefix sum has. ``o`` comes straight from
    registers. A reset begins a tensor.
    """

    def __init__(self, *, inputs: int = 8, width: int = 32, count_bits: int = 40, form: str = "work_efficient") -> None:
        self.inputs = check_power_of_two("Inputs", inputs, 2, 32)
        self.width = check_integer("Coordinate width", width, 1, 32)
        self.count_bits = check_integer("Count bits", count_bits, 8, 64)
        if form not in FORMS:
            raise ValueError(f"Prefix sum must be one of {', '.join(FORMS)}, not {form!r}")
        self.form = form
        self._sums = FORMS[form](inputs=inputs, width=1, sum_width=count_bits)
        super().__init__(
            {
                "i": In(stream.Signature(sorted_vector(inputs, width))),
                "o": Out(stream.Signature(grown_vector(inputs, width, count_bits))),
            }
        )

    @property
    def latency(self) -> int:
        return self._sums.latency + 1

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.sums = sums = self._sums
        m.submodules.marked = marked = StreamRegister(shape=self.o.payload.shape())
        self._mark(m, marked.i)
        # What goes along with the sums moves when they do.
        along: Any = marked.o.payload
        for stage in range(sums.latency):
            following = Signal(along.shape(), name=f"along{stage}", reset_less=True)
            with m.If(sums.i.ready):
                m.d.sync += following.eq(along)
            along = following
        begins = Signal()  # after a reset the prefix sum begins an array of itself
        with m.If(sums.i.valid & sums.i.ready):
            m.d.sync += begins.eq(marked.o.payload.last)
        m.d.comb += [
            sums.i.valid.eq(marked.o.valid),
            marked.o.ready.eq(sums.i.ready),
            sums.i.payload.first.eq(begins),
            *(sums.i.payload.values[n].eq(marked.o.payload.items[n].new_j) for n in range(self.inputs)),
            self.o.valid.eq(sums.o.valid),
            sums.o.ready.eq(self.o.ready),
            self.o.payload.eq(along),
            *(self.o.payload.items[n].fibers.eq(sums.o.payload.sums[n]) for n in range(self.inputs)),
        ]
        return m

    def _mark(self, m: Module, marked: Any) -> None:
        """Compares each entry with the one before it."""
        vector = self.i.payload
        latest = Signal(3 * self.width)  # the last entry of the vectors before
        known = Signal()  # there is one
        entries = Signal(self.count_bits)
        places: list[Value] = [Cat(item.k, item.j, item.i) for item in vector.items]
        former = [latest, *places[:-1]]
        marked_items = marked.payload.items
        m.d.comb += [
            marked.valid.eq(self.i.valid),
            self.i.ready.eq(marked.ready),
            *(marked.payload[name].eq(vector[name]) for name in ("count", "last")),
            marked.payload.entries.eq(entries),
        ]
        for n, (item, here, before) in enumerate(zip(vector.items, places, former, strict=True)):
            present = vector.count > n
            begins: Value = ~known if not n else Const(0, 1)
            m.d.comb += [
                *(marked_items[n][name].eq(item[name]) for name in RANKS),
                marked_items[n].new_i.eq(present & (begins | (here[2 * self.width :] != before[2 * self.width :]))),
                marked_items[n].new_j.eq(present & (begins | (here[self.width :] != before[self.width :]))),
                marked_items[n].falls.eq(present & ~begins & (here <= before)),
            ]
        with m.If(marked.valid & marked.ready):
            m.d.sync += [
                entries.eq(Mux(vector.last, 0, entries + vector.count)),
                known.eq((known | (vector.count != 0)) & ~vector.last),
            ]
            with m.If(vector.count != 0):
                m.d.sync += latest.eq(onehot_select(Cat(vector.count == n + 1 for n in range(self.inputs)), places))
