"""Adds up runs of equal coordinates, without feeding a sum back into the adder."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import arithmetic, in_slot
from ..lib.block import Block
from .common import check_power_of_two, merged_nonzero, operator_latencies

__all__ = ["CombinerCascade", "PairCombiner"]


class PairCombiner(Block):
    """Adds the first two of each run of equal coordinates, the next two, and so on; an odd last one passes unchanged.

    A run of m nonzeros leaves as a run of ceil(m / 2). Every nonzero takes the adder's time whether it is added or
    not, so they stay in order. The sum of void ones is void.

    Parameters
    ----------
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    i : In(merged_nonzero), o : Out(merged_nonzero)
        Valid nonzeros may come with gaps. One cycle with ``i.valid`` gives at most one with ``o.valid``.
    advance : In(1)
        Clock enable of the pipeline.

    Timing: a nonzero leaves ``latency`` advancing cycles after the one that follows it in its job has come, or after
    it came itself if it is the job's last.
    """

    def __init__(self, *, value: str) -> None:
        self.value = value
        self.latency = operator_latencies(value)[0] + 2
        super().__init__({"i": In(merged_nonzero()), "o": Out(merged_nonzero()), "advance": In(1)})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.add = add = arithmetic(self.value)[0]()
        # `held` waits for the nonzero after it: only that tells whether the two are a pair.
        held = Signal(merged_nonzero())
        pair = Signal()
        leaves = Signal()
        m.d.comb += [
            pair.eq(held.valid & ~held.last & self.i.valid & (held.coordinate == self.i.coordinate)),
            leaves.eq(held.valid & (self.i.valid | held.last)),
            add.a.eq(held.value),
            add.b.eq(self.i.value),
            add.advance.eq(self.advance),
        ]
        with m.If(self.advance):
            with m.If(pair):
                m.d.sync += held.valid.eq(0)
            with m.Elif(leaves | ~held.valid):
                m.d.sync += [held.eq(self.i), held.value.eq(in_slot(self.i.value, self.value))]

        stage = Signal(merged_nonzero(), name="leaving")
        m.d.comb += [
            stage.eq(held),
            stage.valid.eq(leaves),
            stage.last.eq(held.last | (pair & self.i.last)),
        ]
        with m.If(pair & ~self.i.void):
            m.d.comb += stage.void.eq(0)
        summed = pair
        for n in range(add.latency):
            after = Signal(merged_nonzero(), name=f"delayed{n}")
            after_summed = Signal(name=f"was_pair{n}")
            with m.If(self.advance):
                m.d.sync += [after.eq(stage), after_summed.eq(summed)]
            stage, summed = after, after_summed
        # The choice has a cycle of its own, since the next combiner's adder begins with a comparison.
        with m.If(self.advance):
            m.d.sync += [self.o.eq(stage), self.o.value.eq(Mux(summed, add.result, stage.value))]
        return m


class CombinerCascade(Block):
    """Adds each run of up to ``radix`` equal coordinates to one nonzero, with log2(``radix``) pair combiners.

    The sum of a run v0 ... v(m-1) is that of the balanced tree over its nonzeros in order: (v0 + v1) + (v2 + v3) ...;
    its shape depends on m alone.

    Parameters
    ----------
    radix : int
        Longest run, power of two.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    i : In(merged_nonzero), o : Out(merged_nonzero), advance : In(1)
        As for the :class:`PairCombiner`.

    Timing
    ------
    ``latency`` advancing cycles; one nonzero for each of them (:class:`PairCombiner`).
    """

    def __init__(self, *, radix: int, value: str) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.value = value
        self.stages = radix.bit_length() - 1
        self.latency = self.stages * (operator_latencies(value)[0] + 2)
        super().__init__({"i": In(merged_nonzero()), "o": Out(merged_nonzero()), "advance": In(1)})

    def build(self, platform: Any) -> Module:
        m = Module()
        nonzero = self.i
        for n in range(self.stages):
            m.submodules[f"stage{n}"] = stage = PairCombiner(value=self.value)
            m.d.comb += [stage.i.eq(nonzero), stage.advance.eq(self.advance)]
            nonzero = stage.o
        m.d.comb += self.o.eq(nonzero)
        return m
