"""Takes the leaves of jobs and tells every part of the PE what it must know of them."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, VALUE_WIDTH, leaf
from .common import check_power_of_two, index_width
from .leaf_requests import feed_leaf
from .leaf_unpacker import unpack_leaf

__all__ = ["JobIntake", "weight_entry"]


def weight_entry() -> data.StructLayout:
    """What a leaf's nonzeros are multiplied by; not at all with ``unit``."""
    return data.StructLayout({"unit": 1, "weight": VALUE_WIDTH})


class JobIntake(Block):
    """Accepts a job when there is room for all of its leaves, so that nobody who begins to send one is held up in the
    middle, and when little is left of those before it: a job that could wait here for long is better off with a PE
    that is free sooner.

    Parameters
    ----------
    radix, lanes, address_width : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.
    jobs_under_way : int
        Jobs from their first leaf to ``job_over``, power of two.
    margin : int
        Nonzeros that may be left of the jobs before when another one begins: what is merged while its leaves come in.

    Members
    -------
    leaves : In(stream(leaf))
        ``ready`` comes from registers. The ``radix``-th leaf of a job must be its ``last``.
    feeds : Out(stream(feed_leaf)), unpacks : Out(stream(unpack_leaf))
        To the :class:`LeafBuffer`.
    jobs : Out(stream(leaves of a job))
        To the :class:`MergeTree`, when the last leaf has come.
    weight_enable : Out(1), weight_index : Out(job and leaf), weight : Out(weight_entry)
        Write port of the weight table: the weights of a job lie together, jobs take turns.
    merged : In(1)
        A nonzero has left the merge.
    job_over : In(1)
        The weights of the oldest job are no longer needed.

    Timing
    ------
    One leaf a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, address_width: int, jobs_under_way: int, margin: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.jobs_under_way = check_power_of_two("Jobs under way", jobs_under_way, 2, 16)
        self.address_width = address_width
        self.margin = margin
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf(address_width))),
                "feeds": Out(stream.Signature(feed_leaf(lanes, address_width))),
                "unpacks": Out(stream.Signature(unpack_leaf(lanes))),
                "jobs": Out(stream.Signature(range(radix + 1))),
                "weight_enable": Out(1),
                "weight_index": Out(range(radix * jobs_under_way)),
                "weight": Out(weight_entry()),
                "merged": In(1),
                "job_over": In(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        depth = 2 * self.radix
        lane_bits = index_width(self.lanes)
        in_ram = self.radix > 16
        m.submodules.feeds = feeds = StreamQueue(shape=self.feeds.payload.shape(), depth=depth, block_memory=in_ram)
        m.submodules.unpacks = unpacks = StreamQueue(
            shape=self.unpacks.payload.shape(), depth=depth, block_memory=in_ram
        )
        m.submodules.jobs = jobs = StreamQueue(shape=range(self.radix + 1), depth=self.jobs_under_way)
        connect(m, feeds.o, flipped(self.feeds))
        connect(m, unpacks.o, flipped(self.unpacks))
        connect(m, jobs.o, flipped(self.jobs))

        item = self.leaves.payload
        opened = Signal()  # a job's first leaf has come, its last has not
        index = Signal(range(self.radix))
        turn = Signal(range(self.jobs_under_way))
        under_way = Signal(range(self.jobs_under_way + 1))
        job_fits = Signal()  # for a whole job
        m.d.sync += job_fits.eq((feeds.level <= self.radix - 1) & (unpacks.level <= self.radix - 1))
        take = Signal()
        ends_job = Signal()
        left = Signal(POSITION_WIDTH + (self.radix * self.jobs_under_way).bit_length())  # nonzeros to be merged
        fewer = Signal.like(left)  # without the one that has left the merge
        near = Signal()  # to the end of the jobs taken; once so, it stays so until another one comes
        m.d.comb += [
            self.leaves.ready.eq(opened | (job_fits & near & (under_way != self.jobs_under_way))),
            take.eq(self.leaves.valid & self.leaves.ready),
            ends_job.eq(take & item.last),
        ]
        m.d.comb += fewer.eq(left - self.merged)
        m.d.sync += [
            # Whether a leaf is taken is known late: that only selects.
            left.eq(Mux(take, fewer + item.length, fewer)),
            near.eq((left <= self.margin) & ~take),
        ]
        begin = take & ~opened
        m.d.sync += under_way.eq(under_way + begin - self.job_over)
        with m.If(take):
            m.d.sync += [opened.eq(~item.last), index.eq(Mux(item.last, 0, index + 1))]
        with m.If(ends_job):
            m.d.sync += turn.eq(turn + 1)

        lane = item.position[:lane_bits]
        # Lines beyond the full ones: the first and the last may hold nonzeros in a part of their lanes alone.
        extra = (item.length[:lane_bits] + lane + (self.lanes - 1)) >> lane_bits
        m.d.comb += [
            feeds.i.valid.eq(take),
            feeds.i.payload.in_memory.eq(item.in_memory),
            *passed(item, feeds.i.payload, "unit scratch"),
            feeds.i.payload.last.eq(item.last),
            feeds.i.payload.line.eq(item.position[lane_bits:]),
            feeds.i.payload.lines.eq(item.length[lane_bits:] + Mux(item.length == 0, 0, extra)),
            unpacks.i.valid.eq(take),
            unpacks.i.payload.last.eq(item.last),
            unpacks.i.payload.lane.eq(lane),
            unpacks.i.payload.length.eq(item.length),
            jobs.i.valid.eq(ends_job),
            jobs.i.payload.eq(index + 1),
            self.weight_enable.eq(take),
            self.weight_index.eq(Cat(index, turn)),
            self.weight.unit.eq(item.unit),
            self.weight.weight.eq(item.weight),
        ]
        return m
