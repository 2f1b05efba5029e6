"""Divide and mod: any result is quotient and remainder of what went in, in order, by the divisor taken before it."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cover, Module, Signal

from .spec import Spec, free_inputs, implies, obey_streams

__all__ = ["DivmodContract"]


class DivmodContract(Spec):
    """Any divisors and vectors at any time; the solver chooses the vector that is watched.

    Parameters
    ----------
    divmod : Divmod
        Of one lane.
    """

    def __init__(self, divmod: Any) -> None:
        super().__init__()
        self.divmod = divmod

    def claims(self, m: Module) -> None:
        m.submodules.divmod = divmod = self.divmod
        free_inputs(m, divmod)
        obey_streams(m, divmod)
        loads = divmod.divisor.valid & divmod.divisor.ready
        goes = divmod.dividends.valid & divmod.dividends.ready
        comes = divmod.results.valid & divmod.results.ready
        divisor, loaded = Signal(divmod.divisor_width), Signal()
        with m.If(loads):
            m.d.sync += [divisor.eq(divmod.divisor.payload), loaded.eq(1)]
        inside = Signal(range(divmod.latency + 2))  # vectors inside
        earlier = Signal.like(inside)
        chosen, gone = Signal(), Signal()
        dividend, by = Signal(divmod.width), Signal(divmod.divisor_width)
        starts = goes & ~chosen & AnySeq(1)
        m.d.sync += inside.eq(inside + goes - comes)
        with m.If(starts):
            m.d.sync += [
                chosen.eq(1),
                dividend.eq(divmod.dividends.payload[0]),
                by.eq(divisor),
                earlier.eq(inside - comes),
            ]
        with m.Elif(comes & chosen & ~gone):
            m.d.sync += [earlier.eq(earlier - (earlier != 0)), gone.eq(earlier == 0)]
        now = comes & chosen & ~gone & (earlier == 0)
        quotient, remainder = divmod.results.payload.quotients[0], divmod.results.payload.remainders[0]
        m.d.comb += [
            Assert(implies(now, quotient * by + remainder == dividend), "quotient and remainder make the dividend"),
            Assert(implies(now, remainder < by), "the remainder is below the divisor"),
            Assert(implies(comes, inside != 0), "nothing comes out that did not go in"),
            Assert(implies(goes, loaded & (divisor != 0)), "no vector is taken without a divisor"),
            Assert(divmod.error == (loaded & (divisor == 0)), "the error says that the divisor is 0"),
            Assert(inside <= divmod.latency, "no more vectors than stages"),
            Cover(now & (quotient > 1) & (remainder > 1)),
        ]
