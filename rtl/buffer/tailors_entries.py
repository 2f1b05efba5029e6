"""Where a Tailors buffer keeps its entries: the places of head, tail and FIFO-managed region, and how many are regular."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .sizes import check_buffer
from .tailors_steps import tailors_step, tailors_verb

__all__ = ["TailorsEntries"]


class TailorsEntries(Block):
    """Head, tail and count of the buffet-managed entries, and the anchor of the FIFO-managed region behind them.

    ::

        head                     anchor         places go round within the capacity
        | a b c d e f g . . . . | k l m |       the tail goes round within the region while that is overbooked
                        ^ tail    ^ tail

    Parameters
    ----------
    entries : int
        Largest capacity, at least 2.

    Members
    -------
    capacity, fifo_entries : In
        Constant while entries are present.
    amount : In
        Entries that a Shrink frees: constant in its steps EXAMINE and SHRINK.
    present, overbooked, closes : In
        Of :class:`FifoRegion`: entries in the region; it holds some; its next one takes the last place.
    step : In(tailors_step), verb : In(tailors_verb)
        EXAMINE judges a Shrink, which happens in the next cycle. PLACE finds the anchor, AIM moves the tail there. Entries
        are written at the tail.
    head, tail, anchor : Out
        Places, from registers.
    regular_count : Out
        Buffet-managed entries, from a register.
    kept, unused : Out
        Entries that stay buffet-managed in an overbooked buffer; places that no regular entry has.
    empties, frees, refused : Out(1)
        In step SHRINK: the buffer becomes empty; else entries at the head are freed; else it is illegal.

    Timing
    ------
    One entry a cycle; ``head``, ``tail`` and ``regular_count`` follow in the cycle after.
    """

    def __init__(self, *, entries: int) -> None:
        check_buffer(entries)
        self.entries = entries
        count, place = range(entries + 1), range(entries)
        super().__init__(
            {
                "capacity": In(count),
                "fifo_entries": In(count),
                "amount": In(count),
                "present": In(count),
                "overbooked": In(1),
                "closes": In(1),
                "step": In(tailors_step()),
                "verb": In(tailors_verb()),
                "head": Out(place),
                "tail": Out(place),
                "anchor": Out(place),
                "regular_count": Out(count),
                "kept": Out(count),
                "unused": Out(count),
                "empties": Out(1),
                "frees": Out(1),
                "refused": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        capacity, regular = self.capacity, self.regular_count
        # One adder each serves all that happens to a pointer.
        step, verb = self.step, self.verb
        shrinks = step.examine | step.shrink
        splits = step.turn & ~self.overbooked
        append = verb.fill | verb.dissolve | verb.backfill
        remaining = Signal(len(regular) + 1)  # regular entries after what happens to them; negative: too many are to go
        rolled = Signal(range(2 * self.entries))
        moved = Signal(range(self.entries))  # place of index `amount`, or of the first entry of the region
        reduced = rolled - capacity
        m.d.comb += [
            self.kept.eq(capacity - self.fifo_entries),
            self.unused.eq(capacity - regular),
            rolled.eq(self.head + Mux(shrinks, self.amount, self.kept)),
            moved.eq(Mux(reduced[-1], rolled, reduced)),
            remaining.eq(
                regular - Mux(shrinks | splits, Mux(shrinks, self.amount, self.fifo_entries), 2 ** len(remaining) - 1)
            ),
            self.refused.eq(step.shrink & ~self.empties & ~self.frees),
        ]
        m.d.sync += [
            self.empties.eq(step.examine & ((remaining + self.present)[: len(remaining)] == 0)),
            self.frees.eq(step.examine & ~remaining[-1]),
        ]
        with m.If(self.empties):
            m.d.sync += [self.head.eq(0), regular.eq(0)]
        with m.Elif(self.frees):
            m.d.sync += self.head.eq(moved)
        with m.If(~self.empties & (append | verb.split | self.frees)):
            m.d.sync += regular.eq(remaining)
        with m.If(step.place & ~self.overbooked):
            m.d.sync += self.anchor.eq(moved)

        writes = append | verb.split | verb.rotate
        closes = self.closes & (self.overbooked ^ step.turn)  # an entry of the region takes its last slot
        with m.If(self.empties | writes & ~closes & (self.tail + 1 == capacity)):
            m.d.sync += self.tail.eq(0)
        with m.Elif(step.aim | writes):
            m.d.sync += self.tail.eq(Mux(step.aim | closes, self.anchor, self.tail + 1))
        return m
