"""Buffer of a weight-stationary PE: entries that are data or metadata, with a match port for every lane."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.onehot import onehot_index
from ..types import COORDINATE_WIDTH, VALUE_WIDTH
from .flagged_bus import check_vector, flagged_word

__all__ = ["MatchBuffer", "check_entries", "match"]


def check_entries(entries: Any) -> None:
    """Raises ValueError where a buffer cannot have so many entries: pairs of them hold a coordinate and its value."""
    check_integer("Buffer entries", entries, 4, 1024)
    if entries % 2:
        raise ValueError(f"Buffer entries must be even, not {entries!r}")


def match(entries: int) -> data.StructLayout:
    """Whether a coordinate is stationary, and at which entry its value lies."""
    return data.StructLayout({"hit": 1, "place": range(entries)})


class MatchBuffer(Block):
    """Entries of a stationary column and what finds values in them by coordinates (MINT, section IV.A and figure 7).

    Where entry 0 is metadata the column is CSC: entries 2n are coordinates, each followed by its value. Comparators set every
    coordinate against every lane's; their one-hot outcome is encoded to the place of the value. Else the column is Dense, and
    the coordinate is the place. Lanes beyond the ``named`` ones serve Dense data alone: lane 0 brings a multiple of ``lanes``,
    and they its successors, so that the comparators of lane 0 serve them too, all but the lowest bits.

    Parameters
    ----------
    entries : int
        4 to 1024, even.
    lanes : int
        Match ports, a power of two up to 32.
    named : int
        Lanes, from 0 on, that bring any coordinates. Default: all.

    Members
    -------
    write_enable, write_address, write_word : In
        Sets an entry.
    limit : In(range(entries + 1))
        Entries that take part in matches: those before this one.
    coordinates : In(array of coordinates), found : Out(array of ``match``)
        Combinational. Coordinates of a column are distinct.
    places : In(array), values : Out(array)
        Payloads of entries. Combinational.
    read_address : In, read_word : Out(flagged_word)
        One more entry, with its flag. Combinational.

    Timing
    ------
    Combinational; an entry can be read in the cycle after its write. A reset leaves the entries as they are.
    """

    def __init__(self, *, entries: int, lanes: int, named: int | None = None) -> None:
        check_entries(entries)
        check_vector(lanes)
        self.entries = entries
        self.lanes = lanes
        self.named = lanes if named is None else named
        check_integer("Lanes with any coordinates", self.named, 1, lanes)
        place = range(entries)
        super().__init__(
            {
                "write_enable": In(1),
                "write_address": In(place),
                "write_word": In(flagged_word()),
                "limit": In(range(entries + 1)),
                "coordinates": In(data.ArrayLayout(COORDINATE_WIDTH, lanes)),
                "found": Out(data.ArrayLayout(match(entries), lanes)),
                "places": In(data.ArrayLayout(place, lanes)),
                "values": Out(data.ArrayLayout(VALUE_WIDTH, lanes)),
                "read_address": In(place),
                "read_word": Out(flagged_word()),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        kept = [Signal(flagged_word(), name=f"entry{n}", reset_less=True) for n in range(self.entries)]
        for n, entry in enumerate(kept):
            with m.If(self.write_enable & (self.write_address == n)):
                m.d.sync += entry.eq(self.write_word)
        words = Array(Value.cast(entry) for entry in kept)
        m.d.comb += Value.cast(self.read_word).eq(words[self.read_address])

        pairs = range(self.entries // 2)
        csc = kept[0].metadata
        low = (self.lanes - 1).bit_length()
        # The coordinates that are lane 0's but for the lowest bits: lanes beyond the named ones look no further.
        near = Signal(len(pairs))
        origin = self.coordinates[0]
        m.d.comb += near.eq(
            Cat((kept[2 * n].payload[low:] == origin[low:]) & (2 * n < self.limit) for n in pairs),
        )
        for lane in range(self.lanes):
            coordinate, one = self.coordinates[lane], self.found[lane]
            equal = Signal(len(pairs), name=f"equal{lane}")
            if lane == 0:
                m.d.comb += equal.eq(near & Cat(kept[2 * n].payload[:low] == origin[:low] for n in pairs))
            elif lane < self.named:
                m.d.comb += equal.eq(
                    Cat((kept[2 * n].payload == coordinate) & (2 * n < self.limit) for n in pairs),
                )
            else:
                m.d.comb += equal.eq(near & Cat(kept[2 * n].payload[:low] == lane for n in pairs))
            m.d.comb += [
                one.hit.eq(Mux(csc, equal.any(), coordinate < self.limit)),
                one.place.eq(Mux(csc, Cat(1, onehot_index(equal)), coordinate[: len(one.place)])),
                self.values[lane].eq(self._value(kept, lane, csc)),
            ]
        return m

    def _value(self, kept: list[Any], lane: int, csc: Any) -> Value:
        """What lies at the place of a lane: anywhere; beyond the named ones at a value of CSC, or in the lane's own column."""
        place = self.places[lane]
        if lane < self.named:
            return Array(entry.payload for entry in kept)[place]
        values = Array(entry.payload for entry in kept[1::2])
        own = [entry.payload for entry in kept[lane :: self.lanes]]
        return Mux(csc, values[place[1:]], Array(own)[place[(self.lanes - 1).bit_length() :]] if own else 0)
