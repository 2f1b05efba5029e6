"""Where each bucket begins, from the bytes that each has."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ..host.hosted_sum import HOST, host_member, make_sum
from ..prefix_sum.common import values_shape

__all__ = ["BucketStarts"]


class BucketStarts(Block):
    """Bytes of the buckets before each bucket, by a prefix sum over all banks (MINT, figure 8c, step 5).

    Parameters
    ----------
    banks : int
        Buckets of a vector, power of two from 2 to 64.
    width : int
        Bits of a number of bytes, 1 to 64.
    form : str
        Network of the prefix sum, one of :data:`rtl.mint.host.hosted_sum.HOSTED`.

    Members
    -------
    sizes : In(stream of ``values_shape``)
        ``first``: the vector has the first buckets.
    starts : Out(stream(ArrayLayout(width, banks)))
        A vector for each of ``sizes``. It depends on registers alone.
    host : Out(SumPort)
        Where ``form`` is ``host``.

    Timing
    ------
    ``latency`` cycles, a vector a cycle.
    """

    def __init__(self, *, banks: int, width: int, form: str) -> None:
        self.banks = check_power_of_two("Banks", banks, 2, 64)
        self.width = check_integer("Width", width, 1, 64)
        self.form = form
        self._sums = make_sum(form, inputs=banks, width=width)
        super().__init__(
            {
                "sizes": In(stream.Signature(values_shape(banks, width))),
                "starts": Out(stream.Signature(data.ArrayLayout(width, banks))),
                **host_member(form),
            }
        )

    @property
    def latency(self) -> int:
        return self._sums.latency

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.sums = sums = self._sums
        if self.form == HOST:
            connect(m, sums.host, flipped(self.host))
        left = Signal(self.width)  # bytes of the vectors that have left
        m.d.comb += [
            sums.i.payload.eq(self.sizes.payload),
            sums.i.valid.eq(self.sizes.valid),
            self.sizes.ready.eq(sums.i.ready),
            self.starts.valid.eq(sums.o.valid),
            sums.o.ready.eq(self.starts.ready),
            self.starts.payload[0].eq(Mux(sums.o.payload.first, 0, left)),
            *(self.starts.payload[n].eq(sums.o.payload.sums[n - 1]) for n in range(1, self.banks)),
        ]
        with m.If(self.starts.valid & self.starts.ready):
            m.d.sync += left.eq(sums.o.payload.sums[self.banks - 1])
        return m
