"""Shapes shared by the blocks: elements, lines and the descriptors that travel between them.

An *element* is one stored nonzero: coordinate and value, 8 bytes. A *line* is a word of the banked SRAM, and one or several
beats of the bus: ``lanes`` elements, lane 0 in the low bits. First struct field in the low bits throughout.
"""

from typing import Any

from amaranth.hdl import Cat, Const, unsigned
from amaranth.lib import data

from .leaf_lines import long_leaf_lines, memory_burst
from .storage import COORDINATE_WIDTH, VALUE_WIDTH, position_width

__all__ = [
    "BEATS_WIDTH",
    "COORDINATE_WIDTH",
    "ENTRY_WIDTH",
    "LINE_WIDTH",
    "LISTED_ENTRY_WIDTH",
    "MOST_PARTS",
    "POSITION_WIDTH",
    "VALUE_WIDTH",
    "Element",
    "collected_word",
    "fetch_request",
    "fetch_response",
    "fiber_nonzero",
    "fiber_place",
    "fiber_word",
    "leaf",
    "leaf_item",
    "line",
    "pair",
    "part_of_one",
    "partial_fiber",
    "placed_pair",
    "quadrant_counts",
    "read_request",
    "record_request",
    "ring_place",
    "row_part",
    "row_place",
    "scratch_fiber",
    "scratch_places",
    "scratch_position",
    "segment",
    "segment_word",
    "selection",
    "sram_response",
    "sram_write",
    "tile",
    "write_beat",
    "write_request",
]

POSITION_WIDTH = 32
BEATS_WIDTH = 24
# Of lines and of entries of metadata in B's partition, as the table of windows tells them.
LINE_WIDTH = 16
ENTRY_WIDTH = 24
# Of an entry of metadata, as a list of rows tells it.
LISTED_ENTRY_WIDTH = 16
# Partial fibers of a row that the last k step joins: k has at most one tile more.
MOST_PARTS = 32


class Element(data.Struct):
    """One nonzero of a fiber."""

    coordinate: unsigned(COORDINATE_WIDTH)
    value: unsigned(VALUE_WIDTH)


def line(lanes: int) -> data.ArrayLayout:
    """``lanes`` elements side by side: one SRAM word."""
    return data.ArrayLayout(Element, lanes)


def fiber_word(lanes: int) -> data.StructLayout:
    """A piece of a fiber: elements packed from lane 0, how many of them hold (0 to ``lanes``), and whether the fiber ends.

    Only the word with ``last`` set may hold fewer than ``lanes`` elements; an empty fiber is one word with
    ``count = 0`` and ``last = 1``.
    """
    return data.StructLayout({"line": line(lanes), "count": range(lanes + 1), "last": 1})


def collected_word(lanes: int, scratch_slots: int) -> data.StructLayout:
    """A word of a fiber and where the fiber goes.

    ``scratch``: to scratch memory, as one of several fibers of a long row, into the row's ``slot``; ``first``: the first
    such fiber of its row. Otherwise it is a row's own fiber, of at most ``bound`` elements.
    """
    return data.StructLayout(
        {
            "word": fiber_word(lanes),
            "scratch": 1,
            "first": 1,
            "slot": range(max(2, scratch_slots)),
            "bound": POSITION_WIDTH,
        }
    )


def leaf(address_width: int) -> data.StructLayout:
    """One leaf of a merge job: which fiber segment to read, where, and what to scale it by.

    ``in_memory`` selects memory (``position`` counts elements from byte address 0) or the banked SRAM (``position``
    counts elements from SRAM line 0). ``length`` is in elements; zero only where a job has this one leaf and no work.
    ``unit`` passes the segment's values unscaled (partial results re-entering); otherwise each is multiplied by ``weight``.
    ``scratch``, with both: the fiber is one of scratch memory, and ``position`` is that of :func:`scratch_position`. ``last``
    ends the job.
    """
    return data.StructLayout(
        {
            "in_memory": 1,
            "unit": 1,
            "scratch": 1,
            "last": 1,
            "position": position_width(address_width),
            "length": POSITION_WIDTH,
            "weight": VALUE_WIDTH,
        }
    )


def selection() -> data.StructLayout:
    """A nonzero of A on its way to the engine: fiber ``index`` is wanted, scaled by ``weight``.

    ``present = 0`` only carries the row's ``last``.
    """
    return data.StructLayout({"index": POSITION_WIDTH, "weight": VALUE_WIDTH, "present": 1, "last": 1})


def row_part(lanes: int) -> data.StructLayout:
    """The next ``count`` nonzeros of a row of A, those that lie in one line. ``last``: the row ends with them."""
    nonzero = data.StructLayout({"index": POSITION_WIDTH, "weight": VALUE_WIDTH})
    return data.StructLayout({"last": 1, "count": range(lanes + 1), "items": data.ArrayLayout(nonzero, lanes)})


