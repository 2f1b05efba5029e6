"""Tiling controller: walks the tiles in any inter-tile order and says of each where it begins and what changed."""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, read_request, tile
from .loop_order import ORDERS, rank_at, step
from .tile_map import TileMap

__all__ = ["POSITION_RULES", "TilingController", "tiling"]

# Where a tile's begin positions come from when tiles before it were skipped. "once": the rank is swept once in the whole
# run, and the position array starts as a copy of the row pointers. "swept": one set of rows is swept at a time, so one
# flag knows whether the sweep has left positions. "interleaved": sweeps of many rows run side by side and start again; there
# the first tile of each later sweep is visited even if it is empty, since it leaves the positions that the others need.
#
# Streamed, a tile of A moves its rows' positions on at the last visit before another tile of these rows follows. Kept on
# chip it does so when it is loaded, so at its load it must be known that the tile will not be loaded again: with j inside k
# that holds when all its visits follow one another (j innermost, or i not cut). Otherwise positions may stay behind, which
# "once" allows. With j outside k each visit is alone, and one that finds its tile in place finds its positions too.
POSITION_RULES = {
    "A": {"ijk": "swept", "ikj": "swept", "jik": "swept", "jki": "interleaved", "kij": "once", "kji": "once"},
    "B": {"ijk": "interleaved", "ikj": "swept", "jik": "once", "jki": "once", "kij": "swept", "kji": "swept"},
}


def tiling(address_width: int) -> data.StructLayout:
    """The scheme as the registers hold it: shapes, tile shapes (at least 1), tile counts, order, tile maps, whether A is kept."""
    return data.StructLayout(
        {
            "extent": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tile": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tiles": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "order": 3,
            "a_map": address_width,
            "b_map": address_width,
            "keep_a": 1,
        }
    )


