"""The loop nest of a run: where each tile begins, how large it is, which ranks the next step moves."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import COORDINATE_WIDTH, POSITION_WIDTH
from .loop_order import step

__all__ = ["TileWalk"]


class TileWalk(Block):
    """Walks the tiles of a run in any inter-tile order; ragged tiles are cut at the edge.

    Members
    -------
    extent, tiles : In(ArrayLayout(COORDINATE_WIDTH, 3)), order : In(3), whole_k : In(1)
        Shape and tile counts along i, j, k; the inter-tile order; k is not cut. Constant during a run.
    side, cells : In(ArrayLayout(COORDINATE_WIDTH, 3)), b_stride : In(POSITION_WIDTH)
        The present tile shape, in coordinates and in cells of the tile maps; what a step along k adds to ``b_index``.
    clear, advance : In(1)
        Goes to the first tile; makes one step, once what is said of the tile holds.
    begins, index, size, next_begin : Out
        Of each rank: first coordinate, first cell, coordinates of the tile; where the next one begins.
    at_begin, at_end, moves : Out(3), last : Out(1)
        Of each rank: the tile is the first, the last along it; the next step moves it. No tile follows.
    a_index, b_index, position_index : Out(POSITION_WIDTH)
        The tile's cell in the maps of A and B; where its positions of C are.

    Timing
    ------
    ``TileWalk.latency`` cycles from ``clear`` or ``advance`` to all that is said of the tile, a sum or a comparison a cycle.
    """

    latency = 3

    def __init__(self) -> None:
        ranks = data.ArrayLayout(COORDINATE_WIDTH, 3)
        super().__init__(
            {
                **{name: In(ranks) for name in ("extent", "tiles", "side", "cells")},
                "order": In(3),
                "whole_k": In(1),
                "b_stride": In(POSITION_WIDTH),
                "clear": In(1),
                "advance": In(1),
                **{name: Out(ranks) for name in ("begins", "index", "size")},
                "next_begin": Out(data.ArrayLayout(COORDINATE_WIDTH + 1, 3)),
                **{name: Out(3) for name in ("at_begin", "at_end", "moves")},
                "last": Out(1),
                **{name: Out(POSITION_WIDTH) for name in ("a_index", "b_index", "position_index")},
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        begin, index, at_end, moves, extent = self.begins, self.index, self.at_end, self.moves, self.extent
        next_index = [Signal(COORDINATE_WIDTH, name=f"next_index_{r}") for r in "ijk"]
        left = [Signal(COORDINATE_WIDTH, name=f"left_{r}") for r in "ijk"]  # coordinates from the tile's first one on
        stepped = step(self.order, list(at_end))
        for r in range(3):
            m.d.sync += [
                self.next_begin[r].eq(begin[r] + self.side[r]),
                next_index[r].eq(index[r] + self.cells[r]),
                left[r].eq(extent[r] - begin[r]),
                self.at_begin[r].eq(begin[r] == 0),
                at_end[r].eq((self.next_begin[r] >= extent[r]) | (self.whole_k if r == 2 else 0)),
                self.size[r].eq(Mux(at_end[r], left[r], self.side[r])),
            ]
        m.d.sync += [moves.eq(Cat(*stepped.moves)), self.last.eq(stepped.last)]

        a_row = Signal(POSITION_WIDTH)  # it * tiles_k
        b_row = Signal(POSITION_WIDTH)  # kt * tiles_j
        c_row = Signal(POSITION_WIDTH)  # jt * (I + tiles_i)
        row_in_c = Signal(COORDINATE_WIDTH)
        c_stride = Signal(COORDINATE_WIDTH)
        m.d.sync += [
            row_in_c.eq(begin[0] + index[0]),
            self.position_index.eq(c_row + row_in_c),
            c_stride.eq(extent[0] + self.tiles[0]),
            self.a_index.eq(a_row + index[2]),
            self.b_index.eq(b_row + index[1]),
        ]
        rows = ((0, a_row, self.tiles[2]), (2, b_row, self.b_stride), (1, c_row, c_stride))
        with m.If(self.clear):
            m.d.sync += [begin.eq(0), index.eq(0), *(row.eq(0) for _, row, _ in rows)]
        with m.If(self.advance):
            for r in range(3):
                with m.If(moves[r]):
                    m.d.sync += begin[r].eq(Mux(at_end[r], 0, self.next_begin[r]))
                    m.d.sync += index[r].eq(Mux(at_end[r], 0, next_index[r]))
            for r, row, stride in rows:
                with m.If(moves[r]):
                    m.d.sync += row.eq(Mux(at_end[r], 0, row + stride))
        return m
