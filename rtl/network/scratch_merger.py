"""Keeps track of the scratch fibers of long rows and sends the jobs that merge them."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import POSITION_WIDTH, leaf, scratch_fiber, scratch_position

__all__ = ["ScratchMerger"]


class ScratchMerger(Block):
    """Gives the last job of each long row to a PE, once the fibers of its other jobs lie in memory.

    It works in parallel to the :class:`rtl.network.dispatcher.Dispatcher`, which gives out all other jobs.

    Slots are taken and freed in row order. ``slot`` is that of the row in progress; the rows before it whose groups have
    all gone are *kept*: a PE waits for each, and gets the last job when the row's turn has come and its fibers are
    all in memory.

    Parameters
    ----------
    pes, radix, address_width, scratch_slots : int
        As the dispatcher's.

    Members
    -------
    results : In(stream(scratch_fiber))
        Fibers that can be read back. Always ready.
    slot : Out, slot_free : Out(1)
        Slot of the row in progress; it is free, that is, ``row_begins`` is allowed.
    row_begins : In(1), fiber_sent : In(1)
        A row takes the slot; one more fiber of the row in progress is on its way.
    keep : In(1), keep_pe : In
        All groups of the row in progress have gone; this PE waits for its last job.
    kept : Out(pes)
        PEs that wait: no other job may go there.
    kept_pe : Out, kept_ready : In(1)
        Of the oldest kept row; whether that PE takes a job.
    known : Out(1), merge : In(1), merge_pe : In, done : Out(1)
        All fibers of the row in progress are in memory and could be merged at once; merge them there, as its only fiber
        from now on; the last leaf goes.
    job : Out(stream(leaf)), pe : Out
        Leaves, in job order, and for whom. One a cycle.
    merged_out : In(1)
        The oldest row with a slot is done with.
    idle : Out(1)
        No row is kept and nothing is being sent.

    Timing
    ------
    One leaf a cycle, from when the fibers of its row are in memory.
    """

    def __init__(self, *, pes: int, radix: int, address_width: int, scratch_slots: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 1024)
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1024)
        pe = range(max(2, pes))
        super().__init__(
            {
                "results": In(stream.Signature(scratch_fiber(scratch_slots))),
                "slot": Out(range(max(2, scratch_slots))),
                "slot_free": Out(1),
                "row_begins": In(1),
                "fiber_sent": In(1),
                "keep": In(1),
                "keep_pe": In(pe),
                "kept": Out(pes),
                "kept_pe": Out(pe),
                "kept_ready": In(1),
                "known": Out(1),
                "merge": In(1),
                "merge_pe": In(pe),
                "done": Out(1),
                "job": Out(stream.Signature(leaf(address_width))),
                "pe": Out(pe),
                "merged_out": In(1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        scratch_slots = range(self.scratch_slots)
        awaited = Array(
            Signal(range(self.radix + 2), name=f"awaited{n}") for n in scratch_slots
        )  # fibers not in memory yet
        filled = Array(
            Signal(range(self.radix + 1), name=f"filled{n}") for n in scratch_slots
        )  # fibers that are, not empty ones
        pe = Array(Signal.like(self.pe, name=f"pe{n}") for n in scratch_slots)
        used = Signal(range(self.scratch_slots + 1))  # slots that rows have
        pending = Signal(range(self.scratch_slots + 1))  # kept rows
        newest = self.slot
        oldest = Signal.like(self.slot)  # slot of the oldest kept row

        def following(slot: Signal) -> Any:
            return slot + 1 if self.scratch_slots > 1 else Const(0, 1)

        # Fibers come back.
        entry_shape = data.StructLayout({"position": POSITION_WIDTH, "length": POSITION_WIDTH})
        # What is read while it is written counts for nothing: a job begins two cycles after the last of its fibers came.
        table = Memory(shape=entry_shape, depth=self.scratch_slots * self.radix, init=[], attrs={"no_rw_check": 1})
        m.submodules.leaf_table = table
        write = table.write_port()
        read = table.read_port()
        result = self.results.payload
        index_bits = (self.radix - 1).bit_length()
        present = self.results.valid & (result.length != 0)
        m.d.comb += [
            self.results.ready.eq(1),
            write.en.eq(present),
            write.addr.eq(Cat(filled[result.slot][:index_bits], result.slot)),
            write.data.position.eq(result.position),
            write.data.length.eq(result.length),
        ]
        begun = Signal()  # the row in progress has its slot
        released = Signal()  # the fibers of the row in progress have been merged
        sent = Signal()  # one more was on its way in the cycle before: it counts from now on
        m.d.sync += [begun.eq((begun | self.row_begins) & ~self.keep), sent.eq(self.fiber_sent)]
        for n in scratch_slots:
            back = self.results.valid & (result.slot == n)
            m.d.sync += awaited[n].eq(awaited[n] + (sent & (newest == n)) - back)
            # A free slot is emptied before its row begins.
            with m.If(((~begun & self.slot_free) | released) & (newest == n)):
                m.d.sync += filled[n].eq(0)
            with m.Elif(present & (result.slot == n)):
                m.d.sync += filled[n].eq(filled[n] + 1)
            with m.If(self.keep & (newest == n)):
                m.d.sync += pe[n].eq(self.keep_pe)

        # Slots, in row order.
        finished = Signal()  # the last job of the oldest kept row has gone
        m.d.comb += [self.slot_free.eq(used != self.scratch_slots), self.kept_pe.eq(pe[oldest])]
        m.d.sync += [used.eq(used + self.row_begins - self.merged_out), pending.eq(pending + self.keep - finished)]
        with m.If(self.keep):
            m.d.sync += newest.eq(following(newest))
        with m.If(finished):
            m.d.sync += oldest.eq(following(oldest))
        for n in range(self.pes):
            with m.If(self.keep & (self.keep_pe == n)):
                m.d.sync += self.kept[n].eq(1)
            with m.Elif(finished & (self.pe == n)):
                m.d.sync += self.kept[n].eq(0)

        # One job at a time, only for a PE that takes it: it never stops in the middle.
        last_job = Signal()
        due = Signal()
        slot = Signal.like(self.slot)
        index = Signal(range(self.radix + 1))
        left = Signal(range(self.radix + 1))
        due_slot = Signal.like(self.slot)
        leaf_slot = Signal.like(self.slot)
        job = self.job.payload
        place = Signal(scratch_position(self.address_width, self.scratch_slots))
        goes = Signal()
        m.d.comb += [
            due_slot.eq(Mux(due, oldest, newest)),
            leaf_slot.eq(slot),
            goes.eq(self.job.valid & self.job.ready),
            read.en.eq(1),
            read.addr.eq(Cat((index + goes)[:index_bits], leaf_slot)),
            job.last.eq(left <= 1),
            place.nonzero.eq(read.data.position),
            place.row.eq(leaf_slot),
        ]
        with m.If(left != 0):
            m.d.comb += [
                job.in_memory.eq(1),
                job.unit.eq(1),
                job.scratch.eq(1),
                job.position.eq(place),
                job.length.eq(read.data.length),
                job.weight.eq(0),  # unit leaves have none
            ]
        # Both stay true once they are, but for what this block does itself, so they are told a cycle late.
        complete = Signal()  # all fibers of the row in progress are in memory
        m.d.sync += complete.eq((awaited[newest] == 0) & ~sent & ~self.fiber_sent)
        m.d.sync += due.eq((pending != 0) & (awaited[oldest] == 0) & self.kept_ready)
        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("WAIT") & (pending == 0))
            with m.State("WAIT"):
                m.d.comb += [self.known.eq(~due & complete), leaf_slot.eq(due_slot)]
                m.d.sync += [slot.eq(due_slot), left.eq(filled[due_slot]), last_job.eq(due)]
                with m.If(due):
                    m.d.sync += self.pe.eq(self.kept_pe)
                    m.next = "SEND"
                with m.Elif(self.merge):
                    m.d.sync += self.pe.eq(self.merge_pe)
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.job.valid.eq(1)
                m.d.sync += due.eq(0)
                with m.If(goes):
                    m.d.sync += [index.eq(Mux(job.last, 0, index + 1)), left.eq(left - 1)]
                    with m.If(job.last):
                        m.d.comb += [finished.eq(last_job), released.eq(~last_job), self.done.eq(~last_job)]
                        m.next = "WAIT"
        return m
