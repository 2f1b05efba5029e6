"""Multiplication of IEEE 754 binary32 numbers."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value

from .common import BIAS, CANONICAL_NAN, INFINITY, Binary32, Operator, leading_zeros, shift_right_sticky

__all__ = ["FpMultiply"]


class FpMultiply(Operator):
    """``a * b`` of binary32 numbers, rounded to nearest even, four stages.

    Every NaN result is 0x7fc00000, whatever NaN went in; infinity times zero is NaN; zeros and infinities carry the
    product of the signs. No exception flags.

    Stages: (1) four partial products of the fractions, at most 12 x 12, sum of the exponents; (2) sum of the partial
    products, distance to shift; (3) shift, which does something only for subnormal operands or results; (4) rounding.

    Parameters
    ----------
    flush_subnormals : bool
        False (default): as IEEE 754 says. True: a subnormal operand counts as a zero of its sign, and a product that is
        smaller in magnitude than 2**-126 before rounding becomes a zero of its sign.
    """

    def __init__(self, *, flush_subnormals: bool = False) -> None:
        if not isinstance(flush_subnormals, bool):
            raise TypeError(f"Flush subnormals must be a bool, not {flush_subnormals!r}")
        self.flush_subnormals = flush_subnormals
        super().__init__()

    def parameters(self) -> dict[str, Any]:
        return {"flush_subnormals": int(self.flush_subnormals)}

    @property
    def latency(self) -> int:
        return 4

    def build(self, platform: Any) -> Module:
        m = Module()
        flush = self.flush_subnormals

        # Stage 1: products of halves, exponent, special operands.
        a, b = Binary32(self.a), Binary32(self.b)
        a_normal, b_normal = Signal(), Signal()
        m.d.comb += [a_normal.eq(~a.is_tiny()), b_normal.eq(~b.is_tiny())]
        low = self._register(m, "low", a.fraction[:12] * b.fraction[:12])
        cross_a = self._register(m, "cross_a", a.fraction[12:] * b.fraction[:12])
        cross_b = self._register(m, "cross_b", a.fraction[:12] * b.fraction[12:])
        high = self._register(m, "high", a.fraction[12:] * b.fraction[12:])
        # Whether there is a leading one is known too late for the multipliers, so what it contributes is added to them.
        b_significand = Cat(b.fraction, b_normal)
        leading = Mux(a_normal, b_significand, 0) + Mux(b_normal, a.fraction, 0)
        leading = self._register(m, "leading", leading)
        # The value is product * 2**(exponent - BIAS - 46): with bit 46 leading, exponent is the result's own.
        exponent = self._register(m, "exponent", a.scale() + b.scale() - BIAS)
        a_zero = ~a_normal & (C(flush) | ~a.fraction.any())
        b_zero = ~b_normal & (C(flush) | ~b.fraction.any())
        nan = a.is_nan() | b.is_nan() | (a.is_infinite() & b_zero) | (b.is_infinite() & a_zero)
        flags: Value = Cat(nan, a.is_infinite() | b.is_infinite(), a_zero | b_zero, a.sign ^ b.sign)
        for stage in (1, 2, 3):
            flags = self._register(m, f"flags{stage}", flags)

        # Stages 2 and 3: the product, then its 26 bits that matter, left-aligned on bit 47 as far as the exponent allows.
        outer, inner = (Cat(low, high) + Cat(C(0, 23), leading), Cat(C(0, 12), cross_a + cross_b))
        product = self._register(m, "product", (outer + inner)[:48])
        if flush:
            exponent = self._register(m, "product_exponent", exponent)
            window, sticky, remaining = product[22:], product[:22].any(), exponent[:9]
            vanished = self._register(m, "vanished", exponent < 0)
        else:
            # Two subnormal operands give far less than the smallest subnormal, so at most one needs alignment.
            small = self._register(m, "small", Mux(a_normal, b_significand, a.fraction))
            window, sticky, remaining = self._align(m, product, exponent, small)
        bottom = self._register(m, "bottom", ~remaining.any())
        limit = self._register(m, "limit", remaining == 254)
        beyond = self._register(m, "beyond", remaining >= 255)
        window = self._register(m, "window", window)
        sticky = self._register(m, "sticky", sticky)
        remaining = self._register(m, "remaining", remaining)

        # Stage 4: one more place to the left if the top bit is clear and the exponent is not used up; round; pack.
        top = window[25]
        stay = top | bottom
        fraction = Mux(stay, window[2:25], window[1:24])
        guard = Mux(stay, window[1], window[0])
        rest = sticky | (stay & window[0])
        round_up = guard & (rest | fraction[0])
        # A fraction that rounds up to 2 carries into the exponent: right everywhere, also where that makes infinity.
        packed = Cat(fraction, remaining) + Cat(round_up, C(0, 22), top)
        nan, infinite, zero, sign = flags
        if flush:
            zero = zero | vanished | (bottom & ~top)
        magnitude = Signal(31)
        with m.If(nan):
            m.d.comb += magnitude.eq(CANONICAL_NAN)
        with m.Elif(infinite):
            m.d.comb += magnitude.eq(INFINITY)
        with m.Elif(zero):
            m.d.comb += magnitude.eq(0)
        with m.Elif(beyond | (limit & top)):
            m.d.comb += magnitude.eq(INFINITY)
        with m.Else():
            m.d.comb += magnitude.eq(packed[:31])
        m.d.comb += self.result.eq(self._register(m, "rounded", Cat(magnitude, sign & ~nan)))
        return m

    def _align(self, m: Module, product: Value, exponent: Value, small: Value) -> tuple[Value, Value, Value]:
        """Bits 47 to 22 of the shifted product, whether anything below is set, and the exponent that is left.

        A product with a subnormal factor moves left by that factor's leading zeros, but by no more than ``exponent``
        allows; one with a negative exponent moves right.
        """
        # A one in the place where the exponent would be used up makes the count of zeros stop there.
        stop = Cat(exponent == 23 - place for place in range(24))
        zeros = leading_zeros(m, small | stop, "zeros")
        below = exponent < 0
        # Both directions are one right shift: of the product moved to the left as far as it goes, or by one to the right.
        amount = Mux(below, Mux(exponent < -32, 31, ~exponent[:5]), ~zeros)
        left = self._register(m, "left", zeros)
        amount = self._register(m, "amount", amount[:5])
        below = self._register(m, "below", below)
        exponent = self._register(m, "product_exponent", exponent)

        start = Signal(57)
        m.d.comb += start.eq(Mux(below, product[23:], Cat(C(0, 9), product)))
        shifted, dropped = shift_right_sticky(m, start, amount, "aligned")
        sticky = dropped | (below & product[:23].any())
        remaining = Signal(9)
        m.d.comb += remaining.eq(Mux(below, 0, exponent - left))
        return shifted[:26], sticky, remaining
