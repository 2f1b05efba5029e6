"""Serial division, for counts that are needed once a run."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .block import Block

__all__ = ["CeilingDivider"]


class CeilingDivider(Block):
    """``quotient = ceil(dividend / divisor)`` by shift and subtract, ``width + 1`` cycles after ``start``.

    Members
    -------
    start : In(1), dividend, divisor : In(width)
        Sampled with ``start``; ``divisor`` is not 0. ``start`` while busy begins anew.
    done : Out(1), quotient, rounded_down : Out(width)
        ``done`` is high while both hold the result of the last start. ``rounded_down`` comes straight from registers;
        ``quotient`` adds one to it where something remains.

    Timing
    ------
    ``width + 1`` cycles; one division at a time.
    """

    def __init__(self, *, width: int) -> None:
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"Divider width must be a positive integer, not {width!r}")
        self.width = width
        super().__init__(
            {
                "start": In(1),
                "dividend": In(width),
                "divisor": In(width),
                "done": Out(1),
                "quotient": Out(width),
                "rounded_down": Out(width),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        width = self.width
        divisor = Signal(width)
        remainder = Signal(width)
        bits = Signal(width)  # dividend moves out at the top while the quotient moves in at the bottom
        left = Signal(range(width + 1))
        grown = Signal(width + 1)
        fits = Signal()
        m.d.comb += [
            grown.eq(Cat(bits[-1], remainder)),
            fits.eq(grown >= divisor),
            self.quotient.eq(bits + (remainder != 0)),
            self.rounded_down.eq(bits),
        ]
        with m.If(self.start):
            m.d.sync += [
                divisor.eq(self.divisor),
                bits.eq(self.dividend),
                remainder.eq(0),
                left.eq(width),
                self.done.eq(0),
            ]
        with m.Elif(left != 0):
            m.d.sync += [
                remainder.eq(Mux(fits, grown - divisor, grown)),
                bits.eq(Cat(fits, bits[:-1])),
                left.eq(left - 1),
                self.done.eq(left == 1),
            ]
        return m
