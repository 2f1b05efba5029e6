"""Quotient and remainder by the dividers of a host, with the ports of a divider of its own."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.signals import signals
from ..converter.streams import COORDINATE_BITS, POSITION_BITS
from .credit_queue import CreditQueue
from .signature import DIVIDERS, division_request, division_result

__all__ = ["HOST_PORTS", "HostedDivmod"]

#: Members that go to a host.
HOST_PORTS = {
    "owned": In(1),
    "division_valid": Out(1),
    "division": Out(division_request()),
    "divided_valid": In(1),
    "divided": In(division_result()),
}

#: Dividends of a cycle.
PAIRS = DIVIDERS // 2
#: Requests in flight: the cycles of the host, and those of the queue.
INSIDE = 2 * COORDINATE_BITS + 4


class HostedDivmod(Block):
    """Divides vectors as :class:`rtl.mint.divmod.Divmod`, four numbers a cycle.

    Parameters
    ----------
    lanes : int
        Numbers in a vector, power of two from 1 to 16.

    Members
    -------
    divisor, dividends, results : streams
        As :class:`rtl.mint.divmod.Divmod`, of 33 and 64 bits.
    owned : In(1), division_valid : Out(1), division : Out(division_request), divided_valid : In(1), divided : In(division_result)
        Of :class:`rtl.mint.host.host_array.HostArray`.

    Timing
    ------
    ``latency`` cycles; a vector takes one for every four numbers.
    """

    latency = INSIDE

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        quotients, remainders = data.ArrayLayout(POSITION_BITS, lanes), data.ArrayLayout(COORDINATE_BITS + 1, lanes)
        super().__init__(
            {
                "divisor": In(stream.Signature(COORDINATE_BITS + 1)),
                "dividends": In(stream.Signature(data.ArrayLayout(POSITION_BITS, lanes))),
                "results": Out(stream.Signature(data.StructLayout({"quotients": quotients, "remainders": remainders}))),
                **HOST_PORTS,
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = CreditQueue(asked=division_request(), answered=division_result(), depth=INSIDE)
        parts = max(1, self.lanes // PAIRS)
        known = Signal()
        divisor = Signal(COORDINATE_BITS + 1, reset_less=True)
        asked, answered = signals("asked answered", range(parts))
        m.d.comb += [
            queue.open.eq(self.owned),
            self.division_valid.eq(queue.sent),
            self.division.eq(queue.item),
            queue.back.eq(self.divided_valid),
            queue.answer.eq(self.divided),
            self.divisor.ready.eq(1),
            queue.i.valid.eq(self.dividends.valid & known & ~self.divisor.valid),
            self.dividends.ready.eq(queue.i.ready & known & ~self.divisor.valid & (asked == parts - 1)),
            queue.i.payload.divisor.eq(divisor),
        ]
        with m.If(self.divisor.valid):
            m.d.sync += [divisor.eq(self.divisor.payload), known.eq(1)]
        with m.Switch(asked):
            for part in range(parts):
                with m.Case(part):
                    m.d.comb += [
                        queue.i.payload.dividends[n].eq(self.dividends.payload[part * PAIRS + n])
                        for n in range(min(PAIRS, self.lanes))
                    ]
        with m.If(queue.i.valid & queue.i.ready):
            m.d.sync += asked.eq(Mux(asked == parts - 1, 0, asked + 1))

        found, ends = queue.o, answered == parts - 1
        m.d.comb += [found.ready.eq(~ends | self.results.ready), self.results.valid.eq(found.valid & ends)]
        with m.If(found.valid & found.ready):
            m.d.sync += answered.eq(Mux(ends, 0, answered + 1))
        for name in ("quotients", "remainders"):
            for n in range(self.lanes):
                part, lane = divmod(n, PAIRS)
                value = found.payload[name][lane]
                if part < parts - 1:
                    kept = Signal(len(value), name=f"{name}{n}", reset_less=True)
                    with m.If(found.valid & (answered == part)):
                        m.d.sync += kept.eq(value)
                    value = kept
                m.d.comb += self.results.payload[name][n].eq(value)
        return m
