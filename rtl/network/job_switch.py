"""Job switch: takes the leaves of two jobs to their PEs."""

from typing import Any

from amaranth.hdl import Array, Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..types import leaf

__all__ = ["JobSwitch"]


class JobSwitch(Block):
    """Takes rows' groups of leaves and merges of scratch fibers to their PEs, a leaf of each a cycle. Combinational.

    Parameters
    ----------
    pes, address_width : int
        PEs; bits of a byte address.

    Members
    -------
    groups, merges : In(stream(leaf)), group_pe, merge_pe : In
        Leaves, and which PE each is for: never the same one for both.
    jobs : Out(stream(leaf)).array(pes)
    event_job, event_leaf : Out(2)
        Jobs of which the last leaf goes in this cycle; leaves that go and are not empty.

    Timing
    ------
    Combinational; one leaf of each kind a cycle.
    """

    latency = 0

    def __init__(self, *, pes: int, address_width: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 1 << 12)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        leaves = stream.Signature(leaf(address_width))
        super().__init__(
            {
                "groups": In(leaves),
                "group_pe": In(range(max(2, pes))),
                "merges": In(leaves),
                "merge_pe": In(range(max(2, pes))),
                "jobs": Out(leaves).array(pes),
                "event_job": Out(2),
                "event_leaf": Out(2),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        ready = Array(job.ready for job in self.jobs)
        sources = ((self.groups, self.group_pe), (self.merges, self.merge_pe))
        for source, pe in sources:
            m.d.comb += source.ready.eq(ready[pe])
        for n, job in enumerate(self.jobs):
            m.d.comb += job.payload.eq(self.groups.payload)
            for source, pe in sources:
                with m.If(source.valid & (pe == n)):
                    m.d.comb += [job.payload.eq(source.payload), job.valid.eq(1)]
        goes = [(source.valid & source.ready, source.payload) for source, _ in sources]
        m.d.comb += [
            self.event_job.eq(sum(go & item.last for go, item in goes)),
            self.event_leaf.eq(sum(go & (item.length != 0) for go, item in goes)),
        ]
        return m
