"""Brings a stationary column into a PE's buffer, and words of it that come again."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..buffer.sizes import check_index
from ..lib.block import Block
from ..types import COORDINATE_WIDTH
from .bumped_walk import check_region
from .flagged_bus import flagged_word
from .match_buffer import check_entries

__all__ = ["ColumnLoader", "stationary_word"]


def stationary_word(index_width: int) -> data.StructLayout:
    """A word on the way into a PE's buffer. ``header``: none of it, the column ``payload`` with ``length`` entries begins."""
    return data.StructLayout({"header": 1, "length": index_width, **flagged_word().members})


class ColumnLoader(Block):
    """Empties the buffer for a new column, fills it, and overwrites when bumped words come (Tailors, section 3.3).

    Parameters
    ----------
    entries, region : int
        Of the buffer and of its FIFO-managed region, even.
    index_width : int
        Bits of an entry's index in its column.

    Members
    -------
    weights : In(stream of ``stationary_word``)
        A column's ``header`` waits while ``opened``.
    opened : In(1)
        A is under way.
    fill, overwrite, shrink, occupied, unoccupied, written
        Of the buffer's :class:`rtl.buffer.tailors.TailorsControl`: its streams, all of it is to be freed, it has entries, it is
        idle, and it writes an entry.
    quiet : In(1), drop : Out(1), filled : Out(1), delivered : Out(1)
        Of :class:`BumpedWalk`.
    column, length : Out
        Of the column that is in the buffer, or comes.
    limit : Out
        Entries that can match; of those in the region the walk knows better.
    present, overbooked : Out(1)
        The column is in the buffer; it has more entries than that.

    Timing
    ------
    One word a cycle. A column that takes the place of another one begins about 10 cycles after it.
    """

    def __init__(self, *, entries: int, region: int, index_width: int) -> None:
        check_entries(entries)
        check_region(region, entries)
        check_index(entries, index_width)
        self.entries = entries
        self.region = region
        self.index_width = index_width
        count = range(entries + 1)
        word = stream.Signature(flagged_word())
        super().__init__(
            {
                "weights": In(stream.Signature(stationary_word(index_width))),
                "fill": Out(word),
                "overwrite": Out(word),
                "column": Out(COORDINATE_WIDTH),
                "length": Out(index_width),
                "limit": Out(count),
                **{name: In(1) for name in ("opened", "occupied", "unoccupied", "written", "quiet")},
                **{name: Out(1) for name in ("shrink", "drop", "filled", "delivered", "present", "overbooked")},
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        word = self.weights.payload
        size = Signal(range(self.entries + 1))  # entries that come with the column
        left = Signal(range(self.entries + 1))  # of these, not yet in the buffer
        m.d.comb += [
            self.overbooked.eq(self.length > self.entries),
            size.eq(Mux(self.overbooked, self.entries, self.length)),
            self.limit.eq(size),
            self.delivered.eq(self.overwrite.valid & self.overwrite.ready),
        ]
        for port in (self.fill, self.overwrite):
            m.d.comb += [port.payload.metadata.eq(word.metadata), port.payload.payload.eq(word.payload)]
        with m.FSM():
            with m.State("STAYS"):
                m.d.comb += [
                    self.present.eq(1),
                    self.overwrite.valid.eq(self.weights.valid & ~word.header),
                    self.weights.ready.eq(Mux(word.header, ~self.opened, self.overwrite.ready)),
                ]
                with m.If(self.weights.valid & word.header & ~self.opened):
                    m.d.sync += [self.column.eq(word.payload), self.length.eq(word.length)]
                    m.next = "EMPTY"
            with m.State("EMPTY"):
                m.d.comb += [self.drop.eq(1), self.shrink.eq(self.quiet & self.occupied)]
                m.d.sync += left.eq(size)
                with m.If(self.quiet & self.unoccupied):
                    m.next = "FILL"
            with m.State("FILL"):
                m.d.comb += [
                    self.fill.valid.eq(self.weights.valid & ~word.header),
                    self.weights.ready.eq(self.fill.ready & ~word.header),
                ]
                m.d.sync += left.eq(left - self.written)
                with m.If(left == 0):
                    m.d.comb += self.filled.eq(self.overbooked)
                    m.next = "STAYS"
        return m
