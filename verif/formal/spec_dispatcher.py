"""The dispatcher: every leaf to a PE once and in order, a ticket for every job, no leaf waits for ever."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from .models import WatchedItem
from .spec import Spec, any_value, fixed_value, implies, obey_streams

__all__ = ["DispatcherContract"]

BUSY = 2  # cycles, at most, that a PE is not ready between two jobs and that a scratch fiber takes to memory


class DispatcherContract(Spec):
    """Rows of leaves from outside, without partial fibers; PEs and memory that are never slow for long.

    A leaf from outside carries a free bit and the parity of its row. Leaves that the dispatcher makes itself have ``unit``
    set. A PE is ready from the end of a job, or up to ``BUSY`` cycles later, until the end of the next one.
    """

    def __init__(self, dispatcher: Any) -> None:
        super().__init__()
        self.dispatcher = dispatcher

    def claims(self, m: Module) -> None:
        m.submodules.dispatcher = dispatcher = self.dispatcher
        radix, pes = dispatcher.radix, dispatcher.pes
        leaves, tickets = dispatcher.leaves, dispatcher.tickets
        leaf = leaves.payload.leaf
        parity = Signal()
        m.d.comb += [
            leaves.valid.eq(AnySeq(1)),
            leaves.payload.present.eq(AnySeq(1)),
            leaf.last.eq(AnySeq(1)),
            leaf.length.eq(1),
            leaf.weight.eq(Cat(AnySeq(1), parity)),
            dispatcher.columns.eq(8),
            tickets.ready.eq(1),
        ]
        obey_streams(m, dispatcher, but=("tickets",))
        taken = leaves.valid & leaves.ready
        with m.If(taken & leaf.last):
            m.d.sync += parity.eq(~parity)

        # A PE takes one job after another.
        goes = [port.valid & port.ready for port in dispatcher.jobs]
        for n, port in enumerate(dispatcher.jobs):
            away = Signal(range(BUSY + 1), name=f"away{n}")
            resting = Signal(name=f"resting{n}")
            m.d.comb += port.ready.eq(~resting)
            with m.If(goes[n] & port.payload.last):
                m.d.sync += [resting.eq(AnySeq(1)), away.eq(0)]
            with m.Elif(resting):
                m.d.sync += [away.eq(away + 1), resting.eq(AnySeq(1) & (away != BUSY - 1))]

        self._scratch(m)
        own = [
            go & ~port.payload.unit & (port.payload.length != 0) for go, port in zip(goes, dispatcher.jobs, strict=True)
        ]
        weight: Value = Cat()
        for go, port in reversed(list(zip(own, dispatcher.jobs, strict=True))):
            weight = Mux(go, port.payload.weight[:2], weight if len(weight) else 0)
        inside = WatchedItem(
            m,
            "leaf",
            width=2,
            most=2,
            push=taken & leaves.payload.present,
            item=leaf.weight[:2],
            pop=Cat(*own).any(),
        )
        single = (Cat(*own) & (Cat(*own) - 1)[:pes]) == 0

        # One PE, any, is watched: its jobs and its tickets.
        watched = fixed_value(m, range(max(2, pes)), "watched")
        port_goes, payload = Signal(), Signal(dispatcher.jobs[0].payload.shape())
        for n, port in enumerate(dispatcher.jobs):
            with m.If(watched == n):
                m.d.comb += [port_goes.eq(goes[n]), payload.eq(port.payload)]
        size = Signal(range(radix + 2))  # leaves of its job
        row, mixed = Signal(), Signal()
        with m.If(port_goes):
            m.d.sync += [size.eq(Mux(payload.last, 0, size + 1)), mixed.eq(~payload.last & payload.unit)]
            m.d.sync += row.eq(payload.weight[1])
        ticket = tickets.valid & (tickets.payload.pe == watched)
        unmatched = Signal(2)  # tickets without their job, which may not be more than one
        m.d.sync += unmatched.eq(unmatched + ticket - (port_goes & payload.last))

        ends = taken & leaf.last
        fiber = tickets.valid & ~tickets.payload.scratch
        rows = Signal(2)  # rows taken whole whose own fiber has no ticket
        m.d.sync += rows.eq(rows + ends - fiber)
        patience = Signal(range(self.patience + 1))
        m.d.sync += patience.eq(Mux(leaves.valid & ~leaves.ready, patience + (patience != self.patience), 0))
        m.d.comb += [
            Assume(watched < pes),
            Assert(single, "one leaf from outside goes at a time"),
            Assert(implies(Cat(*own).any(), inside.level != 0), "no leaf goes that did not come"),
            Assert(~inside.overflows, "no leaf is kept behind"),
            Assert(implies(Cat(*own).any() & inside.next, weight == inside.item), "leaves go in order, unchanged"),
            Assert(implies(port_goes, size < radix), "a job has no more leaves than the merge"),
            Assert(
                implies(port_goes & (size != 0) & ~payload.unit & ~mixed, payload.weight[1] == row),
                "a job is of one row",
            ),
            Assert(unmatched <= 1, "a ticket for every job, none without"),
            Assert(rows <= 2, "every row gets its own fiber before the next but one"),
            Assert(implies(fiber, (rows != 0) | ends), "one fiber for a row"),
            Assert(patience != self.patience, "the leaf at the port goes on"),
            Cover(port_goes & payload.last & payload.unit & ~tickets.payload.scratch),
        ]

    @property
    def patience(self) -> int:
        """Cycles that a leaf may wait: a job's turn for every scratch fiber before it, and their merge."""
        return (BUSY + 3) * 4 + 6 * self.dispatcher.radix + 8

    def _scratch(self, m: Module) -> None:
        """Fibers that go to scratch memory are there, in their order, some cycles after their jobs' tickets."""
        dispatcher = self.dispatcher
        results, tickets = dispatcher.scratch_results, dispatcher.tickets
        due = Signal(range(8))
        waited = Signal(range(BUSY + 1))
        comes = results.valid & results.ready
        m.d.comb += [
            results.valid.eq((due != 0) & (AnySeq(1) | (waited == BUSY))),
            results.payload.length.eq(any_value(m, 1, "scratch_length")),
        ]
        m.d.sync += [
            due.eq(due + (tickets.valid & tickets.ready & tickets.payload.scratch) - comes),
            waited.eq(Mux((due != 0) & ~comes, waited + 1, 0)),
        ]
        m.d.comb += Assert(due != 7, "scratch fibers are waited for")

        # The merged fiber of a long row leaves after its last job, and frees the row's slot.
        given = tickets.valid & tickets.ready & ~tickets.payload.scratch & tickets.payload.merged
        merging = Signal()  # the ticket has gone
        pe = Signal.like(tickets.payload.pe)
        merged = Signal()  # the job too
        kept = Signal(range(BUSY + 1))
        last = Signal()
        for n, port in enumerate(dispatcher.jobs):
            with m.If(pe == n):
                m.d.comb += last.eq(port.valid & port.ready & port.payload.last)
        m.d.comb += [
            dispatcher.merged_out.eq(merged & (AnySeq(1) | (kept == BUSY))),
            Assert(~(given & merging), "one long row has the slot"),
        ]
        with m.If(given):
            m.d.sync += [merging.eq(1), pe.eq(tickets.payload.pe)]
        with m.If(merging & ~merged & last):
            m.d.sync += [merged.eq(1), kept.eq(0)]
        with m.If(merged):
            m.d.sync += kept.eq(kept + 1)
        with m.If(dispatcher.merged_out):
            m.d.sync += [merged.eq(0), merging.eq(0)]
