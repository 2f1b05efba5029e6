"""Counts how often each digit comes."""

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer
from ...lib.signals import signals
from .update_sram import UpdateSram

__all__ = ["DigitCounter", "counter_order"]


def counter_order(depth: int) -> data.StructLayout:
    """``index``: which counter. ``clear``: it is given out and becomes 0; otherwise it rises by the step."""
    return data.StructLayout({"index": range(depth), "clear": 1})


class DigitCounter(Block):
    """A bank of counters in an SRAM.

    Parameters
    ----------
    depth : int
        Counters, at least 2.
    width : int
        Bits of a counter.
    step_width : int
        Bits of ``step``.

    Members
    -------
    orders : In(stream(counter_order))
    step : In(step_width)
        By which a counter rises. Constant while an order is inside.
    counts : Out(stream(width))
        From registers: a count for each order with ``clear``.
    busy : Out(1)
        An order is inside.

    Timing
    ------
    Two cycles from an order to its count; an order a cycle.
    """

    latency = 2

    def __init__(self, *, depth: int, width: int, step_width: int) -> None:
        self.depth = check_integer("Depth", depth, 2, 1 << 16)
        self.width = check_integer("Width", width, 1, 64)
        self.step_width = check_integer("Step width", step_width, 1, width)
        super().__init__(
            {
                "orders": In(stream.Signature(counter_order(depth))),
                "step": In(step_width),
                "counts": Out(stream.Signature(width)),
                "busy": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.counters = counters = UpdateSram(depth=self.depth, width=self.width)
        enable, clear = signals("enable clear")
        m.d.comb += [
            enable.eq(self.counts.ready | ~self.counts.valid),
            self.orders.ready.eq(enable),
            counters.enable.eq(enable),
            counters.request.eq(self.orders.valid),
            counters.index.eq(self.orders.payload.index),
            counters.update.eq(Mux(clear, 0, counters.word + self.step)),
            self.busy.eq(counters.valid | self.counts.valid),
        ]
        with m.If(enable):
            m.d.sync += [
                clear.eq(self.orders.payload.clear),
                self.counts.valid.eq(counters.valid & clear),
                self.counts.payload.eq(counters.word),
            ]
        return m
