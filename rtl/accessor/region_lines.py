"""Region lines: how many lines of a circular region are in use, by which rows, and what still fits."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH

__all__ = ["RegionLines"]


class RegionLines(Block):
    """Counts the lines of a region that are in use: taken leaf by leaf, freed row by row. One leaf and one row a cycle.

    Counts of free lines stand beside those of lines in use, so that one comparison does.

    Parameters
    ----------
    line_address_width : int
        Bits of an SRAM line address.
    rows : int
        Rows that may be under way.

    Members
    -------
    lines : In
        Of the region. A change shows two cycles after no line is in use and no row is under way.
    taken : In
        Lines that the leaf in front would take.
    enter, placed, last : In(1)
        Pulse: the leaf in front goes on; with it, ``taken`` lines are in use; it is the last one of its row.
    row_done : In(1)
        Pulse: the oldest row's lines are free. ``latency`` cycles later they count as such.
    fits, will_fit : Out(1)
        ``taken`` lines are free; they will be when all other rows have gone. Combinational.
    row_ready : Out(1)
        The row in progress may end.
    used : Out, empty : Out(1)
        Lines in use; none was in the cycle before, nor came one.

    Timing
    ------
    ``latency`` cycles, 3, from a row that is done to its free lines; one leaf and one row a cycle.
    """

    latency = 3

    def __init__(self, *, line_address_width: int, rows: int) -> None:
        self.line_address_width = check_integer("Line address width", line_address_width, 1, POSITION_WIDTH)
        self.rows = check_integer("Rows", rows, 1, 1 << 16)
        inputs = ("enter", "placed", "last", "row_done")
        super().__init__(
            {
                "lines": In(line_address_width + 1),
                "taken": In(line_address_width + 2),
                **{name: In(1) for name in inputs},
                **{name: Out(1) for name in ("fits", "will_fit", "row_ready", "empty")},
                "used": Out(line_address_width + 1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        count = self.line_address_width + 1
        m.submodules.row_lines = row_lines = StreamQueue(shape=count, depth=self.rows, block_memory=self.rows > 32)
        own = Signal(count)  # lines of the row in progress
        own_none = Signal(init=1)  # `own` is 0
        own_free = Signal(count)  # the region's, less the row's own
        free = Signal(count)  # the region's, less those in use
        freed = Signal(count)
        released = Signal(count)
        grown = Signal(count)
        taken, placed, ends = self.taken, self.placed, self.enter & self.last
        m.d.comb += [
            self.fits.eq(taken <= free),
            # With no line of its own yet, a row will have the whole region.
            self.will_fit.eq(own_none | (taken <= own_free)),
            self.row_ready.eq(row_lines.i.ready),
            grown.eq(Mux(placed, own + taken, own)),
            row_lines.i.valid.eq(ends),
            row_lines.i.payload.eq(grown),
            row_lines.o.ready.eq(self.row_done),
        ]
        with m.If(self.enter):
            m.d.sync += [own.eq(Mux(self.last, 0, grown)), own_none.eq(self.last | (own_none & ~placed))]
        with m.If(own_none & ~placed | ends):
            m.d.sync += own_free.eq(self.lines)
        with m.Elif(placed):
            m.d.sync += own_free.eq(own_free - taken)
        # Two registers, since the first one may become the output of a block RAM.
        m.d.sync += [released.eq(Mux(self.row_done, row_lines.o.payload, 0)), freed.eq(released)]
        m.d.sync += self.empty.eq((self.used == 0) & ~placed)
        with m.If(placed):
            m.d.sync += [self.used.eq(self.used - freed + taken), free.eq(free + freed - taken)]
        with m.Elif(self.empty):
            m.d.sync += free.eq(self.lines)
        with m.Else():
            m.d.sync += [self.used.eq(self.used - freed), free.eq(free + freed)]
        return m
