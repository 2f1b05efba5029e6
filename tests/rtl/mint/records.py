"""Nonzeros as they are on chip, and the records and lines that hold them."""

from random import Random

from rtl.arith.arithmetic import value_bits

__all__ = ["lines_of", "nonzeros", "record"]


def nonzeros(random: Random, count: int, value: str, coordinate_bits: int) -> list[tuple[int, int]]:
    """Coordinates and words of values; the first one has no bit set, the next ones have every bit set."""
    width = value_bits(value)
    found = []
    for n in range(count):
        coordinate, bits = random.getrandbits(coordinate_bits), random.getrandbits(width)
        if n == 0:
            coordinate, bits = 0, 0
        elif n < 4:
            coordinate, bits = (1 << coordinate_bits) - 1, (1 << width) - 1
        found.append((coordinate, on_chip(bits, value)))
    return found


def on_chip(bits: int, value: str) -> int:
    """The word of a value: an integer with its sign, a float in the upper bits."""
    width = value_bits(value)
    if value.startswith("int"):
        return (bits - (bits >> (width - 1) << width)) & 0xFFFFFFFF
    return bits << (32 - width)


def record(coordinate: int, word: int, value: str) -> int:
    """The bits of a value, the coordinate above them."""
    width = value_bits(value)
    return (word & ((1 << width) - 1) if value.startswith("int") else word >> (32 - width)) | coordinate << width


def lines_of(items: list[tuple[int, int]], lanes: int) -> list[int]:
    """Lines of nonzeros, lane 0 in the low bits."""
    return [
        sum((c | v << 32) << 64 * k for k, (c, v) in enumerate(items[n : n + lanes]))
        for n in range(0, len(items), lanes)
    ]
