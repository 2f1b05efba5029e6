"""What flows between the blocks of a converter: entries side by side in lanes, lane 0 before lane 1."""

from amaranth.lib import data

from ...regs.converter_map import BLOCK_BITS, POINTER_BITS

__all__ = [
    "BYTES_BITS",
    "COORDINATE_BITS",
    "ENTRY_BITS",
    "KEY_BITS",
    "POSITION_BITS",
    "block_group",
    "cell_group",
    "field_group",
    "placed_vector",
    "position_group",
    "row_vector",
]

COORDINATE_BITS = 32
#: A row-major position; a matrix has at most 2^64 places.
POSITION_BITS = 64
#: The widest record: row, column and a value of 32 bits.
ENTRY_BITS = 96
#: Of the number of a bit of the key by which entries are sorted; a key has at most as many bits as an entry.
KEY_BITS = 7
#: Bytes of as many records as there can be.
BYTES_BITS = POINTER_BITS + 4


def field_group(lanes: int, value_bits: int) -> data.StructLayout:
    """Up to ``lanes`` records taken apart: two whole numbers and a value each, in lanes 0 to ``count`` - 1."""
    number = data.ArrayLayout(COORDINATE_BITS, lanes)
    values = data.ArrayLayout(value_bits, lanes)
    return data.StructLayout(
        {"first": number, "second": number, "values": values, "count": range(lanes + 1), "last": 1}
    )


def row_vector(lanes: int, value_bits: int) -> data.StructLayout:
    """Entries by row and column, in the lanes that are ``present``."""
    return data.StructLayout(
        {
            "present": lanes,
            "rows": data.ArrayLayout(COORDINATE_BITS + 1, lanes),
            "columns": data.ArrayLayout(COORDINATE_BITS, lanes),
            "values": data.ArrayLayout(value_bits, lanes),
            "last": 1,
        }
    )


def placed_vector(lanes: int, value_bits: int) -> data.StructLayout:
    """Entries by position, in the lanes that are ``present``; ``last`` ends the matrix.

    ``outside``: the present entry of this lane lies outside the matrix, and its position means nothing.
    """
    return data.StructLayout(
        {
            "present": lanes,
            "outside": lanes,
            "positions": data.ArrayLayout(POSITION_BITS, lanes),
            "values": data.ArrayLayout(value_bits, lanes),
            "last": 1,
        }
    )


def position_group(lanes: int, value_bits: int) -> data.StructLayout:
    """Entries by position, in lanes 0 to ``count`` - 1; ``last`` ends the matrix."""
    return data.StructLayout(
        {
            "positions": data.ArrayLayout(POSITION_BITS, lanes),
            "values": data.ArrayLayout(value_bits, lanes),
            "count": range(lanes + 1),
            "last": 1,
        }
    )


def cell_group(lanes: int, value_bits: int) -> data.StructLayout:
    """Entries by position, row and column, in lanes 0 to ``count`` - 1; ``last`` ends the matrix."""
    number = data.ArrayLayout(COORDINATE_BITS, lanes)
    members = {name: position_group(lanes, value_bits)[name].shape for name in ("positions", "values", "count", "last")}
    return data.StructLayout({**members, "rows": number, "columns": number})


def block_group(lanes: int, value_bits: int) -> data.StructLayout:
    """Cells with the block that each lies in: its row and column in blocks, the row inside it, the row-major place inside it."""
    number = data.ArrayLayout(COORDINATE_BITS, lanes)
    inner = data.ArrayLayout(BLOCK_BITS, lanes)
    cells = cell_group(lanes, value_bits).members
    return data.StructLayout(
        {**cells, "block_rows": number, "block_columns": number, "inner_rows": inner, "places": inner}
    )
