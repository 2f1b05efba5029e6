"""Accessor of A: streams the tile's elements row by row, each selecting a fiber of B."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, read_request, segment_word, tile, write_beat, write_request
from .fiber_reader import FiberReader
from .lookup import selection
from .unroller import Unroller

__all__ = ["AccessorA"]


class AccessorA(Block):
    """Fetches A's part of a tile (``T_i x T_k``) in streaming mode and hands out one selection for each element.

    Members
    -------
    tile : In(stream)
        Every tile, also those that only carry partial results: these give ``size_i`` empty rows.
    pointers, positions, elements : In(address_width)
    selections : Out(stream)
        ``index`` is k relative to the tile's begin; the last one of each row has ``last`` set.
    read_request, read_data, write_request, write_data
        Client ports of the memory engine, as :class:`FiberReader`.
    idle : Out(1)
    """

    def __init__(self, *, lanes: int, address_width: int, burst_beats: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "tile": In(stream.Signature(tile())),
                "pointers": In(address_width),
                "positions": In(address_width),
                "elements": In(address_width),
                "selections": Out(stream.Signature(selection())),
                "read_request": Out(stream.Signature(read_request(address_width))).array(4),
                "read_data": In(stream.Signature(64 * lanes)).array(4),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "b": self.burst_beats}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.reader = reader = FiberReader(
            lanes=self.lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        m.submodules.words = words = StreamQueue(shape=segment_word(self.lanes), depth=4)
        m.submodules.unroller = unroller = Unroller(lanes=self.lanes)
        for n in range(4):
            connect(m, flipped(self.read_request[n]), reader.read_request[n])
            connect(m, flipped(self.read_data[n]), reader.read_data[n])
        connect(m, flipped(self.write_request), reader.write_request)
        connect(m, flipped(self.write_data), reader.write_data)
        connect(m, reader.words, words.i)
        connect(m, words.o, unroller.words)

        want = self.tile.payload
        empty_rows = Signal(POSITION_WIDTH)
        base = Signal(COORDINATE_WIDTH)
        idle = Signal()
        rows = reader.tile.payload
        m.d.comb += [
            idle.eq(reader.idle & (empty_rows == 0) & (words.level == 0) & ~unroller.elements.valid),
            self.idle.eq(idle),
            reader.pointers.eq(self.pointers),
            reader.positions.eq(self.positions),
            reader.elements.eq(self.elements),
            reader.limit.eq((1 << POSITION_WIDTH) - 1),
            reader.regular.eq((1 << POSITION_WIDTH) - 1),
            self.tile.ready.eq(idle),
            reader.tile.valid.eq(self.tile.valid & idle & ~want.carry),
            rows.row.eq(want.begin_i),
            rows.rows.eq(want.size_i),
            rows.low.eq(want.begin_k),
            rows.high.eq(want.begin_k + want.size_k),
            rows.whole.eq(want.whole_k),
            rows.from_pointers.eq(want.from_pointers_a),
            rows.advance.eq(want.advance_a),
        ]
        with m.If(self.tile.valid & self.tile.ready):
            m.d.sync += base.eq(want.begin_k)
            with m.If(want.carry):
                m.d.sync += empty_rows.eq(want.size_i)

        item = unroller.elements
        out = self.selections
        with m.If(empty_rows != 0):
            m.d.comb += [out.valid.eq(1), out.payload.last.eq(1)]
            with m.If(out.ready):
                m.d.sync += empty_rows.eq(empty_rows - 1)
        with m.Else():
            m.d.comb += [
                out.valid.eq(item.valid),
                item.ready.eq(out.ready),
                out.payload.index.eq(item.payload.element.coordinate - base),
                out.payload.weight.eq(item.payload.element.value),
                out.payload.present.eq(item.payload.present),
                out.payload.last.eq(item.payload.last),
            ]
        return m
