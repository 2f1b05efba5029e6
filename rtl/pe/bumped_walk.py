"""Passes over the bumped entries of a stationary column: asks for them part by part and matches them in order."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..buffer.sizes import check_index
from ..lib.block import Block
from ..lib.signals import signals
from ..types import COORDINATE_WIDTH, VALUE_WIDTH
from .flagged_bus import check_vector, flagged_word
from .match_buffer import check_entries

__all__ = ["REGION_PARTS", "BumpedWalk", "bumped_part", "check_region", "region_of"]


def check_region(region: Any, entries: int) -> None:
    """Raises ValueError where a FIFO-managed region cannot have so many entries."""
    if not isinstance(region, int) or not 2 <= region <= entries or region % 2:
        raise ValueError(f"Region entries must be an even integer from 2 to {entries}, not {region!r}")


# Of a PE's buffer the FIFO-managed region is one of so many parts.
REGION_PARTS = 4


def region_of(entries: Any) -> int:
    """Entries of the FIFO-managed region where nobody says how many: whole nonzeros of two entries each."""
    check_entries(entries)
    return max(2, entries // (2 * REGION_PARTS) * 2)


def bumped_part(index_width: int, region: int) -> data.StructLayout:
    """``count`` entries of a column from entry ``index`` on, which are to be sent again."""
    return data.StructLayout({"index": index_width, "count": range(region + 1)})


class BumpedWalk(Block):
    """Matches the data of a cycle with the entries of a column that its buffer has no place for (Tailors, section 3.3).

    Each row of A is one pass over the bumped entries, in order, through the FIFO-managed region of the PE's buffer
    (:class:`rtl.buffer.tailors.TailorsControl`): a cycle is done when the next entry's coordinate is above its last column,
    or none is left. A row that comes when a pass has begun has the rest passed over, as the region brings entries round in
    order. A part of as many entries as the region has is asked for when everything of the part before was used; the first
    such part came with the column.

    Parameters
    ----------
    entries, region : int
        Of the buffer, and of its FIFO-managed region: even.
    lanes : int
        Data of a cycle, a power of two up to 32.
    index_width : int
        Bits of an entry's index in its column.

    Members
    -------
    filled : In(1)
        A column of ``length`` entries, more than the buffer's, is there. ``length`` stays as it is until the next.
    drop : In(1)
        The column is given up: answers are thrown away.
    asks : In(1), fresh : In(1), last_column : In, coordinates : In(array), present : In(lanes)
        A cycle waits: its lanes, the column of the last one; ``fresh``: with it a row begins. All stay until ``done``.
    done : Out(1), hits : Out(lanes), values : Out(array)
        It has met all that it can; with which lanes.
    leaves : In(1)
        The cycle goes; allowed while ``done``.
    delivered : In(1)
        An entry of a part that was asked for was taken.
    refill : Out(stream of ``bumped_part``)
        A part that is to come again.
    read : Out(stream of index), read_data : In(stream of ``flagged_word``), released : Out(1)
        Of the buffer's control. An entry is released when it was taken out of the region.
    quiet : Out(1)
        No answer is on its way.

    Timing
    ------
    One entry a cycle while they are in the region: a coordinate and its value take two.
    """

    def __init__(self, *, entries: int, region: int, lanes: int, index_width: int) -> None:
        check_entries(entries)
        check_region(region, entries)
        check_vector(lanes)
        check_index(entries, index_width)
        self.entries = entries
        self.region = region
        self.lanes = lanes
        self.index_width = index_width
        super().__init__(
            {
                **{name: In(1) for name in ("filled", "drop", "asks", "fresh", "leaves", "delivered")},
                "length": In(index_width),
                "last_column": In(COORDINATE_WIDTH),
                "coordinates": In(data.ArrayLayout(COORDINATE_WIDTH, lanes)),
                "present": In(lanes),
                "done": Out(1),
                "hits": Out(lanes),
                "values": Out(data.ArrayLayout(VALUE_WIDTH, lanes)),
                "refill": Out(stream.Signature(bumped_part(index_width, region))),
                "read": Out(stream.Signature(index_width)),
                "read_data": In(stream.Signature(flagged_word())),
                "released": Out(1),
                "quiet": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        first = self.entries - self.region  # of the bumped entries
        index = self.index_width

        def rolled(value: Any) -> Any:
            return Mux(value == self.length, first, value[:index])

        # Entries come into the region, are read before their use, and are used one after the other.
        following, next_read = signals("following next_read", index)  # the next to be used, the next to be read
        unread = Signal(range(self.region + 1))  # in the region
        reading = Signal(range(self.region + 1))  # on their way from there
        owed = Signal(range(self.region + 1))  # asked for and not there
        entry = Signal(
            data.StructLayout({"named": 1, "valid": 1, "coordinate": COORDINATE_WIDTH, "value": VALUE_WIDTH})
        )
        passed = Signal()  # the row has used them all
        begun = Signal()  # the row is past what the row before left
        uses, pops, issues = signals("uses pops issues")
        skips = self.asks & self.fresh & ~begun & (following != first)
        renews = self.asks & self.fresh & ~begun & (following == first)
        looks = self.asks & (begun | ~self.fresh) & ~passed
        coordinate = Signal(COORDINATE_WIDTH)
        below = Signal()
        word = self.read_data.payload
        m.d.comb += [
            coordinate.eq(Mux(entry.named, entry.coordinate, following)),
            below.eq(entry.valid & (coordinate <= self.last_column)),
            uses.eq(entry.valid & (skips | looks & below)),
            self.done.eq(self.asks & (begun | ~self.fresh) & (passed | (entry.valid & ~below))),
            self.read_data.ready.eq(self.drop | ~entry.valid | uses),
            pops.eq(self.read_data.valid & self.read_data.ready),
            self.released.eq(pops & ~self.drop),
            self.read.valid.eq(unread != 0),
            self.read.payload.eq(next_read),
            issues.eq(self.read.valid & self.read.ready),
            self.quiet.eq((reading == 0) & (unread == 0)),
        ]

        after = Signal(index)
        m.d.comb += after.eq(rolled(following + 1 + entry.named))
        with m.If(uses):
            m.d.sync += [following.eq(after), entry.valid.eq(0), entry.named.eq(0)]
            m.d.sync += passed.eq(looks & (after == first))
        with m.If(renews):
            m.d.sync += [begun.eq(1), passed.eq(0)]
        with m.If(self.leaves):
            m.d.sync += begun.eq(0)
        with m.If(pops & word.metadata):
            m.d.sync += [entry.named.eq(1), entry.coordinate.eq(word.payload)]
        with m.Elif(pops):
            m.d.sync += [entry.valid.eq(1), entry.value.eq(word.payload)]
        with m.If(issues):
            m.d.sync += next_read.eq(rolled(next_read + 1))
        m.d.sync += [unread.eq(unread + self.delivered - issues), reading.eq(reading + issues - pops)]

        # Whatever of a part is in the region comes to its use without being asked for.
        wants = (skips | looks) & ~entry.valid & (unread == 0) & (reading == 0) & (owed == 0) & ~self.refill.valid
        left = self.length - following
        with m.If(wants):
            m.d.sync += [
                self.refill.valid.eq(1),
                self.refill.payload.index.eq(following),
                self.refill.payload.count.eq(Mux(left < self.region, left, self.region)),
                owed.eq(Mux(left < self.region, left, self.region)),
            ]
        with m.Elif(self.refill.ready):
            m.d.sync += self.refill.valid.eq(0)
        with m.If(self.delivered):
            m.d.sync += owed.eq(owed - 1)

        # What a cycle has met stays with it.
        hits = Signal(self.lanes)
        with m.If(self.leaves):
            m.d.sync += hits.eq(0)
        for n in range(self.lanes):
            with m.If(looks & uses & self.present[n] & (self.coordinates[n] == coordinate)):
                m.d.sync += [hits[n].eq(1), self.values[n].eq(entry.value)]
        m.d.comb += self.hits.eq(hits)

        with m.If(self.filled):
            m.d.sync += [following.eq(first), next_read.eq(first), unread.eq(self.region)]
            m.d.sync += [reading.eq(0), owed.eq(0), passed.eq(0), begun.eq(0), Cat(entry.named, entry.valid).eq(0)]
        with m.Elif(self.drop):
            m.d.sync += [unread.eq(0), reading.eq(reading - pops)]
        return m
