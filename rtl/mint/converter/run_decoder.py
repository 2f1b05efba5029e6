"""Positions of the levels of an RLC matrix: prefix sums of its runs."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.onehot import lowest_set, onehot_index
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from ..host.hosted_sum import HOST, host_member, make_sum
from ..records import low_mask
from .streams import COORDINATE_BITS, POSITION_BITS, field_group, placed_vector

__all__ = ["RunDecoder"]


class RunDecoder(Block):
    """A level's position is the sum of all runs up to its own and one for each level before it (MINT, figure 8d).

    Fillers, pairs of the longest run and level 0, count as zeros and leave nothing.

    Parameters
    ----------
    lanes : int
        Pairs a cycle, power of two from 2 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    floating : bool
        The sign bit does not count where a level is compared with zero.
    form : str
        Network of the prefix sum, one of :data:`rtl.mint.host.hosted_sum.HOSTED`.

    Members
    -------
    pairs : In(stream(field_group))
        Runs in ``first``.
    run_bits : In(range(33)), places : In(65)
        Bits of a run; places of the matrix. Constant while a pair is inside.
    placed : Out(stream(placed_vector))
        From registers.
    error : Out(1), number : Out(64)
        A level 0 has a run other than the longest, or is the last one; the number of its pair. Stays until the reset.
    host : Out(SumPort)
        Where ``form`` is ``host``.

    Timing
    ------
    ``latency`` cycles, a group a cycle.
    """

    def __init__(self, *, lanes: int, value_bits: int, floating: bool, form: str) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.floating = bool(floating)
        self.form = form
        # A sum passes the last place by less than the runs of one vector.
        self.sum_bits = POSITION_BITS + 2
        self._sums = make_sum(form, inputs=lanes, width=COORDINATE_BITS + 1, sum_width=self.sum_bits)
        super().__init__(
            {
                "pairs": In(stream.Signature(field_group(lanes, value_bits))),
                "run_bits": In(range(COORDINATE_BITS + 1)),
                "places": In(POSITION_BITS + 1),
                "placed": Out(stream.Signature(placed_vector(lanes, value_bits))),
                "error": Out(1),
                "number": Out(64),
                **host_member(form),
            }
        )

    @property
    def latency(self) -> int:
        return self._sums.latency + 1

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.sums = sums = self._sums
        m.submodules.placed = placed = StreamRegister(shape=self.placed.payload.shape())
        connect(m, placed.o, flipped(self.placed))

        group = self.pairs.payload
        used, stored, wrong, first_wrong = signals("used stored wrong first_wrong", lanes)
        compared = self.value_bits - self.floating
        longest = low_mask(self.run_bits, COORDINATE_BITS)
        short = Cat(used[n] & ~stored[n] & (group.first[n] != longest) for n in range(lanes))
        ends = Cat(group.last & (group.count == n + 1) & ~stored[n] for n in range(lanes))
        m.d.comb += [
            used.eq(Cat(group.count > n for n in range(lanes))),
            stored.eq(Cat(used[n] & group.values[n][:compared].any() for n in range(lanes))),
            wrong.eq(short | ends),
            first_wrong.eq(lowest_set(wrong)),
        ]
        earlier = Signal(64)  # pairs before those at hand
        goes = Signal()
        m.d.comb += [
            sums.i.valid.eq(self.pairs.valid & ~self.error & ~wrong.any()),
            self.pairs.ready.eq(sums.i.ready & ~self.error & ~wrong.any()),
            goes.eq(self.pairs.valid & self.pairs.ready),
            *(sums.i.payload.values[n].eq(Mux(used[n], group.first[n] + 1, 0)) for n in range(lanes)),
        ]
        with m.If(goes):
            m.d.sync += earlier.eq(earlier + group.count)
        with m.If(self.pairs.valid & ~self.error & wrong.any()):
            m.d.sync += [self.error.eq(1), self.number.eq(earlier + onehot_index(first_wrong))]

        along = sums.carry(m, Cat(stored, group.last, *(group.values[n] for n in range(lanes))))
        if self.form == HOST:
            connect(m, sums.host, flipped(self.host))
        m.d.comb += [
            placed.i.valid.eq(sums.o.valid),
            sums.o.ready.eq(placed.i.ready),
            placed.i.payload.present.eq(along[:lanes]),
            placed.i.payload.last.eq(along[lanes]),
        ]
        for n in range(lanes):
            total = sums.o.payload.sums[n]
            m.d.comb += [
                placed.i.payload.values[n].eq(along[lanes + 1 + n * self.value_bits :][: self.value_bits]),
                placed.i.payload.positions[n].eq(total - 1),
                placed.i.payload.outside[n].eq(along[n] & (total > self.places)),
            ]
        return m
