"""Multiplication of two's complement 32-bit integers."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value

from .common import Operator

__all__ = ["IntMultiply"]


class IntMultiply(Operator):
    """``a * b`` of 32-bit integers from 16-bit partial products, which fit the multipliers of FPGAs.

    The first stage multiplies, the second adds the products up; saturation needs the upper half as well and takes two
    stages more, one for the wider sum and one for the clamp.

    Parameters
    ----------
    saturate : bool
        False (default): the low 32 bits of the product. True: signed operands, the product clamped to
        -2**31 .. 2**31 - 1.
    """

    def __init__(self, *, saturate: bool = False) -> None:
        if not isinstance(saturate, bool):
            raise TypeError(f"Saturate must be a bool, not {saturate!r}")
        self.saturate = saturate
        super().__init__()

    def parameters(self) -> dict[str, Any]:
        return {"saturate": int(self.saturate)}

    @property
    def latency(self) -> int:
        return 4 if self.saturate else 2

    def build(self, platform: Any) -> Module:
        m = Module()
        product = self._saturated(m) if self.saturate else self._wrapped(m)
        m.d.comb += self.result.eq(product)
        return m

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

        cross = self._register(m, "cross", cross_a + cross_b)
        outer = self._register(m, "outer", Cat(low[16:], high).as_signed())
        low_half = self._register(m, "low_half", low[:16])

        upper = self._register(m, "upper", (outer + cross)[:48])
        low_kept = self._register(m, "low_kept", low_half)

        # It fits when everything from bit 31 up repeats the sign.
        negative = upper[47]
        fits = upper[15:].all() | ~upper[15:].any()
        limit = Cat((~negative).replicate(31), negative)
        return self._register(m, "product", Mux(fits, Cat(low_kept, upper[:16]), limit))
