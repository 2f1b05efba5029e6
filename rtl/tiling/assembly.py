"""Assembly pass: asks for the pieces of each row of C that the j tiles left, so that they become one row."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.unit import Unit
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, selection

__all__ = ["AssemblyPass"]


class AssemblyPass(Unit):
    """Joins the parts of each row of C: for row i one selection for each j tile, at the positions that tile ``(it, jt)`` left.

    The word of row i in tile (it, jt) is ``jt * (I + tiles_i) + i + it`` (:func:`rtl.types.tile`, ``position_index``).

    Members
    -------
    rows, tile_rows, tiles_i, tiles_j : In(COORDINATE_WIDTH)
        I, T_i and the tile counts; constant from ``start`` on.
    start : In(1)
    selections : Out(stream)
        ``weight`` is 0: pieces are taken as they are.
    busy : Out(1)

    Timing
    ------
    One cycle from ``start`` to the first selection; one selection a cycle.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "rows": In(COORDINATE_WIDTH),
                "tile_rows": In(COORDINATE_WIDTH),
                "tiles_i": In(COORDINATE_WIDTH),
                "tiles_j": In(COORDINATE_WIDTH),
                "start": In(1),
                "selections": Out(stream.Signature(selection())),
                "busy": Out(1),
            }
        )

    def activity(self) -> Mapping[str, Value]:
        return {"assembly_pass": self.busy}

    def build(self, platform: Any) -> Module:
        m = Module()
        row = Signal(COORDINATE_WIDTH)
        row_in_tile = Signal(COORDINATE_WIDTH)
        tile_j = Signal(COORDINATE_WIDTH)
        first = Signal(POSITION_WIDTH)  # row + it
        index = Signal(POSITION_WIDTH)
        out = self.selections
        m.d.comb += [
            out.valid.eq(self.busy),
            out.payload.index.eq(index),
            out.payload.present.eq(1),
            out.payload.last.eq(tile_j + 1 == self.tiles_j),
        ]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                row.eq(0),
                row_in_tile.eq(0),
                tile_j.eq(0),
                first.eq(0),
                index.eq(0),
            ]
        with m.Elif(out.valid & out.ready):
            with m.If(out.payload.last):
                tile_ends = row_in_tile + 1 == self.tile_rows
                following = first + Mux(tile_ends, 2, 1)
                m.d.sync += [
                    tile_j.eq(0),
                    row.eq(row + 1),
                    row_in_tile.eq(Mux(tile_ends, 0, row_in_tile + 1)),
                    first.eq(following),
                    index.eq(following),
                    self.busy.eq(row + 1 != self.rows),
                ]
            with m.Else():
                m.d.sync += [tile_j.eq(tile_j + 1), index.eq(index + self.rows + self.tiles_i)]
        return m
