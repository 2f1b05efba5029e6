"""How nonzeros lie in memory: words of 32 bits, a nonzero being its coordinate and its value.

Positions count nonzeros from the begin of their array, which is aligned to the bus. What turns one into bytes, bytes into
one, or lines into bytes is here; a position may be a number or an Amaranth value.
"""

from typing import Any

__all__ = [
    "COORDINATE_WIDTH",
    "ELEMENT_BYTES",
    "PAGE_BYTES",
    "VALUE_WIDTH",
    "WORD_BYTES",
    "byte_count",
    "element_count",
    "line_address",
    "line_bytes",
    "position_width",
    "word_address",
    "word_bytes",
    "word_index",
]

COORDINATE_WIDTH = 32
VALUE_WIDTH = 32
ELEMENT_BYTES = (COORDINATE_WIDTH + VALUE_WIDTH) // 8
# Of a row pointer, and of a begin position.
WORD_BYTES = 4
# No AXI4 burst may cross a multiple of this.
PAGE_BYTES = 4096

_ELEMENT_BITS = (ELEMENT_BYTES - 1).bit_length()
_WORD_BITS = (WORD_BYTES - 1).bit_length()


def byte_count(nonzeros: Any) -> Any:
    """Bytes of so many nonzeros, and the byte address of a position that counts from address 0."""
    return nonzeros << _ELEMENT_BITS


def element_count(count: Any) -> Any:
    """Nonzeros in so many bytes, and the position, counted from address 0, of a byte address."""
    return count >> _ELEMENT_BITS


def position_width(address_width: int) -> int:
    """Bits of a position that counts from byte address 0."""
    return address_width - _ELEMENT_BITS


def line_bytes(lanes: int) -> int:
    """Bytes of a line of ``lanes`` nonzeros."""
    return lanes * ELEMENT_BYTES


def line_address(origin: Any, index: Any, lanes: int) -> Any:
    """Byte address of line ``index`` of the array at ``origin``; ``lanes`` is a power of two."""
    return origin + (index << (line_bytes(lanes) - 1).bit_length())


def word_address(origin: Any, index: Any) -> Any:
    """Byte address of word ``index`` of the array at ``origin``."""
    return origin + word_bytes(index)


def word_bytes(words: Any) -> Any:
    """Bytes of so many words."""
    return words << _WORD_BITS


def word_index(address: Any) -> Any:
    """Words before a byte address."""
    return address >> _WORD_BITS
