"""How many line slots of a leaf are in use, and what may be asked for into those that are free."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..leaf_lines import long_leaf_lines, memory_burst
from ..lib.block import Block
from .common import at_most, check_power_of_two, is_long

__all__ = ["SlotUsage", "freed_line", "slot_usage"]


def freed_line(radix: int) -> data.StructLayout:
    """A line slot of ``leaf`` is free again."""
    return data.StructLayout({"valid": 1, "leaf": range(radix)})


def slot_usage(leaf_lines: int) -> data.StructLayout:
    """Slots of a leaf in ``used``, or ``none``; there is room for a whole burst of memory, for a line of the SRAM."""
    used = range(long_leaf_lines(leaf_lines) + 1)
    return data.StructLayout({"used": used, "none": 1, "memory_room": 1, "sram_room": 1})


class SlotUsage(Block):
    """Knows the slots in use of the leaf that is visited, looked up a cycle ahead.

    Slots that become free meanwhile still count as used: they are hinted at. What the next visit may ask for is known before
    it is known whether this one changes it.

    Parameters
    ----------
    radix, leaf_lines : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.

    Members
    -------
    next_leaf : In(range(radix)), in_use : In
        The leaf of the next visit; its slots in use, as the tables hold them.
    repeated : In(1)
        The next visit is of the same leaf as the present one, which may have changed it: ``in_use`` is of no use.
    leaf : In(range(radix)), issue : In(1), count : In
        The leaf of the present visit; so many lines are asked for.
    freed : In(freed_line)
        A slot becomes free, in the tables from the next cycle on.
    usage : Out(slot_usage)
        Of the present visit's leaf, from registers.

    Timing
    ------
    Latency 1, one visit a cycle.
    """

    latency = 1

    def __init__(self, *, radix: int, leaf_lines: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.leaf_lines = check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        long_lines = long_leaf_lines(leaf_lines)
        super().__init__(
            {
                "next_leaf": In(range(radix)),
                "in_use": In(long_lines.bit_length()),
                "repeated": In(1),
                "leaf": In(range(radix)),
                "issue": In(1),
                "count": In(range(memory_burst(long_lines) + 1)),
                "freed": In(freed_line(radix)),
                "usage": Out(slot_usage(leaf_lines)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lines, long_lines = self.leaf_lines, long_leaf_lines(self.leaf_lines)
        burst, long_burst = memory_burst(lines), memory_burst(long_lines)
        # What was freed in the cycle in which the leaf at hand was looked up shows only now.
        freed_before = Signal(freed_line(self.radix))
        kept = Signal(range(long_lines + 1))
        m.d.sync += freed_before.eq(self.freed)
        m.d.comb += kept.eq(self.usage.used - (freed_before.valid & (freed_before.leaf == self.leaf)))
        cases = [Signal(slot_usage(lines), name=f"usage_{name}") for name in ("looked_up", "kept", "issued")]
        for case, used in zip(cases, (self.in_use, kept, kept + self.count), strict=True):
            m.d.comb += [
                case.used.eq(used),
                case.none.eq(case.used == 0),
                # For a whole burst, even if less is left: nothing is added up before the comparison.
                case.memory_room.eq(
                    Mux(
                        is_long(self.next_leaf),
                        at_most(case.used, long_lines - long_burst),
                        at_most(case.used, lines - burst),
                    )
                ),
                case.sram_room.eq(case.used[lines.bit_length() - 1 :] == 0),
            ]
        m.d.sync += self.usage.eq(Mux(self.repeated, Mux(self.issue, cases[2], cases[1]), cases[0]))
        return m
