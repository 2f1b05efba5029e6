"""Line slots of the leaves, and the place where lines from SRAM and memory meet."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..leaf_lines import LONG_LEAVES, long_leaf_lines
from ..lib.block import Block
from ..lib.sram import SramBank
from ..lib.stream import StreamQueue
from ..types import fetch_response, line, sram_response
from .common import Sweep, Table, check_power_of_two, is_long

__all__ = ["LineStore"]


class LineStore(Block):
    """Holds a ring of line slots for each leaf, all in one RAM with one write and one read port.

    A leaf has ``leaf_lines`` of them, each of the first ``LONG_LEAVES`` leaves ``long_leaf_lines(leaf_lines)``.

    Lines from memory are written as they come. Lines from SRAM are written in the same cycle too, unless memory has
    it; then they wait in a queue that has room for every SRAM line asked for.

    Parameters
    ----------
    radix, lanes, leaf_lines : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.
    pending : int
        SRAM lines asked for and not yet written.

    Members
    -------
    announced : In(stream(leaf))
        The next SRAM line asked for is for this leaf. Not ``ready``: too many are pending, no line may be asked for.
    sram_response, fetch_response : In({valid, ...})
    query : In(leaf), arrived : Out(pointer)
        Lines of this leaf written so far, modulo twice the slots of a long leaf. The next one goes to slot ``arrived``
        modulo the leaf's slots. ``read_slot``, too, is modulo those.
    read_enable : In(1), read_leaf : In(leaf), read_slot : In(slot), line : Out(line)
        The line one cycle after ``read_enable``.

    Timing
    ------
    One cycle from ``read_enable`` to the line; one line in and one out a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, leaf_lines: int, pending: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.leaf_lines = check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        if not isinstance(pending, int) or pending < 1:
            raise ValueError(f"Pending SRAM lines must be a positive integer, not {pending!r}")
        self.pending = pending
        self.pointer_width = long_leaf_lines(leaf_lines).bit_length()
        super().__init__(
            {
                "announced": In(stream.Signature(range(radix))),
                "sram_response": In(sram_response(lanes)),
                "fetch_response": In(fetch_response(radix, lanes)),
                "query": In(range(radix)),
                "arrived": Out(self.pointer_width),
                "read_enable": In(1),
                "read_leaf": In(range(radix)),
                "read_slot": In(self.pointer_width - 1),
                "line": Out(line(lanes)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.expected = expected = StreamQueue(shape=range(self.radix), depth=self.pending)
        m.submodules.delayed = delayed = StreamQueue(shape=line(self.lanes), depth=self.pending)
        long_leaves = min(LONG_LEAVES, self.radix)
        long_area, area = long_leaves * (1 << self.pointer_width - 1), self.radix * self.leaf_lines
        depth = long_area + (area if self.radix > long_leaves else 0)
        m.submodules.line_slots = line_slots = SramBank(depth=depth, width=64 * self.lanes)
        connect(m, flipped(self.announced), expected.i)

        sram, fetch = self.sram_response, self.fetch_response
        direct = Signal()
        write = Signal()
        leaf = Signal(range(self.radix))
        m.d.comb += [
            direct.eq(~fetch.valid & ~delayed.o.valid),
            delayed.i.valid.eq(sram.valid & ~direct),
            delayed.i.payload.eq(sram.line),
            delayed.o.ready.eq(~fetch.valid),
            expected.o.ready.eq(~fetch.valid & (delayed.o.valid | sram.valid)),
            write.eq(fetch.valid | expected.o.ready),
            leaf.eq(Mux(fetch.valid, fetch.leaf, expected.o.payload)),
        ]

        sweep = Sweep(m, self.radix)
        counts = Table(m, "counts", shape=self.pointer_width, depth=self.radix, sweep=sweep)
        count = counts.read(leaf)
        counts.write(write, leaf, (count + 1)[: self.pointer_width])
        m.d.comb += self.arrived.eq(counts.read(self.query))

        # Both areas are powers of two: the smaller one lies behind the larger one.
        long_base, base = (area, 0) if area >= long_area else (0, long_area)

        def place(line_slot: Value, leaf: Signal) -> Value:
            many = Cat(line_slot[: self.pointer_width - 1], leaf[: (long_leaves - 1).bit_length()])
            few = Cat(line_slot[: self.leaf_lines.bit_length() - 1], leaf)
            return many if depth == long_area else Mux(is_long(leaf), many | long_base, few | base)

        m.d.comb += [
            line_slots.write_mask.eq(write),
            line_slots.write_address.eq(place(count, leaf)),
            line_slots.write_data.eq(Mux(fetch.valid, fetch.line, Mux(delayed.o.valid, delayed.o.payload, sram.line))),
            line_slots.read_enable.eq(self.read_enable),
            line_slots.read_address.eq(place(self.read_slot, self.read_leaf)),
            self.line.eq(line_slots.read_data),
        ]
        return m
