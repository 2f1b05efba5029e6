"""Partition layout: where the data and the metadata entries of a tile go in its partition of the SRAM."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import ENTRY_WIDTH, LINE_WIDTH, POSITION_WIDTH, ring_place

__all__ = ["PartitionLayout"]


class PartitionLayout(Block):
    """Works out a tile's lines and limits: data from the first line up, entries from the last one down, the FIFO region between.

    With ``gathered`` the data go to the lines that ``ring`` names, and the entries follow those of the kept segments.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, a power of two.
    line_address_width : int
    has_ring : bool
        False: a tile is never a window, and the members of that name are missing.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        Pulse: a tile of so many segments begins.
    gathered : In(1), ring : In(ring_place)
        As ``start``.
    base, lines, fifo_lines : In
        The partition, constant from ``start`` on.
    starting : Out(3)
        One, two and three cycles after ``start``.
    limit, regular : Out(POSITION_WIDTH)
        In the second of these cycles: nonzeros that fit, and those of them before the FIFO-managed region.
    metadata_lines, first_line : Out(line_address_width + 1), data_base, top : Out(line_address_width)
        Lines of entries; the first line of data, counted from the partition's, and its address; the line of entry 0.
    origin : Out(POSITION_WIDTH)
        Place of the first nonzero, counted from SRAM line 0.
    fifo_base : Out(line_address_width)
        First line of the FIFO-managed region.
    kept : Out(POSITION_WIDTH)
        With ``start``: segments that are in place.
    chained : Out(1)
        There are such segments.
    place_entry, place_kept : Out(1), entry, last_entry : Out(ENTRY_WIDTH)
        Pulses, one and two cycles after the ``start`` of a window; with the first, the entry of the segment that comes first.
        After entry ``last_entry`` comes entry 0.

    Timing
    ------
    Three cycles from ``start`` to all of it; one tile at a time.
    """

    latency = 3  # of `origin` and `fifo_base`, the last to follow

    def __init__(self, *, lanes: int, line_address_width: int, has_ring: bool) -> None:
        if not isinstance(lanes, int) or lanes < 1 or lanes & (lanes - 1):
            raise ValueError(f"Lanes must be a power of two, not {lanes!r}")
        if not isinstance(line_address_width, int) or line_address_width < 1:
            raise ValueError(f"Line addresses must have 1 bit or more, not {line_address_width!r}")
        self.lanes = lanes
        self.line_address_width = line_address_width
        self.has_ring = bool(has_ring)
        law = line_address_width
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                **({"gathered": In(1), "ring": In(ring_place())} if self.has_ring else {}),
                "base": In(law),
                "lines": In(law + 1),
                "fifo_lines": In(law + 1),
                "starting": Out(3),
                "limit": Out(POSITION_WIDTH),
                "regular": Out(POSITION_WIDTH),
                "metadata_lines": Out(law + 1),
                "first_line": Out(law + 1),
                "data_base": Out(law),
                "top": Out(law),
                "origin": Out(POSITION_WIDTH),
                "fifo_base": Out(law),
                "kept": Out(POSITION_WIDTH),
                "chained": Out(1),
                "place_entry": Out(1),
                "place_kept": Out(1),
                "entry": Out(ENTRY_WIDTH),
                "last_entry": Out(ENTRY_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        data_lines = Signal(self.line_address_width + 1)
        m.d.sync += self.starting.eq(Cat(self.start, self.starting))
        with m.If(self.start):
            m.d.sync += [
                self.metadata_lines.eq((self.rows + (self.lanes - 1)) >> shift),
                self.first_line.eq(0),
                self.last_entry.eq(~0),
                self.top.eq(self.base + self.lines - 1),
            ]
        with m.If(self.starting[0]):
            m.d.sync += [
                data_lines.eq(self.lines - self.metadata_lines),
                self.data_base.eq(self.base + self.first_line),
            ]
        regular_lines = (data_lines - self.fifo_lines)[: self.line_address_width + 1]
        m.d.comb += [self.limit.eq(data_lines << shift), self.regular.eq(regular_lines << shift)]
        with m.If(self.starting[1]):
            m.d.sync += [self.fifo_base.eq(self.base + regular_lines), self.origin.eq(self.data_base << shift)]
        if self.has_ring:
            self._window(m, shift)
        return m

    def _window(self, m: Module, shift: int) -> None:
        """Other places and limits than those of a tile that begins anew."""
        ring = self.ring
        window = Signal()
        lines = Signal(LINE_WIDTH)
        entries = Signal(ENTRY_WIDTH)
        first = Signal(ENTRY_WIDTH + 1)  # entry of the first segment that comes, perhaps one turn too far
        m.d.comb += self.kept.eq(Mux(self.gathered, ring.kept, 0))
        with m.If(self.start):
            m.d.sync += [window.eq(self.gathered), self.chained.eq(self.gathered & (ring.kept != 0))]
            with m.If(self.gathered):
                m.d.sync += [
                    self.metadata_lines.eq(ring.metadata),
                    first.eq(ring.entry + ring.kept),
                    entries.eq(ring.metadata << shift),
                    self.last_entry.eq((ring.metadata << shift) - 1),
                    self.first_line.eq(ring.line),
                    lines.eq(ring.lines),
                ]
        m.d.comb += [
            self.place_entry.eq(window & self.starting[0]),
            self.place_kept.eq(window & self.starting[1]),
            self.entry.eq(Mux(first >= entries, first - entries, first)),
        ]
        with m.If(self.place_kept):
            m.d.comb += [self.limit.eq(lines << shift), self.regular.eq(lines << shift)]
