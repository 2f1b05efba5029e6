"""Ids and pointers of a CSF tree from the entries at which its nodes begin."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.counter import popcount
from ...lib.onehot import onehot_select
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from ...regs.converter_map import POINTER_BITS
from ..records import low_mask, record_group
from ..tree_builder import grown_vector
from .streams import COORDINATE_BITS

__all__ = ["TreeNodes"]

#: Level of the tree: its ids, its pointers.
LEVELS = (("ids_0", "ptrs_1"), ("ids_1", "ptrs_2"))


class TreeNodes(Block):
    """Lanes in which a node begins give its id and its pointer; behind the last vector each level has a pointer more.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 2 to 16.

    Members
    -------
    vectors : In(stream(grown_vector))
        As :class:`rtl.mint.tree_builder.TreeBuilder` gives them. A vector may be empty.
    slice_bits, entry_bits : In(range(41))
        Of a pointer of a slice to a fiber (``ptrs_1``), and of a fiber to an entry (``ptrs_2``). Constant while an entry is
        inside.
    ids_0, ptrs_1, ids_1, ptrs_2 : Out(stream(record_group))
        Slices: i, and fibers before it; fibers: j, and entries before it. Groups with a node, and one that may be empty with
        ``last``. From registers.
    overflow : Out(1), number : Out(64)
        Fibers or entries are more than their pointers hold; how many came. They stay until the reset, and nothing is taken any
        more.

    Timing
    ------
    One cycle, a vector a cycle and one more for the last pointers. One of the outputs stops the others when it is two groups
    behind.
    """

    latency = 1

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        ids, pointers = (stream.Signature(record_group(lanes, width)) for width in (COORDINATE_BITS, POINTER_BITS))
        width = In(range(POINTER_BITS + 1))
        super().__init__(
            {
                "vectors": In(stream.Signature(grown_vector(lanes, COORDINATE_BITS, POINTER_BITS + 1))),
                "slice_bits": width,
                "entry_bits": width,
                "ids_0": Out(ids),
                "ptrs_1": Out(pointers),
                "ids_1": Out(ids),
                "ptrs_2": Out(pointers),
                "overflow": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        vector, items = self.vectors.payload, self.vectors.payload.items
        totals = items[self.lanes - 1].fibers, vector.entries + vector.count
        spills = [
            total > Cat(low_mask(bits, POINTER_BITS))
            for total, bits in zip(totals, (self.slice_bits, self.entry_bits), strict=True)
        ]
        ends = Signal()  # the last vector has been given, its last pointers have not
        goes, offered = signals("goes offered")
        nodes = (
            [(item.new_i, item.i, item.fibers - 1) for item in items],
            [(item.new_j, item.j, vector.entries + n) for n, item in enumerate(items)],
        )
        can = []
        for level, found, total in zip(LEVELS, nodes, totals, strict=True):
            can += self._level(m, level, found, total, ends, goes)
        m.d.comb += [
            offered.eq(self.vectors.valid & ~Cat(*spills).any() & ~self.overflow),
            goes.eq(offered & Cat(*can).all()),
            self.vectors.ready.eq(goes & (ends | ~vector.last)),
        ]
        with m.If(goes):
            m.d.sync += ends.eq(vector.last & ~ends)
        with m.If(self.vectors.valid & Cat(*spills).any() & ~self.overflow):
            m.d.sync += [self.overflow.eq(1), self.number.eq(Mux(spills[0], totals[0], totals[1]))]
        return m

    def _level(
        self, m: Module, names: tuple[str, str], nodes: Any, total: Value, ends: Value, goes: Value
    ) -> list[Value]:
        """Drives ids and pointers of a level. Whether each of them can take its part."""
        lanes = self.lanes
        begins = Signal(lanes, name=f"{names[0]}_begin")
        count = Signal(range(lanes + 1), name=f"{names[0]}_count")
        m.d.comb += [begins.eq(Cat(begin for begin, _, _ in nodes)), count.eq(popcount(begins))]
        # Of a lane: how many nodes begin before it; of a node of the group: the lane that it comes from.
        ranks = [Signal(range(n + 1), name=f"{names[0]}_rank_{n}") for n in range(lanes)]
        chosen = [Signal(lanes - n, name=f"{names[0]}_lane_of_{n}") for n in range(lanes)]
        m.d.comb += [rank.eq(popcount(begins[:n])) for n, rank in enumerate(ranks)]
        m.d.comb += [
            lane.eq(Cat(begins[k] & (ranks[k] == n) for k in range(n, lanes))) for n, lane in enumerate(chosen)
        ]
        last = self.vectors.payload.last
        can = []
        for name, given_numbers in zip(names, ([node[1] for node in nodes], [node[2] for node in nodes]), strict=True):
            width = COORDINATE_BITS if name == names[0] else POINTER_BITS
            numbers = [Signal(width, name=f"{name}_{n}") for n in range(lanes)]
            m.d.comb += [number.eq(value) for number, value in zip(numbers, given_numbers, strict=True)]
            port = getattr(self, name)
            m.submodules[name] = given = StreamRegister(shape=port.payload.shape())
            connect(m, given.o, flipped(port))
            is_ids = name == names[0]
            gives = Mux(ends, 0, begins.any() | last) if is_ids else begins.any() | ends
            group = given.i.payload
            m.d.comb += [
                given.i.valid.eq(goes & gives),
                group.count.eq(count if is_ids else Mux(ends, 1, count)),
                group.last.eq(last if is_ids else ends),
            ]
            for n in range(lanes):
                number = onehot_select(chosen[n], numbers[n:])
                m.d.comb += group.records[n].eq(number if is_ids or n else Mux(ends, total, number))
            can.append(given.i.ready | ~gives)
        return can
