"""Leaf sizer: how many lines cover a leaf, and whether it is to be streamed at all."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue, StreamRegister
from ..types import POSITION_WIDTH, leaf_item

__all__ = ["LeafSizer", "sized_leaf"]


def sized_leaf(address_width: int, line_address_width: int) -> data.StructLayout:
    """An item, the ``lines`` that cover its leaf, whether these are ``wanted`` in the region, and whether the leaf is short."""
    return data.StructLayout(
        {"item": leaf_item(address_width), "wanted": 1, "short": 1, "lines": line_address_width + 1}
    )


class LeafSizer(Block):
    """Counts the lines that cover each leaf, and says whether they are wanted in the region. One a cycle, in order.

    Wanted are leaves that lie in memory, are not empty, and not longer than the region.

    Parameters
    ----------
    lanes, address_width, line_address_width : int
        As those of :class:`.segment_stream.SegmentStreamer`.
    short_lines : int
        Lines of the longest leaf that is short.

    Members
    -------
    leaves : In(stream(leaf_item)), sized : Out(stream(sized_leaf))
        ``latency`` cycles later at the earliest. ``lines`` and ``short`` hold where ``wanted``.
    units : In(1), lines : In
        ``unit`` leaves are wanted as well; lines of the region.
    idle : Out(1)
        No leaf is inside.

    Timing
    ------
    ``latency`` cycles, 2; one leaf a cycle.
    """

    latency = 2

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int, short_lines: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, POSITION_WIDTH)
        self.short_lines = check_integer("Lines of a short leaf", short_lines, 0, 1 << 16)
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "units": In(1),
                "lines": In(line_address_width + 1),
                "sized": Out(stream.Signature(sized_leaf(address_width, line_address_width))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        m.submodules.came = came = StreamRegister(shape=self.leaves.payload.shape())
        m.submodules.known = known = StreamQueue(shape=self.sized.payload.shape(), depth=2)
        item, leaf = came.o.payload, came.o.payload.leaf
        covering = Signal(POSITION_WIDTH + 1 - shift)
        # Bits of the numbers of lines that a leaf's is compared with.
        of_region = max(self.line_address_width + 1, self.short_lines.bit_length())
        wanted = item.present & leaf.in_memory & (~leaf.unit | self.units) & (leaf.length != 0)
        m.d.comb += [
            came.i.valid.eq(self.leaves.valid),
            came.i.payload.eq(self.leaves.payload),
            self.leaves.ready.eq(came.i.ready),
            covering.eq(
                leaf.length[shift:] + ((leaf.length[:shift] + leaf.position[:shift] + (self.lanes - 1)) >> shift)
            ),
            known.i.valid.eq(came.o.valid),
            came.o.ready.eq(known.i.ready),
            known.i.payload.item.eq(item),
            known.i.payload.lines.eq(covering),
            known.i.payload.short.eq(~covering[of_region:].any() & (covering[:of_region] <= self.short_lines)),
            known.i.payload.wanted.eq(wanted & ~covering[of_region:].any() & (covering[:of_region] <= self.lines)),
            self.sized.valid.eq(known.o.valid),
            self.sized.payload.eq(known.o.payload),
            known.o.ready.eq(self.sized.ready),
            self.idle.eq(~came.o.valid & ~known.o.valid),
        ]
        return m
