"""Where an engine finds the fibers of a tile, and which lines of the SRAM it may use."""

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib.wiring import In, Out

from ..engine.signature import fiber_table, sram_region
from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..storage import word_address
from ..types import COORDINATE_WIDTH, ENTRY_WIDTH, LINE_WIDTH

__all__ = ["FiberPlaces", "connect_places"]


class FiberPlaces(Block):
    """Turns scheme and tile into the engine's fiber table and regions. While C is assembled pieces of its rows are looked up.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width : int
        Bits of a byte address, 8 to 64.
    line_address_width : int
        Bits of an SRAM line address, 1 to 32.

    Members
    -------
    gathered, planned, buffering_b, buffering_c : In(1), b, c : In(sram_region), fifo_lines : In(line_address_width + 1)
        The scheme: whether rows are gathered, and into places of their own, what is kept, the partitions, the size of B's
        FIFO-managed region. Entries of rows that have places of their own are no ring.
    assembling : In(1)
        C is assembled.
    first_fiber : In(COORDINATE_WIDTH), begin_k, entry, metadata_lines : In
        The tile that is computed: its first fiber of B, and where it begins in k; of its ring, as :func:`ring_place`.
    scratch_lines : In(line_address_width + 1)
        Of C's partition the last lines, for scratch fibers.
    pointers, elements : In(address_width)
        Byte addresses of B's arrays.
    tile_positions, finished : In(address_width)
        Byte addresses of C's arrays, as ``c_regions``.
    fifo_base : In(line_address_width)
        First line of B's FIFO-managed region.
    fiber_table : Out(fiber_table)
    b_region, c_region : Out(sram_region)
        For streaming B's fibers: the FIFO-managed region, the whole partition where B is in streaming mode or C is assembled;
        C's partition for partial rows, none where it keeps them.
    c_rows, c_scratch : Out(sram_region)
        C's partition: lines for partial rows, and behind them those for scratch fibers.

    Timing
    ------
    Combinational.
    """

    latency = 0

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        region = sram_region(line_address_width)
        super().__init__(
            {
                **dict.fromkeys(("gathered", "planned", "buffering_b", "buffering_c", "assembling"), In(1)),
                "b": In(region),
                "c": In(region),
                "fifo_lines": In(line_address_width + 1),
                "scratch_lines": In(line_address_width + 1),
                "fifo_base": In(line_address_width),
                "first_fiber": In(COORDINATE_WIDTH),
                "begin_k": In(COORDINATE_WIDTH),
                "entry": In(ENTRY_WIDTH),
                "metadata_lines": In(LINE_WIDTH),
                **dict.fromkeys(("pointers", "elements", "tile_positions", "finished"), In(address_width)),
                "fiber_table": Out(fiber_table(address_width, line_address_width)),
                "b_region": Out(region),
                "c_region": Out(region),
                "c_rows": Out(region),
                "c_scratch": Out(region),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        table, assembling = self.fiber_table, self.assembling
        ringed = self.gathered & ~self.planned & ~assembling
        in_region = self.buffering_b & ~assembling
        entries = self.metadata_lines << (self.lanes - 1).bit_length()
        m.d.comb += [
            table.streaming.eq(~self.buffering_b | assembling),
            table.unit.eq(assembling),
            table.metadata_line.eq(self.b.base + self.b.lines - 1),
            table.entry.eq(Mux(ringed, self.entry, 0)),
            table.entries.eq(Mux(ringed, entries, 0)),
            table.origin.eq(Mux(ringed, self.begin_k, 0)),
            table.pointers.eq(Mux(assembling, self.tile_positions, word_address(self.pointers, self.first_fiber))),
            table.elements.eq(Mux(assembling, self.finished, self.elements)),
            # B's tiles are not needed any more while C is assembled.
            self.b_region.base.eq(Mux(in_region, self.fifo_base, self.b.base)),
            self.b_region.lines.eq(Mux(in_region, self.fifo_lines, self.b.lines)),
            *passed(self.c, self.c_region, "base"),
            self.c_region.lines.eq(Mux(self.buffering_c, 0, self.c_rows.lines)),
            *passed(self.c, self.c_rows, "base"),
            self.c_rows.lines.eq(self.c.lines - self.scratch_lines),
            self.c_scratch.base.eq(self.c.base + self.c_rows.lines),
            self.c_scratch.lines.eq(self.scratch_lines),
        ]
        return m


def connect_places(
    m: Module, places: FiberPlaces, scheme: Any, control: Any, b: Any, regions: Any, fibers: str
) -> None:
    """Tells ``places`` of the scheme, the tile, accessor B and C's regions. ``fibers``: the rank that numbers B's fibers."""
    present = control.present
    m.d.comb += [
        places.buffering_b.eq(scheme.buffering.b),
        places.buffering_c.eq(scheme.buffering.c),
        *passed(scheme.b, places.b, "base lines"),
        *passed(scheme.c, places.c, "base lines"),
        places.first_fiber.eq(present[f"begin_{fibers}"]),
        *passed(present, places, "begin_k"),
        places.entry.eq(present.ring.entry),
        places.metadata_lines.eq(present.ring.metadata),
        places.scratch_lines.eq(scheme.scratch),
        *passed(regions, places, "tile_positions finished"),
        *passed(control, places, "assembling"),
        *passed(b, places, "pointers elements gathered planned fifo_base fifo_lines"),
    ]