def part_of_one(lanes: int, one: Any) -> Any:
    """A selection as a part of a row."""
    items = Cat(one.index, one.weight, Const(0, (lanes - 1) * (POSITION_WIDTH + VALUE_WIDTH)))
    count = Cat(one.present, Const(0, lanes.bit_length() - 1))
    return row_part(lanes)(Cat(one.last, count, items))


def leaf_item(address_width: int) -> data.StructLayout:
    """A leaf of a row; ``present = 0`` where the fiber is empty or the row has none. ``leaf.last`` ends the row."""
    return data.StructLayout({"present": 1, "leaf": leaf(address_width)})


def fiber_place(address_width: int) -> data.StructLayout:
    """Where a fiber of ``length`` nonzeros is: ``position`` counts from byte address 0 of memory, or from SRAM line 0.

    ``closes``: it is the last one of a row.
    """
    return data.StructLayout(
        {"in_memory": 1, "closes": 1, "position": position_width(address_width), "length": POSITION_WIDTH}
    )


def fiber_nonzero() -> data.StructLayout:
    """A nonzero of a fiber. ``last`` ends the fiber, ``closes`` its row; ``present = 0``: the fiber is empty."""
    return data.StructLayout(
        {"coordinate": COORDINATE_WIDTH, "value": VALUE_WIDTH, "present": 1, "last": 1, "closes": 1}
    )


def pair() -> data.StructLayout:
    """Where one row lies in its element array: positions of its first element and of the one after its last."""
    return data.StructLayout({"begin": POSITION_WIDTH, "end": POSITION_WIDTH})


def placed_pair() -> data.StructLayout:
    """A row, and of its segment whether it is ``bumped``, so that it is not read now, or ends ``beyond`` the regular lines."""
    return data.StructLayout({"begin": POSITION_WIDTH, "end": POSITION_WIDTH, "bumped": 1, "beyond": 1})


def quadrant_counts() -> data.ArrayLayout:
    """Nonzeros of a tile with (low k, low j), (low k, high j), (high k, low j), (high k, high j)."""
    return data.ArrayLayout(POSITION_WIDTH, 4)


def segment_word(lanes: int) -> data.StructLayout:
    """A piece of a fiber segment as it arrives from memory: ``count`` elements from lane ``first`` of the line hold.

    ``last`` ends the segment; an empty segment is one word with ``count = 0`` and ``last = 1``.
    """
    return data.StructLayout({"line": line(lanes), "first": range(lanes), "count": range(lanes + 1), "last": 1})


def segment(lanes: int) -> data.StructLayout:
    """A piece of a fiber segment with what is known of the segment.

    ``begin`` is the position in memory of its first nonzero, known with a word that has one or is the last. Where rows are read
    whole ``length`` counts its nonzeros, ``bumped`` says that it stays in memory, and ``beyond`` that it ends in the FIFO-managed
    region.
    """
    fields = {"word": segment_word(lanes), "begin": POSITION_WIDTH, "length": POSITION_WIDTH, "bumped": 1, "beyond": 1}
    return data.StructLayout(fields)


def partial_fiber() -> data.StructLayout:
    """A fiber of C that comes back: in memory ``position`` counts elements from its region's begin, else from SRAM line 0.

    ``more``: its row has another one.
    """
    return data.StructLayout({"in_memory": 1, "position": POSITION_WIDTH, "length": POSITION_WIDTH, "more": 1})


def scratch_fiber(scratch_slots: int) -> data.StructLayout:
    """A fiber of a row that is merged in several steps: ``position`` counts elements from the begin of its row's ``slot``."""
    return data.StructLayout(
        {"slot": range(max(2, scratch_slots)), "position": POSITION_WIDTH, "length": POSITION_WIDTH}
    )


def scratch_position(address_width: int, scratch_slots: int) -> data.StructLayout:
    """Where a scratch fiber lies, as the position of a leaf: nonzeros from the begin of its row's slot, and which that is."""
    bits = (scratch_slots - 1).bit_length()
    return data.StructLayout({"nonzero": position_width(address_width) - bits, "row": bits})


def scratch_places(address_width: int, line_address_width: int, scratch_slots: int) -> data.StructLayout:
    """Where the lines of the slots of scratch memory lie.

    The first ``kept`` lines of each slot stay on chip, in a ring of ``lines`` SRAM lines from ``base`` on; ``begins``: which of
    these the slot's first line has. Later ones lie in memory: slots of ``slot_lines`` from position ``region`` on.
    """
    line = line_address_width
    return data.StructLayout(
        {
            "base": line,
            "lines": line + 1,
            "kept": line + 1,
            "begins": data.ArrayLayout(line, scratch_slots),
            "region": position_width(address_width),
            "slot_lines": position_width(address_width),
        }
    )


def sram_response(lanes: int) -> data.StructLayout:
    """What a read port of the banked SRAM answers: ``line`` holds in the cycles in which ``valid`` is high."""
    return data.StructLayout({"line": line(lanes), "valid": 1})


def sram_write(lanes: int, line_address_width: int) -> data.StructLayout:
    """What a write port of the banked SRAM takes: the lanes of ``line`` whose ``mask`` bit is set go to line ``address``."""
    return data.StructLayout({"line": line(lanes), "mask": lanes, "address": line_address_width})


