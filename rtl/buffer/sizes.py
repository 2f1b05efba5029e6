"""What buffers ask of their parameters, and the sum that their pointers share."""

from typing import Any

from amaranth.hdl import Cat, Value

__all__ = ["check_address", "check_buffer", "check_index", "check_width", "summed"]


def check_width(width: Any) -> None:
    """Raises ValueError where an entry cannot have so many bits."""
    if not isinstance(width, int) or width < 1:
        raise ValueError(f"Entry width must be a positive integer, not {width!r}")


def check_buffer(entries: Any) -> None:
    """Raises ValueError where a buffer cannot have so many entries."""
    if not isinstance(entries, int) or entries < 2:
        raise ValueError(f"Buffer entries must be an integer of at least 2, not {entries!r}")


def check_index(entries: int, index_width: Any) -> None:
    """Raises ValueError where tile indices of so many bits cannot count what overflows the buffer."""
    least = entries.bit_length()
    if not isinstance(index_width, int) or index_width < least:
        raise ValueError(f"Index width must be at least {least} for {entries} entries, not {index_width!r}")


def check_address(entries: int, address_width: Any) -> None:
    """Raises ValueError where addresses of so many bits do not reach every entry."""
    least = (entries - 1).bit_length()
    if not isinstance(address_width, int) or address_width < least:
        raise ValueError(f"Address width must be at least {least} for {entries} entries, not {address_width!r}")


def summed(a: Value, b: Value, carry: Value) -> Value:
    """The sum with a carry into the lowest bit, of one adder: an added `1` or flag would make a second."""
    return (Cat(carry, a) + Cat(carry, b))[1:]
