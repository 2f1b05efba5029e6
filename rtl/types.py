"""Shapes shared by the blocks: elements, lines and the descriptors that travel between them.

An *element* is one stored nonzero: coordinate and value, 8 bytes. A *line* is one bus beat or one word of the banked
SRAM: ``lanes`` elements, lane 0 in the low bits. First struct field in the low bits throughout.
"""

from amaranth.hdl import unsigned
from amaranth.lib import data

__all__ = ["COORDINATE_WIDTH", "ELEMENT_BYTES", "POSITION_WIDTH", "VALUE_WIDTH", "Element", "fiber_word", "leaf", "line"]

COORDINATE_WIDTH = 32
VALUE_WIDTH = 32
POSITION_WIDTH = 32
ELEMENT_BYTES = 8


class Element(data.Struct):
    """One nonzero of a fiber."""

    coordinate: unsigned(COORDINATE_WIDTH)
    value: unsigned(VALUE_WIDTH)


def line(lanes: int) -> data.ArrayLayout:
    """``lanes`` elements side by side: one bus beat, one SRAM word."""
    return data.ArrayLayout(Element, lanes)


def fiber_word(lanes: int) -> data.StructLayout:
    """A piece of a fiber: elements packed from lane 0, how many of them hold (0 to ``lanes``), and whether the fiber ends.

    Only the word with ``last`` set may hold fewer than ``lanes`` elements; an empty fiber is one word with
    ``count = 0`` and ``last = 1``.
    """
    return data.StructLayout({"line": line(lanes), "count": range(lanes + 1), "last": 1})


def leaf(address_width: int) -> data.StructLayout:
    """One leaf of a merge job: which fiber segment to read, where, and what to scale it by.

    ``in_memory`` selects memory (``position`` counts elements from byte address 0) or the banked SRAM (``position``
    counts elements from SRAM line 0). ``length`` is in elements; zero only where a job has this one leaf and no work.
    ``unit`` passes the segment's values unscaled (partial results re-entering); otherwise each is multiplied by ``weight``.
    ``last`` ends the job.
    """
    return data.StructLayout(
        {
            "in_memory": 1,
            "unit": 1,
            "last": 1,
            "position": address_width - 3,
            "length": POSITION_WIDTH,
            "weight": VALUE_WIDTH,
        }
    )
