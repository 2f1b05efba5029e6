"""The R-way merge: levels of comparators above the leaves, a root that gives one item a cycle."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.signals import signals
from ..lib.stream import StreamQueue
from .common import check_power_of_two, heads, item
from .merge_level import MergeLevel, choose, leaf_above

__all__ = ["MergeRoot", "MergeTree"]


class MergeRoot(Block):
    """Merges one pair of children into a stream: the topmost node.

    Parameters
    ----------
    radix : int
        Leaves of the whole tree.
    waiting_jobs : int
        Jobs that may wait.

    Members
    -------
    jobs : In(stream(leaves of a job)), children : Out(heads)
    merged : Out(stream(item))
        In coordinate order, equal coordinates in leaf order; ``last`` on the last item of a job. Registered.
    starved : Out(1)
        A job is under way, its next item could leave, but a head is missing.

    Timing: an item that is named is in ``merged`` 2 cycles after; no cycle is lost between jobs.
    """

    def __init__(self, *, radix: int, waiting_jobs: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.waiting_jobs = waiting_jobs
        self.leaf_bits = radix.bit_length() - 1
        super().__init__(
            {
                "jobs": In(stream.Signature(range(radix + 1))),
                "children": Out(heads(1, self.leaf_bits - 1)),
                "merged": Out(stream.Signature(item(self.leaf_bits))),
                "starved": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.waiting_jobs = waiting_jobs = StreamQueue(shape=self.jobs.payload.shape(), depth=self.waiting_jobs)
        m.submodules.out = out = StreamQueue(shape=item(self.leaf_bits), depth=2)
        connect(m, flipped(self.jobs), waiting_jobs.i)
        connect(m, out.o, flipped(self.merged))
        job = waiting_jobs.o
        children = self.children

        begun = Signal()
        noted_left, noted_right = signals("noted_left noted_right")
        left_over, right_over = signals("left_over right_over")
        with m.If(begun):
            m.d.comb += [left_over.eq(noted_left), right_over.eq(noted_right)]
        with m.Else():
            m.d.comb += right_over.eq(job.payload <= self.radix // 2)
        known, takes_right, chosen, ends = choose(m, children.left, children.right, left_over, right_over)
        serve = Signal()
        m.d.comb += [
            serve.eq(job.valid & known & out.i.ready),
            self.starved.eq(job.valid & ~known & out.i.ready),
            children.pop_left.eq(serve & ~takes_right),
            children.pop_right.eq(serve & takes_right),
            job.ready.eq(serve & ends),
            out.i.valid.eq(job.valid & known),
            out.i.payload.coordinate.eq(chosen.coordinate),
            out.i.payload.value.eq(chosen.value),
            out.i.payload.leaf.eq(leaf_above(chosen, takes_right)),
            out.i.payload.last.eq(ends),
            out.i.payload.void.eq(chosen.void),
        ]
        with m.If(serve):
            m.d.sync += [
                begun.eq(~ends),
                noted_left.eq(left_over | (~takes_right & chosen.last)),
                noted_right.eq(right_over | (takes_right & chosen.last)),
            ]
        return m


class MergeTree(Block):
    """Merges up to ``radix`` sorted leaves into one sorted stream, one item a cycle, job after job without a gap.

    ::

        leaves (heads) -> MergeLevel radix/2 -> ... -> MergeLevel 2 -> MergeRoot -> merged

    Each level has one comparator and keeps its nodes' queues in RAM, so logic grows with the logarithm of ``radix``.
    Jobs follow each other through the tree: a level begins the next one when all its nodes have what they need of
    this one.

    Parameters
    ----------
    radix : int
        Power of two from 2 to 256.
    jobs : int
        Jobs under way at a time, at least 1.

    Members
    -------
    jobs : In(stream(leaves of a job))
        1 to ``radix``: leaves 0 up to that one take part. A job without elements has one leaf with one ``void`` item.
    leaves : Out(heads)
        Heads of the leaves, in pairs. The items of a leaf's jobs follow each other, ``last`` on the last one of each.
    merged : Out(stream(item)), starved : Out(1)
        See :class:`MergeRoot`.

    Timing: the first item of a job needs ``latency`` cycles from the leaves to ``merged`` and waits for every leaf's
    first.
    """

    def __init__(self, *, radix: int, jobs: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        if not isinstance(jobs, int) or jobs < 1:
            raise ValueError(f"Jobs under way must be a positive integer, not {jobs!r}")
        self.waiting_jobs = jobs
        self.leaf_bits = radix.bit_length() - 1
        super().__init__(
            {
                "jobs": In(stream.Signature(range(radix + 1))),
                "leaves": Out(heads(radix // 2, 0)),
                "merged": Out(stream.Signature(item(self.leaf_bits))),
                "starved": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        return 2 * self.leaf_bits

    def parameters(self) -> dict[str, Any]:
        return {"radix": self.radix, "jobs": self.waiting_jobs}

    def build(self, platform: Any) -> Module:
        m = Module()
        levels: list[MergeLevel | MergeRoot] = []
        for leaf_bits in range(self.leaf_bits - 1):
            span = 2 << leaf_bits
            level = MergeLevel(nodes=self.radix // span, span=span, leaf_bits=leaf_bits, waiting_jobs=self.waiting_jobs)
            m.submodules[f"level{self.radix // span}"] = level
            levels.append(level)
        m.submodules.root = root = MergeRoot(radix=self.radix, waiting_jobs=self.waiting_jobs)
        levels.append(root)

        connect(m, levels[0].children, flipped(self.leaves))
        for below, above in pairwise(levels):
            connect(m, above.children, below.heads)
        connect(m, root.merged, flipped(self.merged))
        m.d.comb += self.starved.eq(root.starved)

        # Every level learns of a job in the same cycle and begins it in its own time.
        m.d.comb += self.jobs.ready.eq(Cat(level.jobs.ready for level in levels).all())
        for level in levels:
            m.d.comb += [
                level.jobs.payload.eq(self.jobs.payload),
                level.jobs.valid.eq(self.jobs.valid & self.jobs.ready),
            ]
        return m
