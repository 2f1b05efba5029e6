"""MINT's building blocks: pipelines, each a queue whose items come out as the definition of the block says."""

from typing import Any

from amaranth.hdl import Assert, Cat, Cover, Module, Mux, Signal, Value

from .models import WatchedItem
from .spec import Spec, free_inputs, implies, obey_streams
from .spec_streams import QueueContract

__all__ = ["PlainSums", "PrefixSumContract"]


class PipelineContract(QueueContract):
    """A pipeline holds an item in each stage and gives it out ``latency`` cycles after it went in, if nothing waits."""

    def __init__(self, block: Any) -> None:
        super().__init__(block, depth=block.latency, latency=block.latency)


def plain_sums(m: Module, block: Any, item: Value) -> tuple[Value, list[Value]]:
    """Of a vector's bits: ``first``, and the sums of its values up to each lane, added one after the other."""
    width = block.width
    sums: list[Value] = []
    for lane in range(block.inputs):
        plain = Signal(width, name=f"plain{lane}")
        value = item[1 + lane * width :][:width]
        m.d.comb += plain.eq((sums[-1] if sums else 0) + value)
        sums.append(plain)
    return item[0], sums


class PrefixSumContract(PipelineContract):
    """What comes out is the sum of the values up to each lane and of the vectors before, added one after the other.

    Parameters
    ----------
    block : rtl.mint.prefix_sum.PrefixSum
        Sums are as wide as values.
    """

    computes = "every lane is the plain sum of its array up to there"

    def expected(self, m: Module, item: Value, leaves: Value) -> Value:
        first, sums = plain_sums(m, self.queue, item)
        before = Signal(self.queue.width, name="sum_before")
        offset = Mux(first, 0, before)
        totals = [(plain + offset)[: self.queue.width] for plain in sums]
        with m.If(leaves):
            m.d.sync += before.eq(totals[-1])
        return Cat(first, *totals)


class PlainSums(Spec):
    """Of one vector, any of those that go through: every lane is its plain sum and the last sum that left before.

    The model keeps one vector, whatever the latency, and no running sum: wider values can be proved than with a
    :class:`PrefixSumContract`. By induction over the vectors both say the same.

    Parameters
    ----------
    block : rtl.mint.prefix_sum.PrefixSum
        Sums are as wide as values.
    """

    def __init__(self, block: Any) -> None:
        super().__init__()
        self.block = block

    def claims(self, m: Module) -> None:
        m.submodules.block = block = self.block
        free_inputs(m, block)
        obey_streams(m, block)
        enters, leaves = block.i.valid & block.i.ready, block.o.valid & block.o.ready
        vector = Value.cast(block.i.payload)
        watched = WatchedItem(m, "watched", width=len(vector), most=block.latency, push=enters, item=vector, pop=leaves)
        before = Signal(block.width, name="sum_before")
        with m.If(leaves):
            m.d.sync += before.eq(block.o.payload.sums[block.inputs - 1])
        first, sums = plain_sums(m, block, watched.item)
        comes = block.o.valid & watched.next
        offset = Mux(first, 0, before)
        for lane, plain in enumerate(sums):
            right = block.o.payload.sums[lane] == (plain + offset)[: block.width]
            m.d.comb += Assert(implies(comes, right), f"lane {lane} is its plain sum")
        m.d.comb += [
            Assert(implies(comes, block.o.payload.first == first), "first goes with its vector"),
            Assert(~watched.overflows, "no more is taken than fits"),
            Cover(comes & ~first & (before != 0)),
        ]
