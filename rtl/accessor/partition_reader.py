"""Reads lines of a partition of the SRAM through one port: the entries' lines downwards, data lines as they are wanted."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, sram_response

__all__ = ["PartitionReader"]

METADATA_LINES = 2
DATA_LINES = 8


class PartitionReader(Block):
    """Asks for lines of entries in advance, and for data lines by address; each kind comes back on a stream of its own.

    What is asked of the SRAM has room when it comes back: 2 lines of entries and 8 data lines. Lines of entries go first.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    line_address_width : int
        Bits of an SRAM line address, 1 to 32.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH), metadata_line : In(line_address_width)
        Pulse while all lines of the tile before have been taken: entries to read, at least 1, and the line of the first
        ones; the lines below hold those that follow.
    wanted : In(stream)
        Addresses of data lines.
    sram_request, sram_response : a read port of the banked SRAM
        Answers come in the order of the grants.
    entries : Out(stream), lines : Out(stream)
        Lines of entries; data lines, in the order of ``wanted``. ``valid`` and payload come from a queue.

    Timing
    ------
    One cycle from ``wanted`` to ``sram_request``, one from an answer to its stream; one line a cycle.
    """

    latency = 1

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "metadata_line": In(line_address_width),
                "wanted": In(stream.Signature(line_address_width)),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "entries": Out(stream.Signature(64 * lanes)),
                "lines": Out(stream.Signature(64 * lanes)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, law = self.lanes, self.line_address_width
        ask = data.StructLayout({"address": law, "metadata": 1})
        m.submodules.asks = asks = StreamQueue(shape=ask, depth=2)
        m.submodules.kinds = kinds = StreamQueue(shape=1, depth=METADATA_LINES + DATA_LINES)
        m.submodules.metadata = metadata = StreamQueue(shape=64 * lanes, depth=METADATA_LINES)
        m.submodules.lines = lines = StreamQueue(shape=64 * lanes, depth=DATA_LINES)
        connect(m, metadata.o, flipped(self.entries))
        connect(m, lines.o, flipped(self.lines))

        metadata_asked = Signal(range(METADATA_LINES + 1))  # lines asked for or held
        lines_asked = Signal(range(DATA_LINES + 1))
        metadata_left = Signal(POSITION_WIDTH)  # lines not yet asked for
        metadata_at = Signal(law)
        wants_metadata = Signal()
        wants_line = Signal()
        m.d.comb += [
            wants_metadata.eq((metadata_left != 0) & (metadata_asked != METADATA_LINES)),
            wants_line.eq(self.wanted.valid & (lines_asked != DATA_LINES)),
            self.wanted.ready.eq(asks.i.ready & ~wants_metadata & (lines_asked != DATA_LINES)),
            asks.i.valid.eq(wants_metadata | wants_line),
            asks.i.payload.metadata.eq(wants_metadata),
            asks.i.payload.address.eq(Mux(wants_metadata, metadata_at, self.wanted.payload)),
            self.sram_request.valid.eq(asks.o.valid),
            self.sram_request.payload.eq(asks.o.payload.address),
            asks.o.ready.eq(self.sram_request.ready),
            kinds.i.valid.eq(self.sram_request.valid & self.sram_request.ready),
            kinds.i.payload.eq(asks.o.payload.metadata),
            kinds.o.ready.eq(self.sram_response.valid),
            metadata.i.valid.eq(self.sram_response.valid & kinds.o.payload),
            lines.i.valid.eq(self.sram_response.valid & ~kinds.o.payload),
            metadata.i.payload.eq(self.sram_response.line),
            lines.i.payload.eq(self.sram_response.line),
        ]
        asks_metadata = wants_metadata & asks.i.ready
        asks_line = self.wanted.valid & self.wanted.ready
        m.d.sync += [
            metadata_asked.eq(metadata_asked + asks_metadata - (metadata.o.valid & metadata.o.ready)),
            lines_asked.eq(lines_asked + asks_line - (lines.o.valid & lines.o.ready)),
        ]
        with m.If(asks_metadata):
            m.d.sync += [metadata_left.eq(metadata_left - 1), metadata_at.eq(metadata_at - 1)]
        with m.If(self.start):
            m.d.sync += [
                metadata_left.eq((self.rows + (lanes - 1)) >> (lanes - 1).bit_length()),
                metadata_at.eq(self.metadata_line),
            ]
        return m
