"""Multiplies each merged nonzero by the weight of its leaf."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from ..arith.arithmetic import arithmetic, in_slot
from ..lib.block import Block
from .common import check_power_of_two, item, merged_nonzero, operator_latencies
from .intake import weight_entry

__all__ = ["Scaler"]


class Scaler(Block):
    """``weight * value`` for every item; nonzeros of ``unit`` leaves go through the same pipeline unchanged.

    Parameters
    ----------
    radix, jobs : int
        The weight table holds ``radix`` weights for each of ``jobs`` jobs.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    merged : In(stream(item))
        ``ready`` is ``advance``.
    weight_enable, weight_index, weight : In
        Write port of the weight table; a weight must be written two cycles before the first item that wants it.
    nonzero : Out(merged_nonzero)
        ``latency`` advancing cycles later.
    advance : In(1)
        Clock enable of the pipeline.
    job_over : Out(1)
        The last item of the oldest job has come, its weights were read.
    event_mac : Out(1)
        A scaled product was issued.

    Timing
    ------
    ``latency`` advancing cycles; one item for each of them.
    """

    def __init__(self, *, radix: int, jobs: int, value: str) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.jobs = check_power_of_two("Jobs under way", jobs, 2, 16)
        self.value = value
        self.latency = operator_latencies(value)[1] + 2
        super().__init__(
            {
                "merged": In(stream.Signature(item(radix.bit_length() - 1))),
                "weight_enable": In(1),
                "weight_index": In(range(radix * jobs)),
                "weight": In(weight_entry()),
                "nonzero": Out(merged_nonzero()),
                "advance": In(1),
                "job_over": Out(1),
                "event_mac": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.multiply = multiply = arithmetic(self.value)[1]()
        m.submodules.weights = weights = memory.Memory(shape=weight_entry(), depth=self.radix * self.jobs, init=[])
        write, read = weights.write_port(), weights.read_port()
        turn = Signal(range(self.jobs))
        incoming = self.merged.payload
        came = Signal()
        m.d.comb += [
            self.merged.ready.eq(self.advance),
            came.eq(self.merged.valid & self.advance),
            self.job_over.eq(came & incoming.last),
            write.en.eq(self.weight_enable),
            write.addr.eq(self.weight_index),
            write.data.eq(self.weight),
            read.en.eq(self.advance),
            read.addr.eq(Cat(incoming.leaf, turn)),
        ]
        with m.If(self.job_over):
            m.d.sync += turn.eq(turn + 1)

        # The item waits for its weight, then both for the product.
        stage = Signal(merged_nonzero(), name="weighed")
        with m.If(self.advance):
            m.d.sync += [
                stage.valid.eq(self.merged.valid),
                stage.coordinate.eq(incoming.coordinate),
                stage.value.eq(in_slot(incoming.value, self.value)),
                stage.last.eq(incoming.last),
                stage.void.eq(incoming.void),
            ]
        # A block RAM is slow to answer, so its word goes into a register before it is multiplied.
        weighed = stage
        stage = Signal(merged_nonzero(), name="factors")
        weight = Signal(weight_entry())
        with m.If(self.advance):
            m.d.sync += [stage.eq(weighed), weight.eq(read.data)]
        scaled = stage.valid & ~stage.void & ~weight.unit
        m.d.comb += [
            multiply.a.eq(weight.weight),
            multiply.b.eq(stage.value),
            multiply.advance.eq(self.advance),
            self.event_mac.eq(scaled & self.advance),
        ]
        unit = weight.unit
        for n in range(multiply.latency):
            after = Signal(merged_nonzero(), name=f"product{n}")
            after_unit = Signal(name=f"unit{n}")
            with m.If(self.advance):
                m.d.sync += [after.eq(stage), after_unit.eq(unit)]
            stage, unit = after, after_unit
        m.d.comb += [self.nonzero.eq(stage), self.nonzero.value.eq(Mux(unit, stage.value, multiply.result))]
        return m
