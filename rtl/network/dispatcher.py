"""Groups the leaves of each row into merge jobs and gives them to free PEs."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, leaf, leaf_item, partial_fiber, scratch_fiber
from .job_switch import JobSwitch
from .pe_picker import PePicker
from .row_bound import RowBound
from .row_grouper import RowGrouper
from .scratch_merger import ScratchMerger

__all__ = ["Dispatcher", "job_ticket"]


def job_ticket(pes: int, scratch_slots: int) -> data.StructLayout:
    """Which PE has the next fiber of its kind, and where that goes.

    ``scratch``: to scratch memory, as one of several fibers of a long row, into the row's ``slot``; ``first``: the first
    such fiber of its row. Otherwise it is a row's own fiber, of at most ``bound`` nonzeros; ``merged``: the leaves are
    the fibers of a slot.
    """
    return data.StructLayout(
        {
            "pe": range(max(2, pes)),
            "scratch": 1,
            "first": 1,
            "merged": 1,
            "slot": range(max(2, scratch_slots)),
            "bound": POSITION_WIDTH,
        }
    )


class Dispatcher(Block):
    """One row after another: at most ``radix`` leaves make a job; longer rows become several jobs whose fibers meet again.

    A row of more leaves is cut into groups of ``radix``; each group's fiber goes to scratch memory and comes back as a
    leaf that is taken as it is (``unit``) of a last job. Up to ``radix`` such fibers are remembered; when another would
    follow they are first merged into one, which takes their place. Each row ends in exactly one fiber that is not
    scratch. A partial fiber that an earlier k step left is the row's first leaf.

    Later rows do not wait for a long one: up to ``scratch_slots`` of them are under way, each with a slot of scratch memory from
    its first group until its own fiber has left. One of its PEs is kept for the last job, the one of its last group
    but one, which has most to do till then: no later row's job goes there before. With the collector's two orders no cycle
    of waiting can close (docs/blocks/network.md). Only a row of more than ``radix`` squared leaves holds up those behind
    it, when its fibers are merged on the way.

    Parameters
    ----------
    pes : int
        Number of PEs.
    radix : int
        Leaves of a job at most, power of two.
    address_width : int
        Bits of a byte address.
    scratch_slots : int
        Slots of scratch memory: long rows that may be under way, power of two.

    Members
    -------
    leaves : In(stream)
        From the lookup: the rows' leaves in order.
    with_partials : In(1)
        Each row has entries in ``partials``. Constant during a tile.
    partials : In(stream)
        Partial fibers of the rows, in order, those of a row up to one without ``more``; ``position`` in nonzeros from
        ``partial_region``. Empty ones are no leaf.
    columns : In(COORDINATE_WIDTH)
        Columns of the tile: no row of it is longer.
    partial_region : In(address_width - 3)
        In nonzeros from byte address 0.
    scratch_results : In(stream)
        Where each scratch fiber lies, in the order of its row's jobs, when it can be read back. Always ready.
    merged_out : In(1)
        The fiber of the oldest merged row has left its pe: the slot is free.
    jobs : Out(stream).array(pes)
        Leaves for each PE; ``last`` ends a job. Which one ``ready`` says is free; ``ready`` stays until a
        job comes, and from its first leaf to its last one.
    tickets : Out(stream)
        The scratch fibers in job order, and the rows' own fibers in row order. With a job's last leaf, with its first one
        where scratch fibers are merged on the way, and ahead of the last job of a long row. ``ready`` may not wait for
        ``valid``.
    event_job, event_leaf : Out(2)
        Jobs, leaves that went in this cycle.
    event_row, event_stall : Out(1)
        The leaves of a row have all gone or wait in scratch; a leaf waits for a PE or for scratch memory.
    idle : Out(1)
        No row is under way, no merge is to come.

    Timing
    ------
    One leaf a cycle; a new job costs a cycle.
    """

    def __init__(self, *, pes: int, radix: int, address_width: int, scratch_slots: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 1 << 12)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1 << 12)
        self.radix = radix
        self.address_width = address_width
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "with_partials": In(1),
                "partials": In(stream.Signature(partial_fiber())),
                "columns": In(COORDINATE_WIDTH),
                "partial_region": In(address_width - 3),
                "scratch_results": In(stream.Signature(scratch_fiber(scratch_slots))),
                "merged_out": In(1),
                "jobs": Out(stream.Signature(leaf(address_width))).array(pes),
                "tickets": Out(stream.Signature(job_ticket(pes, scratch_slots))),
                "event_job": Out(2),
                "event_leaf": Out(2),
                "event_row": Out(1),
                "event_stall": Out(1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        ticket = self.tickets.payload
        shared = {"radix": self.radix, "address_width": self.address_width}
        m.submodules.merger = merger = ScratchMerger(pes=self.pes, scratch_slots=self.scratch_slots, **shared)
        m.submodules.rows = rows = RowGrouper(**shared)
        m.submodules.bound = bound = RowBound()
        m.submodules.picker = picker = PePicker(pes=self.pes)
        m.submodules.switch = switch = JobSwitch(pes=self.pes, address_width=self.address_width)
        connect(m, flipped(self.leaves), rows.leaves)
        connect(m, flipped(self.scratch_results), merger.results)
        for job, switched in zip(self.jobs, switch.jobs, strict=True):
            connect(m, flipped(job), switched)

        # What is left of a row after an earlier k step is a leaf that is taken as it is.
        partial, first = self.partials.payload, rows.partials.payload
        m.d.comb += [
            rows.partials.valid.eq(self.partials.valid),
            self.partials.ready.eq(rows.partials.ready),
            *passed(partial, first, "in_memory length"),
            first.unit.eq(1),
            first.last.eq(~partial.more),
            first.position.eq(partial.position + Mux(partial.in_memory, self.partial_region, 0)),
            *passed(self, rows, "with_partials"),
            *passed(self, bound, "columns"),
            *passed(rows, bound, "row_ends"),
            bound.adds.eq(rows.gathers),
            bound.length.eq(Mux(rows.leads, partial.length, self.leaves.payload.leaf.length)),
            ticket.bound.eq(bound.bound),
        ]

        chosen = Signal(range(max(2, self.pes)))
        keeps = Signal.like(chosen)  # the PE of the row's last group that others follow
        opened = Signal()  # the job in progress has a PE
        group = rows.groups.payload
        may_go = Signal()  # the leaf that is offered
        ends = (
            Signal()
        )  # a job ends, and its ticket goes: not before is it known whether the row is longer than one job
        ready = Array(job.ready for job in self.jobs)
        m.d.comb += [
            picker.ready.eq(Cat(job.ready for job in self.jobs)),
            *passed(merger, picker, "kept"),
            picker.chosen.eq(chosen),
            picker.busy.eq(opened | rows.merging),
            # Only a group that others follow may begin a long row.
            may_go.eq(opened & (~group.last | (self.tickets.ready & (~rows.more | rows.long | merger.slot_free)))),
            switch.groups.payload.eq(group),
            switch.groups.valid.eq(rows.groups.valid & may_go),
            rows.groups.ready.eq(switch.groups.ready & may_go),
            switch.group_pe.eq(chosen),
            ends.eq(switch.groups.valid & switch.groups.ready & group.last),
            ticket.pe.eq(chosen),
            ticket.slot.eq(merger.slot),
            ticket.scratch.eq(rows.scratch),
            ticket.first.eq(rows.scratch & ~rows.long),
            self.tickets.valid.eq(ends),
        ]
        with m.If(rows.opens & ~opened & picker.any_free):
            m.d.sync += [opened.eq(1), chosen.eq(picker.pick)]
        with m.If(ends):
            m.d.sync += opened.eq(0)
            with m.If(rows.scratch & rows.more):
                m.d.sync += keeps.eq(chosen)

        m.d.comb += [
            *passed(self, merger, "merged_out"),
            merger.kept_ready.eq(ready[merger.kept_pe]),
            merger.row_begins.eq(ends & ticket.first),
            merger.fiber_sent.eq((ends & rows.scratch) | rows.merge_begins),
            merger.merge.eq(rows.merge_begins),
            merger.merge_pe.eq(picker.pick),
            merger.keep.eq(rows.kept),
            merger.keep_pe.eq(keeps),
            rows.kept.eq(rows.keep & self.tickets.ready),
            rows.merge_begins.eq(rows.merge & merger.known & picker.any_free & self.tickets.ready),
            rows.merge_done.eq(merger.done),
            switch.merge_pe.eq(merger.pe),
        ]
        connect(m, merger.job, switch.merges)
        with m.If(rows.keep):
            # The row's own fiber has its turn here; its job follows when the scratch fibers are in memory.
            m.d.comb += [self.tickets.valid.eq(1), ticket.merged.eq(1), ticket.scratch.eq(0), ticket.pe.eq(keeps)]
        with m.If(rows.merge_begins):
            m.d.comb += [self.tickets.valid.eq(1), ticket.pe.eq(picker.pick), ticket.scratch.eq(1)]
            m.d.sync += [chosen.eq(picker.pick), keeps.eq(picker.pick)]
        m.d.comb += [
            *passed(switch, self, "event_job event_leaf"),
            self.event_row.eq(rows.row_ends),
            self.event_stall.eq((rows.groups.valid & ~rows.groups.ready) | rows.merge | rows.merging),
            self.idle.eq(rows.idle & merger.idle),
        ]
        return m
