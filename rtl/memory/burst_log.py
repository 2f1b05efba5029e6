"""Remembers what there is to know of outstanding bursts, so that a response can be told by its address."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.sram import block_memory

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

    def build(self, platform: Any) -> Module:
        m = Module()
        index_width = max(1, (self.outstanding - 1).bit_length())
        depth = 1 << (self.client_width + index_width)
        # A burst's entry is looked at when its response comes, long after it was written.
        m.submodules.storage = storage = block_memory(shape=self.width, depth=depth)
        write = storage.write_port()
        read = storage.read_port()
        newest = self._indices(m, "newest", self.push_client, self.push, index_width)
        oldest = self._indices(m, "oldest", self.client, self.retire, index_width)
        m.d.comb += [
            write.en.eq(self.push),
            write.addr.eq(Cat(newest, self.push_client)),
            write.data.eq(self.push_entry),
            read.en.eq(1),
            read.addr.eq(Cat(oldest, self.client)),
            self.entry.eq(read.data),
        ]
        return m

    def _indices(self, m: Module, name: str, client: Signal, moves: Signal, width: int) -> Value:
        """One end of all rings: the index of ``client``, which ``moves`` on. A memory, since one client a cycle is looked at."""
        # No reset reaches a memory: a ring that has not moved since then is at zero, whatever the memory says.
        moved = Signal(1 << self.client_width, name=f"{name}_moved")
        m.submodules[name] = storage = memory.Memory(shape=width, depth=1 << self.client_width, init=[])
        write = storage.write_port()
        read = storage.read_port(domain="comb")
        index = Signal(width, name=f"{name}_index")
        m.d.comb += [
            read.addr.eq(client),
            index.eq(Mux(moved.bit_select(client, 1), read.data, 0)),
            write.addr.eq(client),
            write.en.eq(moves),
            write.data.eq(index + 1),
        ]
        for n, bit in enumerate(moved):
            with m.If(moves & (client == n)):
                m.d.sync += bit.eq(1)
        return index
