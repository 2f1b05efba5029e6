"""What the performance counters are shown: the sum of what the units say."""

from collections.abc import Iterable, Mapping
from typing import Any

from amaranth.hdl import Const, Module, Value
from amaranth.lib import data

from ..lib.counter import popcount
from ..regs.counter_list import COUNTERS

__all__ = ["layout", "show_events", "sums"]

NAMES = tuple(counter.name.lower() for counter in COUNTERS)


def sums(shown: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """What each counter adds in a cycle, or, for peaks, is compared with. Raises ValueError where there is no such counter."""
    terms: dict[str, list[Value]] = {name: [] for name in NAMES}
    for events in shown:
        for name, step in events.items():
            if name not in terms:
                raise ValueError(f"There is no performance counter {name!r}")
            terms[name].append(step)
    return {name: popcount(steps) if steps else Const(0, 1) for name, steps in terms.items()}


def show_events(m: Module, steps: Mapping[str, Value], events: Any) -> None:
    """Fills ``events`` with the steps."""
    for name, step in steps.items():
        m.d.comb += events[name].eq(step)


def layout(steps: Mapping[str, Value]) -> data.StructLayout:
    """Of the events with these steps."""
    return data.StructLayout({name: len(step) for name, step in steps.items()})
