"""Pair combiner and cascade: the nonzeros of a coordinate are added up, none is lost, none comes twice."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal

from .spec import Spec, fixed_value, implies

__all__ = ["CombinerContract"]

COORDINATE_BITS = 1
VALUE_BITS = 1
SUM_BITS = 2  # lost or doubled, an element is missed


class CombinerContract(Spec):
    """Sorted jobs in, sorted jobs out, with gaps anywhere and the clock enable as it likes.

    One coordinate of one job, any of them, is watched. When that job has come out, what came with the coordinate adds up
    to what went in, and a run of m elements came out as ceil(m / ``reduces``).

    Parameters
    ----------
    combiner : PairCombiner or CombinerCascade
        For ``int32``.
    reduces : int
        Elements of a run that become one: 2 or the cascade's radix. Runs are at most twice as long.
    """

    def __init__(self, combiner: Any, *, reduces: int) -> None:
        super().__init__()
        self.combiner = combiner
        self.reduces = reduces

    def claims(self, m: Module) -> None:
        m.submodules.combiner = combiner = self.combiner
        into, out = combiner.i, combiner.o
        m.d.comb += [
            combiner.advance.eq(AnySeq(1)),
            into.valid.eq(AnySeq(1)),
            into.coordinate.eq(AnySeq(COORDINATE_BITS)),
            into.value.eq(AnySeq(VALUE_BITS)),
            into.last.eq(AnySeq(1)),
            into.void.eq(AnySeq(1)),
        ]
        goes, comes = into.valid & combiner.advance, out.valid & combiner.advance

        watched = fixed_value(m, COORDINATE_BITS, "watched_coordinate")
        begun, least = Signal(), Signal(COORDINATE_BITS)
        # The solver chooses at the beginning of a job that this is the watched one. It comes out after those inside.
        inside = Signal(range(2 * combiner.latency + 4))  # jobs that have gone in whole and not come out
        before = Signal.like(inside)
        chosen, gone_in, gone = Signal(), Signal(), Signal()
        starts = goes & ~begun & ~chosen & AnySeq(1)
        ends_in, ends = goes & into.last, comes & out.last
        m.d.sync += inside.eq(inside + ends_in - ends)
        watching_in = starts | (chosen & ~gone_in)
        now = chosen & ~gone & (before == 0)
        with m.If(starts):
            m.d.sync += [chosen.eq(1), before.eq(inside - ends)]
        with m.Elif(ends & chosen & ~gone):
            m.d.sync += [before.eq(before - (before != 0)), gone.eq(before == 0)]
        with m.If(watching_in & ends_in):
            m.d.sync += gone_in.eq(1)
        with m.If(goes):
            m.d.sync += [begun.eq(~into.last), least.eq(into.coordinate)]
        m.d.comb += [
            # A void nonzero is the only one of its job.
            Assume(implies(into.valid & into.void, into.last & ~begun)),
            Assume(implies(into.valid & begun, into.coordinate >= least)),
        ]

        sum_in, sum_out = Signal(SUM_BITS), Signal(SUM_BITS)
        count_in, count_out = Signal(range(2 * self.reduces + 1)), Signal(range(2 * self.reduces + 1))
        mine_in = goes & watching_in & (into.coordinate == watched)
        mine_out = comes & now & (out.coordinate == watched)
        with m.If(mine_in):
            m.d.sync += [sum_in.eq(sum_in + into.value), count_in.eq(count_in + 1)]
        m.d.comb += Assume(count_in <= 2 * self.reduces - mine_in)
        total = (sum_out + Mux(mine_out, out.value, 0))[:SUM_BITS]
        count = count_out + mine_out
        with m.If(mine_out):
            m.d.sync += [sum_out.eq(total), count_out.eq(count)]
        voids = Signal()  # the watched job is a void one
        with m.If(mine_in & into.void):
            m.d.sync += voids.eq(1)

        complete = ends & now
        risen, lowest = Signal(), Signal(COORDINATE_BITS)
        with m.If(comes):
            m.d.sync += [risen.eq(~out.last), lowest.eq(out.coordinate)]
        # A job's last element comes out when the pipeline has advanced `latency` times after it, at the latest.
        age = Signal(range(combiner.latency + 2))
        with m.If(~now | ~gone_in):
            m.d.sync += age.eq(0)
        with m.Elif(combiner.advance & (age <= combiner.latency)):
            m.d.sync += age.eq(age + 1)
        m.d.comb += [
            Assert(implies(complete, total == sum_in), "what comes out adds up to what went in"),
            Assert(
                implies(complete, count * self.reduces < count_in + self.reduces), "a run comes out as few as promised"
            ),
            Assert(implies(complete & (count_in != 0), count != 0), "no coordinate is lost"),
            Assert(implies(mine_out, count_in != 0), "nothing comes out that did not go in"),
            Assert(implies(mine_out, out.void == voids), "void jobs stay void"),
            Assert(implies(comes & risen, out.coordinate >= lowest), "coordinates rise"),
            Assert(implies(now, age < combiner.latency), "a job is out when its time is over"),
            Assert(inside < 2 * combiner.latency + 2, "jobs come out"),
            Cover(complete & (count_in == 2 * self.reduces) & (total != 0) & (inside > 1)),
        ]
