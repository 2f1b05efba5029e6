"""What flows between the blocks of a converter: entries side by side in lanes, lane 0 before lane 1."""

from typing import Any

from amaranth.lib import data

from ...regs.converter_map import BLOCK_BITS, POINTER_BITS

__all__ = [
    "BYTES_BITS",
    "COORDINATE_BITS",
    "ENTRY_BITS",
    "KEY_BITS",
    "POSITION_BITS",
    "TENSOR_ENTRY_BITS",
    "block_group",
    "cell_group",
    "field_group",
    "placed_vector",
    "position_group",
    "record_bits",
    "row_vector",
]

COORDINATE_BITS = 32
#: A row-major position; a matrix has at most 2^64 places.
POSITION_BITS = 64
#: The widest record of a matrix: row, column and a value of 32 bits.
ENTRY_BITS = 96
#: That of a tensor.
TENSOR_ENTRY_BITS = 128
#: Of the number of a bit of the key by which entries are sorted; a key has at most as many bits as an entry.
KEY_BITS = 7
#: Bytes of as many records as there can be.
BYTES_BITS = POINTER_BITS + 4


def record_bits(tensors: bool) -> int:
    """Bits of the widest record."""
    return TENSOR_ENTRY_BITS if tensors else ENTRY_BITS


def field_group(lanes: int, value_bits: int, tensors: bool = False) -> data.StructLayout:
    """Up to ``lanes`` records taken apart: two whole numbers and a value each, in lanes 0 to ``count`` - 1.

    With ``tensors`` there is a third number.
    """
    number = data.ArrayLayout(COORDINATE_BITS, lanes)
    values = data.ArrayLayout(value_bits, lanes)
    third = {"third": number} if tensors else {}
    return data.StructLayout(
        {"first": number, "second": number, **third, "values": values, "count": range(lanes + 1), "last": 1}
    )


def _outers(lanes: int, tensors: bool) -> dict[str, Any]:
    """With ``tensors`` an entry has a coordinate before its row: of a tensor i, j and k are outer, row and column."""
    return {"outers": data.ArrayLayout(COORDINATE_BITS, lanes)} if tensors else {}


def row_vector(lanes: int, value_bits: int, tensors: bool = False) -> data.StructLayout:
    """Entries by row and column, in the lanes that are ``present``; with ``tensors`` by ``outers`` before these."""
    return data.StructLayout(
        {
            "present": lanes,
            "rows": data.ArrayLayout(COORDINATE_BITS + 1, lanes),
            "columns": data.ArrayLayout(COORDINATE_BITS, lanes),
            **_outers(lanes, tensors),
            "values": data.ArrayLayout(value_bits, lanes),
            "last": 1,
        }
    )


def placed_vector(lanes: int, value_bits: int, tensors: bool = False) -> data.StructLayout:
    """Entries by position, in the lanes that are ``present``; ``last`` ends the matrix.

    ``outside``: the present entry of this lane lies outside the matrix, and its position means nothing. With ``tensors`` there
    are ``outers`` above positions.
    """
    return data.StructLayout(
        {
            "present": lanes,
            "outside": lanes,
            **_outers(lanes, tensors),
            "positions": data.ArrayLayout(POSITION_BITS, lanes),
            "values": data.ArrayLayout(value_bits, lanes),
            "last": 1,
        }
    )


def position_group(lanes: int, value_bits: int, tensors: bool = False) -> data.StructLayout:
    """Entries by position, with ``tensors`` by ``outers`` above these, in lanes 0 to ``count`` - 1; ``last`` ends the matrix."""
    return data.StructLayout(
        {
            **_outers(lanes, tensors),
            "positions": data.ArrayLayout(POSITION_BITS, lanes),
            "values": data.ArrayLayout(value_bits, lanes),
            "count": range(lanes + 1),
            "last": 1,
        }
    )


def cell_group(lanes: int, value_bits: int, tensors: bool = False) -> data.StructLayout:
    """Entries by position, row and column, in lanes 0 to ``count`` - 1; ``last`` ends the matrix. With ``tensors`` ``outers``."""
    number = data.ArrayLayout(COORDINATE_BITS, lanes)
    members = position_group(lanes, value_bits, tensors).members
    return data.StructLayout({**members, "rows": number, "columns": number})


def block_group(lanes: int, value_bits: int, tensors: bool = False) -> data.StructLayout:
    """Cells with the block that each lies in: its row and column in blocks, the row inside it, the row-major place inside it."""
    number = data.ArrayLayout(COORDINATE_BITS, lanes)
    inner = data.ArrayLayout(BLOCK_BITS, lanes)
    cells = cell_group(lanes, value_bits, tensors).members
    return data.StructLayout(
        {**cells, "block_rows": number, "block_columns": number, "inner_rows": inner, "places": inner}
    )
