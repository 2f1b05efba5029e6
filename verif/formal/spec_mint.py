"""MINT's building blocks: what comes out for each vector is what the definition of the block says."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.mint.block_flags import flagged_vector
from rtl.mint.cluster_counter import counted_item
from rtl.mint.sorter import sorted_item
from rtl.mint.tree_builder import grown_vector

from .models import WatchedItem
from .spec import Spec, free_inputs, implies, obey_streams
from .spec_streams import QueueContract

__all__ = ["AnyVector", "EveryVector", "block_flags", "by_rank", "counted", "plain_sums", "tree_nodes"]

#: The bits that come out of a block for the vector with some bits; the last argument is high in the cycle in which they do.
Definition = Callable[[Module, Any, Value, Value], Value]


class EveryVector(QueueContract):
    """Every vector comes out once, in order, as the definition says, ``latency`` cycles after it went in if nothing waits."""

    computes = "what comes out is what the definition says"

    def __init__(self, block: Any, definition: Definition) -> None:
        super().__init__(block, depth=block.latency, latency=block.latency)
        self.definition = definition

    def expected(self, m: Module, item: Value, leaves: Value) -> Value:
        return self.definition(m, self.queue, item, leaves)


class AnyVector(Spec):
    """One vector, any of those that go through, comes out as the definition says.

    The model keeps one vector, whatever the latency: larger vectors can be proved than with :class:`EveryVector`.
    """

    def __init__(self, block: Any, definition: Definition) -> None:
        super().__init__()
        self.block = block
        self.definition = definition

    def claims(self, m: Module) -> None:
        m.submodules.block = block = self.block
        free_inputs(m, block)
        obey_streams(m, block)
        enters, leaves = block.i.valid & block.i.ready, block.o.valid & block.o.ready
        vector = Value.cast(block.i.payload)
        watched = WatchedItem(m, "watched", width=len(vector), most=block.latency, push=enters, item=vector, pop=leaves)
        comes = block.o.valid & watched.next
        wanted = self.definition(m, block, watched.item, leaves)
        others = Signal(range(block.latency + 2))  # vectors that left, as many as can be counted
        with m.If(leaves & (others != block.latency + 1)):
            m.d.sync += others.eq(others + 1)
        m.d.comb += [
            Assert(implies(comes, Value.cast(block.o.payload) == wanted), "what comes out is what the definition says"),
            Assert(~watched.overflows, "no more is taken than fits"),
            Cover(comes & (others != 0) & (wanted != 0)),
        ]


def plain_sums(m: Module, block: Any, item: Value, leaves: Value) -> Value:
    """Prefix sums: the values up to each lane added one after the other, and to that the last sum that left before.

    Sums are as wide as values. What left before is a sum of which the same is claimed.
    """
    width = block.width
    first, before = item[0], Signal(width, name="sum_before")
    with m.If(leaves):
        m.d.sync += before.eq(block.o.payload.sums[block.inputs - 1])
    sums: list[Value] = []
    for lane in range(block.inputs):
        plain = Signal(width, name=f"plain{lane}")
        m.d.comb += plain.eq((sums[-1] if sums else 0) + item[1 + lane * width :][:width])
        sums.append(plain)
    return Cat(first, *((plain + Mux(first, 0, before))[:width] for plain in sums))


def by_rank(m: Module, block: Any, item: Value, leaves: Value) -> Value:
    """Sorter: every item behind as many as come before it, by presence, key and lane."""
    came = data.View(block.i.payload.shape(), item)
    shape = data.ArrayLayout(sorted_item(block.inputs, block.key_width, block.payload_width), block.inputs)
    result = Signal(shape, name="by_rank")
    for lane in range(block.inputs):
        mine = Cat(came[lane].key, ~came[lane].present)
        rank: Value = Cat()
        for other in range(block.inputs):
            its = Cat(came[other].key, ~came[other].present)
            rank = rank + ((its <= mine) if other < lane else (its < mine))
        for place in range(block.inputs):
            with m.If(rank == place):
                m.d.comb += [result[place][name].eq(came[lane][name]) for name in came[lane].shape().members]
                m.d.comb += result[place].lane.eq(lane)
    return Value.cast(result)


def counted(m: Module, block: Any, item: Value, leaves: Value) -> Value:
    """Cluster counter: lanes before each lane are looked at one by one until one is not of its run."""
    came = data.View(block.i.payload.shape(), item)
    result = Signal(data.ArrayLayout(counted_item(block.inputs, block.key_width), block.inputs), name="counted")
    for lane in range(block.inputs):
        goes_on = came[lane].present
        count: Value = goes_on
        for before in reversed(range(lane)):
            goes_on = goes_on & came[before].present & (came[before].key == came[lane].key)
            count = count + goes_on
        ends = came[lane].present
        if lane < block.inputs - 1:
            ends = ends & ~(came[lane + 1].present & (came[lane + 1].key == came[lane].key))
        m.d.comb += [
            result[lane].present.eq(came[lane].present),
            result[lane].key.eq(came[lane].key),
            result[lane].count.eq(count),
            result[lane].last.eq(ends),
        ]
    return Value.cast(result)


def block_flags(m: Module, block: Any, item: Value, leaves: Value) -> Value:
    """Block flags: nonzeros one after the other, each looks for its flag and sets it.

    They begin with the flags that left before, of which the same is claimed.
    """
    came = data.View(block.i.payload.shape(), item)
    result = Signal(flagged_vector(block.inputs, block.columns), name="flagged")
    before, ended = Signal(block.columns, name="flags_before"), Signal(name="row_ended")
    with m.If(leaves):
        m.d.sync += [before.eq(block.o.payload.flags), ended.eq(block.o.payload.last)]
    flags: list[Value] = [before[column] & ~ended for column in range(block.columns)]
    for lane in range(block.inputs):
        one = came.items[lane]
        mine = [one.present & (one.column == column) for column in range(block.columns)]
        fresh = Cat(here & ~flag for here, flag in zip(mine, flags, strict=True)).any()
        flags = [here | flag for here, flag in zip(mine, flags, strict=True)]
        m.d.comb += [
            result.items[lane].present.eq(one.present),
            result.items[lane].column.eq(one.column),
            result.items[lane].fresh.eq(fresh),
        ]
    m.d.comb += [result.last.eq(came.last), result.flags.eq(Cat(*flags))]
    return Value.cast(result)


def tree_nodes(m: Module, block: Any, item: Value, leaves: Value) -> Value:
    """Tree builder: entries one after the other, each compared with the one before it, fibers counted one by one.

    They go on from the entries and the counts that left before, of which the same is claimed.
    """
    came = data.View(block.i.payload.shape(), item)
    result = Signal(grown_vector(block.inputs, block.width, block.count_bits), name="grown")
    known = Signal(name="entry_before")
    former = {rank: Signal(block.width, name=f"{rank}_before") for rank in "ijk"}
    fibers_left, entries_left = (Signal(block.count_bits, name=name) for name in ("fibers_left", "entries_left"))
    latest: tuple[Value, ...] = tuple(former.values())
    any_before, fibers = known, fibers_left
    for lane in range(block.inputs):
        one, present = came.items[lane], came.count > lane
        i, j, k = latest
        new_i, new_j = Signal(name=f"new_i{lane}"), Signal(name=f"new_j{lane}")
        above = (one.i > i) | ((one.i == i) & ((one.j > j) | ((one.j == j) & (one.k > k))))
        counted_fibers = Signal(block.count_bits, name=f"fibers{lane}")
        m.d.comb += [
            new_i.eq(present & (~any_before | (one.i != i))),
            new_j.eq(present & (new_i | (one.j != j))),
            counted_fibers.eq(fibers + new_j),
            *(result.items[lane][rank].eq(one[rank]) for rank in "ijk"),
            result.items[lane].new_i.eq(new_i),
            result.items[lane].new_j.eq(new_j),
            result.items[lane].falls.eq(present & any_before & ~above),
            result.items[lane].fibers.eq(counted_fibers),
        ]
        fibers = counted_fibers
        any_before = any_before | present
        latest = tuple(Mux(present, one[rank], value) for rank, value in zip("ijk", latest, strict=True))
    m.d.comb += [
        Assume(block.i.payload.count <= block.inputs),
        result.count.eq(came.count),
        result.last.eq(came.last),
        result.entries.eq(entries_left),
    ]
    left = block.o.payload
    with m.If(leaves):
        m.d.sync += [
            known.eq((known | (left.count != 0)) & ~left.last),
            fibers_left.eq(Mux(left.last, 0, left.items[-1].fibers)),
            entries_left.eq(Mux(left.last, 0, left.entries + left.count)),
        ]
        for lane in range(block.inputs):
            with m.If(left.count == lane + 1):
                m.d.sync += [former[rank].eq(left.items[lane][rank]) for rank in "ijk"]
    return Value.cast(result)
