"""Plain models that blocks are compared with. They are written for reading, not for speed or size."""

from amaranth.asserts import AnySeq
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = ["ModelQueue", "WatchedItem", "put_bit", "taken_front"]


class ModelQueue:
    """A queue as a shift register: the oldest item is always at place 0.

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
        self.places = [Signal(width, name=f"{name}_place{n}") for n in range(depth)]
        self.head = self.places[0]
        self.overflows = push & ~pop & (self.level == depth)
        left = Signal(range(depth + 1), name=f"{name}_left")
        m.d.comb += left.eq(self.level - pop)
        m.d.sync += self.level.eq(left + push)
        for n, place in enumerate(self.places):
            after = self.places[n + 1] if n + 1 < depth else place
            m.d.sync += place.eq(Mux(push & (left == n), item, Mux(pop, after, place)))


class WatchedItem:
    """One item, any of those that go through something that keeps order: an unbounded queue seen through one item of it.

    The solver chooses when ``push`` is the push of the watched item. From then on the items before it are counted.
    Far less state than a :class:`ModelQueue`, and it says as much, because the choice is free.

    Parameters
    ----------
    m : Module
        Where its registers go.
    width, most : int
        Bits of an item, most items inside at a time.
    push, item, pop : Value
        What happens in this cycle; the user asserts that ``level`` does not overflow or underflow.

    Attributes
    ----------
    level : Signal
        Items inside.
    next : Value
        The next item to leave is the watched one.
    item : Signal
        The watched one.
    """

    def __init__(self, m: Module, name: str, *, width: int, most: int, push: Value, item: Value, pop: Value) -> None:
        self.level = Signal(range(most + 2), name=f"{name}_level")
        self.item = Signal(width, name=f"{name}_watched")
        chosen, gone = Signal(name=f"{name}_chosen"), Signal(name=f"{name}_gone")
        before = Signal(range(most + 2), name=f"{name}_before")
        self.next = chosen & ~gone & (before == 0)
        self.overflows = self.level == most + 1
        m.d.sync += self.level.eq(self.level + push - pop)
        with m.If(push & ~chosen & AnySeq(1)):
            m.d.sync += [chosen.eq(1), self.item.eq(item), before.eq(self.level - pop)]
        with m.Elif(pop & chosen & ~gone):
            m.d.sync += [before.eq(before - (before != 0)), gone.eq(before == 0)]


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