class TilingController(Block):
    """Begin, T and Change for each tile (HYTE section 6.2), with ragged edges cut and empty tiles left out.

    A tile whose A or B part is empty (by the tile maps, bit ``it * tiles_k + kt`` and ``kt * tiles_j + jt``) adds nothing.
    With k innermost it is skipped; otherwise, and always in the last k step, it is announced with ``carry`` set, since
    partial rows must move on with the others of their k step and each row of C must end. Begin positions stay right
    across skipped tiles (``POSITION_RULES``); the position arrays start as copies of the row pointers.

    Members
    -------
    config : In(tiling)
        Constant from ``start`` until the last tile has been taken.
    start : In(1)
        Begins with the first tile.
    tiles : Out(stream)
        ``last`` is set on the final one, which is never skipped.
    read_request, read_data : two client ports of the memory engine, for A's and B's map
    event_tile, event_skip : Out(1)
        A tile has been visited; it has been skipped.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = lanes
        self.address_width = address_width
        super().__init__(
            {
                "config": In(tiling(address_width)),
                "start": In(1),
                "tiles": Out(stream.Signature(tile())),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(64 * lanes)).array(2),
                "event_tile": Out(1),
                "event_skip": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.a_map = a_map = TileMap(lanes=self.lanes, address_width=self.address_width)
        m.submodules.b_map = b_map = TileMap(lanes=self.lanes, address_width=self.address_width)
        for n, lookup in enumerate((a_map, b_map)):
            connect(m, flipped(self.read_request[n]), lookup.read_request)
            connect(m, flipped(self.read_data[n]), lookup.read_data)

        begin = [Signal(COORDINATE_WIDTH, name=f"begin_{r}") for r in "ijk"]
        change = [Signal(2, name=f"change_{r}") for r in "ijk"]
        index = [Signal(COORDINATE_WIDTH, name=f"index_{r}") for r in "ijk"]
        a_row = Signal(POSITION_WIDTH)  # it * tiles_k
        b_row = Signal(POSITION_WIDTH)  # kt * tiles_j
        c_row = Signal(POSITION_WIDTH)  # jt * (I + tiles_i)

        at_end = [Signal(name=f"at_end_{r}") for r in "ijk"]
        for r in range(3):
            m.d.comb += at_end[r].eq(begin[r] + config.tile[r] >= config.extent[r])
        moves = step(config.order, at_end)

        innermost = rank_at(2, config.order)
        k_innermost = innermost == 2
        a_rule = POSITION_RULES["A"]
        b_rule = POSITION_RULES["B"]

        def of_order(flags: list[bool]) -> Value:
            return Array(Const(int(flag), 1) for flag in flags)[config.order]

        j_outside_k = of_order([name.index("j") < name.index("k") for name in ORDERS])
        b_reloaded = of_order([name == "jik" for name in ORDERS])
        j_innermost = of_order([name[2] == "j" for name in ORDERS])
        a_stays = config.keep_a & (j_innermost | (config.tile[0] >= config.extent[0]))
        a_single = of_order([a_rule[name] == "swept" for name in ORDERS])
        b_single = of_order([b_rule[name] == "swept" for name in ORDERS])
        a_forced = of_order([a_rule[name] == "interleaved" for name in ORDERS])
        b_forced = of_order([b_rule[name] == "interleaved" for name in ORDERS])
        a_known = Signal()  # this sweep over k has left begin positions
        b_known = Signal()  # this sweep over j has left begin positions

        partial_exists = Signal()  # with k innermost: an earlier k step of this (i, j) was not skipped
        k_before = Signal(COORDINATE_WIDTH)
        k_known = Signal()
        empty = Signal()
        skip = Signal()
        must = Signal()
        out = self.tiles.payload
        for r, name in enumerate("ijk"):
            left = config.extent[r] - begin[r]
            m.d.comb += [
                out[f"begin_{name}"].eq(begin[r]),
                out[f"size_{name}"].eq(Mux(at_end[r], left, config.tile[r])),
                out[f"change_{name}"].eq(change[r]),
            ]
        m.d.comb += [
            must.eq(
                (a_forced & (begin[2] == 0) & (begin[1] != 0) & ~at_end[2])
                | (b_forced & (begin[1] == 0) & (begin[0] != 0) & ~at_end[1])
            ),
            empty.eq(((a_map.known & ~a_map.occupied) | (b_map.known & ~b_map.occupied)) & ~must),
            skip.eq(empty & k_innermost & ~at_end[2]),
            out.from_pointers_a.eq((begin[2] == 0) | (a_single & ~a_known)),
            out.from_pointers_b.eq((begin[1] == 0) | (b_single & ~b_known)),
            out.last_k.eq(at_end[2]),
            out.whole_j.eq(config.tile[1] >= config.extent[1]),
            out.whole_k.eq(config.tile[2] >= config.extent[2]),
            out.carry.eq(empty),
            out.partial_in.eq(Mux(k_innermost, partial_exists, begin[2] != 0)),
            out.k_step.eq(~k_known | (k_before != begin[2])),
            out.advance_a.eq(~at_end[2] & (j_outside_k | at_end[1] | a_stays)),
            out.advance_b.eq(~at_end[1] & (~b_reloaded | at_end[0] | out.whole_k)),
            out.last.eq(moves.last),
            out.position_index.eq(c_row + begin[0] + index[0]),
        ]
        advance = Signal()
        m.d.comb += [
            a_map.map.eq(config.a_map),
            b_map.map.eq(config.b_map),
            a_map.index.eq(a_row + index[2]),
            b_map.index.eq(b_row + index[1]),
        ]
        with m.FSM():
            with m.State("IDLE"):
                for r in range(3):
                    m.d.sync += [begin[r].eq(0), index[r].eq(0), change[r].eq(2)]
                m.d.sync += [a_row.eq(0), b_row.eq(0), c_row.eq(0), partial_exists.eq(0), k_known.eq(0)]
                m.d.sync += [a_known.eq(0), b_known.eq(0)]
                m.d.comb += [a_map.clear.eq(1), b_map.clear.eq(1)]
                with m.If(self.start):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += [a_map.ask.eq(1), b_map.ask.eq(1)]
                m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(a_map.done & b_map.done):
                    m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.tiles.valid.eq(~skip)
                with m.If(skip | self.tiles.ready):
                    m.d.comb += [advance.eq(1), self.event_tile.eq(1), self.event_skip.eq(empty)]
                    m.next = "ASK"
                    with m.If(moves.last):
                        m.next = "IDLE"
        with m.If(advance):
            for r in range(3):
                with m.If(moves.moves[r]):
                    m.d.sync += [
                        begin[r].eq(Mux(at_end[r], 0, begin[r] + config.tile[r])),
                        index[r].eq(Mux(at_end[r], 0, index[r] + 1)),
                        change[r].eq(Mux(at_end[r], 2, 1)),
                    ]
                with m.Else():
                    m.d.sync += change[r].eq(0)
            for r, row, stride in (
                (0, a_row, config.tiles[2]),
                (2, b_row, config.tiles[1]),
                (1, c_row, config.extent[0] + config.tiles[0]),
            ):
                with m.If(moves.moves[r]):
                    m.d.sync += row.eq(Mux(at_end[r], 0, row + stride))
            with m.If(at_end[2] & moves.moves[2]):
                m.d.sync += a_known.eq(0)
            with m.Elif(~empty & out.advance_a):
                m.d.sync += a_known.eq(1)
            with m.If((at_end[1] & moves.moves[1]) | moves.moves[2]):
                m.d.sync += b_known.eq(0)
            with m.Elif(~empty & out.advance_b):
                m.d.sync += b_known.eq(1)
            with m.If(moves.moves[0] | moves.moves[1]):
                m.d.sync += partial_exists.eq(0)
            with m.Elif(~skip):
                m.d.sync += partial_exists.eq(1)
            with m.If(~skip):
                m.d.sync += [k_before.eq(begin[2]), k_known.eq(1)]
        return m
