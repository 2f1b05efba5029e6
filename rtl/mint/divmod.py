"""Quotient and remainder of many numbers by one divisor that is loaded first: a vector a cycle."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.divide import CeilingDivider
from ..lib.signals import signals

__all__ = ["Divmod", "ReciprocalDivmod", "RestoringDivmod"]

LIMB = 18  # bits of a multiplier of most FPGAs, both inputs without sign


class Divmod(Block):
    """What the forms share: ports, the loading of a divisor, a pipeline that stands still while its output is not taken.

    Parameters
    ----------
    lanes : int
        Numbers in a vector, 1 to 64.
    width : int
        Bits of a dividend and of a quotient, 2 to 64.
    divisor_width : int
        Bits of the divisor and of a remainder, 1 to ``width``.

    Members
    -------
    divisor : In(stream(divisor_width))
        Taken when no vector is inside. While one is offered, no vector is taken.
    dividends : In(stream(array of lanes x width))
        Taken when a divisor is loaded that is not 0.
    results : Out(stream({quotients, remainders}))
        Of each vector, in order. From registers.
    error : Out(1)
        The last divisor was 0. No vector is taken until there is another one.

    Timing
    ------
    A vector a cycle. From a vector to its results ``latency`` cycles, from a divisor to the first vector ``load_latency``.
    ``dividends.ready`` follows ``results.ready`` and ``divisor.valid`` at once.
    """

    def __init__(self, *, lanes: int = 8, width: int = 64, divisor_width: int = 33) -> None:
        for name, value in (("Lanes", lanes), ("Dividend width", width), ("Divisor width", divisor_width)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an integer, not {value!r}")
        if not 1 <= lanes <= 64:
            raise ValueError(f"Lanes must be from 1 to 64, not {lanes!r}")
        if not 2 <= width <= 64:
            raise ValueError(f"Dividend width must be from 2 to 64 bits, not {width!r}")
        if not 1 <= divisor_width <= width:
            raise ValueError(f"Divisor width must be from 1 to {width} bits, not {divisor_width!r}")
        self.lanes = lanes
        self.width = width
        self.divisor_width = divisor_width
        quotients, remainders = data.ArrayLayout(width, lanes), data.ArrayLayout(divisor_width, lanes)
        results = data.StructLayout({"quotients": quotients, "remainders": remainders})
        super().__init__(
            {
                "divisor": In(stream.Signature(divisor_width)),
                "dividends": In(stream.Signature(data.ArrayLayout(width, lanes))),
                "results": Out(stream.Signature(results)),
                "error": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        raise NotImplementedError

    @property
    def load_latency(self) -> int:
        raise NotImplementedError

    def _prepare(self, m: Module, taken: Value, divisor: Value) -> Value:
        """Whether all that vectors need of the divisor is there, from the cycle after ``taken`` on; from registers."""
        raise NotImplementedError

    def _lane(self, m: Module, dividend: Value, divisor: Value) -> tuple[Value, Value]:
        """Quotient and remainder, ``latency`` registers behind the dividend."""
        raise NotImplementedError

    def build(self, platform: Any) -> Module:
        m = Module()
        divisor = Signal(self.divisor_width, reset_less=True)
        known, taken = signals("known taken")
        occupied = Signal(self.latency)  # the last bit is at the output
        self._advance = Signal()
        m.d.comb += [
            self._advance.eq(self.results.ready | ~occupied[-1]),
            self.results.valid.eq(occupied[-1]),
            self.divisor.ready.eq(~occupied.any()),
            taken.eq(self.divisor.valid & self.divisor.ready),
        ]
        with m.If(taken):
            m.d.sync += [divisor.eq(self.divisor.payload), self.error.eq(self.divisor.payload == 0)]
            m.d.sync += known.eq(self.divisor.payload != 0)
        prepared = self._prepare(m, taken, divisor)
        m.d.comb += self.dividends.ready.eq(self._advance & known & prepared & ~self.divisor.valid)
        with m.If(self._advance):
            m.d.sync += occupied.eq(Cat(self.dividends.valid & self.dividends.ready, occupied))
        for n in range(self.lanes):
            quotient, remainder = self._lane(m, self.dividends.payload[n], divisor)
            m.d.comb += [
                self.results.payload.quotients[n].eq(quotient),
                self.results.payload.remainders[n].eq(remainder),
            ]
        return m

    def _register(self, m: Module, value: Any, *, width: int | None = None, cycles: int = 1) -> Value:
        """The value, so many registers of the pipeline later."""
        found = Value.cast(value)
        for _ in range(cycles):
            register = Signal(width or len(found), name="stage", reset_less=True)
            with m.If(self._advance):
                m.d.sync += register.eq(found)
            found = register
        return found


class RestoringDivmod(Divmod):
    """Divides and takes the remainder by shift and subtract, pipelined.

    Parameters
    ----------
    lanes, width, divisor_width : int
        See :class:`Divmod`.
    bits_per_stage : int
        Bits of the quotient between two registers, 1 or 2.

    Members and timing are those of :class:`Divmod`; ``latency`` is ceil(width / bits_per_stage), ``load_latency`` 1.

    Timing
    ------
    As :class:`Divmod`.
    """

    def __init__(self, *, lanes: int = 8, width: int = 64, divisor_width: int = 33, bits_per_stage: int = 1) -> None:
        if bits_per_stage not in (1, 2):
            raise ValueError(f"Bits of a stage must be 1 or 2, not {bits_per_stage!r}")
        self.bits_per_stage = bits_per_stage
        super().__init__(lanes=lanes, width=width, divisor_width=divisor_width)

    @property
    def latency(self) -> int:
        return -(-self.width // self.bits_per_stage)

    @property
    def load_latency(self) -> int:
        return 1

    def _prepare(self, m: Module, taken: Value, divisor: Value) -> Value:
        return Const(1, 1)

    def _lane(self, m: Module, dividend: Value, divisor: Value) -> tuple[Value, Value]:
        # The dividend leaves `bits` at the top while the quotient enters at the bottom.
        bits: Value = Value.cast(dividend)
        remainder: Value = Const(0, self.divisor_width)
        for step in range(self.width):
            grown = Cat(bits[-1], remainder)
            less = Signal(self.divisor_width + 2, name="less")
            m.d.comb += less.eq(grown - divisor)
            fits = ~less[-1]
            remainder = Mux(fits, less, grown)[: self.divisor_width]
            bits = Cat(fits, bits[:-1])
            if (step + 1) % self.bits_per_stage == 0 or step == self.width - 1:
                bits, remainder = self._register(m, bits), self._register(m, remainder)
        return bits, remainder


class ReciprocalDivmod(Divmod):
    """Divides by multiplication with the divisor's reciprocal and one correction; exact for every dividend.

    The reciprocal of d is m = floor((2**W - 1) / d), W the width of a dividend x, and the estimate of the quotient
    e = floor(x m / 2**W). Then x/d - x m/2**W = x (2**W - d m) / (d 2**W). Of d m we know 2**W - d <= d m <= 2**W - 1, so that
    the difference is more than 0, or x is 0, and at most x / 2**W, which is less than 1. So x/d - 1 < x m/2**W <= x/d, and e is
    floor(x/d) or one less. The remainder x - e d tells which: it is below d, or below 2 d. (Round-up methods, such as Granlund
    and Montgomery, Division by Invariant Integers using Multiplication, PLDI 1994, need no correction but W + 1 bits of m; here
    the remainder is wanted anyway.)

    m comes from a serial divider, once for each divisor.

    Parameters
    ----------
    lanes, width, divisor_width : int
        See :class:`Divmod`.

    Members and timing are those of :class:`Divmod`; ``load_latency`` is width + 3.

    Timing
    ------
    As :class:`Divmod`.
    """

    @property
    def load_latency(self) -> int:
        return self.width + 3

    @property
    def _kept(self) -> int:
        """Bits of x - e d, which is below 2 d."""
        return min(self.divisor_width + 1, self.width)

    @property
    def latency(self) -> int:
        estimate = 1 + _levels(_terms(self.width, self.width, 2 * self.width))
        back = 1 + _levels(_terms(self._kept, self.divisor_width, self._kept))
        return estimate + back + 3

    def _prepare(self, m: Module, taken: Value, divisor: Value) -> Value:
        m.submodules.divider = divider = CeilingDivider(width=self.width)
        self._reciprocal = Signal(self.width, reset_less=True)
        begun, dividing, known = signals("begun dividing known")
        m.d.comb += [
            divider.start.eq(begun),
            divider.dividend.eq((1 << self.width) - 1),
            divider.divisor.eq(divisor),
        ]
        m.d.sync += begun.eq(taken)
        with m.If(taken):
            m.d.sync += [known.eq(0), dividing.eq(0)]
        with m.Elif(begun):
            m.d.sync += dividing.eq(1)
        with m.Elif(dividing & divider.done):
            m.d.sync += [self._reciprocal.eq(divider.rounded_down), dividing.eq(0), known.eq(1)]
        return known

    def _lane(self, m: Module, dividend: Value, divisor: Value) -> tuple[Value, Value]:
        kept = self._kept
        terms = _terms(self.width, self.width, 2 * self.width)
        wide = self._product(m, Value.cast(dividend), self._reciprocal, terms, 2 * self.width)
        estimate = wide[self.width :]
        low = self._register(m, Value.cast(dividend)[:kept], cycles=1 + _levels(terms))

        terms = _terms(kept, self.divisor_width, kept)
        back = self._product(m, estimate[:kept], divisor, terms, kept)
        low = self._register(m, low, cycles=1 + _levels(terms))
        remainder = self._register(m, (low - back)[:kept])
        less = self._register(m, remainder - divisor, width=kept + 1)
        remainder = self._register(m, remainder)
        estimate = self._register(m, estimate, cycles=3 + _levels(terms))
        one_more = ~less[-1]
        return (
            self._register(m, (estimate + one_more)[: self.width]),
            self._register(m, Mux(one_more, less, remainder)[: self.divisor_width]),
        )

    def _product(self, m: Module, a: Value, b: Value, terms: list[list[tuple[int, int]]], width: int) -> Value:
        """``width`` low bits of ``a * b``: products of limbs, a register, then sums of two with a register each."""
        sums = []
        for term in terms:
            parts: list[Value] = []
            filled = 0
            for i, j in term:
                product = self._register(m, a[i * LIMB :][:LIMB] * b[j * LIMB :][:LIMB])
                place = (i + j) * LIMB
                parts += [Const(0, place - filled), product]
                filled = place + len(product)
            sums.append(Cat(*parts)[:width])
        while len(sums) > 1:
            pairs = [sums[n : n + 2] for n in range(0, len(sums), 2)]
            sums = [self._register(m, (sum(pair[1:], pair[0]))[:width]) for pair in pairs]
        return Cat(sums[0], Const(0, width))[:width]


def _terms(a: int, b: int, width: int) -> list[list[tuple[int, int]]]:
    """Products of limbs of numbers of ``a`` and ``b`` bits, those below bit ``width``; products of one term do not overlap."""
    terms: list[list[tuple[int, int]]] = []
    pairs = [(i, j) for i in range(-(-a // LIMB)) for j in range(-(-b // LIMB)) if (i + j) * LIMB < width]
    for i, j in sorted(pairs, key=sum):
        for term in terms:
            if i + j >= sum(term[-1]) + 2:
                term.append((i, j))
                break
        else:
            terms.append([(i, j)])
    return terms


def _levels(terms: list[list[tuple[int, int]]]) -> int:
    """Levels of sums of two."""
    return (len(terms) - 1).bit_length()
