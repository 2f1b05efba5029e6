"""Order of numbers as an expression that costs one carry chain."""

from amaranth.hdl import Value

__all__ = ["below"]


def below(value: Value, limit: Value) -> Value:
    """``value < limit``, unsigned: the borrow of their difference.

    Of a comparison Yosys may make a chain and, beside it, a test of all bits for equality: three times the cells.
    """
    return (value - limit)[-1]
