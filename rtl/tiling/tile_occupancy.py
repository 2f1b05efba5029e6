"""Whether the parts of A and B of a tile are empty, by the tile maps or by the table of windows."""

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, read_request
from .tile_map import TileMap
from .window_table import WindowTable, window

__all__ = ["TileOccupancy"]


class TileOccupancy(Block):
    """Looks a tile up in A's and B's map, or in the table of windows in the place of A's map.

    Parameters
    ----------
    lanes, address_width : int
        As :class:`TileMap`.
    ranged : bool
        A tile is a rectangle of cells of the maps.

    Members
    -------
    gathered : In(1), a_map, b_map : In(address_width)
        ``a_map`` is the table of windows, and there are no maps; byte addresses, 0 where there is none. Constant during a run.
    tiles_j, tiles_k, columns_j, columns_k : In(COORDINATE_WIDTH)
        With ``ranged``: cells of the maps and of the tile along j and k.
    index, a_index, b_index : In
        Of the window; of the tile's first cell in either map. Constant from ``ask`` on.
    ask, clear : In(1)
        Pulses: look the tile up; forget what was read.
    done, empty : Out(1)
        Both maps have answered; a part is known to be empty.
    window_done : Out(1), window : Out(window)
        The window is there.
    read_request : Out(stream).array(2), read_data : In(stream).array(2)
        Client ports of the memory engine. 0: A's map or the windows; 1: B's map.

    Timing
    ------
    That of :class:`TileMap` and :class:`WindowTable`.
    """

    def __init__(self, *, lanes: int, address_width: int, ranged: bool) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.ranged = bool(ranged)
        cells = ("tiles_j", "tiles_k", "columns_j", "columns_k") if self.ranged else ()
        super().__init__(
            {
                "gathered": In(1),
                "a_map": In(address_width),
                "b_map": In(address_width),
                **{name: In(COORDINATE_WIDTH) for name in cells},
                "index": In(COORDINATE_WIDTH),
                "a_index": In(POSITION_WIDTH),
                "b_index": In(POSITION_WIDTH),
                "ask": In(1),
                "clear": In(1),
                "done": Out(1),
                "empty": Out(1),
                "window_done": Out(1),
                "window": Out(window()),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(64 * lanes)).array(2),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        maps = {"lanes": self.lanes, "address_width": self.address_width, "ranged": self.ranged}
        m.submodules.a_map = a_map = TileMap(**maps)
        m.submodules.b_map = b_map = TileMap(**maps)
        m.submodules.window_table = table = WindowTable(lanes=self.lanes, address_width=self.address_width)
        connect(m, flipped(self.read_request[1]), b_map.read_request)
        connect(m, flipped(self.read_data[1]), b_map.read_data)
        # A's map and the windows are never asked for in the same run.
        request, answer = self.read_request[0], self.read_data[0]
        m.d.comb += [
            request.valid.eq(a_map.read_request.valid | table.read_request.valid),
            request.payload.eq(Mux(self.gathered, table.read_request.payload, a_map.read_request.payload)),
            a_map.read_request.ready.eq(request.ready),
            table.read_request.ready.eq(request.ready),
            a_map.read_data.valid.eq(answer.valid & ~self.gathered),
            table.read_data.valid.eq(answer.valid & self.gathered),
            a_map.read_data.payload.eq(answer.payload),
            table.read_data.payload.eq(answer.payload),
            answer.ready.eq(Mux(self.gathered, table.read_data.ready, a_map.read_data.ready)),
        ]
        m.d.comb += [
            a_map.map.eq(Mux(self.gathered, 0, self.a_map)),
            b_map.map.eq(Mux(self.gathered, 0, self.b_map)),  # its tiles are none of these
            table.table_address.eq(self.a_map),
            table.index.eq(self.index),
            a_map.index.eq(self.a_index),
            b_map.index.eq(self.b_index),
            a_map.ask.eq(self.ask),
            b_map.ask.eq(self.ask),
            table.ask.eq(self.ask & self.gathered),
            *(block.clear.eq(self.clear) for block in (a_map, b_map, table)),
            self.done.eq(a_map.done & b_map.done),
            self.empty.eq((a_map.known & ~a_map.occupied) | (b_map.known & ~b_map.occupied)),
            self.window_done.eq(table.done),
            self.window.eq(table.window),
        ]
        if self.ranged:
            m.d.comb += [
                a_map.rows.eq(1),
                a_map.columns.eq(self.columns_k),
                a_map.stride.eq(self.tiles_k),
                b_map.rows.eq(self.columns_k),
                b_map.columns.eq(self.columns_j),
                b_map.stride.eq(self.tiles_j),
            ]
        return m
