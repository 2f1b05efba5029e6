"""Plain models that blocks are compared with. They are written for reading, not for speed or size."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = ["ModelQueue", "put_bit", "taken_front"]


class ModelQueue:
    """A queue as a shift register: the oldest item is always slot 0.

    Parameters
    ----------
    m : Module
        Where its registers go.
    width, depth : int
        Bits of an item, items held.
    push, item, pop : Value
        What happens in this cycle; the user asserts that it neither overflows nor underflows.
    """

    def __init__(self, m: Module, name: str, *, width: int, depth: int, push: Value, item: Value, pop: Value) -> None:
        self.depth = depth
        self.level = Signal(range(depth + 1), name=f"{name}_level")
        self.slots = [Signal(width, name=f"{name}_slot{n}") for n in range(depth)]
        self.head = self.slots[0]
        self.overflows = push & ~pop & (self.level == depth)
        left = Signal(range(depth + 1), name=f"{name}_left")
        m.d.comb += left.eq(self.level - pop)
        m.d.sync += self.level.eq(left + push)
        for n, slot in enumerate(self.slots):
            after = self.slots[n + 1] if n + 1 < depth else slot
            m.d.sync += slot.eq(Mux(push & (left == n), item, Mux(pop, after, slot)))


def put_bit(bits: Value, place: Value, bit: Value) -> Value:
    """``bits`` with the one at ``place`` replaced."""
    return Cat(Mux(place == n, bit, bits[n]) for n in range(len(bits)))


def taken_front(bits: Value, count: Value) -> Value:
    """``bits`` without the lowest ``count`` ones, zeros coming in at the top."""
    width = len(bits)
    result: Value = bits
    for n in range(1, width + 1):
        result = Mux(count == n, Cat(bits[n:], Const(0, n)), result)
    return result[:width]
