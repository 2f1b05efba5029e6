"""The present tile shape where it changes during a run: what it may become, and the change of each rank when it moves."""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..regs.map import ORDERS
from ..types import COORDINATE_WIDTH, POSITION_WIDTH
from .shape_changes import Change
from .tuning import tune_config

__all__ = ["TileShape"]


class TileShape(Block):
    """Holds the sides of the tile, which are the scheme's times a power of two, and changes them as it was decided.

    A rank takes its new side when it moves. Counts of tiles and the tile maps are of cells with the smallest sides.

    Members
    -------
    extent, tile, tiles : In(ArrayLayout(COORDINATE_WIDTH, 3)), order : In(3), tune : In(tune_config)
        Shape, tile shape of the scheme, tile counts along i, j, k; inter-tile order. Constant during a run.
    index, at_begin, at_end, moves, next_begin : In
        Of :class:`TileWalk`.
    start, visited, advance : In(1)
        Pulses: a run begins; a tile has been visited or skipped; the walk goes on behind it.
    decided : In(1), change : In(ArrayLayout(Change, 2))
        Pulse: what becomes of T_j and T_k.
    side, cells : Out(ArrayLayout(COORDINATE_WIDTH, 3)), b_stride : Out(POSITION_WIDTH)
        The present shape in coordinates and cells; what a step along k moves the index in B's map by.
    columns_j, columns_k : Out(COORDINATE_WIDTH)
        Cells of the present tile, which is cut at the edge.
    movable, halvable : Out(2), full : Out(1)
        Bit 0 for j, 1 for k: a change would be made and keeps tiles aligned; the side is not the smallest one. Neither j nor
        k is cut short at the edge.
    walked_j : Out(COORDINATE_WIDTH)
        Tiles along j, valid when the last tile has been taken.
    event_adjust : Out(1)
        The shape changes.

    Timing
    ------
    Sides change in the cycle after ``advance``; what is said of the tile follows :class:`TileWalk` by two cycles.
    """

    def __init__(self) -> None:
        ranks = data.ArrayLayout(COORDINATE_WIDTH, 3)
        super().__init__(
            {
                **{name: In(ranks) for name in ("extent", "tile", "tiles", "index")},
                "order": In(3),
                "tune": In(tune_config()),
                **{name: In(3) for name in ("at_begin", "at_end", "moves")},
                "next_begin": In(data.ArrayLayout(COORDINATE_WIDTH + 1, 3)),
                **{name: In(1) for name in ("start", "visited", "advance", "decided")},
                "change": In(data.ArrayLayout(Change, 2)),
                "side": Out(ranks),
                "cells": Out(ranks),
                "b_stride": Out(POSITION_WIDTH),
                "columns_j": Out(COORDINATE_WIDTH),
                "columns_k": Out(COORDINATE_WIDTH),
                "movable": Out(2),
                "halvable": Out(2),
                "full": Out(1),
                "walked_j": Out(COORDINATE_WIDTH),
                "event_adjust": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        at_begin, at_end, moves = self.at_begin, self.at_end, self.moves
        wanted = [Signal(Change, name=f"wanted_{r}") for r in "jk"]
        sides = [Signal(COORDINATE_WIDTH, name=f"side_{r}") for r in "jk"]
        cells = [Signal(COORDINATE_WIDTH, name=f"cells_{r}") for r in "jk"]
        cells_to_end = [Signal(COORDINATE_WIDTH, name=f"cells_to_end_{r}") for r in "jk"]
        tile_j = Signal(COORDINATE_WIDTH)
        for n, r in enumerate((1, 2)):
            m.d.comb += [self.side[r].eq(sides[n]), self.cells[r].eq(cells[n])]
            m.d.sync += cells_to_end[n].eq(self.tiles[r] - self.index[r])
        m.d.comb += [self.side[0].eq(self.tile[0]), self.cells[0].eq(1)]
        m.d.sync += [
            self.columns_j.eq(Mux(at_end[1], cells_to_end[0], cells[0])),
            self.columns_k.eq(Mux(at_end[2], cells_to_end[1], cells[1])),
        ]
        cut = {name: ~(at_end[r] & at_begin[r]) for r, name in enumerate("ijk")}

        def cut_outside(rank: str) -> Value:
            """A rank that ``order`` has outside ``rank`` is cut."""
            outside = []
            for other in "ijk".replace(rank, ""):
                flags = [name.index(other) < name.index(rank) for name in ORDERS]
                outside.append(Array(Const(int(flag), 1) for flag in flags)[self.order] & cut[other])
            return outside[0] | outside[1]

        ragged = Signal(2)
        # Cuts along j must be the same for all partial rows, so j may change only where it is swept once. A tile has been
        # looked up by the time these are asked for, so that registers hold them.
        m.d.sync += [
            self.movable[0].eq(cut["j"] & ~cut_outside("j")),
            self.movable[1].eq(cut["k"] | cut_outside("k")),
            self.full.eq(~ragged.any()),
        ]
        for n, r in enumerate((1, 2)):
            m.d.sync += self.halvable[n].eq(cells[n] != 1)
            m.d.sync += ragged[n].eq(at_end[r] & ~at_begin[r] & (self.next_begin[r] != self.extent[r]))

        def scale(what: Any, change: Value) -> None:
            with m.Switch(change):
                with m.Case(Change.DOUBLE):
                    m.d.sync += what.eq(what << 1)
                with m.Case(Change.HALVE):
                    m.d.sync += what.eq(what >> 1)

        with m.If(self.decided):
            m.d.sync += [wanted[n].eq(self.change[n]) for n in range(2)]
        with m.If(self.advance):
            with m.If(moves[1]):
                m.d.sync += tile_j.eq(Mux(at_end[1], 0, tile_j + 1))
            for n, r in enumerate((1, 2)):
                with m.If(moves[r]):
                    m.d.sync += wanted[n].eq(Change.STAY)
                    scale(sides[n], wanted[n])
                    scale(cells[n], wanted[n])
                    if r == 2:
                        scale(self.b_stride, wanted[n])
                    with m.If(wanted[n] != Change.STAY):
                        m.d.comb += self.event_adjust.eq(1)
        with m.If(self.visited):
            m.d.sync += self.walked_j.eq(tile_j + 1)
        with m.If(self.start):
            level = [Mux(self.tune.enable, self.tune.level[n], 0) for n in range(2)]
            m.d.sync += [tile_j.eq(0), self.b_stride.eq(self.tiles[1] << level[1])]
            for n, r in enumerate((1, 2)):
                m.d.sync += [wanted[n].eq(Change.STAY), sides[n].eq(self.tile[r]), cells[n].eq(1 << level[n])]
        return m
