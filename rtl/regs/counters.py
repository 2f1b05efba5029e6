"""The accelerator's performance counters."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .counter_list import COUNTERS, Counter

__all__ = ["CounterBank"]


class CounterBank(Block):
    """Holds one counter for each name in :data:`rtl.regs.counter_list.COUNTERS`; those with ``peak`` keep a maximum.

    Parameters
    ----------
    increments : Mapping[str, int]
        Bits of each counter's input; 1 for counters that are not named. The parent adds up units that can act in the same
        cycle.
    counters : Sequence[Counter]
        Those that there are, where some are not.
    width : int
        Bits that are kept, 1 to 64. 48 bits last 78 hours at 1 GHz.

    Members
    -------
    events : In(struct)
        A field for each counter, in lower case: what to add in this cycle, or to keep the maximum of.
    clear : In(1)
        All counters become zero. Events of this cycle and of the one before are lost.
    enable : In(1)
        Events count while high.
    counts : Out(struct)
        A 64-bit field for each counter, in lower case. An event shows after ``latency`` cycles.

    Timing
    ------
    ``latency`` cycles, 2, from an event to its count; any events a cycle.
    """

    latency = 2

    def __init__(
        self,
        *,
        increments: Mapping[str, int] | None = None,
        counters: Sequence[Counter] = COUNTERS,
        width: int = 48,
    ) -> None:
        increments = dict(increments or {})
        names = [counter.name for counter in counters]
        for name, bits in increments.items():
            if name not in names:
                raise ValueError(f"There is no counter {name!r}")
            if not isinstance(bits, int) or not 1 <= bits <= width:
                raise ValueError(f"Increment of {name} must have 1 to {width} bits, not {bits!r}")
        if not isinstance(width, int) or not 1 <= width <= 64:
            raise ValueError(f"Counter width must be from 1 to 64, not {width!r}")
        self.increments = increments
        self.counters = tuple(counters)
        self.width = width
        super().__init__(
            {
                "events": In(data.StructLayout({name.lower(): increments.get(name, 1) for name in names})),
                "clear": In(1),
                "enable": In(1),
                "counts": Out(data.StructLayout({name.lower(): 64 for name in names})),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"w": self.width, "n": len(self.counters)}

    def build(self, platform: Any) -> Module:
        m = Module()
        for counter in self.counters:
            key = counter.name.lower()
            arrived = Signal.like(self.events[key], name=f"{key}_arrived")
            count = Signal(self.width, name=key)
            # The events come from all over the chip: a register first, then the long carry chain.
            m.d.sync += arrived.eq(0)
            with m.If(self.enable):
                m.d.sync += arrived.eq(self.events[key])
            if counter.peak:
                with m.If(arrived > count):
                    m.d.sync += count.eq(arrived)
            else:
                m.d.sync += count.eq(count + arrived)
            with m.If(self.clear):
                m.d.sync += [count.eq(0), arrived.eq(0)]
            m.d.comb += self.counts[key].eq(count)
        return m
