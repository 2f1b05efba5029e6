"""Beats of a ZVC mask, of a dense matrix or of dense blocks from the positions of its values."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from ..bit_packer import packed_beat
from ..records import low_mask
from .streams import POSITION_BITS, position_group

__all__ = ["BeatBuilder"]


class BeatBuilder(Block):
    """A bit or a value for each place, in its beat; places without a value are 0.

    A beat leaves when an entry beyond it comes, or the last one. Entries of the beat behind it are taken in the same cycle.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 64 to 1024.
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Members
    -------
    groups : In(stream(position_group))
        Positions rise. A group may be empty.
    dense : In(1), places : In(65)
        Values, not a mask, constant while an entry is inside; how many places there are, when the group with ``last`` comes.
    beats : Out(stream(packed_beat))
        From registers.

    Timing
    ------
    One cycle from an entry beyond a beat to the beat; a beat a cycle, and a group a cycle of at most two beats.
    """

    latency = 1

    def __init__(self, *, beat_bits: int, lanes: int, value_bits: int) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 64, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.values = beat_bits // value_bits
        super().__init__(
            {
                "groups": In(stream.Signature(position_group(lanes, value_bits))),
                "dense": In(1),
                "places": In(POSITION_BITS + 1),
                "beats": Out(stream.Signature(packed_beat(beat_bits))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.beats = beats = StreamRegister(shape=self.beats.payload.shape())
        connect(m, beats.o, flipped(self.beats))
        group = self.groups.payload
        number = Signal(POSITION_BITS)  # of the beat being built
        gathered = Signal(self.beat_bits)
        value_place, mask_place = (self.values - 1).bit_length(), (self.beat_bits - 1).bit_length()

        here: list[Value] = []
        following: list[Value] = []  # bits of the beat behind this one
        beyond: list[Value] = []
        for n in range(lanes):
            used = group.count > n
            at = Signal(POSITION_BITS, name=f"beat{n}")
            position = Value.cast(group.positions[n])
            m.d.comb += at.eq(Mux(self.dense, position[value_place:], position[mask_place:]))
            bits = Signal(self.beat_bits, name=f"bits{n}")
            m.d.comb += bits.eq(self._placed(position, group.values[n]))
            here.append(bits & (used & (at == number)).replicate(self.beat_bits))
            following.append(bits & (used & (at == number + 1)).replicate(self.beat_bits))
            beyond.append(used & (at > number + 1))

        # Places from the beat being built on.
        left = Signal(POSITION_BITS + 1)
        of_beat = Mux(self.dense, self.values, self.beat_bits)
        ends = Signal()
        m.d.comb += [
            left.eq(self.places - Mux(self.dense, number << value_place, number << mask_place)),
            ends.eq(group.last & (left <= of_beat)),
        ]

        now = Signal(self.beat_bits)
        leaves, done = signals("leaves done")
        m.d.comb += [
            now.eq(gathered | reduce(or_, here)),
            # All beats are due behind the last entry.
            leaves.eq(Cat(*(bits.any() for bits in self._present(group, number))).any() | group.last),
            done.eq(~Cat(*beyond).any() & (~group.last | ends)),
            beats.i.valid.eq(self.groups.valid & leaves),
            beats.i.payload.data.eq(now),
            beats.i.payload.last.eq(ends),
            self.groups.ready.eq(done & (beats.i.ready | ~leaves)),
        ]
        self._sized(m, beats.i.payload, ends, left)
        goes = Signal()
        m.d.comb += goes.eq(self.groups.valid & (beats.i.ready | ~leaves))
        with m.If(goes):
            m.d.sync += gathered.eq(Mux(leaves, reduce(or_, following), now))
            with m.If(leaves):
                m.d.sync += number.eq(Mux(ends, 0, number + 1))
        return m

    def _present(self, group: Any, number: Value) -> list[Value]:
        """Whether each lane has an entry behind the beat being built."""
        value_place, mask_place = (self.values - 1).bit_length(), (self.beat_bits - 1).bit_length()
        found = []
        for n in range(self.lanes):
            position = Value.cast(group.positions[n])
            at = Mux(self.dense, position[value_place:], position[mask_place:])
            found.append((group.count > n) & (at > number))
        return found

    def _placed(self, position: Value, value: Value) -> Value:
        """The entry's bit or value where it belongs in its beat."""
        place = position[: (self.values - 1).bit_length()]
        bit = position[: (self.beat_bits - 1).bit_length()]
        values = Cat(Mux(place == n, value, 0) for n in range(self.values))
        return Mux(self.dense, values, Const(1, self.beat_bits) << bit)[: self.beat_bits]

    def _sized(self, m: Module, beat: Any, ends: Value, left: Value) -> None:
        """Bytes that the beat has."""
        whole = self.beat_bits // 8
        last = Mux(self.dense, left << (self.value_bits.bit_length() - 4), (left + 7) >> 3)
        m.d.comb += [beat.bytes.eq(Mux(ends, last, whole)), beat.strobe.eq(low_mask(beat.bytes, whole))]
