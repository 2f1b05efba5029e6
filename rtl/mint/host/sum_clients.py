"""Blocks of a converter that take turns at the adders of a host."""

from typing import Any

from amaranth.hdl import Cat, Const, Module
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer
from .credit_queue import CreditQueue
from .hosted_sum import INSIDE
from .signature import SumPort, sum_request, sum_result

__all__ = ["SumClients"]


class SumClients(Block):
    """Joins ports of prefix sums to the adders of a host. Clients do not add at the same time: the last one that asks is served.

    Parameters
    ----------
    count : int
        Clients, 1 to 4.

    Members
    -------
    clients[count] : In(SumPort)
    owned : In(1), sum_valid : Out(1), sum : Out(sum_request), sums_valid : In(1), sums : In(sum_result)
        Of :class:`rtl.mint.host.host_array.HostArray`.

    Timing
    ------
    One cycle behind the host; a vector a cycle.
    """

    latency = 1

    def __init__(self, *, count: int) -> None:
        self.count = check_integer("Clients", count, 1, 4)
        super().__init__(
            {
                "clients": In(SumPort()).array(count),
                "owned": In(1),
                "sum_valid": Out(1),
                "sum": Out(sum_request()),
                "sums_valid": In(1),
                "sums": In(sum_result()),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = CreditQueue(asked=sum_request(), answered=sum_result(), depth=INSIDE)
        m.d.comb += [
            queue.open.eq(self.owned),
            self.sum_valid.eq(queue.sent),
            self.sum.eq(queue.item),
            queue.back.eq(self.sums_valid),
            queue.answer.eq(self.sums),
        ]
        asks = Cat(client.request.valid for client in self.clients)
        for n, client in enumerate(self.clients):
            chosen = client.request.valid & ~Cat(Const(0, 1), asks[n + 1 :]).any()
            with m.If(chosen):
                m.d.comb += [
                    queue.i.valid.eq(1),
                    queue.i.payload.eq(client.request.payload),
                    queue.i.payload.client.eq(n),
                    client.request.ready.eq(queue.i.ready),
                ]
            m.d.comb += client.result.payload.eq(queue.o.payload)
            with m.If(queue.o.payload.client == n):
                m.d.comb += [client.result.valid.eq(queue.o.valid), queue.o.ready.eq(client.result.ready)]
        return m
