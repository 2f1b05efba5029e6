"""Checks the order of entries, drops those that the target has no place for, and closes the gaps between the others."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.counter import popcount
from ...lib.onehot import lowest_set, onehot_select
from ...lib.stream import StreamRegister
from .streams import placed_vector, position_group

__all__ = ["EntryFilter"]


class EntryFilter(Block):
    """Entries of a vector whose lanes may be empty become groups without gaps.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    floating : bool
        The sign bit does not count where a value is compared with zero.
    tensors : bool
        Entries have a coordinate above their position.

    Members
    -------
    placed : In(stream(placed_vector))
        Present entries rise from lane to lane and from vector to vector, unless ``unsorted``.
    drop_zeros : In(1), unsorted : In(1)
        Entries with a value of 0 are dropped; any order is right. Constant while an entry is inside.
    groups : Out(stream(position_group))
        From registers. A group may be empty.
    outside : Out(1), disorder : Out(1), number : Out(64)
        An entry lies outside the matrix; one does not rise; the number of that entry. They stay until the reset, and nothing
        is taken any more.

    Timing
    ------
    Two cycles, a vector a cycle.
    """

    latency = 2

    def __init__(self, *, lanes: int, value_bits: int, floating: bool, tensors: bool = False) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.floating = bool(floating)
        self.tensors = bool(tensors)
        super().__init__(
            {
                "placed": In(stream.Signature(placed_vector(lanes, value_bits, self.tensors))),
                "drop_zeros": In(1),
                "unsorted": In(1),
                "groups": Out(stream.Signature(position_group(lanes, value_bits, self.tensors))),
                "outside": Out(1),
                "disorder": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.checked = checked = StreamRegister(shape=self.placed.payload.shape())
        m.submodules.groups = groups = StreamRegister(shape=self.groups.payload.shape())
        connect(m, groups.o, flipped(self.groups))

        vector = self.placed.payload
        outers = vector.outers if self.tensors else [Const(0, 0)] * lanes
        places = [Cat(vector.positions[n], outers[n]) for n in range(lanes)]
        last_position = Signal(len(places[0]))  # place of the last entry that was taken
        begun = Signal()
        unordered = []
        previous, known = last_position, begun
        for n in range(lanes):
            unordered.append(vector.present[n] & known & ~self.unsorted & (places[n] <= previous))
            latest = Signal(len(places[0]), name=f"latest{n}")
            m.d.comb += latest.eq(Mux(vector.present[n], places[n], previous))
            previous, known = latest, known | vector.present[n]
        outside = vector.outside & vector.present
        wrong = Cat(*unordered) | outside
        first = lowest_set(wrong)
        stopped = self.outside | self.disorder
        goes = Signal()
        m.d.comb += [
            checked.i.valid.eq(self.placed.valid & ~wrong.any() & ~stopped),
            self.placed.ready.eq(checked.i.ready & ~wrong.any() & ~stopped),
            goes.eq(self.placed.valid & self.placed.ready),
            checked.i.payload.eq(vector),
        ]
        compared = self.value_bits - self.floating
        kept = Cat(vector.present[n] & ~(self.drop_zeros & ~vector.values[n][:compared].any()) for n in range(lanes))
        m.d.comb += checked.i.payload.present.eq(kept)
        with m.If(goes):
            m.d.sync += [last_position.eq(previous), begun.eq(known & ~vector.last)]
            m.d.sync += self.number.eq(self.number + popcount(vector.present))
        with m.If(self.placed.valid & wrong.any() & ~stopped):
            before = popcount(Cat(vector.present[n] & ~first[: n + 1].any() for n in range(lanes)))
            m.d.sync += [
                self.outside.eq((first & outside).any()),
                self.disorder.eq(~(first & outside).any()),
                self.number.eq(self.number + before),
            ]

        # Lane n of a group takes the entry before which n others are present.
        full = checked.o.payload
        m.d.comb += [
            groups.i.valid.eq(checked.o.valid),
            checked.o.ready.eq(groups.i.ready),
            groups.i.payload.count.eq(popcount(full.present)),
            groups.i.payload.last.eq(full.last),
        ]
        ranks = [popcount(full.present[:n]) for n in range(lanes)]
        for n in range(lanes):
            sources = range(n, lanes)
            chosen = Signal(lanes - n, name=f"chosen{n}")
            m.d.comb += chosen.eq(Cat(full.present[k] & (ranks[k] == n) for k in sources))
            for name in ("positions", "values", "outers")[: 3 if self.tensors else 2]:
                m.d.comb += groups.i.payload[name][n].eq(onehot_select(chosen, [full[name][k] for k in sources]))
        return m
