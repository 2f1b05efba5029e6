"""Takes the fibers of the processing elements: rows in row order, scratch fibers in theirs."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, fiber_word
from .dispatcher import job_ticket

__all__ = ["Collector", "collected_word"]


def collected_word(lanes: int, slots: int) -> data.StructLayout:
    """A fiber word and where its fiber goes (see :func:`job_ticket`)."""
    return data.StructLayout(
        {
            "word": fiber_word(lanes),
            "scratch": 1,
            "first": 1,
            "slot": range(max(2, slots)),
            "bound": POSITION_WIDTH,
        }
    )


class Collector(Block):
    """In-order gathering in two lines: a row's own fiber waits for those of the rows before it, a scratch fiber only for
    scratch fibers before it. Words of the two may take turns.

    Each element gives the fibers of its tickets in the order of these, whatever their kind. So a fiber may be taken when as
    many of the other kind have left its element as had tickets there before it.

    Members
    -------
    tickets : In(stream)
        Up to ``depth`` of each kind are remembered; ``ready`` when there is room for either.
    fibers : In(stream).array(elements)
    collected : Out(stream)
        One word a cycle, registered. When both have one, they take turns.
    merged_out : Out(1)
        The last word of a fiber whose ticket says ``merged`` has left its element.
    event_stall : Out(1)
        The elements whose turn it is have nothing to give.
    idle : Out(1)
        No job is outstanding and nothing waits.
    """

    def __init__(self, *, elements: int, lanes: int, depth: int, slots: int) -> None:
        self.elements = elements
        self.lanes = lanes
        self.depth = depth
        self.slots = slots
        super().__init__(
            {
                "tickets": In(stream.Signature(job_ticket(elements, slots))),
                "fibers": In(stream.Signature(fiber_word(lanes))).array(elements),
                "collected": Out(stream.Signature(collected_word(lanes, slots))),
                "merged_out": Out(1),
                "event_stall": Out(1),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"p": self.elements, "l": self.lanes, "d": self.depth, "n": self.slots}

    def build(self, platform: Any) -> Module:
        m = Module()
        element = range(max(2, self.elements))
        before = range(self.depth + 1)  # fibers of the other kind with tickets for the element, modulo
        row_shape = data.StructLayout({"pe": element, "before": before, "merged": 1, "bound": POSITION_WIDTH})
        scratch_shape = data.StructLayout(
            {"pe": element, "before": before, "first": 1, "slot": range(max(2, self.slots))}
        )
        m.submodules.rows = rows = StreamQueue(shape=row_shape, depth=self.depth)
        m.submodules.scratch = scratch = StreamQueue(shape=scratch_shape, depth=self.depth)
        m.submodules.out = out = StreamQueue(shape=collected_word(self.lanes, self.slots), depth=2)
        queues = (rows, scratch)

        # Tickets and fibers of each kind at each element; no more than `depth` apart, which a count can tell.
        width = self.depth.bit_length()
        given = [Array(Signal(width, name=f"given{k}_{n}") for n in range(self.elements)) for k in range(2)]
        left = [Array(Signal(width, name=f"left{k}_{n}") for n in range(self.elements)) for k in range(2)]
        ticket = self.tickets.payload
        m.d.comb += self.tickets.ready.eq(rows.i.ready & scratch.i.ready)
        for k, queue in enumerate(queues):
            mine = self.tickets.valid & self.tickets.ready & (ticket.scratch == k)
            m.d.comb += [
                queue.i.valid.eq(mine),
                queue.i.payload.pe.eq(ticket.pe),
                queue.i.payload.before.eq(given[1 - k][ticket.pe]),
            ]
            for n in range(self.elements):
                with m.If(mine & (ticket.pe == n)):
                    m.d.sync += given[k][n].eq(given[k][n] + 1)
        m.d.comb += [
            rows.i.payload.merged.eq(ticket.merged),
            rows.i.payload.bound.eq(ticket.bound),
            scratch.i.payload.first.eq(ticket.first),
            scratch.i.payload.slot.eq(ticket.slot),
        ]

        valids = Array(fiber.valid for fiber in self.fibers)
        offers = []
        for k, queue in enumerate(queues):
            head = queue.o.payload
            offer = Signal(name=f"offer{k}")
            m.d.comb += offer.eq(queue.o.valid & valids[head.pe] & (left[1 - k][head.pe] == head.before))
            offers.append(offer)

        last_scratch = Signal()  # the last word taken was one of scratch
        chosen = Signal()
        turn = Signal(element)
        valid = Signal()
        word = Signal(fiber_word(self.lanes))
        take = Signal()
        ends = Signal()
        m.d.comb += [
            chosen.eq(offers[1] & (~offers[0] | ~last_scratch)),
            turn.eq(Mux(chosen, scratch.o.payload.pe, rows.o.payload.pe)),
            valid.eq(offers[0] | offers[1]),
            word.eq(Array(fiber.payload.as_value() for fiber in self.fibers)[turn]),
            take.eq(valid & out.i.ready),
            ends.eq(take & word.last),
            out.i.valid.eq(valid),
            out.i.payload.word.eq(word),
            out.i.payload.scratch.eq(chosen),
            out.i.payload.first.eq(chosen & scratch.o.payload.first),
            out.i.payload.slot.eq(scratch.o.payload.slot),
            out.i.payload.bound.eq(rows.o.payload.bound),
            rows.o.ready.eq(ends & ~chosen),
            scratch.o.ready.eq(ends & chosen),
            self.merged_out.eq(ends & ~chosen & rows.o.payload.merged),
            self.event_stall.eq((rows.o.valid | scratch.o.valid) & ~valid),
            self.idle.eq((rows.level == 0) & (scratch.level == 0) & (out.level == 0)),
            self.collected.valid.eq(out.o.valid),
            self.collected.payload.eq(out.o.payload),
            out.o.ready.eq(self.collected.ready),
        ]
        with m.If(take):
            m.d.sync += last_scratch.eq(chosen)
        for n in range(self.elements):
            m.d.comb += self.fibers[n].ready.eq(take & (turn == n))
            for k in range(2):
                with m.If(ends & (chosen == k) & (turn == n)):
                    m.d.sync += left[k][n].eq(left[k][n] + 1)
        return m
