"""Counts the bumped entries that the consumer of a Tailors buffer has released."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .sizes import check_buffer
from .tailors_steps import tailors_verb

__all__ = ["ReleaseCount", "release_state"]


def release_state() -> data.StructLayout:
    """``none``: no entry is released. ``part``: not all that are present. ``part_of_region``: not as many as the region takes.
    ``excess``: a release comes that has no entry left, and changes nothing."""
    return data.StructLayout({"none": 1, "part": 1, "part_of_region": 1, "excess": 1})


class ReleaseCount(Block):
    """Released entries, the least recent ones of the FIFO-managed region; before a split those that it will replace.

    Parameters
    ----------
    entries : int
        Largest capacity, at least 2.

    Members
    -------
    entry_release : In(1)
        The consumer no longer needs the next entry.
    fifo_entries, present, overbooked : In
        Entries of the region; those in it; whether it holds any.
    full : In(1), verb : In(tailors_verb), empties : In(1)
        All places of the region are taken; what happens to it; a Shrink empties the buffer.
    state : Out(release_state)
        What may be overwritten.

    Timing
    ------
    One release a cycle, which counts from the cycle after.
    """

    def __init__(self, *, entries: int) -> None:
        check_buffer(entries)
        self.entries = entries
        count = range(entries + 1)
        super().__init__(
            {
                "entry_release": In(1),
                "fifo_entries": In(count),
                "present": In(count),
                "overbooked": In(1),
                "full": In(1),
                "verb": In(tailors_verb()),
                "empties": In(1),
                "state": Out(release_state()),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        spent = Signal(range(self.entries + 1))
        state, verb = self.state, self.verb
        cleared = self.empties | verb.dissolve | verb.split
        m.d.comb += [
            state.none.eq(spent == 0),
            state.part.eq(spent != self.present),
            state.part_of_region.eq(spent != self.fifo_entries),
            state.excess.eq(self.entry_release & (spent == Mux(self.overbooked, self.present, self.fifo_entries))),
        ]
        counted = spent + (self.entry_release & ~state.excess) - (verb.rotate & self.full)
        m.d.sync += spent.eq(Mux(cleared, 0, counted))
        return m
