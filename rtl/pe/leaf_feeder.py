"""Asks for the lines of a job's leaves: from the banked SRAM one line a cycle, from memory in bursts."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..leaf_lines import long_leaf_lines, memory_burst
from ..lib.block import Block
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..types import fetch_request
from .common import Sweep, Table, check_power_of_two, index_width, is_long
from .leaf_requests import FirstRequests, NextRequest, feed_leaf, leaf_request
from .slot_usage import SlotUsage, freed_line
from .visits import VisitScheduler

__all__ = ["LeafFeeder", "sram_ask"]


def sram_ask(radix: int, line_address_width: int) -> data.StructLayout:
    """A line of the banked SRAM, and which leaf it is for."""
    return data.StructLayout({"leaf": range(radix), "line": line_address_width})


class LeafFeeder(Block):
    """Keeps the line slots of every leaf filled: first a line for each leaf of the job, then whatever is free.

    Parameters
    ----------
    radix, lanes, address_width, line_address_width : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.
    leaf_lines : int
        Line slots of a leaf, power of two; the first ``LONG_LEAVES`` of a job have ``long_leaf_lines(leaf_lines)``, all of
        which are used for lines of memory only.

    Members
    -------
    leaves : In(stream(feed_leaf))
        Leaves 0, 1, ... of one job after another. A job's first lines are asked for as its leaves come.
    freed : In(freed_line)
    sram : Out(stream(sram_ask)), fetch : Out(stream(fetch_request))
        Registered, so that what is offered stays.

    A leaf's lines arrive in the order of its requests, since it changes between SRAM and memory only when all its
    slots are free.

    Timing
    ------
    A freed slot is asked for 3 cycles later, at one leaf a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, leaf_lines: int, address_width: int, line_address_width: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.leaf_lines = check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        self.address_width = address_width
        self.line_address_width = line_address_width
        super().__init__(
            {
                "leaves": In(stream.Signature(feed_leaf(lanes, address_width))),
                "freed": In(freed_line(radix)),
                "sram": Out(stream.Signature(sram_ask(radix, line_address_width))),
                "fetch": Out(stream.Signature(fetch_request(radix, address_width, leaf_lines))),
            }
        )

    def _burst_fits(self, leaf: Value, used: Value) -> Value:
        """A burst more fits into the line slots of ``leaf`` now that ``used`` of them are left in use."""

        def crossed(lines: int) -> Value:
            burst = memory_burst(lines)
            return Cat(used == lines - burst * n for n in range(1, lines // burst + 1)).any()

        return Mux(is_long(leaf), crossed(long_leaf_lines(self.leaf_lines)), crossed(self.leaf_lines))

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {"lanes": self.lanes, "leaf_lines": self.leaf_lines, "address_width": self.address_width}
        m.submodules.firsts = firsts = FirstRequests(radix=self.radix, **sizes)
        m.submodules.following = following = NextRequest(**sizes)
        m.submodules.usage = usage = SlotUsage(radix=self.radix, leaf_lines=self.leaf_lines)
        # Long leaves hint at bursts, of which their slots hold two.
        m.submodules.scheduler = scheduler = VisitScheduler(nodes=self.radix, node_depth=max(2, self.leaf_lines))
        m.submodules.sram_out = sram_out = StreamQueue(shape=self.sram.payload.shape(), depth=2)
        m.submodules.fetch_out = fetch_out = StreamQueue(shape=self.fetch.payload.shape(), depth=2)
        connect(m, flipped(self.leaves), firsts.leaves)
        connect(m, sram_out.o, flipped(self.sram))
        connect(m, fetch_out.o, flipped(self.fetch))

        # Of each leaf what it asks for next (``in_memory``: of the lines in its slots), and two pointers of its slots.
        pointer = long_leaf_lines(self.leaf_lines).bit_length()
        request = leaf_request(self.lanes, self.address_width, self.leaf_lines)
        state_shape = data.StructLayout({"finished": 1, "tail": pointer, "request": request})
        sweep = Sweep(m, self.radix)
        states = Table(
            m, "states", shape=state_shape, depth=self.radix, sweep=sweep, initial={"finished": 1, "tail": 0}
        )
        heads = Table(m, "heads", shape=pointer, depth=self.radix, sweep=sweep)
        freed_head = heads.read(self.freed.leaf)
        freed_state = states.read(self.freed.leaf)
        heads.write(self.freed.valid, self.freed.leaf, (freed_head + 1)[:pointer])
        # A line of the SRAM is asked for alone. Lines of memory come in bursts: a leaf is worth a visit when a burst fits,
        # whichever leaf the freed lines were of.
        left = Signal(pointer)
        m.d.comb += left.eq(freed_state.tail - freed_head - 1)
        m.d.comb += [
            scheduler.hint.valid.eq(
                self.freed.valid
                & ~freed_state.finished
                & (~freed_state.request.in_memory | self._burst_fits(self.freed.leaf, left))
            ),
            scheduler.hint.node.eq(self.freed.leaf),
        ]

        # The leaf that is visited next is looked up a cycle ahead. What a first visit begins with is not in the table.
        visit = scheduler.present
        known = Signal(state_shape)
        empty = Signal()
        held_in_memory = Signal()  # lines in the slots came from memory
        after = Signal(state_shape)
        written = Signal()
        looked_up = states.read(scheduler.next.node)
        repeated = written & (scheduler.next.node == visit.node)
        m.d.sync += [
            known.eq(Mux(repeated, after, looked_up)),
            held_in_memory.eq(Mux(repeated, after.request.in_memory, looked_up.request.in_memory)),
            empty.eq(firsts.first.empty),
        ]
        with m.If(scheduler.next.first):
            m.d.sync += known.request.eq(firsts.first.request)
        issue = Signal()
        made = known.request
        m.d.comb += [
            firsts.past_first.eq(visit.valid & visit.first),
            scheduler.available.eq(firsts.available & sweep.over),
            scheduler.is_last.eq(firsts.first.last),
            usage.next_leaf.eq(scheduler.next.node),
            usage.in_use.eq(looked_up.tail - heads.read(scheduler.next.node)),
            usage.repeated.eq(repeated),
            usage.leaf.eq(visit.node),
            usage.issue.eq(issue),
            usage.count.eq(made.count),
            usage.freed.eq(self.freed),
            following.made.eq(made),
            following.long.eq(is_long(visit.node)),
        ]

        # A visit asks for lines, or finds nothing to do, or fails and comes again.
        has_room = Mux(made.in_memory, usage.usage.memory_room, usage.usage.sram_room)
        other_source = visit.first & (held_in_memory != made.in_memory) & ~usage.usage.none
        idle = Signal()
        ended = Signal()
        m.d.comb += [
            idle.eq(Mux(visit.first, empty, known.finished | ~has_room)),
            issue.eq(
                visit.valid
                & ~idle
                & has_room
                & ~other_source
                & Mux(made.in_memory, fetch_out.i.ready, sram_out.i.ready)
            ),
            ended.eq((visit.first & empty) | made.ends),
            scheduler.done.eq(issue | (visit.valid & idle)),
            scheduler.ended.eq(ended & (issue | visit.first)),
            firsts.take.eq(visit.first & scheduler.done),
            sram_out.i.valid.eq(issue & ~made.in_memory),
            sram_out.i.payload.leaf.eq(visit.node),
            sram_out.i.payload.line.eq(made.line),
            fetch_out.i.valid.eq(issue & made.in_memory),
            fetch_out.i.payload.leaf.eq(visit.node),
            fetch_out.i.payload.position.eq(Cat(Const(0, index_width(self.lanes)), made.line)),
            fetch_out.i.payload.lines.eq(made.count),
            *passed(made, fetch_out.i.payload, "unit scratch"),
            fetch_out.i.payload.follows.eq(~visit.first),
            written.eq(issue | (visit.first & scheduler.done)),
            after.finished.eq(ended),
            after.tail.eq(known.tail + Mux(issue, made.count, 0)),
            after.request.eq(following.following),
            # An empty leaf changes nothing.
            after.request.in_memory.eq(Mux(issue, made.in_memory, held_in_memory)),
        ]
        states.write(written, visit.node, after)
        return m
