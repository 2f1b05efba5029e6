"""Takes the fibers of the processing elements in job order."""

from typing import Any

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, fiber_word
from .dispatcher import job_ticket

__all__ = ["Collector", "collected_word"]


def collected_word(lanes: int) -> data.StructLayout:
    """A fiber word and where its fiber goes (see :func:`job_ticket`)."""
    return data.StructLayout({"word": fiber_word(lanes), "scratch": 1, "first": 1, "bound": POSITION_WIDTH})


class Collector(Block):
    """In-order gathering: rows leave in the order in which they were dispatched, whichever element is done first.

    Members
    -------
    tickets : In(stream)
        Jobs in order; up to ``depth`` are remembered.
    fibers : In(stream).array(elements)
    collected : Out(stream)
        One word a cycle, registered.
    event_stall : Out(1)
        The element whose turn it is has nothing to give.
    idle : Out(1)
        No job is outstanding and nothing waits.
    """

    def __init__(self, *, elements: int, lanes: int, depth: int) -> None:
        self.elements = elements
        self.lanes = lanes
        self.depth = depth
        super().__init__(
            {
                "tickets": In(stream.Signature(job_ticket(elements))),
                "fibers": In(stream.Signature(fiber_word(lanes))).array(elements),
                "collected": Out(stream.Signature(collected_word(lanes))),
                "event_stall": Out(1),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"p": self.elements, "l": self.lanes, "d": self.depth}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.tickets = tickets = StreamQueue(shape=job_ticket(self.elements), depth=self.depth)
        m.submodules.out = out = StreamQueue(shape=collected_word(self.lanes), depth=2)
        m.d.comb += [
            tickets.i.valid.eq(self.tickets.valid),
            tickets.i.payload.eq(self.tickets.payload),
            self.tickets.ready.eq(tickets.i.ready),
            self.collected.valid.eq(out.o.valid),
            self.collected.payload.eq(out.o.payload),
            out.o.ready.eq(self.collected.ready),
        ]
        turn = tickets.o.payload.pe
        valid = Signal()
        word = Signal(fiber_word(self.lanes))
        take = Signal()
        m.d.comb += [
            valid.eq(Array([fiber.valid for fiber in self.fibers])[turn] & tickets.o.valid),
            word.eq(Array([fiber.payload.as_value() for fiber in self.fibers])[turn]),
            take.eq(valid & out.i.ready),
            out.i.valid.eq(valid),
            out.i.payload.word.eq(word),
            out.i.payload.scratch.eq(tickets.o.payload.scratch),
            out.i.payload.first.eq(tickets.o.payload.first),
            out.i.payload.bound.eq(tickets.o.payload.bound),
            tickets.o.ready.eq(take & word.last),
            self.event_stall.eq(tickets.o.valid & ~valid),
            self.idle.eq((tickets.level == 0) & (out.level == 0)),
        ]
        for n in range(self.elements):
            m.d.comb += self.fibers[n].ready.eq(take & (turn == n))
        return m
