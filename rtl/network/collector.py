"""Takes the fibers of the PEs: rows in row order, scratch fibers in theirs."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.lfsr import lfsr_next, lfsr_width
from ..lib.onehot import onehot_select
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..types import POSITION_WIDTH, collected_word, fiber_word
from .dispatcher import job_ticket

__all__ = ["Collector"]


class Collector(Block):
    """Gathers the fibers of the PEs in row order, rows of C and scratch fibers each in an order of their own.

    A scratch fiber waits only for scratch fibers. Words of the two kinds may take turns.

    Each PE gives the fibers of its tickets in the order of these, whatever their kind. So a fiber may be taken when as
    many of the other kind have left its PE as had tickets there before it.

    Parameters
    ----------
    pes : int
        Number of PEs.
    lanes : int
        Nonzeros in a fiber word, power of two.
    depth : int
        Rows whose own fibers may wait for their turn.
    scratch_slots : int
        Slots of scratch memory, power of two.

    Members
    -------
    tickets : In(stream)
        At least ``depth`` of rows and an eighth of that, or 8, of scratch fibers are remembered; ``ready`` when there is room
        for either.
    fibers : In(stream).array(pes)
        What each PE gives: the fibers of its jobs in job order, ``last`` on a fiber's last word.
    collected : Out(stream)
        One word a cycle, registered. When both have one, they take turns.
    merged_out : Out(1)
        The last word of a fiber whose ticket says ``merged`` has left its PE.
    scratch_open : In(1)
        Words of scratch fibers may come. What has left the PE is not held back.
    event_stall : Out(1)
        The PEs whose turn it is have nothing to give.
    idle : Out(1)
        No job is outstanding and nothing waits.

    Timing
    ------
    One word a cycle, registered.
    """

    def __init__(self, *, pes: int, lanes: int, depth: int, scratch_slots: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.depth = check_integer("Queue depth", depth, 1, 1 << 16)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1024)
        super().__init__(
            {
                "tickets": In(stream.Signature(job_ticket(pes, scratch_slots))),
                "fibers": In(stream.Signature(fiber_word(lanes))).array(pes),
                "collected": Out(stream.Signature(collected_word(lanes, scratch_slots))),
                "merged_out": Out(1),
                "scratch_open": In(1),
                "event_stall": Out(1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        pe = range(max(2, self.pes))
        few = max(8, self.depth // 8)
        # Tickets and fibers of each kind at each PE are counted; the counts are no more apart than tickets of the kind wait here.
        bits = [lfsr_width(waiting + 3) for waiting in (self.depth, few)]
        row_shape = data.StructLayout({"pe": pe, "before": bits[1], "merged": 1, "bound": POSITION_WIDTH})
        scratch_shape = data.StructLayout(
            {"pe": pe, "before": bits[0], "first": 1, "slot": range(max(2, self.scratch_slots))}
        )
        m.submodules.rows = rows = StreamQueue(shape=row_shape, depth=self.depth, block_memory=self.depth > 32)
        m.submodules.scratch = scratch = StreamQueue(shape=scratch_shape, depth=few)
        m.submodules.out = out = StreamQueue(shape=collected_word(self.lanes, self.scratch_slots), depth=2)
        queues = (rows, scratch)

        given = [Array(Signal(bits[k], name=f"given{k}_{n}") for n in range(self.pes)) for k in range(2)]
        left = [Array(Signal(bits[k], name=f"left{k}_{n}") for n in range(self.pes)) for k in range(2)]
        ticket = self.tickets.payload
        m.d.comb += self.tickets.ready.eq(rows.i.ready & scratch.i.ready)
        for k, queue in enumerate(queues):
            mine = self.tickets.valid & self.tickets.ready & (ticket.scratch == k)
            m.d.comb += [
                queue.i.valid.eq(mine),
                queue.i.payload.pe.eq(ticket.pe),
                queue.i.payload.before.eq(given[1 - k][ticket.pe]),
            ]
            for n in range(self.pes):
                with m.If(mine & (ticket.pe == n)):
                    m.d.sync += given[k][n].eq(lfsr_next(given[k][n]))
        m.d.comb += [
            rows.i.payload.merged.eq(ticket.merged),
            rows.i.payload.bound.eq(ticket.bound),
            scratch.i.payload.first.eq(ticket.first),
            scratch.i.payload.slot.eq(ticket.slot),
        ]

        # Whether a ticket's fiber is its PE's next one is known in the cycle after it has come to the head, and stays
        # so: nothing else leaves the PE before it.
        valids = Cat(fiber.valid for fiber in self.fibers)
        heads, due, heres, waiting = [], [], [], []
        for k, queue in enumerate(queues):
            shape = data.StructLayout({"on": self.pes, "ticket": queue.shape})
            following = StreamSkid(shape=queue.shape)
            head = StreamRegister(shape=shape)
            m.submodules[f"following{k}"] = following
            m.submodules[f"head{k}"] = head
            connect(m, queue.o, following.i)
            after, present = following.o.payload, head.o.payload
            turn = Signal(name=f"turn{k}")  # there is a ticket, and its fiber is its PE's next one
            here = Signal(name=f"here{k}")  # that PE has a word
            m.d.comb += [
                head.i.valid.eq(following.o.valid),
                following.o.ready.eq(head.i.ready),
                head.i.payload.on.eq(Cat(after.pe == n for n in range(self.pes))),
                head.i.payload.ticket.eq(after),
                here.eq((valids & present.on).any()),
            ]
            with m.If(head.i.ready):
                m.d.sync += turn.eq(following.o.valid & (left[1 - k][after.pe] == after.before))
            with m.Elif(onehot_select(present.on, list(left[1 - k])) == present.ticket.before):
                m.d.sync += turn.eq(1)
            heads.append(head.o)
            due.append(turn & self.scratch_open if k else turn)
            heres.append(here)
            waiting.append((queue.level != 0) | following.o.valid | head.o.valid)
        row, one = heads[0].payload.ticket, heads[1].payload.ticket

        last_scratch = Signal()  # the last word taken was one of scratch
        chosen = Signal()  # scratch; of no meaning while nothing is valid, which keeps the selection of words short
        granted = Signal(self.pes)  # the PE whose word is taken, one-hot
        word = Signal(fiber_word(self.lanes))
        valid = Signal()
        take = Signal()
        ends = Signal()
        m.d.comb += [
            chosen.eq(Mux(due[0] & last_scratch, ~heres[0], due[1] & heres[1])),
            valid.eq((due[0] & heres[0]) | (due[1] & heres[1])),
            take.eq(valid & out.i.ready),
            granted.eq(Mux(chosen, heads[1].payload.on, heads[0].payload.on)),
            word.eq(onehot_select(granted, [fiber.payload for fiber in self.fibers])),
            ends.eq(take & word.last),
            out.i.valid.eq(valid),
            out.i.payload.word.eq(word),
            out.i.payload.scratch.eq(chosen),
            out.i.payload.first.eq(chosen & one.first),
            out.i.payload.slot.eq(one.slot),
            out.i.payload.bound.eq(row.bound),
            heads[0].ready.eq(ends & ~chosen),
            heads[1].ready.eq(ends & chosen),
            self.merged_out.eq(ends & ~chosen & row.merged),
            self.event_stall.eq((heads[0].valid | heads[1].valid) & ~valid),
            self.collected.valid.eq(out.o.valid),
            self.collected.payload.eq(out.o.payload),
            out.o.ready.eq(self.collected.ready),
        ]
        m.d.comb += self.idle.eq(~waiting[0] & ~waiting[1] & (out.level == 0))
        with m.If(take):
            m.d.sync += last_scratch.eq(chosen)
        for n in range(self.pes):
            m.d.comb += self.fibers[n].ready.eq(take & granted[n])
            for k in range(2):
                with m.If(ends & granted[n] & (chosen == k)):
                    m.d.sync += left[k][n].eq(lfsr_next(left[k][n]))
        return m
