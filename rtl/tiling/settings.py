"""The scheme as the registers hold it and as the tiling controller takes it."""

from typing import Any

from amaranth.hdl import Cat, Value
from amaranth.lib import data

from ..types import COORDINATE_WIDTH

__all__ = ["modes", "partition", "scheme", "tiling"]


def partition() -> data.StructLayout:
    """Part of the banked SRAM: ``lines`` lines from ``base`` on."""
    return data.StructLayout({"base": COORDINATE_WIDTH, "lines": COORDINATE_WIDTH})


def scheme() -> data.StructLayout:
    """The tile scheme as the registers hold it. ``gathered``: k is cut in a window of its own for each tile along i.

    ``by_list``, with ``gathered``: k counts places in a list of rows of B. ``coordinates``: bits of those in packed records.
    ``planned``, with ``by_list``: the list says where each row goes, and a column of A names an entry of metadata in its low
    ``entry_bits`` and the place in its tile's window above.
    ``scratch``: of C's lines the last ones, for scratch fibers.
    ``joined``: each k step writes the parts of rows that it makes, and the last one joins them; ``part_words``: words from the
    positions that one k step leaves to those of the next.
    """
    part = partition()
    return data.StructLayout(
        {
            "extent": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tile": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "order": 8,
            "buffering": data.StructLayout({"a": 1, "b": 1, "c": 1}),
            "a": part,
            "b": part,
            "c": part,
            "fifo_b": COORDINATE_WIDTH,
            "scratch": COORDINATE_WIDTH,
            "gathered": 1,
            "by_list": 1,
            "joined": 1,
            "planned": 1,
            "entry_bits": 5,
            "part_words": COORDINATE_WIDTH,
            "coordinates": data.StructLayout(dict.fromkeys("abc", 6)),
        }
    )


def modes(want: Any) -> Value:
    """MODES as the register holds it, of a :func:`scheme`."""
    return Cat(want.buffering, want.gathered, want.by_list, want.joined, want.planned, want.entry_bits)


def tiling(address_width: int) -> data.StructLayout:
    """The scheme as the registers hold it: shapes, tile shapes (at least 1), tile counts, order, tile maps, whether A is kept.

    ``gathered``: ``a_map`` is a table of windows (:class:`.window_table.WindowTable`), one for each tile along i.
    ``planned``: each row of B has a place of its own. ``capacity``: lines of B's partition for their rows and metadata.
    ``joined``: tiles that add nothing are left out but for the last k step.
    """
    return data.StructLayout(
        {
            "extent": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tile": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tiles": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "order": 3,
            "a_map": address_width,
            "b_map": address_width,
            "keep_a": 1,
            "gathered": 1,
            "planned": 1,
            "joined": 1,
            "capacity": COORDINATE_WIDTH,
        }
    )
