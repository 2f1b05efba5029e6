"""A row of dividers that divides pairs of numbers, and long divisions that are laid over it."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer
from ..converter.streams import COORDINATE_BITS
from .signature import DIVIDERS, division_request, division_result

__all__ = ["DividerRow"]


class DividerRow(Block):
    """Eight pipelined restoring dividers of 32 bits, a bit in each stage, each with its own divisor.

    Laid over them are four dividers of 64 bits by one divisor of 33: the upper half of a dividend passes one divider, the lower
    half the next one, which begins with the remainder of the first. Added are a bit of each remainder, multiplexers at the
    inputs, and a memory that has what waits for its other half.

    Parameters
    ----------
    shares : bool
        Long divisions are laid over it.
    width : int
        Bits of a number, 32.

    Members
    -------
    shared : In(1)
        Long divisions are made. It changes while nothing is inside.
    pair_valid : In(1), dividends, divisors : In(8 x 32)
        Taken in every cycle.
    quotient_valid : Out(1), quotients, remainders : Out(8 x 32)
        ``width`` cycles later. A divisor of 0 gives a quotient of all ones. From registers.
    request_valid : In(1), request : In(division_request)
        Used while ``shared``.
    result_valid : Out(1), result : Out(division_result)
        ``latency`` cycles later: twice ``width``.

    Timing
    ------
    A pair in each divider, or a long dividend in each two, a cycle; it never stands still.
    """

    def __init__(self, *, shares: bool = True, width: int = COORDINATE_BITS) -> None:
        self.width = check_integer("Width", width, COORDINATE_BITS, COORDINATE_BITS)
        self.shares = bool(shares)
        numbers = data.ArrayLayout(width, DIVIDERS)
        super().__init__(
            {
                "shared": In(1),
                "pair_valid": In(1),
                "dividends": In(numbers),
                "divisors": In(numbers),
                "quotient_valid": Out(1),
                "quotients": Out(numbers),
                "remainders": Out(numbers),
                "request_valid": In(1),
                "request": In(division_request()),
                "result_valid": Out(1),
                "result": Out(division_result()),
            }
        )

    @property
    def latency(self) -> int:
        return 2 * self.width

    def build(self, platform: Any) -> Module:
        m = Module()
        valid = Signal(self.width)
        m.d.sync += valid.eq(Cat(self.pair_valid & ~self.shared, valid))
        m.d.comb += self.quotient_valid.eq(valid[-1])
        if self.shares:
            quotients, remainders = self._long(m)
        else:
            own = [
                self._divider(m, d, s, Const(0, self.width)) for d, s in zip(self.dividends, self.divisors, strict=True)
            ]
            quotients, remainders = [one[0] for one in own], [one[1] for one in own]
        for n in range(DIVIDERS):
            m.d.comb += [self.quotients[n].eq(quotients[n]), self.remainders[n].eq(remainders[n])]
        return m

    def _long(self, m: Module) -> tuple[list[Value], list[Value]]:
        """Dividers 0 to 3 have the upper halves, 4 to 7 the lower ones."""
        half = DIVIDERS // 2
        request, result = self.request, self.result
        valid = Signal(self.latency)
        with m.If(self.shared):
            m.d.sync += valid.eq(Cat(self.request_valid, valid))
        with m.Else():
            m.d.sync += valid.eq(0)
        m.d.comb += self.result_valid.eq(valid[-1])
        quotients: list[Value] = []
        remainders: list[Value] = []
        divisors: list[Value] = []
        for n in range(half):
            upper = Mux(self.shared, request.dividends[n][self.width :], self.dividends[n])
            divisor = Mux(self.shared, request.divisor, self.divisors[n])
            found = self._divider(m, upper, divisor, Const(0, self.width + 1))
            for kept, value in zip((quotients, remainders, divisors), found, strict=True):
                kept.append(value)
        lower = Cat(*(request.dividends[n][: self.width] for n in range(half)))
        waited = self._delayed(m, Cat(lower, *quotients[:half]))
        for n in range(half):
            low = waited[n * self.width :][: self.width]
            dividend = Mux(self.shared, low, self.dividends[half + n])
            divisor = Mux(self.shared, divisors[n], self.divisors[half + n])
            quotient, remainder, _ = self._divider(m, dividend, divisor, Mux(self.shared, remainders[n], 0))
            quotients.append(quotient)
            remainders.append(remainder)
            m.d.comb += [
                result.quotients[n].eq(Cat(quotient, waited[(half + n) * self.width :][: self.width])),
                result.remainders[n].eq(remainder),
            ]
        return quotients, remainders

    def _delayed(self, m: Module, value: Value) -> Value:
        """The value ``width`` cycles ago."""
        m.submodules.waiting = waiting = memory.Memory(shape=len(value), depth=self.width, init=[])
        write, read = waiting.write_port(), waiting.read_port(domain="comb")
        place = Signal(range(self.width))
        m.d.sync += place.eq(place + 1)  # the depth is a power of two
        m.d.comb += [write.addr.eq(place), write.data.eq(value), write.en.eq(1), read.addr.eq(place)]
        return read.data

    def _divider(self, m: Module, dividend: Value, divisor: Value, remainder: Value) -> tuple[Value, Value, Value]:
        """Quotient, remainder and divisor, ``width`` registers later. The remainder has the bits of the first one."""
        bits: Value = Value.cast(dividend)
        size = len(remainder)
        for _ in range(self.width):
            grown = Cat(bits[-1], remainder)
            less = Signal(size + 2, name="less")
            m.d.comb += less.eq(grown - divisor)
            fits = ~less[-1]
            stage = [
                Signal(self.width, name="bits", reset_less=True),
                Signal(size, name="remainder", reset_less=True),
                Signal(len(divisor), name="divisor", reset_less=True),
            ]
            m.d.sync += [
                stage[0].eq(Cat(fits, bits[:-1])),
                stage[1].eq(Mux(fits, less, grown)),
                stage[2].eq(divisor),
            ]
            bits, remainder, divisor = stage
        return bits, remainder, divisor
