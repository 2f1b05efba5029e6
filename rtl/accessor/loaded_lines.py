"""Loaded lines: how many lines of its partition a tile's segments take, and whether each lies inside."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import LINE_WIDTH, POSITION_WIDTH

__all__ = ["LoadedLines"]


class LoadedLines(Block):
    """Counts lines of data and of metadata from segment to segment.

    Segments lie one after the other, or with ``planned`` each in lines of its own.

    Parameters
    ----------
    lanes, line_address_width : int
        Nonzeros in a line, a power of two; bits of an SRAM line address.

    Members
    -------
    start : In(1)
        Pulse: a tile begins.
    planned : In(1)
        Constant during a tile: each segment has lines of its own, which begin at ``position``.
    begins : In(1), anew : In(1)
        Pulse, between ``start`` and the first segment: ``metadata_lines`` is known; what was there before has left.
    base : In(line_address_width), data_end : In(line_address_width)
        First line of the partition, and the line where its lines for data end.
    metadata_lines : In(line_address_width + 1), first_line : In(LINE_WIDTH)
        Lines of entries; the first line of the tile's data, counted from the partition's.
    ended : In(1)
        A segment has ended, of which the following are told.
    bumped, beyond, outside : In(1)
        It is bumped; it ends in the FIFO-managed region; there is no such entry.
    total, reach, position, segments : In(POSITION_WIDTH)
        Its nonzeros; those of the tile up to its end; the place of its first one, counted from SRAM line 0; its number, from 1.
    taken_back : In(1)
        Segments in the FIFO-managed region turn out to be bumped.
    flush : In(1)
        Pulse: the load has ended.
    lines : Out(POSITION_WIDTH)
        With ``ended``: lines of data that the tile's segments take up to this one. Combinational.
    misplaced : Out(1), segment : Out(POSITION_WIDTH)
        Pulse, a cycle after ``ended``: with ``planned``, the segment is not inside; which of the tile's it is, from 0.
    occupied : Out(line_address_width + 1)
        Lines in use: up to the highest one since they began anew, or with ``planned`` up to the highest one of the tile.

    Timing
    ------
    ``occupied`` follows two cycles after the last segment; one segment a cycle.
    """

    latency = 2

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        check_power_of_two("Lanes", lanes, 1, 64)
        check_integer("Line address width", line_address_width, 1, 32)
        self.lanes = lanes
        self.line_address_width = line_address_width
        flags = ("start", "planned", "begins", "anew", "ended", "bumped", "beyond", "outside", "taken_back", "flush")
        super().__init__(
            {
                **dict.fromkeys(flags, In(1)),
                "base": In(line_address_width),
                "data_end": In(line_address_width),
                "metadata_lines": In(line_address_width + 1),
                "first_line": In(LINE_WIDTH),
                **dict.fromkeys(("total", "reach", "position", "segments"), In(POSITION_WIDTH)),
                "lines": Out(POSITION_WIDTH),
                "misplaced": Out(1),
                "segment": Out(POSITION_WIDTH),
                "occupied": Out(line_address_width + 1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "s": self.line_address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()
        earlier = Signal(POSITION_WIDTH)  # lines of the segments before, with `planned`
        own = Signal(POSITION_WIDTH)
        stays = self.ended & ~self.bumped
        m.d.comb += [
            own.eq((Mux(self.planned, self.total, self.reach) + (lanes - 1)) >> shift),
            self.lines.eq(earlier + own),
        ]
        with m.If(self.planned & stays):
            m.d.sync += earlier.eq(self.lines)

        # Nonzeros in place: all of them, and those before the first one in the FIFO-managed region.
        filled, regular = Signal(POSITION_WIDTH), Signal(POSITION_WIDTH)
        overflowed = Signal()
        with m.If(stays):
            m.d.sync += filled.eq(self.reach)
            # An empty segment ends nowhere, but it may stand beyond.
            with m.If(~self.beyond & (self.total != 0)):
                m.d.sync += regular.eq(self.reach)
        with m.If(self.taken_back | (self.ended & self.bumped)):
            m.d.sync += overflowed.eq(1)
        with m.If(self.start):
            m.d.sync += [earlier.eq(0), filled.eq(0), regular.eq(0), overflowed.eq(0)]

        # A step behind: where a segment with lines of its own ends, and whether those for data do before.
        line_end = Signal(POSITION_WIDTH)
        last = Signal(data.StructLayout({"ended": 1, "stays": 1, "outside": 1}))
        used, reached = Signal(POSITION_WIDTH), Signal(self.line_address_width + 1)
        m.d.sync += [
            line_end.eq((self.position >> shift) + own),
            last.ended.eq(self.ended & self.planned),
            last.stays.eq(self.planned & stays & (self.total != 0)),
            last.outside.eq(self.outside),
            self.segment.eq(self.segments - 1),
        ]
        m.d.comb += [
            self.misplaced.eq(last.ended & (last.outside | last.stays & (line_end > self.data_end))),
            used.eq(self.metadata_lines + line_end - self.base),
            reached.eq(
                self.metadata_lines + self.first_line + ((Mux(overflowed, regular, filled) + (lanes - 1)) >> shift)
            ),
        ]
        with m.If(self.begins & (self.anew | self.planned)):
            m.d.sync += self.occupied.eq(self.metadata_lines)
        with m.Elif(self.flush & ~self.planned & (self.anew | (reached > self.occupied))):
            m.d.sync += self.occupied.eq(reached)
        with m.Elif(last.stays & (used > self.occupied)):
            m.d.sync += self.occupied.eq(used)
        return m
