"""Counting: how many bits are set now, how many events so far."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const, Module, Value
from amaranth.lib.wiring import In, Out

from .block import Block

__all__ = ["EventCounter", "popcount"]


def popcount(bits: Value | Sequence[Value]) -> Value:
    """Number of set bits, as a balanced adder tree. Combinational; wide enough for all bits set."""
    terms = [Value.cast(bit) for bit in bits]
    while len(terms) > 1:
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
    return terms[0] if terms else Const(0, 1)


class EventCounter(Block):
    """Performance counter: adds ``step`` every cycle, wraps at ``2**width``.

    Parameters
    ----------
    width : int
        Bits of the count, at least 1.
    step_width : int
        Bits of the amount added in a cycle, 1 to ``width``.

    Members
    -------
    step : In(step_width)
        Events of this cycle.
    clear : In(1)
        Sets the count to zero; the events of the same cycle are not counted.
    count : Out(width)
        Registered: includes an event from the cycle after it.

    Timing
    ------
    One cycle; any ``step`` a cycle.
    """

    def __init__(self, *, width: int = 64, step_width: int = 1) -> None:
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"Counter width must be a positive integer, not {width!r}")
        if not isinstance(step_width, int) or not 1 <= step_width <= width:
            raise ValueError(f"Counter step width must be from 1 to {width}, not {step_width!r}")
        self.width = width
        self.step_width = step_width
        super().__init__({"step": In(step_width), "clear": In(1), "count": Out(width)})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.d.sync += self.count.eq(self.count + self.step)
        with m.If(self.clear):
            m.d.sync += self.count.eq(0)
        return m
