"""Decides which read or update of a Tailors buffer goes: whether the entry of its tile index is present."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .sizes import check_buffer, check_index

__all__ = ["TailorsLookup"]


class TailorsLookup(Block):
    """Reads and updates share one translation from tile index to position. Whoever is selected goes when its entry is present.

    An update is looked at every second cycle, and only then: so neither holds up the other, and a write need not wait for
    the answer whether the update's entry is present. A position is compared with the registers of :class:`FifoRegion`,
    three comparisons at a time; where the entry stands is worked out afterwards (:class:`TailorsPlaces`).

    Parameters
    ----------
    entries : int
        Largest capacity, at least 2.
    index_width : int
        Bits of a tile index; ``2**index_width`` exceeds ``entries``.

    Members
    -------
    read, update : In(1), read_index, update_index : In(index_width), read_ready, update_ready : Out(1)
        Handshake of both.
    advance, reserve_ready, shut, updates_turn : In(1)
        Operations can be accepted; so can a read's answer; no read or update goes; an update is looked at in this cycle.
    regular_count, kept : In
        Of :class:`TailorsEntries`.
    overbooked, begun : In(1), offset, following, bumped : In
        Of :class:`FifoRegion`.
    updating : Out(1), index : Out(index_width)
        The update is selected; its index, or that of the read.
    regular, precedes : Out(1)
        Of ``index``: the entry is buffet-managed; else its position lies below ``offset``.
    reads, updates, beyond : Out(1)
        A present entry is read; is updated; one beyond the tile is asked for, which is accepted and dropped.
    oldest : Out(index_width), asked_first : Out(1)
        Index of the least recent entry of the region; the read at the port asks for it.
    look : In(1), read_is_safe : Out(1)
        Looks whether the read at the port keeps its entry when the buffer turns; the answer, from the cycle after.

    Timing
    ------
    Combinational but for ``read_is_safe``: one read and, every second cycle, one update.
    """

    def __init__(self, *, entries: int, index_width: int) -> None:
        check_buffer(entries)
        check_index(entries, index_width)
        self.entries = entries
        self.index_width = index_width
        count = range(entries + 1)
        flags = ("advance", "reserve_ready", "shut", "updates_turn", "overbooked", "begun", "look")
        answers = ("updating", "regular", "precedes", "reads", "updates", "beyond", "asked_first", "read_is_safe")
        super().__init__(
            {
                **{
                    f"{port}{part}": In(width)
                    for port in ("read", "update")
                    for part, width in (("", 1), ("_index", index_width))
                },
                "read_ready": Out(1),
                "update_ready": Out(1),
                **{flag: In(1) for flag in flags},
                "regular_count": In(count),
                "kept": In(count),
                "offset": In(index_width),
                "following": In(index_width),
                "bumped": In(index_width + 1),
                "index": Out(index_width),
                "oldest": Out(index_width),
                **{answer: Out(1) for answer in answers},
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        position = Signal(self.index_width + 1)
        outside = Signal()  # no tile of this length has the entry
        present = Signal()
        able = Signal()
        comes = position[:-1] < self.following  # before the entry that the next OWFill brings
        m.d.comb += [
            self.updating.eq(self.update & self.updates_turn),
            self.index.eq(Mux(self.updating, self.update_index, self.read_index)),
            position.eq(self.index - self.regular_count),
            self.regular.eq(position[-1]),
            self.precedes.eq(position[:-1] < self.offset),
            outside.eq(self.overbooked & ~self.regular & (position[:-1] >= self.bumped)),
            present.eq(self.regular | ~outside & Mux(self.begun, comes | ~self.precedes, comes & ~self.precedes)),
            able.eq(self.advance & ~self.shut & (self.updating | self.reserve_ready)),
            self.read_ready.eq(~self.updating & able & (present | outside)),
            self.update_ready.eq(self.updating & able & (present | outside)),
            self.reads.eq(self.read & ~self.updating & able & present),
            self.updates.eq(self.updating & able & present),
            self.beyond.eq((self.read | self.updating) & able & outside),
            self.oldest.eq(self.regular_count + self.offset),
            self.asked_first.eq(self.read & (self.read_index == self.oldest)),
        ]
        with m.If(self.look):
            stays = Mux(self.overbooked, self.regular | ~present, ~self.regular | (self.index < self.kept))
            m.d.sync += self.read_is_safe.eq(self.read & stays)
        return m
