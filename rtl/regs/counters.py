"""The accelerator's performance counters."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.onehot import onehot_select
from ..lib.sram import SramBank
from .counter_list import COUNTERS, Counter

__all__ = ["CounterBank"]

# Bits of an index that select within a row of registers; the others select the row.
COLUMN_BITS = 3


class CounterBank(Block):
    """Holds one counter for each name in :data:`rtl.regs.counter_list.COUNTERS`; those with ``peak`` keep a maximum.

    A register of each counter holds its lowest bits, or the maximum. The counts are words of a memory. They are visited in
    turn, and one adder gives each what its register has beyond it, before the register can have gone around.

    Parameters
    ----------
    increments : Mapping[str, int]
        Bits of each counter's input; 1 for counters that are not named. The parent adds up units that can act in the same
        cycle.
    counters : Sequence[Counter]
        Those that there are, where some are not.
    width : int
        Bits that are kept, 1 to 64. 48 bits last 78 hours at 1 GHz.

    Members
    -------
    events : In(struct)
        A field for each counter, in lower case: what to add in this cycle, or to keep the maximum of.
    clear : In(1)
        All counters become zero. Events of this cycle and of the one before are lost.
    enable : In(1)
        Events count while high.
    read : In(1), number : In(range(counters))
        The counter with this number is read. Reads are at least ``read_spacing`` cycles apart.
    count : Out(64)
        One cycle after ``read``: the counter, with all events until ``latency`` cycles before ``read``.

    Timing
    ------
    ``latency`` cycles, 2, from an event to a read that has it; any events a cycle.
    """

    latency = 2
    read_spacing = 5

    def __init__(
        self,
        *,
        increments: Mapping[str, int] | None = None,
        counters: Sequence[Counter] = COUNTERS,
        width: int = 48,
    ) -> None:
        increments = dict(increments or {})
        names = [counter.name for counter in counters]
        for name, bits in increments.items():
            if name not in names:
                raise ValueError(f"There is no counter {name!r}")
            if not isinstance(bits, int) or not 1 <= bits <= width:
                raise ValueError(f"Increment of {name} must have 1 to {width} bits, not {bits!r}")
        if not isinstance(width, int) or not 1 <= width <= 64:
            raise ValueError(f"Counter width must be from 1 to 64, not {width!r}")
        self.increments = increments
        self.counters = tuple(counters)
        self.width = width
        # A word that is accessed in two cycles on end is not written between them: a turn has two words at least.
        self.words = max(2, len(self.counters))
        super().__init__(
            {
                "events": In(data.StructLayout({name.lower(): increments.get(name, 1) for name in names})),
                "clear": In(1),
                "enable": In(1),
                "read": In(1),
                "number": In(range(self.words)),
                "count": Out(64),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"width": self.width, "counters": len(self.counters)}

    @property
    def turn(self) -> int:
        """Most cycles from one visit of a word to the next, where reads take as many as they may."""
        cycles = self.words
        while cycles + 1 - -(-(cycles + 1) // self.read_spacing) <= self.words:
            cycles += 1
        return cycles

    def register_bits(self, counter: Counter) -> int:
        """Bits of a counter's register: enough for all that can come in a turn."""
        bits = self.increments.get(counter.name, 1)
        return bits if counter.peak else min(self.width, (self.turn * ((1 << bits) - 1)).bit_length())

    def build(self, platform: Any) -> Module:
        m = Module()
        registers = [self._register(m, counter) for counter in self.counters]
        m.submodules.counts = counts = SramBank(depth=self.words, width=self.width)
        position = Signal(range(self.words))  # the word whose turn it is
        first_turn = Signal(init=1)  # after a clear: words from this position on hold what was before it
        last = position == self.words - 1
        index = Signal(range(self.words))
        m.d.comb += index.eq(Mux(self.read, self.number, position))
        with m.If(~self.read):
            m.d.sync += position.eq(Mux(last, 0, position + 1))
            with m.If(last):
                m.d.sync += first_turn.eq(0)

        # One cycle later: the word of memory, and its register as it was.
        place = Signal(range(self.words))
        stale = Signal(init=1)
        lengths = [self.register_bits(counter) for counter in self.counters]
        present = Signal(max(lengths))
        reach = Signal(max(lengths))  # bits that the register has
        # The memory does not define a read of the word that is being written. The later access then writes for both.
        repeated = index == place
        m.d.sync += [
            place.eq(index),
            stale.eq(Mux(repeated, stale, first_turn & (index >= position))),
            present.eq(_selected(index, registers)),
            reach.eq(
                Cat(_among(index, [n for n, bits in enumerate(lengths) if bits > bit]) for bit in range(max(lengths)))
            ),
        ]
        before = Mux(stale, 0, counts.read_data)
        total = Signal(self.width)
        m.d.comb += [
            total.eq(before + ((present - before) & reach)),
            counts.read_enable.eq(1),
            counts.read_address.eq(index),
            counts.write_mask.eq(~repeated),
            counts.write_address.eq(place),
            counts.write_data.eq(total),
            self.count.eq(total),
        ]
        with m.If(self.clear):
            m.d.sync += [position.eq(0), first_turn.eq(1), stale.eq(1), present.eq(0)]
        return m

    def _register(self, m: Module, counter: Counter) -> Signal:
        """Lowest bits of a count, or a maximum."""
        key = counter.name.lower()
        arrived = Signal.like(self.events[key], name=f"{key}_arrived")
        register = Signal(self.register_bits(counter), name=key)
        # The events come from all over the chip: a register first, then the carry chain.
        m.d.sync += arrived.eq(0)
        with m.If(self.enable):
            m.d.sync += arrived.eq(self.events[key])
        if counter.peak:
            with m.If(arrived > register):
                m.d.sync += register.eq(arrived)
        else:
            m.d.sync += register.eq(register + arrived)
        with m.If(self.clear):
            m.d.sync += [register.eq(0), arrived.eq(0)]
        return register


def _selected(index: Value, registers: Sequence[Value]) -> Value:
    """The register with this index."""
    columns = 1 << COLUMN_BITS
    rows = [registers[at : at + columns] for at in range(0, len(registers), columns)]
    column = Cat(index[:COLUMN_BITS] == n for n in range(columns))
    row = Cat(index[COLUMN_BITS:] == n for n in range(len(rows)))
    return onehot_select(row, [onehot_select(column[: len(some)], some) for some in rows])


def _among(index: Value, numbers: Sequence[int]) -> Value:
    """``index`` is one of these."""
    return Cat(index == number for number in numbers).any()
