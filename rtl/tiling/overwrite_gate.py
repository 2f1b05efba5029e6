"""Overwrite gate: when the rows of B of a window may be loaded over those that no tile uses any more."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import COORDINATE_WIDTH

__all__ = ["OverwriteGate"]


class OverwriteGate(Block):
    """Tells when rows of B may be loaded over those of earlier windows: when accessor C has enough rows of C.

    A tile uses its rows of B until its rows of C are out, and these come in order.

    One tile at a time, open at the earliest ``latency`` cycles after the tile's first one.

    Members
    -------
    rows, rows_left : In(COORDINATE_WIDTH)
        Rows of the run; those that accessor C does not have yet.
    next : In(1), begin_i : In(COORDINATE_WIDTH)
        Pulse: in the next cycle ``begin_i`` is another tile's first row.
    earlier : In(1)
        What is loaded lies where the tile before the one in front still has rows: those of all tiles before that one must
        be out, else those of all tiles before the present one. Constant during a tile.
    loading : In(1)
        The present tile is in its loading phase.
    open : Out(1)
        The load may begin; meaningless where not ``loading``.

    Timing
    ------
    ``latency`` cycles, 2; one tile at a time.
    """

    latency = 2

    def __init__(self) -> None:
        number = In(COORDINATE_WIDTH)
        super().__init__(
            {
                "rows": number,
                "rows_left": number,
                "begin_i": number,
                "next": In(1),
                "earlier": In(1),
                "loading": In(1),
                "open": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        begin_before = Signal(COORDINATE_WIDTH)  # of the tile before
        may_miss = Signal(COORDINATE_WIDTH)  # rows of C, when the present tile is loaded
        enough = Signal()
        counted = Signal(2)  # `may_miss`, then `enough` are of the present tile
        with m.If(self.next):
            m.d.sync += begin_before.eq(self.begin_i)
        m.d.sync += [
            may_miss.eq(self.rows - Mux(self.earlier, begin_before, self.begin_i)),
            enough.eq(self.rows_left <= may_miss),
            counted.eq((counted << 1 | 1) & self.loading.replicate(2)),
        ]
        m.d.comb += self.open.eq(counted[1] & enough)
        return m
