"""Runs and levels of an RLC matrix from the positions of its values."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.onehot import onehot_select
from ...lib.stream import StreamRegister
from ..records import low_mask
from .streams import COORDINATE_BITS, POSITION_BITS, field_group, position_group

__all__ = ["RunEncoder"]


class RunEncoder(Block):
    """A value becomes a pair of the zeros before it and itself; a run that is too long goes on by fillers before that pair.

    Parameters
    ----------
    lanes : int
        Values and pairs a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Members
    -------
    groups : In(stream(position_group))
        Positions rise. A group may be empty.
    run_bits : In(range(33))
        Bits of a run, at least 1. Constant while a value is inside.
    pairs : Out(stream(field_group))
        Runs in ``first``, levels in ``values``, 0 in ``second``. A group may be empty. From registers.

    Timing
    ------
    Three cycles; ``lanes`` pairs of one group a cycle, and no less than a cycle for each group.
    """

    latency = 3

    def __init__(self, *, lanes: int, value_bits: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        super().__init__(
            {
                "groups": In(stream.Signature(position_group(lanes, value_bits))),
                "run_bits": In(range(COORDINATE_BITS + 1)),
                "pairs": Out(stream.Signature(field_group(lanes, value_bits))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        ends = {"values": data.ArrayLayout(self.value_bits, lanes), "count": range(lanes + 1), "last": 1}
        gaps = {"gaps": data.ArrayLayout(POSITION_BITS, lanes), **ends}
        # The number of pairs up to that of each value; a matrix has at most 2^64 places and so of pairs.
        sums = {
            "runs": data.ArrayLayout(COORDINATE_BITS, lanes),
            "ends": data.ArrayLayout(POSITION_BITS, lanes),
            **ends,
        }
        m.submodules.gaps = gap = StreamRegister(shape=data.StructLayout(gaps))
        m.submodules.sums = summed = StreamRegister(shape=data.StructLayout(sums))
        m.submodules.pairs = pairs = StreamRegister(shape=self.pairs.payload.shape())
        connect(m, pairs.o, flipped(self.pairs))
        mask = low_mask(self.run_bits, COORDINATE_BITS)

        group = self.groups.payload
        following = Signal(POSITION_BITS)  # the place behind the last value
        m.d.comb += [gap.i.valid.eq(self.groups.valid), self.groups.ready.eq(gap.i.ready)]
        begin: Value = following
        for n in range(lanes):
            m.d.comb += gap.i.payload.gaps[n].eq(group.positions[n] - begin)
            begin = (group.positions[n] + 1)[:POSITION_BITS]
            with m.If(gap.i.valid & gap.i.ready & (group.count == n + 1)):
                m.d.sync += following.eq(begin)
        with m.If(gap.i.valid & gap.i.ready & group.last):
            m.d.sync += following.eq(0)

        apart = gap.o.payload
        m.d.comb += [summed.i.valid.eq(gap.o.valid), gap.o.ready.eq(summed.i.ready)]
        total: Value = Const(0, 1)
        for n in range(lanes):
            end = Signal(POSITION_BITS, name=f"end{n}")
            m.d.comb += [
                end.eq(total + (apart.gaps[n] >> self.run_bits) + 1),
                summed.i.payload.ends[n].eq(end),
                summed.i.payload.runs[n].eq(apart.gaps[n][:COORDINATE_BITS] & mask),
            ]
            total = end
        for name in ends:
            m.d.comb += [
                gap.i.payload[name].eq(group[name]),
                summed.i.payload[name].eq(apart[name]),
            ]

        # Pair p of a group is that of the value whose number of pairs is p + 1, and a filler where there is none.
        sums = summed.o.payload
        given = Signal(POSITION_BITS)  # pairs of this group that have left
        all_pairs = Signal(POSITION_BITS)
        left = Signal(POSITION_BITS)
        done = Signal()
        m.d.comb += [
            all_pairs.eq(onehot_select(Cat(sums.count == n + 1 for n in range(lanes)), list(sums.ends))),
            left.eq(all_pairs - given),
            done.eq(left <= lanes),
            pairs.i.valid.eq(summed.o.valid),
            summed.o.ready.eq(pairs.i.ready & done),
            pairs.i.payload.count.eq(Mux(done, left, lanes)),
            pairs.i.payload.last.eq(sums.last & done),
        ]
        for n in range(lanes):
            chosen = Signal(lanes, name=f"chosen{n}")
            wanted = Signal(POSITION_BITS, name=f"wanted{n}")
            m.d.comb += [
                wanted.eq(given + n + 1),
                chosen.eq(Cat((sums.count > k) & (sums.ends[k] == wanted) for k in range(lanes))),
                pairs.i.payload.first[n].eq(Mux(chosen.any(), onehot_select(chosen, list(sums.runs)), mask)),
                pairs.i.payload.values[n].eq(onehot_select(chosen, list(sums.values))),
            ]
        with m.If(pairs.i.valid & pairs.i.ready):
            m.d.sync += given.eq(Mux(done, 0, given + lanes))
        return m
