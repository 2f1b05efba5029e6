"""Multiplication of two's complement integers."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value

from .common import IntOperator, sign_extended

__all__ = ["IntMultiply"]


class IntMultiply(IntOperator):
    """``a * b`` of integers, 32-bit ones from 16-bit partial products, which fit the multipliers of FPGAs.

    Up to 16 bits one stage multiplies and, where the product saturates, one clamps. With 32 the first stage multiplies,
    the second adds the products up; saturation needs the upper half as well and takes two stages more, one for the
    wider sum and one for the clamp.

    Parameters
    ----------
    width : int
        Bits of an integer: 8, 16 or 32 (default).
    saturate : bool
        False (default): the low ``width`` bits of the product. True: the product clamped to -2**(width - 1) ..
        2**(width - 1) - 1.

    Timing
    ------
    As :class:`.common.Operator`.
    """

    @property
    def latency(self) -> int:
        if self.width == 32:
            return 4 if self.saturate else 2
        return 2 if self.saturate else 1

    def build(self, platform: Any) -> Module:
        m = Module()
        if self.width < 32:
            product = self._narrow(m)
        else:
            product = self._saturated(m) if self.saturate else self._wrapped(m)
        m.d.comb += self.result.eq(sign_extended(product))
        return m

    def _narrow(self, m: Module) -> Value:
        width = self.width
        product = self.a[:width].as_signed() * self.b[:width].as_signed()
        if not self.saturate:
            return self._register(m, "product", product[:width])
        product = self._register(m, "whole", product)
        return self._register(m, "product", self._clamped(product[: width - 1], product[width - 1 :]))

    @staticmethod
    def _clamped(low: Value, high: Value) -> Value:
        """``low`` below a sign, or the limit of that sign where ``high``, whose top bit it is, does not repeat it."""
        negative = high[-1]
        fits = high.all() | ~high.any()
        return Mux(fits, Cat(low, high[0]), Cat((~negative).replicate(len(low)), negative))

    def _wrapped(self, m: Module) -> Value:
        a_low, a_high = self.a[:16], self.a[16:]
        b_low, b_high = self.b[:16], self.b[16:]
        low = self._register(m, "low", a_low * b_low)
        # Of the crosswise products only what lands below bit 32 matters, and the upper one lands above it.
        cross_a = self._register(m, "cross_a", (a_high * b_low)[:16])
        cross_b = self._register(m, "cross_b", (a_low * b_high)[:16])
        return self._register(m, "product", Cat(low[:16], (low[16:] + cross_a + cross_b)[:16]))

    def _saturated(self, m: Module) -> Value:
        a_low, a_high = self.a[:16], self.a[16:].as_signed()
        b_low, b_high = self.b[:16], self.b[16:].as_signed()
        low = self._register(m, "low", a_low * b_low)
        cross_a = self._register(m, "cross_a", a_high * b_low)
        cross_b = self._register(m, "cross_b", a_low * b_high)
        high = self._register(m, "high", a_high * b_high)

        cross = self._register(m, "cross_sum", cross_a + cross_b)
        outer = self._register(m, "outer", Cat(low[16:], high).as_signed())
        low_half = self._register(m, "low_half", low[:16])

        upper = self._register(m, "upper", (outer + cross)[:48])
        low_kept = self._register(m, "low_kept", low_half)

        # It fits when everything from bit 31 up repeats the sign.
        return self._register(m, "product", self._clamped(Cat(low_kept, upper[:15]), upper[15:]))
