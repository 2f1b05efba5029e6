"""Bit packer: any bit of any record of any region is where it belongs, with its strobe, and nothing else is written."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal

from .spec import Spec, fixed_value, free_inputs, implies, obey_streams

__all__ = ["PackerContract"]


class PackerContract(Spec):
    """The solver chooses one region and one bit of one of its records.

    Parameters
    ----------
    packer : BitPacker
    most : int
        Records of a region.
    """

    def __init__(self, packer: Any, *, most: int) -> None:
        super().__init__()
        self.packer = packer
        self.most = most

    def claims(self, m: Module) -> None:
        m.submodules.packer = packer = self.packer
        free_inputs(m, packer)
        obey_streams(m, packer)
        region, group, beat = packer.region.payload, packer.groups.payload, packer.beats.payload
        opens = packer.region.valid & packer.region.ready
        goes = packer.groups.valid & packer.groups.ready
        comes = packer.beats.valid & packer.beats.ready
        m.d.comb += Assume(implies(packer.region.valid, region.width <= packer.width))
        m.d.comb += Assume(implies(packer.groups.valid, group.count <= packer.lanes))

        record = fixed_value(m, range(self.most), "record")
        bit = fixed_value(m, range(packer.width), "bit")
        # Regions taken that have not ended: at the input, and at the output.
        unfed, unwritten = Signal(range(16)), Signal(range(16))
        before, earlier = Signal(range(16)), Signal(range(16))
        chosen, fed, gone, known, value = Signal(), Signal(), Signal(), Signal(), Signal()
        width, start = Signal.like(region.width), Signal.like(region.start)
        starts = opens & ~chosen & AnySeq(1)
        ends_in, ends = goes & group.last, comes & beat.last
        m.d.sync += [unfed.eq(unfed + opens - ends_in), unwritten.eq(unwritten + opens - ends)]
        with m.If(starts):
            m.d.sync += [chosen.eq(1), width.eq(region.width), start.eq(region.start)]
            m.d.sync += [before.eq(unfed - ends_in), earlier.eq(unwritten - ends)]
        with m.Else():
            with m.If(ends_in & chosen & ~fed):
                m.d.sync += [before.eq(before - (before != 0)), fed.eq(before == 0)]
            with m.If(ends & chosen & ~gone):
                m.d.sync += [earlier.eq(earlier - (earlier != 0)), gone.eq(earlier == 0)]

        # Records of the region so far, and the value of the watched bit.
        feeding = goes & chosen & ~fed & (before == 0)
        seen = Signal(range(2 * self.most + packer.lanes))
        with m.If(feeding):
            m.d.sync += seen.eq(seen + group.count)
        m.d.comb += Assume(implies(feeding, seen + group.count <= self.most))
        for n in range(packer.lanes):
            with m.If(feeding & (seen + n == record) & (group.count > n)):
                m.d.sync += [known.eq(1), value.eq(group.records[n].bit_select(bit, 1))]

        beats = Signal(range(16))  # of the region at the output
        with m.If(comes):
            m.d.sync += beats.eq(Mux(beat.last, 0, beats + 1))
        now = comes & chosen & ~gone & (earlier == 0)
        place = Signal(8)
        m.d.comb += place.eq(start + record * width + bit)
        low = place[: (packer.beat_bits - 1).bit_length()]
        mine = now & (beats == place[len(low) :]) & (bit < width)
        strobes = sum((beat.strobe[n] for n in range(packer.beat_bits // 8)), start=0)
        end = start + seen * width
        m.d.comb += [
            Assert(implies(mine & known, beat.data.bit_select(low, 1) == value), "a bit is where it belongs"),
            Assert(implies(mine & known, beat.strobe.bit_select(low >> 3, 1)), "its byte is written"),
            Assert(implies(mine & fed & ~known, ~beat.data.bit_select(low, 1)), "bits behind the records are 0"),
            Assert(implies(comes, beat.bytes == strobes), "bytes are those of the strobe"),
            Assert(
                implies(now & beat.last & (seen * width != 0), (beats + 1) * packer.beat_bits >= end),
                "the last beat is not early",
            ),
            Assert(implies(now, beats * packer.beat_bits <= start + self.most * width), "the last beat is not late"),
            Assert(implies(comes & beat.last, unwritten > unfed), "a region ends when its groups have ended"),
            Assert(implies(comes, unwritten != 0), "nothing comes out that did not go in"),
            Assert(~packer.error, "no error without a cause"),
            Cover(mine & known & (record != 0) & (value == 1) & (beats == 1)),
            Cover(now & beat.last & (beat.bytes == 0)),
        ]
