"""Addition of two's complement 32-bit integers."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux

from .common import Operator

__all__ = ["IntAdd"]


class IntAdd(Operator):
    """``a + b`` of 32-bit integers, one stage.

    Parameters
    ----------
    saturate : bool
        False (default): the low 32 bits of the sum. True: signed operands, the sum clamped to -2**31 .. 2**31 - 1.
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
        return 1

    def build(self, platform: Any) -> Module:
        m = Module()
        total = (self.a + self.b)[:32]
        if self.saturate:
            # Only operands of one sign can overflow, and then the sum has the other sign.
            overflow = (self.a[31] == self.b[31]) & (total[31] != self.a[31])
            total = Mux(overflow, Cat((~self.a[31]).replicate(31), self.a[31]), total)
        m.d.comb += self.result.eq(self._register(m, "total", total))
        return m
