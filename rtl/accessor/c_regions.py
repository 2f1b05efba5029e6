"""Where C's arrays lie in memory, and who writes where in them."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import data

from ..storage import element_count

__all__ = ["c_regions", "give_regions"]


def c_regions(address_width: int) -> data.StructLayout:
    """Byte addresses of C's arrays in memory and the room that each region has, all bus-aligned."""
    return data.StructLayout(
        {
            "pointers": address_width,
            "elements": address_width,
            "finished": address_width,
            "partial0": address_width,
            "partial1": address_width,
            "tile_positions": address_width,
            "scratch": address_width,
            "elements_bytes": address_width,
            "finished_bytes": address_width,
            "partial_bytes": address_width,
            "scratch_bytes": address_width,
        }
    )


def give_regions(m: Module, accessor: Any, writers: Sequence[Any], final: Value, parity: Value, joined: Value) -> None:
    """Tells the writers of rows, partial rows, scratch fibers and positions of :class:`.c.AccessorC` their regions.

    ``final``: rows are not partial. ``parity``: which partial region is written; the other one is read. ``joined``: the
    first one has the parts of rows, the second one their positions.
    """
    regions, whole_rows = accessor.regions, accessor.whole_rows
    rows, partials, scratch, positions = writers
    m.d.comb += [
        rows.region.eq(Mux(whole_rows, regions.elements, regions.finished)),
        rows.capacity.eq(Mux(whole_rows, regions.elements_bytes, regions.finished_bytes)),
        partials.region.eq(Mux(parity, regions.partial1, regions.partial0)),
        partials.capacity.eq(regions.partial_bytes),
        accessor.partial_region.eq(element_count(Mux(parity | joined, regions.partial0, regions.partial1))),
        scratch.region.eq(regions.scratch),
        scratch.capacity.eq(regions.scratch_bytes),
        positions.region.eq(
            Mux(
                final & whole_rows,
                regions.pointers,
                Mux(~final & joined, regions.partial1, regions.tile_positions),
            )
        ),
        accessor.overflow.eq(Cat(rows.overflow, partials.overflow, scratch.overflow)),
        accessor.needed.eq(Mux(rows.overflow, rows.needed, Mux(partials.overflow, partials.needed, scratch.needed))),
    ]
    if rows.packed is not None:
        m.d.comb += [rows.coordinate_bits.eq(accessor.coordinate_bits), rows.plain.eq(~whole_rows)]