def fetch_request(radix: int, address_width: int, leaf_lines: int) -> data.StructLayout:
    """``lines`` lines of memory for ``leaf``, the first being the one that holds the element at ``position``.

    ``unit``: the leaf is a partial or scratch fiber of C, not a bumped segment of B; ``scratch``: it is the latter, and its
    position that of :func:`scratch_position`. ``follows``: the lines follow those of the leaf's last request.
    """
    lines = range(memory_burst(long_leaf_lines(leaf_lines)) + 1)
    return data.StructLayout(
        {
            "leaf": range(radix),
            "position": position_width(address_width),
            "lines": lines,
            "unit": 1,
            "scratch": 1,
            "follows": 1,
        }
    )


def fetch_response(radix: int, lanes: int) -> data.StructLayout:
    """A line for ``leaf``; cannot be refused, since a request asks for no more than there is room for."""
    return data.StructLayout({"line": line(lanes), "leaf": range(radix), "valid": 1})


def read_request(address_width: int) -> data.StructLayout:
    """Read ``beats`` bus beats from byte ``address`` (aligned down to the bus by the memory engine)."""
    return data.StructLayout({"address": address_width, "beats": BEATS_WIDTH})


def record_request(address_width: int, carries: int = 1) -> data.StructLayout:
    """Read ``beats`` lines of nonzeros. Where memory holds them as they are on chip, that is a :func:`read_request`.

    Otherwise ``address`` counts from the begin of the array of records, as if each took 8 bytes, but where the lines are
    ``plain``. ``follows``: the lines begin where those of the last request on the same ``carry`` end, so that the beat that
    holds the end of these need not be read again.
    """
    fields: dict[str, Any] = {"address": address_width, "beats": BEATS_WIDTH, "plain": 1, "follows": 1}
    return data.StructLayout(fields | ({"carry": range(carries)} if carries > 1 else {}))


def write_request(address_width: int) -> data.StructLayout:
    """Write ``beats`` bus beats to the bus-aligned byte ``address``."""
    return data.StructLayout({"address": address_width, "beats": BEATS_WIDTH})


def write_beat(data_width: int) -> data.StructLayout:
    """One beat of write data with a strobe bit for each byte."""
    return data.StructLayout({"data": data_width, "strobe": data_width // 8})


def tile() -> data.StructLayout:
    """One tile as the tiling controller announces it (HYTE section 6.2), ragged edges already cut.

    ``begin_*`` and ``size_*`` are coordinates.
    ``carry``: A's or B's part is empty, only partial results pass. ``partial_in``: an earlier k step left partial rows.
    ``k_step``: the contracted rank moved since the tile before. ``advance_a``/``advance_b``: the next visit of these
    rows wants the segments that follow; ``from_pointers_a``/``from_pointers_b``: no begin positions are known yet, so that
    they are the row pointers. ``last_j``/``last_k``: the tile ends where the rank does. ``position_index``: word of this
    tile's first row in the C tile positions. ``step``: number of the k step, where parts of rows are joined. ``ring``: what
    of B's part is in place, with windows of k.
    """
    fields: dict[str, int] = {}
    for rank in "ijk":
        fields[f"begin_{rank}"] = COORDINATE_WIDTH
        fields[f"size_{rank}"] = COORDINATE_WIDTH
    flags = (
        "from_pointers_a",
        "from_pointers_b",
        "last_j",
        "last_k",
        "whole_j",
        "whole_k",
        "carry",
        "partial_in",
        "k_step",
    )
    fields |= dict.fromkeys((*flags, "advance_a", "advance_b", "last"), 1)
    return data.StructLayout(
        {**fields, "position_index": POSITION_WIDTH, "step": range(MOST_PARTS + 1), "ring": ring_place()}
    )


def ring_place() -> data.StructLayout:
    """Where a window's rows of B are: the first ``kept`` in place already, the others go into ``lines`` lines from ``line`` on.

    Lines count from the partition's first. ``metadata`` lines at its end hold entries, ``metadata`` times lanes of them; the
    window's first row has entry ``entry``, and after the last entry comes entry 0. ``early``: none of these
    ``lines`` holds what the tile before this one uses.

    Where each row has a place of its own the first row of a window only stands for all that are in place: ``kept`` is 1.
    ``lines`` are the rows that find place, and ``entry`` and ``line`` are 0.
    """
    places = {
        "kept": ENTRY_WIDTH,
        "entry": ENTRY_WIDTH,
        "line": LINE_WIDTH,
        "lines": LINE_WIDTH,
        "metadata": LINE_WIDTH,
    }
    return data.StructLayout({**places, "early": 1})


def row_place() -> data.StructLayout:
    """Where the plan puts a row of B: its first line, counted from the partition's, and its entry of metadata."""
    return data.StructLayout({"line": LINE_WIDTH, "entry": LISTED_ENTRY_WIDTH})
