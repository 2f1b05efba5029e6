"""Addition of floating-point numbers as IEEE 754 defines it."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value

from .common import Float, FloatOperator, leading_zeros, shift_right_sticky

__all__ = ["FpAdd"]


class FpAdd(FloatOperator):
    """``a + b`` of binary32 or bfloat16 numbers, rounded to nearest even, four stages.

    Every NaN result is 0x7fc00000, whatever NaN the operands are; opposite infinities give NaN; an exact zero sum of
    nonzero or of opposite operands is +0. No exception flags.

    Two paths, because no operands need both a long shift before and a long shift after the addition:

    - *close*: opposite signs, exponents differ by at most one, and the leading place cancels. The difference is exact, so
      it is only shifted, never rounded.
    - *far*: everything else. The sum moves by at most one place and is rounded.

    Stages: (1) compare, swap, exponent difference; (2) alignment, close difference; (3) far sum, leading zeros of the
    close difference; (4) far rounding, close shift, choice.

    Parameters
    ----------
    format : Format
        ``BINARY32`` (default) or ``BFLOAT16``.
    flush_subnormals : bool
        False (default): as IEEE 754 says. True: a subnormal operand counts as a zero of its sign, and a nonzero sum
        that is smaller in magnitude than 2**-126 becomes a zero of its sign.

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

        # Stage 1: the operand of larger magnitude first. Magnitudes order like the integers that encode them.
        a, b = Float(self.a, form), Float(self.b, form)
        swap = Signal()
        subtract = Signal()
        m.d.comb += [swap.eq(b.magnitude > a.magnitude), subtract.eq(a.sign ^ b.sign)]
        a_significand, b_significand = a.significand(flush=flush), b.significand(flush=flush)
        big = self._register(m, "big", Mux(swap, b_significand, a_significand))
        smaller = self._register(m, "smaller", Mux(swap, a_significand, b_significand))
        exponent = self._register(m, "exponent", Mux(swap, b.scale(), a.scale()))
        distance = self._register(m, "distance", Mux(swap, (b.scale() - a.scale())[:8], (a.scale() - b.scale())[:8]))
        nan = a.is_nan() | b.is_nan() | (a.is_infinite() & b.is_infinite() & subtract)
        flags: Value = Cat(nan, a.is_infinite() | b.is_infinite(), Mux(swap, b.sign, a.sign), subtract)

        # Stage 2: three places below the significand (guard, round, sticky) are enough for correct rounding.
        flags = self._register(m, "flags1", flags)
        reach = (p + 2).bit_length()
        shifted, dropped = shift_right_sticky(m, Cat(C(0, 2), smaller), distance[:reach], "aligned")
        out = distance[reach:].any()
        # At this distance not even the sticky bit can change the rounding.
        aligned = self._register(m, "aligned", Mux(out, 0, Cat(dropped, shifted)))
        far_big = self._register(m, "far_big", big)
        near = ~distance[1:].any() & flags[3]
        near = self._register(m, "near", near)
        difference = Cat(C(0, 1), big) - Mux(distance[0], smaller, Cat(C(0, 1), smaller))
        difference = self._register(m, "difference", difference[: p + 1])
        # A one in the place where the exponent would be used up makes the count of zeros stop there.
        stop = self._register(m, "stop", Cat(exponent == p + 1 - place for place in range(p + 1)))
        exponent = self._register(m, "far_exponent", exponent)

        # Stage 3: the far sum with a bit for its carry, the close difference's shift.
        flags = self._register(m, "flags2", flags)
        subtract = flags[3]
        addend = Cat(aligned ^ subtract.replicate(p + 3), subtract)
        far = self._register(m, "far", (Cat(C(1, 1), C(0, 3), far_big, C(0, 1)) + Cat(subtract, addend))[1 : p + 5])
        close = self._register(m, "close", near & ~difference[p])
        cancelled = self._register(m, "cancelled", ~difference.any())
        zeros = self._register(m, "zeros", leading_zeros(m, difference | stop, "leading"))
        difference = self._register(m, "close_difference", difference)
        base = self._register(m, "base", exponent - 1)
        exponent = self._register(m, "close_exponent", exponent)

        # Stage 4, far: the top bit is the carry, the one below the place of the leading one.
        flags = self._register(m, "flags3", flags)
        nan, infinite, sign, subtract = flags
        carry, leads = far[p + 3], far[p + 2]
        # Without a leading one a difference moves left; a sum is then one of two subnormals and stays.
        left = ~carry & ~leads & subtract
        fraction = Mux(carry, far[4 : p + 3], Mux(left, far[2 : p + 1], far[3 : p + 2]))
        guard = Mux(carry, far[3], Mux(left, far[1], far[2]))
        rest = far[0] | (~left & far[1]) | (carry & far[2])
        round_up = guard & (rest | fraction[0])
        # A fraction that rounds up to 2 carries into the exponent: right everywhere, also where that makes infinity.
        packed = Cat(fraction, base[:8]) + Cat(round_up, C(0, f - 1), ~carry & leads, carry)
        overflow = carry & (base[:8] == 253)

        # Stage 4, close.
        exact = (difference << zeros)[1 : p + 1]
        leading = exact[f]
        close_exponent = Mux(leading, (exponent - zeros)[:8], 0)
        close_fraction = Mux(leading, exact[:f], 0) if flush else exact[:f]

        magnitude = Signal(f + 8)
        with m.If(nan):
            m.d.comb += magnitude.eq(form.nan)
        with m.Elif(infinite | overflow):
            m.d.comb += magnitude.eq(form.infinity)
        with m.Elif(close):
            m.d.comb += magnitude.eq(Cat(close_fraction, close_exponent))
        with m.Else():
            m.d.comb += magnitude.eq(packed[: f + 8])
        positive = nan | (close & cancelled)
        rounded = self._register(m, "rounded", Cat(magnitude, sign & ~positive))
        m.d.comb += self.result.eq(form.packed(rounded[:-1], rounded[-1]))
        return m
