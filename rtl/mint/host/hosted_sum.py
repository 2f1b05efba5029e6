"""Prefix sums by the adders of a host, with the ports of those that have adders of their own."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...lib.stream import StreamQueue
from ..prefix_sum import FORMS, PrefixSum
from ..prefix_sum.common import sums_shape, values_shape
from .signature import SUM_BITS, SUM_LANES, SumPort

__all__ = ["HOST", "HOSTED", "HostedSum", "host_member", "make_sum"]

#: Name of the form whose adders are those of a host.
HOST = "host"
#: Forms of a converter's prefix sums.
HOSTED = (*FORMS, HOST)
#: Vectors in flight at most.
INSIDE = 20


class HostedSum(Block):
    """Inclusive prefix sums as :class:`rtl.mint.prefix_sum.PrefixSum`, of eight values a cycle.

    Bits of a sum above those of the host's adders are counted here: a sum that falls has passed the largest one. So values are
    below 2^60.

    Parameters
    ----------
    inputs, width, sum_width : int
        See :class:`rtl.mint.prefix_sum.PrefixSum`; widths of 60 and 66 bits at most.

    Members
    -------
    i : In(stream of ``values_shape``), o : Out(stream of ``sums_shape``)
        As :class:`rtl.mint.prefix_sum.PrefixSum`.
    short : In(1)
        Values behind the eighth are 0, and take no cycles. Constant while a vector is inside.
    host : Out(SumPort)

    Timing
    ------
    ``latency`` cycles and those of the host; a vector takes one for every eight values.
    """

    latency = 1

    def __init__(self, *, inputs: int = 32, width: int = 32, sum_width: int | None = None) -> None:
        self.inputs = check_power_of_two("Inputs", inputs, 2, 64)
        self.width = check_integer("Value width", width, 1, 60)
        sum_width = width if sum_width is None else sum_width
        check_integer("Sum width", sum_width, width, SUM_BITS + 2)
        self.sum_width = sum_width
        super().__init__(
            {
                "i": In(stream.Signature(values_shape(inputs, width))),
                "o": Out(stream.Signature(sums_shape(inputs, sum_width))),
                "short": In(1),
                "host": Out(SumPort()),
            }
        )

    def carry(self, m: Module, payload: Value) -> Value:
        """What goes along with each vector, at ``o``."""
        m.submodules.along = along = StreamQueue(shape=len(payload), depth=INSIDE + 2)
        m.d.comb += [
            along.i.valid.eq(self.i.valid & self.i.ready),
            along.i.payload.eq(payload),
            along.o.ready.eq(self.o.valid & self.o.ready),
        ]
        return along.o.payload

    def build(self, platform: Any) -> Module:
        m = Module()
        parts = max(1, self.inputs // SUM_LANES)
        request, result = self.host.request, self.host.result
        begun = Signal()
        asked, answered = signals("asked answered", range(parts))
        ends = [(self.short & (parts > 1)) | (part == parts - 1) for part in (asked, answered)]
        lanes = [self.i.payload["values"][n] for n in range(self.inputs)] + [Const(0, 1)] * max(
            0, SUM_LANES - self.inputs
        )
        m.d.comb += [
            request.valid.eq(self.i.valid),
            request.payload.first.eq((asked == 0) & (self.i.payload.first | ~begun)),
            self.i.ready.eq(request.ready & ends[0]),
        ]
        with m.Switch(asked):
            for part in range(parts):
                with m.Case(part):
                    m.d.comb += [request.payload["values"][n].eq(lanes[part * SUM_LANES + n]) for n in range(SUM_LANES)]
        with m.If(request.valid & request.ready):
            m.d.sync += [asked.eq(Mux(ends[0], 0, asked + 1)), begun.eq(1)]

        sums = self._widened(m, result)
        kept = [Signal(self.sum_width, name=f"kept{n}", reset_less=True) for n in range(self.inputs - SUM_LANES)]
        first = Signal()
        m.d.comb += [
            result.ready.eq(~ends[1] | self.o.ready),
            self.o.valid.eq(result.valid & ends[1]),
            self.o.payload.first.eq(Mux(answered == 0, result.payload.first, first)),
        ]
        for n in range(self.inputs):
            part, lane = divmod(n, SUM_LANES)
            if part == parts - 1:
                whole = Mux(self.short, sums[-1], sums[lane]) if part else sums[lane]
            else:
                whole = Mux(self.short, sums[lane] if part == 0 else sums[-1], kept[n])
            m.d.comb += self.o.payload.sums[n].eq(whole)
        with m.If(result.valid & result.ready):
            m.d.sync += answered.eq(Mux(ends[1], 0, answered + 1))
            with m.If(answered == 0):
                m.d.sync += first.eq(result.payload.first)
        for part in range(parts - 1):
            with m.If(result.valid & (answered == part)):
                m.d.sync += [kept[part * SUM_LANES + n].eq(sums[n]) for n in range(SUM_LANES)]
        return m

    def _widened(self, m: Module, result: Any) -> list[Value]:
        """Sums of a vector with the bits above those of the host."""
        lanes: list[Value] = [result.payload.sums[n] for n in range(SUM_LANES)]
        if self.sum_width <= SUM_BITS:
            return [lane[: self.sum_width] for lane in lanes]
        upper = Signal(2)
        high = Signal()
        base, top = Mux(result.payload.first, 0, upper), high & ~result.payload.first
        sums = []
        for n, lane in enumerate(lanes):
            above = Signal(2, name=f"above{n}")
            m.d.comb += above.eq(base + (top & ~lane[-1]))
            sums.append(Cat(lane, above)[: self.sum_width])
        with m.If(result.valid & result.ready):
            m.d.sync += [upper.eq(above), high.eq(lanes[-1][-1])]
        return sums


def make_sum(form: str, **sizes: Any) -> PrefixSum | HostedSum:
    """A prefix sum of this form. Raises ValueError where there is none."""
    if form not in HOSTED:
        raise ValueError(f"Prefix sum must be one of {', '.join(FORMS)}, not {form!r}")
    return HostedSum(**sizes) if form == HOST else FORMS[form](**sizes)


def host_member(form: str, name: str = "host") -> dict[str, Any]:
    """The port of a block with a prefix sum of this form."""
    return {name: Out(SumPort())} if form == HOST else {}
