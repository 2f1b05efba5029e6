"""Remembers what there is to know of outstanding bursts, so that a response can be told by its address."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block

__all__ = ["BurstLog"]


class BurstLog(Block):
    """Remembers the bursts in flight: a ring of entries for each client, all in one memory.

    Responses of a client come in order.

    Parameters
    ----------
    clients : int
        At least 1.
    outstanding : int
        Most bursts in the log at once.
    width : int
        Bits of an entry: the burst's line address and whatever else the parent wants back.

    Members
    -------
    push : In(1), push_client, push_entry
        A burst is issued. The parent keeps the count within ``outstanding``.
    client : In, retire : In(1)
        Whose oldest burst to look up; ``retire`` also drops it.
    entry : Out(width)
        The oldest entry of the ``client`` of the cycle before.

    Timing
    ------
    One cycle from ``client`` to ``entry``; one burst in and one out a cycle.
    """

    latency = 1

    def __init__(self, *, clients: int, outstanding: int, width: int) -> None:
        if clients < 1 or outstanding < 1:
            raise ValueError(f"Burst log needs a client and a burst, not {clients!r} and {outstanding!r}")
        self.clients = clients
        self.outstanding = outstanding
        self.width = width
        self.client_width = max(1, (clients - 1).bit_length())
        super().__init__(
            {
                "push": In(1),
                "push_client": In(self.client_width),
                "push_entry": In(width),
                "client": In(self.client_width),
                "retire": In(1),
                "entry": Out(width),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"n": self.clients, "o": self.outstanding, "a": self.width}

    def build(self, platform: Any) -> Module:
        m = Module()
        index_width = max(1, (self.outstanding - 1).bit_length())
        depth = 1 << (self.client_width + index_width)
        m.submodules.storage = storage = memory.Memory(shape=self.width, depth=depth, init=[])
        write = storage.write_port()
        read = storage.read_port()
        # Padded to a power of two, so that no identifier from the bus can index past the end.
        newest = Array(Signal(index_width, name=f"newest{n}") for n in range(1 << self.client_width))
        oldest = Array(Signal(index_width, name=f"oldest{n}") for n in range(1 << self.client_width))
        m.d.comb += [
            write.en.eq(self.push),
            write.addr.eq(Cat(newest[self.push_client], self.push_client)),
            write.data.eq(self.push_entry),
            read.en.eq(1),
            read.addr.eq(Cat(oldest[self.client], self.client)),
            self.entry.eq(read.data),
        ]
        for n in range(self.clients):
            with m.If(self.push & (self.push_client == n)):
                m.d.sync += newest[n].eq(newest[n] + 1)
            with m.If(self.retire & (self.client == n)):
                m.d.sync += oldest[n].eq(oldest[n] + 1)
        return m
