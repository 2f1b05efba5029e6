"""Gives each occupied place of a ZVC mask its value."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.onehot import lowest_set, onehot_index
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from .streams import field_group, position_group

__all__ = ["ValueMatcher"]


class ValueMatcher(Block):
    """Value q goes to the q-th position. Two groups of values are at hand, which positions of one group can be taken from.

    Parameters
    ----------
    lanes : int
        Positions and values a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    floating : bool
        The sign bit does not count where a value is compared with zero.

    Members
    -------
    found : In(stream(position_group))
        Groups of 1 to ``lanes`` positions; the one with ``last`` may be empty.
    values : In(stream(field_group))
        Groups of ``lanes`` values; the one with ``last`` may have fewer, or none.
    placed : Out(stream(position_group))
        Positions with their values. From registers.
    mismatch : Out(1), zero : Out(1), number : Out(64)
        More or fewer positions than values; a value is 0. How many values came before. They stay until the reset, and nothing is
        taken any more.

    Timing
    ------
    One cycle; a group of positions a cycle.
    """

    latency = 1

    def __init__(self, *, lanes: int, value_bits: int, floating: bool) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.floating = bool(floating)
        super().__init__(
            {
                "found": In(stream.Signature(position_group(lanes, value_bits))),
                "values": In(stream.Signature(field_group(lanes, value_bits))),
                "placed": Out(stream.Signature(position_group(lanes, value_bits))),
                "mismatch": Out(1),
                "zero": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.placed = placed = StreamRegister(shape=self.placed.payload.shape())
        connect(m, placed.o, flipped(self.placed))
        found, head = self.found.payload, self.values.payload

        # The older group of values; the younger one is at the port.
        kept = {name: self.values.payload.shape()[name].shape for name in ("values", "count", "last")}
        stored = Signal(data.StructLayout(kept), reset_less=True)
        full = Signal()
        dry = Signal()  # all values have left
        used = Signal(range(lanes))  # values of the older group that have left
        ending = Signal(range(2 * lanes))
        into = Signal()  # positions reach the younger group
        m.d.comb += [ending.eq(used + found.count), into.eq(ending > stored.count)]

        stopped = self.mismatch | self.zero
        ready = Signal()  # the values that are wanted are here, or none will come
        short, surplus, zero = signals("short surplus zero")
        m.d.comb += [
            ready.eq(self.found.valid & (dry | (full & (~into | stored.last | self.values.valid))) & ~stopped),
            # Only a last group has fewer values than lanes.
            short.eq(
                Mux(dry, found.count != 0, into & (stored.last | (head.last & (ending > stored.count + head.count))))
            ),
            surplus.eq(
                found.last
                & ~short
                & ~dry
                & Mux(into, ~head.last | (ending != stored.count + head.count), ~stored.last | (ending != stored.count))
            ),
        ]
        ring = Cat(
            *(Value.cast(stored.values[n]) for n in range(lanes)), *(Value.cast(head.values[n]) for n in range(lanes))
        )
        zeros = []
        compared = self.value_bits - self.floating
        for n in range(lanes):
            value = Signal(self.value_bits, name=f"value{n}")
            m.d.comb += [
                value.eq(ring.word_select(used + n, self.value_bits)),
                placed.i.payload.values[n].eq(value),
                placed.i.payload.positions[n].eq(found.positions[n]),
            ]
            zeros.append((found.count > n) & ~value[:compared].any())
        wrong = short | surplus | zero
        goes = Signal()
        m.d.comb += [
            zero.eq(Cat(*zeros).any() & ~short),
            placed.i.valid.eq(ready & ~wrong),
            placed.i.payload.count.eq(found.count),
            placed.i.payload.last.eq(found.last),
            goes.eq(placed.i.valid & placed.i.ready),
            self.found.ready.eq(goes),
        ]
        # The younger group moves up when the older one is empty, or has been used up.
        spent = goes & full & (ending >= lanes)
        m.d.comb += self.values.ready.eq(((spent & ~stored.last) | ~(full | dry)) & ~stopped)
        with m.If(goes):
            m.d.sync += [used.eq(ending), self.number.eq(self.number + found.count)]
        with m.If(self.values.valid & self.values.ready):
            m.d.sync += [full.eq(1), *(stored[name].eq(head[name]) for name in kept)]
        with m.Elif(spent):
            m.d.sync += [full.eq(0), dry.eq(stored.last)]
        with m.If(goes & found.last):
            m.d.sync += [used.eq(0), full.eq(0), dry.eq(0)]
        with m.If(ready & wrong):
            m.d.sync += [self.mismatch.eq(short | surplus), self.zero.eq(zero & ~surplus)]
            with m.If(zero & ~surplus):
                m.d.sync += self.number.eq(self.number + onehot_index(lowest_set(Cat(*zeros))))
        return m
