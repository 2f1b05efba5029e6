"""Counting: how many bits are set now, how many events so far, whether two places have seen equally many."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib.wiring import In, Out

from .block import Block

__all__ = ["MARK_TAPS", "EventCounter", "mark_bits", "next_mark", "popcount"]


def popcount(bits: Value | Sequence[Value]) -> Value:
    """Number of set bits, as a balanced adder tree. Combinational; wide enough for all bits set."""
    terms = [Value.cast(bit) for bit in bits]
    while len(terms) > 1:
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
    return terms[0] if terms else Const(0, 1)


#: For each width of a mark: the bits whose parity with the last one, inverted, goes in at the front as all bits move on by one.
#: Chosen so that marks come again only after all others but the one of ones.
MARK_TAPS = {
    2: (0,),
    3: (1,),
    4: (2,),
    5: (2,),
    6: (4,),
    7: (5,),
    8: (3, 4, 5),
    9: (4,),
    10: (6,),
    11: (8,),
    12: (0, 3, 5),
    13: (0, 2, 3),
    14: (0, 2, 4),
    15: (13,),
    16: (3, 12, 14),
    17: (13,),
    18: (10,),
}


def mark_bits(most: int) -> int:
    """Bits of a mark, for marks that are at most so many steps apart."""
    return max(2, (most + 1).bit_length())


def next_mark(mark: Value) -> Value:
    """The mark after this one, of the same width. Marks are counts that can only be compared for equality, but need no adder.

    The first mark is 0. The same marks come again after ``2**width - 1`` steps; one with all bits set never comes.
    """
    width = len(mark)
    return Cat(~(mark[width - 1] ^ Cat(mark[tap] for tap in MARK_TAPS[width]).xor()), mark)[:width]


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

    def parameters(self) -> dict[str, Any]:
        return {"w": self.width, "s": self.step_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.d.sync += self.count.eq(self.count + self.step)
        with m.If(self.clear):
            m.d.sync += self.count.eq(0)
        return m
