"""Groups the leaves of each row into merge jobs and gives them to free processing elements."""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.onehot import lowest_set, onehot_index
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, leaf, leaf_item, partial_fiber, scratch_fiber
from .scratch_merger import ScratchMerger

__all__ = ["Dispatcher", "job_ticket"]


def job_ticket(elements: int, slots: int) -> data.StructLayout:
    """Which processing element has the next fiber of its kind, and where that goes.

    ``scratch``: to scratch memory, as one of several fibers of a long row, into the row's ``slot``; ``first``: the first
    such fiber of its row. Otherwise it is a row's own fiber, of at most ``bound`` elements; ``merged``: the leaves are
    the fibers of a slot.
    """
    return data.StructLayout(
        {
            "pe": range(max(2, elements)),
            "scratch": 1,
            "first": 1,
            "merged": 1,
            "slot": range(max(2, slots)),
            "bound": POSITION_WIDTH,
        }
    )


class Dispatcher(Block):
    """One row after another: at most ``radix`` leaves make a job; longer rows become several jobs whose fibers meet again.

    A row of more leaves is cut into groups of ``radix``; each group's fiber goes to scratch memory and comes back as a
    leaf that is taken as it is (``unit``) of a last job. Up to ``radix`` such fibers are remembered; when another would
    follow they are first merged into one, which takes their place. Each row ends in exactly one fiber that is not
    scratch. A partial fiber that an earlier k step left is the row's first leaf.

    Later rows do not wait for a long one: up to ``slots`` of them are under way, each with a slot of scratch memory from
    its first group until its own fiber has left. One of its elements is kept for the last job, the one of its last full
    group, which has most to do till then: no later row's job goes there before. With the collector's two orders no cycle
    of waiting can close (docs/blocks/network.md). Only a row of more than ``radix`` squared leaves holds up those behind
    it, when its fibers are merged on the way.

    Parameters
    ----------
    elements : int
        Processing elements.
    radix : int
        Leaves of a job at most, power of two.
    address_width : int
        Bits of a byte address.
    slots : int
        Slots of scratch memory: long rows that may be under way. ValueError where it is not a power of two.

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
        Where each scratch fiber lies, in the order of its row's jobs, when it is safely in memory. Always ready.
    merged_out : In(1)
        The fiber of the oldest merged row has left its element: the slot is free.
    jobs : Out(stream).array(elements)
        Leaves for each processing element; ``last`` ends a job. Which one ``ready`` says is free; ``ready`` stays until a
        job comes, and from its first leaf to its last one.
    tickets : Out(stream)
        The scratch fibers in job order, and the rows' own fibers in row order. With a job's last leaf, with its first one
        where scratch fibers are merged on the way, and ahead of the last job of a long row. ``ready`` may not wait for
        ``valid``.
    event_job, event_leaf : Out(2)
        Jobs, leaves that went in this cycle.
    event_row, event_stall : Out(1)
        The leaves of a row have all gone or wait in scratch; a leaf waits for a processing element or for scratch memory.
    idle : Out(1)
        No row is under way, no merge is to come.
    """

    def __init__(self, *, elements: int, radix: int, address_width: int, slots: int) -> None:
        if slots < 1 or slots & (slots - 1):
            raise ValueError(f"Scratch slots must be a power of two, not {slots!r}")
        self.elements = elements
        self.radix = radix
        self.address_width = address_width
        self.slots = slots
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "with_partials": In(1),
                "partials": In(stream.Signature(partial_fiber())),
                "columns": In(COORDINATE_WIDTH),
                "partial_region": In(address_width - 3),
                "scratch_region": In(address_width - 3),
                "scratch_results": In(stream.Signature(scratch_fiber(slots))),
                "merged_out": In(1),
                "jobs": Out(stream.Signature(leaf(address_width))).array(elements),
                "tickets": Out(stream.Signature(job_ticket(elements, slots))),
                "event_job": Out(2),
                "event_leaf": Out(2),
                "event_row": Out(1),
                "event_stall": Out(1),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"p": self.elements, "r": self.radix, "a": self.address_width, "n": self.slots}

    def build(self, platform: Any) -> Module:
        m = Module()
        radix = self.radix
        shape = leaf(self.address_width)
        m.submodules.merger = merger = ScratchMerger(
            elements=self.elements, radix=radix, address_width=self.address_width, slots=self.slots
        )
        ticket = self.tickets.payload
        m.d.comb += [
            merger.region.eq(self.scratch_region),
            merger.results.valid.eq(self.scratch_results.valid),
            merger.results.payload.eq(self.scratch_results.payload),
            self.scratch_results.ready.eq(merger.results.ready),
            merger.merged_out.eq(self.merged_out),
        ]

        # Downstream: one leaf waits in `held` until it is known whether the job ends with it.
        held = Signal(shape)
        holding = Signal()
        count = Signal(range(radix + 1))  # leaves of the job in progress, the held one included
        chosen = Signal(range(max(2, self.elements)))
        opened = Signal()  # the job in progress has a processing element
        merging = Signal()  # scratch fibers of the row in progress are being merged at `chosen`
        pick, any_free = self._pick(m, chosen, merger.kept, opened | merging)

        send = Signal()  # the held leaf is to go
        send_last = Signal()
        sent = Signal()
        is_scratch = Signal()  # the job's fiber goes to scratch; known when its last leaf goes
        room = Signal()  # the row has a slot, or there is one for it
        opens = Signal()  # a job is about to begin
        with m.If(opens & ~opened & any_free):
            m.d.sync += [opened.eq(1), chosen.eq(pick)]
        # The ticket goes with the job's last leaf: not before is it known whether the row is longer than one job.
        offer = Signal()
        with_last = Signal()  # the ticket of the job in progress goes
        m.d.comb += [
            offer.eq(send & opened & (~send_last | (self.tickets.ready & (~is_scratch | room)))),
            with_last.eq(sent & send_last),
            ticket.pe.eq(chosen),
            ticket.slot.eq(merger.slot),
        ]
        with m.If(with_last):
            m.d.comb += [self.tickets.valid.eq(1), ticket.scratch.eq(is_scratch)]
            m.d.sync += opened.eq(0)
        for n in range(self.elements):
            mine = merger.job.valid & (merger.element == n)
            m.d.comb += [
                self.jobs[n].payload.eq(held),
                self.jobs[n].payload.last.eq(send_last),
                self.jobs[n].valid.eq(offer & (chosen == n)),
            ]
            with m.If(mine):
                m.d.comb += [self.jobs[n].payload.eq(merger.job.payload), self.jobs[n].valid.eq(1)]
        ready = Array(job.ready for job in self.jobs)
        m.d.comb += [
            sent.eq(offer & ready[chosen]),
            merger.job.ready.eq(ready[merger.element]),
            merger.kept_ready.eq(ready[merger.kept_element]),
        ]
        merges = merger.job.valid & merger.job.ready
        waiting = Signal()  # for scratch fibers
        m.d.comb += [
            self.event_stall.eq((send & ~sent) | waiting),
            self.event_leaf.eq(
                (sent & (held.length != 0)) + (merges & (merger.job.payload.length != 0)),
            ),
            self.event_job.eq(with_last + (merges & merger.job.payload.last)),
        ]

        item = self.leaves.payload
        empty_leaf = Signal(shape)
        partial_leaf = Signal(shape)
        m.d.comb += [
            empty_leaf.eq(Const(0, shape.size)),
            partial_leaf.in_memory.eq(self.partials.payload.in_memory),
            partial_leaf.unit.eq(1),
            partial_leaf.position.eq(
                self.partials.payload.position + Mux(self.partials.payload.in_memory, self.partial_region, 0)
            ),
            partial_leaf.length.eq(self.partials.payload.length),
        ]
        gathered = Signal(POSITION_WIDTH)  # elements of the row's leaves, as far as it matters
        m.d.comb += ticket.bound.eq(Mux(gathered < self.columns, gathered, self.columns))

        def gather(length: Value) -> None:
            grown = gathered + length
            m.d.sync += gathered.eq(Mux(grown[POSITION_WIDTH], (1 << POSITION_WIDTH) - 1, grown))

        listed = Signal(range(radix + 1))  # fibers of the row that wait in scratch or will
        long = Signal()  # the row has a slot
        ending = Signal()  # the row's last leaf has been taken
        fresh = Signal(init=1)  # no leaf of a row has been taken
        stale = Signal()
        keeps = Signal.like(chosen)  # the element of the row's last group of `radix` leaves
        m.d.comb += [
            room.eq(long | merger.room),
            merger.row_begins.eq(with_last & is_scratch & ~long),
            merger.fiber_sent.eq(with_last & is_scratch),
        ]

        def end_job(to_scratch: Any) -> None:
            """Offers the held leaf as the last of its job."""
            m.d.comb += [send.eq(1), send_last.eq(1), is_scratch.eq(to_scratch), ticket.first.eq(to_scratch & ~long)]
            with m.If(sent):
                m.d.sync += [holding.eq(0), count.eq(0)]
                with m.If(to_scratch):
                    m.d.sync += [listed.eq(listed + 1), long.eq(1)]
                    with m.If(~ending):
                        m.d.sync += keeps.eq(chosen)

        def end_row() -> None:
            m.d.sync += [
                count.eq(0),
                holding.eq(0),
                listed.eq(0),
                long.eq(0),
                ending.eq(0),
                gathered.eq(0),
                fresh.eq(1),
            ]

        def take_none() -> None:
            """Takes an item without a leaf; a row that ends with it and has no other becomes an empty job."""
            m.d.comb += self.leaves.ready.eq(1)
            m.d.sync += [ending.eq(item.leaf.last), fresh.eq(0)]

        def take_leaf() -> None:
            m.d.comb += self.leaves.ready.eq(1)
            m.d.sync += [held.eq(item.leaf), holding.eq(1), ending.eq(item.leaf.last), fresh.eq(0)]

        def hold_empty() -> None:
            m.d.sync += [held.eq(empty_leaf), holding.eq(1)]

        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("LEAVES") & fresh & ~self.leaves.valid & merger.idle)
            # The element that a row has just been given for good does not show in the choice made then.
            m.d.sync += stale.eq(fsm.ongoing("KEEP"))
            with m.State("LEAVES"):
                m.d.comb += opens.eq((holding | self.leaves.valid) & ~stale)
                with m.If(ending):
                    # Some leaf is held here: of a long row, too, the group before went only when another leaf was there.
                    end_job(long)
                    with m.If(sent & long):
                        m.next = "KEEP"
                    with m.Elif(sent):
                        m.d.comb += self.event_row.eq(1)
                        end_row()
                        # The next row begins at once.
                        with m.If(self.leaves.valid & ~self.with_partials):
                            with m.If(item.present):
                                take_leaf()
                                m.d.sync += [count.eq(1), gathered.eq(item.leaf.length)]
                            with m.Else():
                                take_none()
                                with m.If(item.leaf.last):
                                    hold_empty()
                with m.Elif(fresh & self.with_partials):
                    with m.If(self.leaves.valid & self.partials.valid):
                        m.d.comb += self.partials.ready.eq(1)
                        m.d.sync += fresh.eq(0)
                        with m.If(self.partials.payload.length != 0):
                            m.d.sync += [held.eq(partial_leaf), holding.eq(1), count.eq(1)]
                            m.d.sync += gathered.eq(self.partials.payload.length)
                with m.Elif(self.leaves.valid & ~item.present):
                    take_none()
                    with m.If(item.leaf.last & ~holding):
                        hold_empty()
                with m.Elif(self.leaves.valid & (count == radix)):
                    # One more leaf than a job takes: the job in hand goes to scratch.
                    end_job(1)
                    with m.If(sent & (listed == radix - 1)):
                        m.next = "WAIT"
                with m.Elif(self.leaves.valid):
                    m.d.comb += send.eq(holding)
                    with m.If(sent | ~holding):
                        take_leaf()
                        m.d.sync += count.eq(count + 1)
                        gather(item.leaf.length)
            with m.State("KEEP"):
                # The row's own fiber has its turn here; its job follows when the scratch fibers are in memory.
                m.d.comb += [self.tickets.valid.eq(1), ticket.merged.eq(1), ticket.pe.eq(keeps)]
                with m.If(self.tickets.ready):
                    m.d.comb += [merger.keep.eq(1), merger.keep_element.eq(keeps), self.event_row.eq(1)]
                    end_row()
                    m.next = "LEAVES"
            with m.State("WAIT"):
                m.d.comb += waiting.eq(1)
                with m.If(merger.known & any_free & self.tickets.ready):
                    m.d.comb += [
                        merger.merge.eq(1),
                        merger.merge_element.eq(pick),
                        merger.fiber_sent.eq(1),
                        self.tickets.valid.eq(1),
                        ticket.pe.eq(pick),
                        ticket.scratch.eq(1),
                    ]
                    m.d.sync += [chosen.eq(pick), keeps.eq(pick), listed.eq(1)]
                    m.next = "MERGE"
            with m.State("MERGE"):
                m.d.comb += [waiting.eq(1), merging.eq(1)]
                with m.If(merger.done):
                    m.next = "LEAVES"
        return m

    def _pick(self, m: Module, chosen: Signal, kept: Signal, busy: Value) -> tuple[Signal, Signal]:
        """Rotating choice: the first element after the last chosen one that is free and not kept; whether there is one.

        Made in the cycle before: an element that is free stays so until a job comes, and ``busy`` says that ``chosen`` has one.
        """
        count = self.elements
        free = Signal(count)
        after = Signal(count)  # those behind the last chosen one
        for n in range(count):
            m.d.comb += free[n].eq(self.jobs[n].ready & ~kept[n] & ~(busy & (chosen == n)))
            if n:
                m.d.comb += after[n].eq(chosen < n)
        pick, any_free = Signal.like(chosen, name="pick"), Signal()
        preferred = free & after
        first = Mux(preferred.any(), lowest_set(preferred), lowest_set(free))
        m.d.sync += [pick.eq(onehot_index(first)), any_free.eq(free.any())]
        return pick, any_free
