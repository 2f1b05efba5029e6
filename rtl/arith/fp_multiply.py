"""Multiplication of floating-point numbers as IEEE 754 defines it."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value

from ..lib.signals import signals
from .common import BIAS, Float, FloatOperator, leading_zeros, shift_right_sticky

__all__ = ["FpMultiply"]

MULTIPLIER = 16  # bits of a factor that the multipliers of every FPGA take


class FpMultiply(FloatOperator):
    """``a * b`` of binary32 or bfloat16 numbers, rounded to nearest even, four stages.

    Every NaN result is 0x7fc00000, whatever NaN the operands are; infinity times zero is NaN; zeros and infinities
    carry the product of the signs. No exception flags.

    Stages: (1) product of the fractions, of binary32 four products of at most 12 x 12, sum of the exponents;
    (2) sum of these, distance to shift; (3) shift, other than 0 only for subnormal operands or results; (4) rounding.

    Parameters
    ----------
    format : Format
        ``BINARY32`` (default) or ``BFLOAT16``.
    flush_subnormals : bool
        False (default): as IEEE 754 says. True: a subnormal operand counts as a zero of its sign, and a product that is
        smaller in magnitude than 2**-126 before rounding becomes a zero of its sign.

    Timing
    ------
    As :class:`.common.Operator`.
    """

    @property
    def latency(self) -> int:
        return 4

    def build(self, platform: Any) -> Module:
        m = Module()
        flush = self.flush_subnormals
        form = self.format
        f, p = form.fraction, form.significand

        # Stage 1: products of halves, exponent, special operands.
        a, b = Float(self.a, form), Float(self.b, form)
        a_normal, b_normal = signals("a_normal b_normal")
        m.d.comb += [a_normal.eq(~a.is_tiny()), b_normal.eq(~b.is_tiny())]
        fractions = self._fractions(m, a.fraction, b.fraction)
        # The leading ones are known too late for the multipliers, so their contribution is added to the products.
        b_significand = Cat(b.fraction, b_normal)
        leading = Mux(a_normal, b_significand, 0) + Mux(b_normal, a.fraction, 0)
        leading = self._register(m, "leading", leading)
        # The value is product * 2**(exponent - BIAS - 2 * f): with bit 2 * f leading, exponent is the result's own.
        exponent = self._register(m, "exponent", a.scale() + b.scale() - BIAS)
        a_zero = ~a_normal & (C(flush) | ~a.fraction.any())
        b_zero = ~b_normal & (C(flush) | ~b.fraction.any())
        nan = a.is_nan() | b.is_nan() | (a.is_infinite() & b_zero) | (b.is_infinite() & a_zero)
        flags: Value = Cat(nan, a.is_infinite() | b.is_infinite(), a_zero | b_zero, a.sign ^ b.sign)
        for stage in (1, 2, 3):
            flags = self._register(m, f"flags{stage}", flags)

        # Stages 2 and 3: the product, then its p + 2 bits that matter, left-aligned on its top bit as far as the exponent allows.
        outer, inner = fractions[0] + Cat(C(0, f), leading), fractions[1:]
        product = self._register(m, "product", (outer + inner[0] if inner else outer)[: 2 * p])
        if flush:
            exponent = self._register(m, "product_exponent", exponent)
            window, sticky, remaining = product[p - 2 :], product[: p - 2].any(), exponent[:9]
            vanished = self._register(m, "vanished", exponent < 0)
        else:
            # Two subnormal operands give far less than the smallest subnormal, so at most one needs alignment.
            smaller = self._register(m, "smaller", Mux(a_normal, b_significand, a.fraction))
            window, sticky, remaining = self._align(m, product, exponent, smaller)
        bottom = self._register(m, "bottom", ~remaining.any())
        limit = self._register(m, "limit", remaining == 254)
        beyond = self._register(m, "beyond", remaining >= 255)
        window = self._register(m, "window", window)
        sticky = self._register(m, "sticky", sticky)
        remaining = self._register(m, "remaining", remaining)

        # Stage 4: one more place to the left if the top bit is clear and the exponent is not used up; round; pack.
        top = window[p + 1]
        stay = top | bottom
        fraction = Mux(stay, window[2 : p + 1], window[1:p])
        guard = Mux(stay, window[1], window[0])
        rest = sticky | (stay & window[0])
        round_up = guard & (rest | fraction[0])
        # A fraction that rounds up to 2 carries into the exponent: right everywhere, also where that makes infinity.
        packed = Cat(fraction, remaining) + Cat(round_up, C(0, f - 1), top)
        nan, infinite, zero, sign = flags
        if flush:
            zero = zero | vanished | (bottom & ~top)
        magnitude = Signal(f + 8)
        with m.If(nan):
            m.d.comb += magnitude.eq(form.nan)
        with m.Elif(infinite):
            m.d.comb += magnitude.eq(form.infinity)
        with m.Elif(zero):
            m.d.comb += magnitude.eq(0)
        with m.Elif(beyond | (limit & top)):
            m.d.comb += magnitude.eq(form.infinity)
        with m.Else():
            m.d.comb += magnitude.eq(packed[: f + 8])
        rounded = self._register(m, "rounded", Cat(magnitude, sign & ~nan))
        m.d.comb += self.result.eq(form.packed(rounded[:-1], rounded[-1]))
        return m

    def _fractions(self, m: Module, a: Value, b: Value) -> list[Value]:
        """Registered parts of the product of two fractions, to be added up; one where a single multiplier takes them."""
        if len(a) <= MULTIPLIER:
            return [self._register(m, "fractions", a * b)]
        low = self._register(m, "low", a[:12] * b[:12])
        cross_a = self._register(m, "cross_a", a[12:] * b[:12])
        cross_b = self._register(m, "cross_b", a[:12] * b[12:])
        high = self._register(m, "high", a[12:] * b[12:])
        return [Cat(low, high), Cat(C(0, 12), cross_a + cross_b)]

    def _align(self, m: Module, product: Value, exponent: Value, smaller: Value) -> tuple[Value, Value, Value]:
        """The upper p + 2 bits of the shifted product, whether anything below is set, and the exponent that is left.

        A product with a subnormal factor moves left by that factor's leading zeros, but by no more than ``exponent``
        allows; one with a negative exponent moves right.
        """
        f, p = self.format.fraction, self.format.significand
        reach = p.bit_length()
        # A one in the place where the exponent would be used up makes the count of zeros stop there.
        stop = Cat(exponent == f - place for place in range(p))
        zeros = leading_zeros(m, smaller | stop, "zeros")
        below = exponent < 0
        # Both directions are one right shift: of the product moved to the left as far as it goes, or by one to the right.
        amount = Mux(below, Mux(exponent < -(1 << reach), (1 << reach) - 1, ~exponent[:reach]), ~zeros)
        left = self._register(m, "left", zeros)
        amount = self._register(m, "amount", amount[:reach])
        below = self._register(m, "below", below)
        exponent = self._register(m, "product_exponent", exponent)

        spare = (1 << reach) + 1 - p
        start = Signal(2 * p + spare)
        m.d.comb += start.eq(Mux(below, product[f:], Cat(C(0, spare), product)))
        shifted, dropped = shift_right_sticky(m, start, amount, "aligned")
        sticky = dropped | (below & product[:f].any())
        remaining = Signal(9)
        m.d.comb += remaining.eq(Mux(below, 0, exponent - left))
        return shifted[: p + 2], sticky, remaining
