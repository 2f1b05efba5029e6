"""Addition of two's complement integers."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux

from .common import IntOperator, sign_extended

__all__ = ["IntAdd"]


class IntAdd(IntOperator):
    """``a + b`` of integers, one stage.

    Parameters
    ----------
    width : int
        Bits of an integer: 8, 16 or 32 (default).
    saturate : bool
        False (default): the low ``width`` bits of the sum. True: the sum clamped to -2**(width - 1) ..
        2**(width - 1) - 1.

    Timing
    ------
    As :class:`.common.Operator`.
    """

    @property
    def latency(self) -> int:
        return 1

    def build(self, platform: Any) -> Module:
        m = Module()
        width = self.width
        a, b = self.a[:width], self.b[:width]
        total = (a + b)[:width]
        if self.saturate:
            # Only operands of one sign can overflow, and then the sum has the other sign.
            overflow = (a[-1] == b[-1]) & (total[-1] != a[-1])
            total = Mux(overflow, Cat((~a[-1]).replicate(width - 1), a[-1]), total)
        m.d.comb += self.result.eq(sign_extended(self._register(m, "total", total)))
        return m
