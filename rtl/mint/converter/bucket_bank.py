"""Appends records to buckets in memory and writes whole beats."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ..records import low_mask
from .streams import BYTES_BITS, ENTRY_BITS
from .update_sram import UpdateSram

__all__ = ["BucketBank", "BucketOrder", "addressed_beat", "bucket_order"]

ENTRY_BYTES = ENTRY_BITS // 8


class BucketOrder(enum.Enum, shape=2):
    """What an order does with its bucket."""

    APPEND = 0  # the record becomes its last one
    BEGIN = 1  # it begins at the byte that the record's low bits say
    FLUSH = 2  # what is not in memory yet is written
    DROP = 3  # what is not in memory yet is forgotten


def bucket_order(depth: int) -> data.StructLayout:
    """An order for the bucket ``index``."""
    return data.StructLayout({"index": range(depth), "kind": BucketOrder, "record": ENTRY_BITS})


def addressed_beat(beat_bits: int) -> data.StructLayout:
    """A beat, which of its bytes are written, and its place: the number of its first byte."""
    return data.StructLayout({"place": BYTES_BITS, "data": beat_bits, "strobe": beat_bits // 8})


class BucketBank(Block):
    """Buckets, each a row of consecutive bytes, to which records are appended in any order of buckets.

    Two words for each bucket: where its next record begins, and the bytes of its last beat that are not written yet. A beat
    leaves when it is full, or at a FLUSH with the bytes that it has: buckets share beats at their borders.

    Parameters
    ----------
    depth : int
        Buckets, at least 2.
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.

    Members
    -------
    orders : In(stream(bucket_order))
    record_bytes : In(range(13))
        Bytes of a record, from 1 to 12; bits above them are 0. Constant while an order is inside.
    beats : Out(stream(addressed_beat))
        From registers.
    busy : Out(1)
        An order or a beat is inside.

    Timing
    ------
    Four cycles from an order to its beat; an order a cycle.
    """

    latency = 4

    def __init__(self, *, depth: int, beat_bits: int) -> None:
        self.depth = check_integer("Depth", depth, 2, 1 << 16)
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        super().__init__(
            {
                "orders": In(stream.Signature(bucket_order(depth))),
                "record_bytes": In(range(ENTRY_BYTES + 1)),
                "beats": Out(stream.Signature(addressed_beat(beat_bits))),
                "busy": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        whole = self.beat_bits // 8
        m.submodules.places = places = UpdateSram(depth=self.depth, width=BYTES_BITS)
        m.submodules.lines = lines = UpdateSram(depth=self.depth, width=self.beat_bits + whole)
        enable = Signal()
        m.d.comb += [enable.eq(self.beats.ready | ~self.beats.valid), self.orders.ready.eq(enable)]
        m.d.comb += [places.enable.eq(enable), lines.enable.eq(enable)]

        # First the place, then the record moves to it, then it joins the others of its beat.
        named, located = signals("named located", bucket_order(self.depth))
        moved = Signal(BucketOrder)
        comes, has_moved = signals("comes has_moved")
        m.d.comb += [
            places.request.eq(self.orders.valid),
            places.index.eq(self.orders.payload.index),
            places.update.eq(places.word + Mux(named.kind == BucketOrder.APPEND, self.record_bytes, 0)),
            lines.request.eq(comes),
            lines.index.eq(located.index),
            has_moved.eq(lines.valid),
            self.busy.eq(places.valid | comes | has_moved | self.beats.valid),
        ]
        with m.If(named.kind == BucketOrder.BEGIN):
            m.d.comb += places.update.eq(named.record)
        place, place_of_line = signals("place place_of_line", BYTES_BITS)
        with m.If(enable):
            m.d.sync += [
                named.eq(self.orders.payload),
                comes.eq(places.valid & (named.kind != BucketOrder.BEGIN)),
                located.eq(named),
                place.eq(places.word),
                moved.eq(located.kind),
                place_of_line.eq(place),
            ]
        self._join(m, enable, located, place, moved, place_of_line, lines)
        return m

    def _join(
        self, m: Module, enable: Value, located: Any, place: Value, moved: Any, place_of_line: Value, lines: UpdateSram
    ) -> None:
        whole = self.beat_bits // 8
        within = (whole - 1).bit_length()
        offset = place[:within]
        appends = located.kind == BucketOrder.APPEND
        spread = Signal(self.beat_bits + ENTRY_BITS)  # the record in its beat and the next one
        covered = Signal(whole + ENTRY_BYTES)  # its bytes
        with m.If(enable):
            m.d.sync += [
                spread.eq(Mux(appends, located.record << (offset << 3), 0)),
                covered.eq(Mux(appends, low_mask(self.record_bytes, ENTRY_BYTES) << offset, 0)),
            ]
        waiting = data.StructLayout({"data": self.beat_bits, "strobe": whole})
        line = data.View(waiting, lines.word)
        joined, left = signals("joined left", waiting)
        full = Signal()
        m.d.comb += [
            joined.data.eq(line.data | spread),
            joined.strobe.eq(line.strobe | covered),
            full.eq(covered[whole - 1 :].any()),
            left.eq(joined),
            lines.update.eq(left),
        ]
        with m.If(full):
            m.d.comb += [left.data.eq(spread[self.beat_bits :]), left.strobe.eq(covered[whole:])]
        with m.Elif(moved != BucketOrder.APPEND):
            m.d.comb += left.eq(0)
        flushed = (moved == BucketOrder.FLUSH) & joined.strobe.any()
        with m.If(enable):
            m.d.sync += [
                self.beats.valid.eq(lines.valid & (full | flushed)),
                self.beats.payload.place.eq(place_of_line & ~(whole - 1)),
                self.beats.payload.data.eq(joined.data),
                self.beats.payload.strobe.eq(joined.strobe),
            ]
