"""Vector MAC of a weight-stationary PE: products of a cycle are added, and cycles of a row."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import arithmetic
from ..lib.block import Block
from ..lib.counter import popcount
from ..lib.signals import signals
from ..types import COORDINATE_WIDTH, VALUE_WIDTH
from .combiner import CombinerCascade
from .common import merged_nonzero, operator_latencies
from .flagged_bus import check_vector

__all__ = ["VectorMac", "operands"]


def operands(vector: int) -> data.StructLayout:
    """What a cycle of the bus gives to multiply.

    ``first``: another row begins with it. ``last``: A ends with it; ``void``: it is nothing but that end.
    """
    lane = data.StructLayout({"hit": 1, "a": VALUE_WIDTH, "b": VALUE_WIDTH})
    return data.StructLayout({**_cycle().members, "lanes": data.ArrayLayout(lane, vector)})


def _cycle() -> data.StructLayout:
    return data.StructLayout({"valid": 1, "first": 1, "last": 1, "void": 1, "row": COORDINATE_WIDTH})


def _tag() -> data.StructLayout:
    """What goes with a sum: ``void``, no product is in it."""
    return data.StructLayout({"valid": 1, "void": 1, "row": COORDINATE_WIDTH})


class VectorMac(Block):
    """Sum of products for every row that comes by (MINT, section IV.A: vector unit and output register).

    Products of a cycle are added as a balanced tree over the lanes; lanes without a hit contribute nothing. The sum of cycle t
    of a row is added to partial sum t mod L, with L the adder's latency, so that no cycle waits for the adder. When another
    row comes, or the end, the row's partial sums leave in the order of their last additions and are added as a balanced tree
    (:class:`CombinerCascade`). So the order of additions depends on nothing but the cycles of the row.

    Parameters
    ----------
    vector : int
        MACs, a power of two up to 32.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    i : In(operands)
        ``valid`` ones may come with gaps. After an end nothing comes before the end has left.
    o : Out(merged_nonzero)
        One for each row, in order: ``coordinate`` is the row; ``void``: it has no product, its value means nothing. ``last`` on
        the last one; for an A without data a void one.
    advance : In(1)
        Clock enable.
    event_macs : Out(range(vector + 1))
        Products begun.

    Timing
    ------
    One cycle of the bus for each advancing cycle. A row leaves ``latency`` advancing cycles after the cycle that comes ``sums``
    after its last one, or after the end.
    """

    def __init__(self, *, vector: int, value: str) -> None:
        check_vector(vector)
        self.vector = vector
        self.value = value
        add, multiply = operator_latencies(value)
        self.sums = add
        self.stages = vector.bit_length() - 1
        self.before = multiply + self.stages * add
        radix = 1 << (add - 1).bit_length()
        self.cascade = CombinerCascade(radix=radix, value=value) if radix > 1 else None
        self.latency = self.before + (self.cascade.latency if self.cascade else 1)
        super().__init__(
            {
                "i": In(operands(vector)),
                "o": Out(merged_nonzero()),
                "advance": In(1),
                "event_macs": Out(range(vector + 1)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        make_adder, _ = arithmetic(self.value)
        # What may be added without changing anything: of floating-point numbers that is -0.
        nothing = C(0 if self.value.startswith("int") else 1 << 31, VALUE_WIDTH)
        total = self._products(m, nothing)
        item, met = self._beside(m)

        # Sums go round in the adder of L stages, one step for each cycle of A, so that each comes by again L cycles after.
        m.submodules.accumulate = accumulate = make_adder()
        round_tags = [Signal(_tag(), name=f"round{n}") for n in range(self.sums)]
        tail = round_tags[-1]
        others = Cat(tag.valid for tag in round_tags[:-1]).any()
        flushing = Signal()
        count = Signal(range(self.sums + 1))
        comes, ends, step, fresh = signals("comes ends step fresh")
        m.d.comb += [
            comes.eq(item.valid & ~item.void),
            ends.eq(item.valid & item.void),
            fresh.eq(item.first | (count != self.sums)),
            step.eq(self.advance & (comes | flushing)),
            accumulate.a.eq(Mux(comes, total, nothing)),
            accumulate.b.eq(Mux(comes & ~fresh, accumulate.result, nothing)),
            accumulate.advance.eq(step),
        ]
        with m.If(step):
            m.d.sync += [
                round_tags[0].valid.eq(comes),
                round_tags[0].row.eq(item.row),
                round_tags[0].void.eq(~met & (fresh | tail.void)),
                *(after.eq(before) for before, after in zip(round_tags[:-1], round_tags[1:], strict=True)),
            ]
            with m.If(comes & item.first):
                m.d.sync += count.eq(1)
            with m.Elif(comes & fresh):
                m.d.sync += count.eq(count + 1)
        with m.If(self.advance):
            with m.If(item.valid & item.last):
                m.d.sync += flushing.eq(comes | tail.valid | others)
            with m.Elif(~others):
                m.d.sync += flushing.eq(0)

        leaves = Signal(merged_nonzero())
        bare = ends & ~tail.valid & ~others  # the end of an A without data
        m.d.comb += [
            leaves.valid.eq(step & tail.valid & (flushing | fresh) | bare & self.advance),
            leaves.coordinate.eq(tail.row),
            leaves.value.eq(accumulate.result),
            leaves.last.eq(bare | (flushing & ~others)),
            leaves.void.eq(bare | tail.void),
        ]
        if self.cascade is None:
            with m.If(self.advance):
                m.d.sync += self.o.eq(leaves)
        else:
            m.submodules.cascade = cascade = self.cascade
            m.d.comb += [cascade.i.eq(leaves), cascade.advance.eq(self.advance), self.o.eq(cascade.o)]
        return m

    def _products(self, m: Module, nothing: Value) -> Value:
        """The sum of the products of a cycle, ``before`` advancing cycles after it."""
        make_adder, make_multiplier = arithmetic(self.value)
        hits = Cat(lane.hit & self.i.valid for lane in self.i.lanes)
        m.d.comb += self.event_macs.eq(Mux(self.advance, popcount(hits), 0))
        level: list[Value] = []
        for n in range(self.vector):
            m.submodules[f"multiply{n}"] = multiply = make_multiplier()
            hit: Any = hits[n]
            for stage in range(multiply.latency):
                after = Signal(name=f"hit{n}_{stage}")
                with m.If(self.advance):
                    m.d.sync += after.eq(hit)
                hit = after
            lane = self.i.lanes[n]
            m.d.comb += [multiply.a.eq(lane.a), multiply.b.eq(lane.b), multiply.advance.eq(self.advance)]
            level.append(Mux(hit, multiply.result, nothing))
        for stage in range(self.stages):
            sums: list[Value] = []
            for n in range(0, len(level), 2):
                m.submodules[f"add{stage}_{n // 2}"] = add = make_adder()
                m.d.comb += [add.a.eq(level[n]), add.b.eq(level[n + 1]), add.advance.eq(self.advance)]
                sums.append(add.result)
            level = sums
        return level[0]

    def _beside(self, m: Module) -> tuple[Any, Value]:
        """The cycle that belongs to that sum, and whether it has products."""
        item = Signal(_cycle(), name="comes")
        met: Any = Signal(name="comes_met")
        m.d.comb += [item[name].eq(self.i[name]) for name in _cycle().members]
        m.d.comb += met.eq(Cat(lane.hit for lane in self.i.lanes).any())
        for stage in range(self.before):
            after, after_met = Signal(_cycle(), name=f"cycle{stage}"), Signal(name=f"met{stage}")
            with m.If(self.advance):
                m.d.sync += [after.eq(item), after_met.eq(met)]
            item, met = after, after_met
        return item, met
