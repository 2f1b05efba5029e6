"""The leaves of the merge: fetched, buffered, taken apart."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import fetch_request, fetch_response, sram_response
from .common import heads
from .leaf_feeder import LeafFeeder
from .leaf_requests import feed_leaf
from .leaf_unpacker import LeafUnpacker, unpack_leaf
from .line_store import LineStore

__all__ = ["LeafBuffer"]


class LeafBuffer(Block):
    """Turns descriptors of a job's leaves into the heads that the merge compares.

    ::

        feeds --> LeafFeeder --> sram_request, fetch_request
                      ^ freed
        unpacks -> LeafUnpacker <- LineStore <-- sram_response, fetch_response
                      |
                    heads

    Parameters
    ----------
    radix, lanes, leaf_lines, address_width, line_address_width : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.
    pending : int
        SRAM lines asked for and not yet written.

    Members
    -------
    feeds : In(stream(feed_leaf)), unpacks : In(stream(unpack_leaf))
        The same leaves in the same order, told in two ways.
    sram_request : Out(stream(line)), sram_response : In({valid, line})
    fetch_request : Out(stream(fetch_request)), fetch_response : In({valid, leaf, line})
    heads : In(heads)

    Timing: first head of a leaf in SRAM ``latency`` cycles plus those of the SRAM after its descriptor; then one item
    a cycle from any leaves, or from one leaf alone while ``(leaf_lines - 1) * lanes`` items cover the way there and
    back.
    """

    #: Cycles besides those of the SRAM: leaf (two), visit and request register, line store, item.
    latency = 8

    def __init__(
        self, *, radix: int, lanes: int, leaf_lines: int, address_width: int, line_address_width: int, pending: int
    ) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.leaf_lines = check_power_of_two("Leaf lines", leaf_lines, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        self.pending = check_integer("Pending requests", pending, 1, 4096)
        super().__init__(
            {
                "feeds": In(stream.Signature(feed_leaf(lanes, address_width))),
                "unpacks": In(stream.Signature(unpack_leaf(lanes))),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "fetch_request": Out(stream.Signature(fetch_request(radix, address_width, leaf_lines))),
                "fetch_response": In(fetch_response(radix, lanes)),
                "heads": In(heads(radix // 2, 0)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shape = {"radix": self.radix, "lanes": self.lanes, "leaf_lines": self.leaf_lines}
        m.submodules.feeder = feeder = LeafFeeder(
            **shape, address_width=self.address_width, line_address_width=self.line_address_width
        )
        m.submodules.lines = lines = LineStore(**shape, pending=self.pending)
        m.submodules.unpacker = unpacker = LeafUnpacker(**shape)
        connect(m, flipped(self.feeds), feeder.leaves)
        connect(m, flipped(self.unpacks), unpacker.leaves)
        connect(m, feeder.fetch, flipped(self.fetch_request))
        connect(m, flipped(self.heads), unpacker.heads)
        m.d.comb += [
            feeder.freed.eq(unpacker.freed),
            lines.sram_response.eq(self.sram_response),
            lines.fetch_response.eq(self.fetch_response),
            lines.query.eq(unpacker.query),
            unpacker.arrived.eq(lines.arrived),
            lines.read_enable.eq(unpacker.read_enable),
            lines.read_leaf.eq(unpacker.read_leaf),
            lines.read_slot.eq(unpacker.read_slot),
            unpacker.line.eq(lines.line),
            # A line is asked for when the store has noted whom it is for.
            self.sram_request.payload.eq(feeder.sram.payload.line),
            self.sram_request.valid.eq(feeder.sram.valid & lines.announced.ready),
            lines.announced.payload.eq(feeder.sram.payload.leaf),
            lines.announced.valid.eq(feeder.sram.valid & self.sram_request.ready),
            feeder.sram.ready.eq(self.sram_request.ready & lines.announced.ready),
        ]
        return m
