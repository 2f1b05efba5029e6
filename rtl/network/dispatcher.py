"""Groups the leaves of each row into merge jobs and gives them to free processing elements."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..accessor.lookup import leaf_item
from ..lib.block import Block
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, leaf, partial_fiber

__all__ = ["Dispatcher", "job_ticket"]


def job_ticket(elements: int) -> data.StructLayout:
    """Which processing element works on the next job in order, and where its fiber goes.

    ``scratch``: to scratch memory, as one of several fibers of a long row; ``first``: the first such fiber of its row.
    ``bound``: the row's fiber has at most that many elements.
    """
    return data.StructLayout({"pe": range(max(2, elements)), "scratch": 1, "first": 1, "bound": POSITION_WIDTH})


class Dispatcher(Block):
    """One row after another: at most ``radix`` leaves make a job; longer rows become several jobs whose fibers meet again.

    A row of more leaves is cut into groups of ``radix``; each group's fiber goes to scratch memory and comes back as a
    leaf that is taken as it is (``unit``) of a last job. Up to ``radix`` such fibers are remembered; when another would
    follow they are first merged into one, which takes their place. Each row ends in exactly one fiber that is not
    scratch. A partial fiber that an earlier k step left is the row's first leaf.

    Members
    -------
    leaves : In(stream)
        From the lookup: the rows' leaves in order.
    with_partials : In(1)
        Each row has an entry in ``partials``. Constant during a tile.
    partials : In(stream)
        Partial fibers of the rows, in order; ``position`` in elements from ``partial_region``. Empty ones are no leaf.
    columns : In(COORDINATE_WIDTH)
        Columns of the tile: no row of it is longer.
    partial_region, scratch_region : In(address_width - 3)
        In elements from byte address 0.
    scratch_results : In(stream)
        Where each scratch fiber lies, in job order, when it is safely in memory.
    jobs : Out(stream).array(elements)
        Leaves for each processing element; ``last`` ends a job. Which one ``ready`` says is free.
    tickets : Out(stream)
        The jobs in order, for the collector, each in the cycle in which its last leaf goes; ``ready`` may not wait for ``valid``.
    event_job, event_leaf, event_row, event_stall : Out(1)
        A job, a leaf, a row is done with; a leaf waits for a processing element.
    """

    def __init__(self, *, elements: int, radix: int, address_width: int) -> None:
        self.elements = elements
        self.radix = radix
        self.address_width = address_width
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "with_partials": In(1),
                "partials": In(stream.Signature(partial_fiber())),
                "columns": In(COORDINATE_WIDTH),
                "partial_region": In(address_width - 3),
                "scratch_region": In(address_width - 3),
                "scratch_results": In(stream.Signature(partial_fiber())),
                "jobs": Out(stream.Signature(leaf(address_width))).array(elements),
                "tickets": Out(stream.Signature(job_ticket(elements))),
                "event_job": Out(1),
                "event_leaf": Out(1),
                "event_row": Out(1),
                "event_stall": Out(1),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"p": self.elements, "r": self.radix, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        radix = self.radix
        shape = leaf(self.address_width)

        # Downstream: one leaf waits in `held` until it is known whether the job ends with it.
        held = Signal(shape)
        holding = Signal()
        count = Signal(range(radix + 1))  # leaves of the job in progress, the held one included
        chosen = Signal(range(max(2, self.elements)))
        opened = Signal()  # the job in progress has a processing element
        is_scratch = Signal()  # the job's fiber goes to scratch; known when its last leaf goes

        free = Signal(self.elements)
        for n in range(self.elements):
            m.d.comb += free[n].eq(self.jobs[n].ready)
        # Rotating choice: the first free one after the last chosen.
        pick = Signal.like(chosen)
        rotated = Signal(self.elements)
        m.d.comb += rotated.eq(Cat(free, free) >> (chosen + 1))
        m.d.comb += pick.eq(chosen)
        for n in reversed(range(self.elements)):
            with m.If(rotated[n]):
                m.d.comb += pick.eq(
                    Mux(chosen + 1 + n >= self.elements, chosen + 1 + n - self.elements, chosen + 1 + n)
                )
        any_free = free.any()

        send = Signal()  # the held leaf is to go
        send_last = Signal()
        sent = Signal()
        with m.If(send & ~opened & any_free):
            m.d.sync += [opened.eq(1), chosen.eq(pick)]
        # The ticket goes with the job's last leaf: not before is it known whether the row is longer than one job.
        offer = Signal()
        m.d.comb += [
            offer.eq(send & opened & (~send_last | self.tickets.ready)),
            self.tickets.valid.eq(sent & send_last),
            self.tickets.payload.pe.eq(chosen),
            self.tickets.payload.scratch.eq(is_scratch),
        ]
        for n in range(self.elements):
            m.d.comb += [
                self.jobs[n].payload.eq(held),
                self.jobs[n].payload.last.eq(send_last),
                self.jobs[n].valid.eq(offer & (chosen == n)),
            ]
            with m.If(self.jobs[n].valid & self.jobs[n].ready):
                m.d.comb += sent.eq(1)
        m.d.comb += [
            self.event_stall.eq(send & ~sent),
            self.event_leaf.eq(sent & (held.length != 0)),
            self.event_job.eq(sent & send_last),
        ]
        with m.If(sent & send_last):
            m.d.sync += opened.eq(0)

        # Scratch fibers of the row in progress.
        m.submodules.table = table = Memory(shape=partial_fiber(), depth=radix, init=[])
        entry_write = table.write_port()
        entry_read = table.read_port(domain="comb")
        listed = Signal(range(radix + 1))  # scratch jobs given out and not merged yet
        known = Signal(range(radix + 1))  # of these, fibers known to be in memory
        index = Signal(range(radix + 1))
        ever_listed = Signal()
        m.d.comb += [
            self.scratch_results.ready.eq(1),
            entry_write.addr.eq(known),
            entry_write.data.eq(self.scratch_results.payload),
            entry_write.en.eq(self.scratch_results.valid),
            entry_read.addr.eq(index),
            self.tickets.payload.first.eq(is_scratch & ~ever_listed),
        ]
        with m.If(self.scratch_results.valid):
            m.d.sync += known.eq(known + 1)

        item = self.leaves.payload
        empty_leaf = Signal(shape)
        partial_leaf = Signal(shape)
        scratch_leaf = Signal(shape)
        m.d.comb += [
            empty_leaf.eq(Const(0, shape.size)),
            partial_leaf.in_memory.eq(self.partials.payload.in_memory),
            partial_leaf.unit.eq(1),
            partial_leaf.position.eq(
                self.partials.payload.position + Mux(self.partials.payload.in_memory, self.partial_region, 0)
            ),
            partial_leaf.length.eq(self.partials.payload.length),
            scratch_leaf.in_memory.eq(1),
            scratch_leaf.unit.eq(1),
            scratch_leaf.position.eq(self.scratch_region + entry_read.data.position),
            scratch_leaf.length.eq(entry_read.data.length),
        ]
        gathered = Signal(POSITION_WIDTH)  # elements of the row's leaves, as far as it matters
        m.d.comb += self.tickets.payload.bound.eq(Mux(gathered < self.columns, gathered, self.columns))

        def gather(length: Value) -> None:
            grown = gathered + length
            m.d.sync += gathered.eq(Mux(grown[POSITION_WIDTH], (1 << POSITION_WIDTH) - 1, grown))

        ending = Signal()  # the row's last leaf has been taken
        final_merge = Signal()  # the merge in progress ends the row

        def end_job(to_scratch: Any) -> None:
            """Offers the held leaf as the last of its job."""
            m.d.comb += [send.eq(1), send_last.eq(1), is_scratch.eq(to_scratch)]
            with m.If(sent):
                m.d.sync += [holding.eq(0), count.eq(0)]

        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("ROW") & ~self.leaves.valid)
            with m.State("ROW"):
                m.d.sync += [count.eq(0), holding.eq(0), listed.eq(0), known.eq(0), ending.eq(0), ever_listed.eq(0)]
                m.d.sync += gathered.eq(0)
                with m.If(self.leaves.valid):
                    with m.If(self.with_partials):
                        with m.If(self.partials.valid):
                            m.d.comb += self.partials.ready.eq(1)
                            with m.If(self.partials.payload.length != 0):
                                m.d.sync += [held.eq(partial_leaf), holding.eq(1), count.eq(1)]
                                m.d.sync += gathered.eq(self.partials.payload.length)
                            m.next = "LEAVES"
                    with m.Else():
                        m.next = "LEAVES"
            with m.State("LEAVES"):
                with m.If(ending):
                    with m.If(holding):
                        end_job(listed != 0)
                        with m.If(sent):
                            with m.If(listed != 0):
                                m.d.sync += [listed.eq(listed + 1), final_merge.eq(1), ever_listed.eq(1)]
                                m.next = "WAIT"
                            with m.Else():
                                m.d.comb += self.event_row.eq(1)
                                m.next = "ROW"
                    with m.Elif(listed != 0):
                        m.d.sync += final_merge.eq(1)
                        m.next = "WAIT"
                    with m.Else():
                        m.d.sync += [held.eq(empty_leaf), holding.eq(1)]
                with m.Elif(self.leaves.valid & ~item.present):
                    m.d.comb += self.leaves.ready.eq(1)
                    m.d.sync += ending.eq(item.leaf.last)
                with m.Elif(self.leaves.valid & (count == radix)):
                    # One more leaf than a job takes: the job in hand goes to scratch.
                    end_job(1)
                    with m.If(sent):
                        m.d.sync += [listed.eq(listed + 1), ever_listed.eq(1)]
                        with m.If(listed == radix - 1):
                            m.d.sync += final_merge.eq(0)
                            m.next = "WAIT"
                with m.Elif(self.leaves.valid):
                    m.d.comb += send.eq(holding)
                    with m.If(sent | ~holding):
                        m.d.comb += self.leaves.ready.eq(1)
                        m.d.sync += [held.eq(item.leaf), holding.eq(1), count.eq(count + 1), ending.eq(item.leaf.last)]
                        gather(item.leaf.length)
            with m.State("WAIT"):
                with m.If(known == listed):
                    m.d.sync += [index.eq(0), known.eq(0), holding.eq(0)]
                    m.next = "MERGE"
            with m.State("MERGE"):
                with m.If(index == listed):
                    with m.If(holding):
                        end_job(~final_merge)
                    with m.Else():
                        m.d.sync += [held.eq(empty_leaf), holding.eq(1)]
                    with m.If(sent):
                        with m.If(final_merge):
                            m.d.comb += self.event_row.eq(1)
                            m.next = "ROW"
                        with m.Else():
                            m.d.sync += listed.eq(1)
                            m.next = "LEAVES"
                with m.Elif(entry_read.data.length == 0):
                    m.d.sync += index.eq(index + 1)
                with m.Else():
                    m.d.comb += send.eq(holding)
                    with m.If(sent | ~holding):
                        m.d.sync += [held.eq(scratch_leaf), holding.eq(1), index.eq(index + 1)]
        return m
