"""The address pipeline of a Tailors buffer: from a tile index to the place of its entry in the memory."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .sizes import check_address, check_buffer, check_index, summed

__all__ = ["TailorsPlaces"]


class TailorsPlaces(Block):
    """Turns accepted operations into memory addresses. Each carries the pointers of its own moment with it.

    First stage: distance from the least recent entry, go round within the region. Second: go round within the capacity
    and add the base.

    Parameters
    ----------
    entries : int
        Largest capacity, at least 2.
    index_width, address_width : int
        Bits of a tile index; of a memory address.

    Members
    -------
    advance : In(1)
        The operations in the pipeline move on.
    read, update, enter : In(1)
        Operations accepted in this cycle: of the first two at most one. Ignored without ``advance``.
    index : In(index_width), regular, precedes : In(1)
        Tile index of the read or update; whether it is a regular entry; else whether its position lies below the region's
        ``offset``.
    oldest : In(index_width)
        Index of the least recent entry of the region.
    bumped, fifo_place, full, head, anchor, tail : In
        Of :class:`FifoRegion` and :class:`TailorsEntries`, at that moment.
    base, capacity, fifo_entries : In
        First memory address; constant while operations are under way.
    reads, writes : Out(1), read_address, write_address : Out(address_width)
        The operations, two times ``advance`` later.

    Timing
    ------
    Latency 2 advances, one read or update and one entry an advance.
    """

    latency = 2

    def __init__(self, *, entries: int, index_width: int, address_width: int) -> None:
        check_buffer(entries)
        check_index(entries, index_width)
        check_address(entries, address_width)
        self.entries = entries
        self.index_width = index_width
        self.address_width = address_width
        count, place = range(entries + 1), range(entries)
        super().__init__(
            {
                **{name: In(1) for name in ("advance", "read", "update", "enter", "regular", "precedes")},
                "index": In(index_width),
                "oldest": In(index_width),
                "bumped": In(index_width + 1),
                "fifo_place": In(place),
                "full": In(1),
                "head": In(place),
                "anchor": In(place),
                "tail": In(place),
                "base": In(address_width),
                "capacity": In(count),
                "fifo_entries": In(count),
                "reads": Out(1),
                "writes": Out(1),
                "read_address": Out(address_width),
                "write_address": Out(address_width),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        place = range(self.entries)
        wanted = Signal(self.index_width)  # index
        origin = Signal(self.index_width)  # index of the least recent entry, 0 for a regular one
        rotation = Signal(place)  # place of the least recent entry, 0 for a regular one
        in_region = Signal()
        start = [Signal(place, name=f"start{stage}") for stage in (1, 2)]
        reach = Signal(range(self.entries + 1))
        arrives_at = [Signal(place, name=f"write_place{stage}") for stage in (1, 2)]
        reads = [Signal(name=f"read{stage}") for stage in (1, 2)]
        updates = [Signal(name=f"update{stage}") for stage in (1, 2)]
        enters = [Signal(name=f"enter{stage}") for stage in (1, 2)]
        unrolled = Signal(range(2 * self.entries))
        m.d.comb += unrolled.eq(summed(wanted, ~origin, Const(1, 1))[: self.index_width] + rotation)
        rolled_in = unrolled - self.fifo_entries
        # Resets of registers, written so that they need no gates in front of the data.
        with m.If(self.advance & self.regular):
            m.d.sync += origin.eq(0)
        with m.Elif(self.advance):
            m.d.sync += origin.eq(Mux(self.precedes, self.oldest - self.bumped, self.oldest))
        with m.If(self.advance & (self.regular | ~self.full)):
            m.d.sync += rotation.eq(0)
        with m.Elif(self.advance):
            m.d.sync += rotation.eq(self.fifo_place)
        with m.If(self.advance):
            m.d.sync += [
                wanted.eq(self.index),
                in_region.eq(~self.regular),
                start[0].eq(Mux(self.regular, self.head, self.anchor)),
                start[1].eq(start[0]),
                reach.eq(Mux(in_region & ~rolled_in[-1], rolled_in, unrolled)),
                arrives_at[0].eq(self.tail),
                arrives_at[1].eq(arrives_at[0]),
                reads[0].eq(self.read),
                updates[0].eq(self.update),
                enters[0].eq(self.enter),
                *(flags[1].eq(flags[0]) for flags in (reads, updates, enters)),
            ]
        reached = start[1] + reach
        over = reached - self.capacity
        read_place = Mux(over[-1], reached, over)[: len(self.tail)]
        m.d.comb += [
            self.reads.eq(reads[1]),
            self.writes.eq(updates[1] | enters[1]),
            self.read_address.eq(self.base + read_place),
            self.write_address.eq(self.base + Mux(updates[1], read_place, arrives_at[1])),
        ]
        return m
