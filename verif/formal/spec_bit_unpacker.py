"""Bit unpacker: any bit of any record of any request is the one that its beats hold, and every request ends in time."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal

from .spec import Spec, fixed_value, free_inputs, implies, obey_streams

__all__ = ["UnpackerContract"]

HELD_BEATS = 2  # taken before the request that they belong to


class UnpackerContract(Spec):
    """The solver chooses one request and one bit of one of its records.

    Beats are counted against those that the requests taken need; a beat may have come before its request, so the last
    ``HELD_BEATS`` are kept.

    Parameters
    ----------
    unpacker : BitUnpacker
    most : int
        Records of a request.
    """

    def __init__(self, unpacker: Any, *, most: int) -> None:
        super().__init__()
        self.unpacker = unpacker
        self.most = most

    def claims(self, m: Module) -> None:
        m.submodules.unpacker = unpacker = self.unpacker
        free_inputs(m, unpacker)
        group = unpacker.groups.payload
        obey_streams(m, unpacker, meant={"groups": lambda payload: self._meant(payload)})
        asks = unpacker.request.valid & unpacker.request.ready
        beats = unpacker.beats.valid & unpacker.beats.ready
        comes = unpacker.groups.valid & unpacker.groups.ready
        request = unpacker.request.payload
        beat = unpacker.beat_bits
        m.d.comb += Assume(
            implies(unpacker.request.valid, (request.count <= self.most) & (request.width <= unpacker.width))
        )

        # Beats that the requests taken need, less those taken.
        needed = Signal(8)
        has_bits = (request.count != 0) & (request.width != 0)
        m.d.comb += needed.eq(Mux(has_bits, (request.drop + request.width * request.count + beat - 1) // beat, 0))
        owed = Signal(range(-64, 64))
        m.d.sync += owed.eq(owed + Mux(asks, needed, 0) - beats)
        history = Signal(HELD_BEATS * beat)  # the last one at the bottom
        with m.If(beats):
            m.d.sync += history.eq(Cat(unpacker.beats.payload, history)[: HELD_BEATS * beat])

        record = fixed_value(m, range(self.most + 1), "record")
        bit = fixed_value(m, range(unpacker.width), "bit")
        inside = Signal(range(16))  # requests taken that have not ended
        earlier = Signal.like(inside)
        chosen, gone, known, value = Signal(), Signal(), Signal(), Signal()
        width, count = Signal.like(request.width), Signal.like(request.count)
        distance, place = Signal(range(-64, 64)), Signal(range(beat))  # beats before the one that holds the bit
        ends = comes & group.last
        m.d.sync += inside.eq(inside + asks - ends)
        at = Signal(8)
        m.d.comb += at.eq(request.drop + record * request.width + bit)
        starts = asks & ~chosen & AnySeq(1)
        to_come = Signal(range(-64, 64))
        m.d.comb += to_come.eq(owed + at // beat)
        with m.If(starts):
            m.d.sync += [
                chosen.eq(1),
                earlier.eq(inside - ends),
                width.eq(request.width),
                count.eq(request.count),
                distance.eq(to_come - beats),
                place.eq(at % beat),
                known.eq(to_come - beats < 0),
                value.eq(unpacker.beats.payload.bit_select(at % beat, 1)),
            ]
            for n in range(HELD_BEATS):
                with m.If(to_come == -1 - n):
                    m.d.sync += value.eq(history.bit_select(n * beat + at % beat, 1))
        with m.Elif(chosen & ~known & beats):
            m.d.sync += distance.eq(distance - 1)
            with m.If(distance == 0):
                m.d.sync += [known.eq(1), value.eq(unpacker.beats.payload.bit_select(place, 1))]
        with m.If(~starts & ends & chosen & ~gone):
            m.d.sync += [earlier.eq(earlier - (earlier != 0)), gone.eq(earlier == 0)]

        now = chosen & ~gone & (earlier == 0) & comes
        seen = Signal(8)  # records of the request at the output before this group
        with m.If(comes):
            m.d.sync += seen.eq(Mux(group.last, 0, seen + group.count))
        mine = now & (record >= seen) & (record < seen + group.count)
        found = Signal()
        for n in range(unpacker.lanes):
            with m.If(record - seen == n):
                m.d.comb += found.eq(group.records[n].bit_select(bit, 1))
        m.d.comb += [
            Assert(implies(mine & (bit < width), known & (found == value)), "a record has the bits of its beats"),
            Assert(implies(mine & (bit >= width), ~found), "a record has zeros above its width"),
            Assert(
                implies(now & group.last, seen + group.count == count), "a request has as many records as asked for"
            ),
            Assert(implies(now & ~group.last, seen + group.count < count), "the last record ends its request"),
            Assert(implies(comes & (group.count == 0), group.last), "only a last group is empty"),
            Assert(group.count <= unpacker.lanes, "a group has at most a record for each lane"),
            Assert(implies(comes, inside != 0), "nothing comes out that was not asked for"),
            Assert(owed >= -HELD_BEATS, "no more beats are held than promised"),
            Assert(~unpacker.error, "no error without a cause"),
            Cover(mine & (seen != 0) & (bit < width) & (value == 1) & (inside > 1)),
            Cover(now & group.last & (count == 0)),
        ]

    @staticmethod
    def _meant(group: Any) -> Any:
        lanes = len(group.records)
        return Cat(group.count, group.last, *(Mux(group.count > n, group.records[n], 0) for n in range(lanes)))
