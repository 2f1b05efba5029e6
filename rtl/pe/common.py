"""What the parts of the Gustavson PE share: items of the merge, how a level reads its children, small tables."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from amaranth.hdl import Fragment, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import arithmetic
from ..leaf_lines import LONG_LEAVES
from ..lib.check import check_power_of_two
from ..types import COORDINATE_WIDTH, VALUE_WIDTH

__all__ = [
    "Sweep",
    "Table",
    "check_power_of_two",
    "head",
    "heads",
    "index_width",
    "is_long",
    "item",
    "merged_nonzero",
    "node_item",
    "operator_latencies",
]


def item(leaf_bits: int) -> data.StructLayout:
    """One nonzero on its way to the root of the merge.

    ``leaf``: which leaf below this node it came from; there is no such field in a leaf's own items. ``last``: no
    other nonzero of this node follows in this job. ``void``: there is no nonzero, only the end of a job without
    nonzeros.
    """
    leaf = {"leaf": leaf_bits} if leaf_bits else {}
    return data.StructLayout({"coordinate": COORDINATE_WIDTH, "value": VALUE_WIDTH, **leaf, "last": 1, "void": 1})


def head(leaf_bits: int) -> data.StructLayout:
    """The oldest item of a node, if it has one."""
    return data.StructLayout({"valid": 1, "item": item(leaf_bits)})


def node_item(nodes: int, leaf_bits: int) -> data.StructLayout:
    """An item for a node."""
    return data.StructLayout({"valid": 1, "node": index_width(nodes), "item": item(leaf_bits)})


def heads(pairs: int, leaf_bits: int) -> wiring.Signature:
    """How a level reads its children: it names a pair and in the next cycle sees both heads and pops at most one.

    What it names meanwhile is the pair of the cycle after. Heads of a pair that is named again are those behind the pop.
    """
    return wiring.Signature(
        {
            "pair": Out(index_width(pairs)),
            "left": In(head(leaf_bits)),
            "right": In(head(leaf_bits)),
            "pop_left": Out(1),
            "pop_right": Out(1),
        }
    )


def merged_nonzero() -> data.StructLayout:
    """A nonzero in the pipeline behind the root. ``last`` ends the job; ``void``: nothing but that end."""
    return data.StructLayout({"valid": 1, "coordinate": COORDINATE_WIDTH, "value": VALUE_WIDTH, "last": 1, "void": 1})


def index_width(count: int) -> int:
    """Bits of an index of ``count`` things; never zero, because ports must not be."""
    return max(1, (count - 1).bit_length())


def at_most(number: Value, bound: int) -> Value:
    """``number <= bound``, for a bound of 0 or a power of two: by gates, where a comparison would be a carry chain."""
    return (number[max(0, bound.bit_length() - 1) :] == 0) | (number == bound)


def is_long(leaf: Signal) -> Value:
    """Whether the leaf with this number is one of the first of its job, which have more line slots."""
    return leaf[(LONG_LEAVES - 1).bit_length() :] == 0


@cache
def operator_latencies(value: str) -> tuple[int, int]:
    """Latency of the adder and of the multiplier for a value type."""
    add, multiply = (operator() for operator in arithmetic(value))
    for operator in (add, multiply):
        Fragment.get(operator, None)  # made to be asked its latency; Amaranth warns of blocks that nobody elaborates
    return add.latency, multiply.latency


class Sweep:
    """Walks once over every index after a reset, so that tables in RAM start from known contents.

    ``over``: it has, as a register of its own: ``active`` goes to every table.
    """

    def __init__(self, m: Module, depth: int, name: str = "sweep") -> None:
        self.index = Signal(index_width(depth), name=f"{name}_index")
        self.active = Signal(init=1, name=f"{name}_active")
        self.over = Signal(name=f"{name}_over")
        m.d.sync += self.over.eq(~self.active)
        with m.If(self.active):
            m.d.sync += self.index.eq(self.index + 1)
            with m.If(self.index == depth - 1):
                m.d.sync += self.active.eq(0)


class Table:
    """A word for each node, in a RAM with one write port and any number of reads in the same cycle.

    While ``sweep`` is active every word is set to ``initial``: nothing else may be written then. A mapping says so of the fields
    that it names; the others, which nobody may read before they are written, become anything. A read sees the words as they
    were before this cycle's write.
    """

    def __init__(
        self,
        m: Module,
        name: str,
        *,
        shape: ShapeLike,
        depth: int,
        sweep: Sweep,
        initial: int | Mapping[str, int] = 0,
    ) -> None:
        self._m = m
        self._name = name
        self._shape = shape
        self._single = depth == 1
        self._sweep = sweep
        self._initial = initial
        self._reads = 0
        if self._single:
            self._word = Signal(shape, name=name)
        else:
            self._memory = memory.Memory(shape=shape, depth=depth, init=[])
            m.submodules[name] = self._memory
            self._port = self._memory.write_port()

    def write(self, enable: Value, index: Value, word: Any) -> None:
        """Sets the word at ``index`` where ``enable``; called once."""
        active = self._sweep.active
        value = Signal(self._shape, name=f"{self._name}_written")
        self._m.d.comb += Value.cast(value).eq(Value.cast(word))
        with self._m.If(active):
            if isinstance(self._initial, int):
                self._m.d.comb += Value.cast(value).eq(self._initial)
            else:
                self._m.d.comb += [value[name].eq(number) for name, number in self._initial.items()]
        if self._single:
            with self._m.If(enable | active):
                self._m.d.sync += self._word.eq(value)
            return
        self._m.d.comb += [
            self._port.en.eq(enable | active),
            self._port.addr.eq(Mux(active, self._sweep.index, index)),
            self._port.data.eq(value),
        ]

    def read(self, index: Value) -> Any:
        """The word at ``index``; each call is one more read port."""
        if self._single:
            return self._word
        port = self._memory.read_port(domain="comb")
        word = Signal(self._shape, name=f"{self._name}_read{self._reads}")
        self._reads += 1
        self._m.d.comb += [port.addr.eq(index), word.eq(port.data)]
        return word
