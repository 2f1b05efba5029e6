"""The FIFO-managed region of a Tailors buffer: which bumped entries it holds, and when they begin again."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .sizes import check_buffer, check_index, summed
from .tailors_steps import tailors_step, tailors_verb

__all__ = ["FifoRegion"]


class FifoRegion(Block):
    """Counts the bumped entries that go round in the region. A *position* counts bumped entries of the tile from 0.

    The region holds positions from ``offset`` on, up to the one that the next OWFill brings, or, when the bumped data has
    begun again in it, up to the last of the tile and those below the next. So a position is compared with three registers
    at a time. Positions, place and their flags are 0 while not overbooked.

    Parameters
    ----------
    entries : int
        Largest capacity, at least 2.
    index_width : int
        Bits of a tile index; ``2**index_width`` exceeds ``entries``.

    Members
    -------
    fifo_entries, tile_length : In
        Entries of the region; entries of the tile (0: unbounded). Constant while ``overbooked`` or ``backfilling``.
    kept : In
        Regular entries of an overbooked buffer.
    step : In(tailors_step), verb : In(tailors_verb)
        PLACE and AIM come before a split, whose cycle is not CALM; every ``rotate`` is in CALM. ``split`` brings the first
        entry, ``rotate`` a later one, ``dissolve`` gives the region up; this and ``backfill`` count down what is still to
        come again.
    empties, frees : In(1)
        A Shrink empties the buffer; it frees entries, so that the region is to be dissolved when the bumped data begins
        again.
    fifo_place : Out, full : Out(1)
        Place of the next entry, counted from the anchor; all places are taken.
    present : Out
        Entries in the region.
    offset, following : Out(index_width)
        Position of the least recent entry; of the one that the next OWFill brings.
    begun : Out(1)
        The bumped data has begun again within the region.
    bumped : Out(index_width + 1)
        Bumped entries of the tile; while backfilling those still to come again. ``2**index_width`` where unbounded.
    overbooked, shrunk, backfilling : Out(1)
        The region holds entries; a Shrink freed some meanwhile; the region was dissolved and the tile is not complete.
    closes : Out(1)
        The next entry takes the last place.
    ends : Out(1)
        The next entry begins the bumped data again and dissolves the region.
    Timing
    ------
    One entry a cycle; the outputs follow in the cycle after.
    """

    def __init__(self, *, entries: int, index_width: int) -> None:
        check_buffer(entries)
        check_index(entries, index_width)
        self.entries = entries
        self.index_width = index_width
        count = range(entries + 1)
        super().__init__(
            {
                "fifo_entries": In(count),
                "tile_length": In(index_width),
                "kept": In(count),
                "step": In(tailors_step()),
                "verb": In(tailors_verb()),
                "empties": In(1),
                "frees": In(1),
                "fifo_place": Out(range(entries)),
                "full": Out(1),
                "present": Out(count),
                "offset": Out(index_width),
                "following": Out(index_width),
                "begun": Out(1),
                "bumped": Out(index_width + 1, init=2**index_width),
                **{flag: Out(1) for flag in ("overbooked", "shrunk", "backfilling", "closes", "ends")},
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        region, fifo_place, offset, bumped = self.fifo_entries, self.fifo_place, self.offset, self.bumped
        begins_again = Signal()  # the next OWFill brings position 0
        step, verb = self.step, self.verb
        enters = verb.split | verb.rotate
        gone = self.empties | verb.dissolve
        m.d.comb += [
            self.closes.eq(fifo_place + 1 == region),
            self.present.eq(Mux(self.full, region, fifo_place)),
            self.ends.eq(begins_again & self.shrunk & ~bumped[-1]),
        ]

        # Positions count up by one; a split begins them at the entries that the region replaces.
        first = Signal(range(self.entries + 1))  # `fifo_entries` while it may be needed
        next_following = summed(self.following, first, Const(1, 1))[: self.index_width + 1]
        next_offset = summed(offset, first, step.calm)[: self.index_width + 1]
        wraps = next_following == bumped
        offset_wraps = next_offset == bumped
        with m.If(self.overbooked | verb.split):
            m.d.sync += first.eq(0)
        with m.Else():
            m.d.sync += first.eq(region)
        with m.If(gone | enters & self.closes):
            m.d.sync += fifo_place.eq(0)
        with m.Elif(enters):
            m.d.sync += fifo_place.eq(fifo_place + 1)
        with m.If(gone):
            m.d.sync += self.full.eq(0)
        with m.Elif(enters & self.closes):
            m.d.sync += self.full.eq(1)
        with m.If(gone | enters & wraps):
            m.d.sync += self.following.eq(0)
        with m.Elif(enters):
            m.d.sync += self.following.eq(next_following)
        with m.If(gone | verb.rotate & self.full & offset_wraps):
            m.d.sync += offset.eq(0)
        with m.Elif(verb.split | verb.rotate & self.full):
            m.d.sync += offset.eq(next_offset)
        with m.If(gone):
            m.d.sync += [self.begun.eq(0), begins_again.eq(0)]
        with m.Elif(enters):
            m.d.sync += begins_again.eq(wraps)
            m.d.sync += self.begun.eq(wraps | self.begun & ~(self.full & offset_wraps))

        change = Signal(signed(len(bumped)), init=-1)  # of `bumped`
        splits = step.aim & ~self.overbooked
        m.d.sync += change.eq(Mux(step.place & ~self.overbooked, region, -1))
        with m.If(splits & ~self.backfilling & (self.tile_length == 0)):
            m.d.sync += bumped.eq(2**self.index_width)
        with m.Elif(splits | verb.dissolve | verb.backfill):
            m.d.sync += bumped.eq(Mux(step.aim & ~self.backfilling, self.tile_length - self.kept, bumped + change))
        with m.If(verb.dissolve | verb.backfill):
            m.d.sync += self.backfilling.eq(bumped != 1)
        with m.Elif(verb.split):
            m.d.sync += self.backfilling.eq(0)
        with m.If(gone):
            m.d.sync += [self.overbooked.eq(0), self.shrunk.eq(0)]
        with m.Elif(verb.split):
            m.d.sync += self.overbooked.eq(1)
        with m.Elif(self.frees & self.overbooked):
            m.d.sync += self.shrunk.eq(1)
        return m
