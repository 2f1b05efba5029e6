"""One-hot codes as expressions: lowest set bit and those above it, index of the set bit, selection by AND-OR."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Shape, Value

__all__ = ["above_lowest", "lowest_set", "onehot_index", "onehot_select"]


#: From this many bits on a carry chain is used. Gates are twice as fast, but tools then merge them into each bit that they
#: select: four times the cells for a choice of one of eight values of 45 bits.
CHAIN_WIDTH = 6


def above_lowest(value: Value) -> Value:
    """Mask of the bits above the lowest set bit of ``value``; zero when ``value`` is zero. Combinational, same width."""
    width = len(value)
    if width >= CHAIN_WIDTH:
        return (value ^ (~value + 1))[:width]  # -value keeps the lowest set bit and inverts those above it
    return Cat(value[:n].any() if n else Const(0, 1) for n in range(width))


def lowest_set(value: Value) -> Value:
    """One-hot mask of the lowest set bit of ``value``; zero when ``value`` is zero. Combinational, same width."""
    width = len(value)
    if width >= CHAIN_WIDTH:
        return (value & (~value + 1)[:width])[:width]
    return value & ~above_lowest(value)


def onehot_index(onehot: Value) -> Value:
    """Index of the set bit of ``onehot`` (zero when none is set; the OR of the indices when several are)."""
    count = len(onehot)
    if count < 2:
        return Const(0, 1)
    return Cat(Cat(onehot[n] for n in range(count) if n >> bit & 1).any() for bit in range((count - 1).bit_length()))


def onehot_select(onehot: Value, inputs: Sequence[Value]) -> Value:
    """The input whose select bit is set, as plain bits: AND-OR, zero when none is set."""
    if len(onehot) != len(inputs):
        raise ValueError(f"One-hot select of {len(onehot)} bits cannot choose among {len(inputs)} inputs")
    values = [Value.cast(item) for item in inputs]
    width = max(Shape.cast(value.shape()).width for value in values)
    return reduce(or_, (onehot[n].replicate(width) & value for n, value in enumerate(values)))
