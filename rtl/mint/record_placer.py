"""Places records of a width that is chosen at run time in the beats that they go to."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.onehot import onehot_select
from .records import Stage, check_sizes, low_mask, multiples_of, record_group

__all__ = ["RecordPlacer", "pack_region", "placed_group"]


def pack_region(beat_bits: int, width: int) -> data.StructLayout:
    """Bit of the first beat with which a region begins, bits of a record."""
    return data.StructLayout({"start": range(beat_bits), "width": range(width + 1)})


def record_fields(beat_bits: int, lanes: int, width: int) -> dict[str, Any]:
    """``count`` records, whether they are their region's first or last ones, and the bit of a beat with which that begins."""
    fields = {"records": data.ArrayLayout(width, lanes), "count": range(lanes + 1), "last": 1, "first": 1}
    return fields | {"start": range(beat_bits)}


def placed_group(beat_bits: int, lanes: int, width: int) -> data.StructLayout:
    """A group of records: the bit at which each begins, and the one after the last, from the begin of the beat being filled."""
    place = (beat_bits - 1 + lanes * width).bit_length()
    ends = {"places": data.ArrayLayout(place, lanes), "end": place}
    return data.StructLayout({**record_fields(beat_bits, lanes, width), **ends})


class RecordPlacer(Block):
    """Gives each record of a region the bit where it goes: behind the one before it, the first one at the region's start.

    Parameters
    ----------
    beat_bits, lanes, width : int
        See :class:`rtl.mint.bit_unpacker.BitUnpacker`.

    Members
    -------
    region : In(stream), groups : In(stream)
        As :class:`rtl.mint.bit_packer.BitPacker`.
    placed : Out(stream)
        Each group; bits of its records above the region's width are 0. From registers.
    error : Out(1)
        A region was wider than the widest record: its records take no bits. It stays until the reset.

    Timing
    ------
    Two cycles from a group to its places, one more from a region to its first group; one group a cycle. ``groups.ready``
    follows ``placed.ready`` at once, and waits for a region.
    """

    latency = 2

    def __init__(self, *, beat_bits: int, lanes: int, width: int) -> None:
        check_sizes(beat_bits=beat_bits, lanes=lanes, width=width, stages=1)
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.width = width
        super().__init__(
            {
                "region": In(stream.Signature(pack_region(beat_bits, width))),
                "groups": In(stream.Signature(record_group(lanes, width))),
                "placed": Out(stream.Signature(placed_group(beat_bits, lanes, width))),
                "error": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        count, beat = self.lanes, self.beat_bits
        bits = (count * self.width).bit_length()
        opened = data.StructLayout(
            {"start": range(beat), "width": range(self.width + 1), "multiples": data.ArrayLayout(bits, count + 1)}
        )
        # A region waits in `next_region`, and is `opened_region` while its groups are taken.
        next_region, region = Stage(m, "next_region", opened), Stage(m, "opened_region", opened)
        records = record_fields(beat, count, self.width)
        multiples = {"multiples": data.ArrayLayout(bits, count)}
        sized = Stage(m, "sized", data.StructLayout({**records, **multiples, "bits": bits}))
        placed = Stage(m, "placed", placed_group(beat, count, self.width))

        asked = self.region.payload
        wrong = asked.width > self.width
        width = Mux(wrong, 0, asked.width)
        with m.If(self.region.valid & self.region.ready & wrong):
            m.d.sync += self.error.eq(1)
        enters = Signal()
        group = self.groups.payload
        m.d.comb += [
            self.region.ready.eq(next_region.ready),
            self.groups.ready.eq(region.valid & sized.ready),
            enters.eq(self.groups.valid & self.groups.ready),
        ]
        next_region.moves(comes=self.region.valid, taken=region.ready)
        next_region.holds({"start": asked.start, "width": width, "multiples": multiples_of(width, count)})
        region.moves(comes=next_region.valid, taken=enters & group.last)
        region.holds(next_region.payload)

        now = region.payload
        first = Signal(init=1)
        with m.If(enters):
            m.d.sync += first.eq(group.last)
        mask = low_mask(now.width, self.width)
        chosen = Cat(group.count == n for n in range(count + 1))
        sized.moves(comes=self.groups.valid & region.valid, taken=placed.ready)
        sized.holds(
            {
                "records": [group.records[n] & mask for n in range(count)],
                "count": group.count,
                "last": group.last,
                "first": first,
                "start": now.start,
                "multiples": [now.multiples[n] for n in range(count)],
                "bits": onehot_select(chosen, [now.multiples[n] for n in range(count + 1)]),
            }
        )

        level = Signal(range(beat), reset_less=True)
        item = sized.payload
        at = Mux(item.first, item.start, level)
        end = at + item.bits
        with m.If(sized.valid & placed.ready):
            m.d.sync += level.eq(end)
        placed.holds(
            {
                "records": [item.records[n] for n in range(count)],
                "count": item.count,
                "last": item.last,
                "first": item.first,
                "start": item.start,
                "places": [at + item.multiples[n] for n in range(count)],
                "end": end,
            }
        )
        placed.moves(comes=sized.valid, taken=self.placed.ready)
        m.d.comb += [self.placed.valid.eq(placed.valid), self.placed.payload.eq(placed.payload)]
        return m
