"""Asks for the lines of a job's leaves: from the banked SRAM one line a cycle, from memory in bursts."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister
from ..types import POSITION_WIDTH, fetch_request, long_leaf_lines, memory_burst
from .common import Sweep, Table, at_most, check_power_of_two, index_width, is_long
from .visits import VisitScheduler

__all__ = ["LeafFeeder", "feed_leaf", "freed_line", "sram_ask"]


def feed_leaf(lanes: int, address_width: int) -> data.StructLayout:
    """What the feeder knows of a leaf: its first line and how many there are. ``last`` ends the job."""
    lane_bits = index_width(lanes)
    return data.StructLayout(
        {
            "in_memory": 1,
            "unit": 1,
            "last": 1,
            "line": address_width - 3 - lane_bits,
            "lines": POSITION_WIDTH + 1 - lane_bits,
        }
    )


def sram_ask(radix: int, line_address_width: int) -> data.StructLayout:
    """A line of the banked SRAM, and which leaf it is for."""
    return data.StructLayout({"leaf": range(radix), "line": line_address_width})


def freed_line(radix: int) -> data.StructLayout:
    """A line slot of ``leaf`` is free again; ``wake``: it is worth looking at the leaf now."""
    return data.StructLayout({"valid": 1, "leaf": range(radix), "wake": 1})


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
    freed : In({valid, leaf, wake})
    sram : Out(stream(sram_ask)), fetch : Out(stream(fetch_request))
        Registered, so that what is offered stays.

    A leaf's lines arrive in the order of its requests, since it changes between SRAM and memory only when all its
    slots are free. Timing: a freed slot is asked for 3 cycles later, at one leaf a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, leaf_lines: int, address_width: int, line_address_width: int) -> None:
        check_power_of_two("Merge radix", radix, 2, 256)
        check_power_of_two("Lanes", lanes, 2, 64)
        check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        self.radix = radix
        self.lanes = lanes
        self.leaf_lines = leaf_lines
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

    def parameters(self) -> dict[str, Any]:
        return {
            "r": self.radix,
            "l": self.lanes,
            "n": self.leaf_lines,
            "a": self.address_width,
            "s": self.line_address_width,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        slots, long_slots = self.leaf_lines, long_leaf_lines(self.leaf_lines)
        burst, long_burst = memory_burst(slots), memory_burst(long_slots)
        pointer = long_slots.bit_length()
        given = feed_leaf(self.lanes, self.address_width)
        ask = {
            "in_memory": 1,
            "unit": 1,
            "line": given["line"].width,
            "lines": given["lines"].width,
            "count": long_burst.bit_length(),  # lines of the next request
            "ends": 1,  # it is the leaf's last
        }
        state_shape = data.StructLayout({"finished": 1, "tail": pointer, **ask})
        sweep = Sweep(m, self.radix)
        states = Table(m, "states", shape=state_shape, depth=self.radix, sweep=sweep, initial=1)
        heads = Table(m, "heads", shape=pointer, depth=self.radix, sweep=sweep)
        # Long leaves hint at bursts, of which their slots hold two.
        m.submodules.scheduler = scheduler = VisitScheduler(nodes=self.radix, slots=max(2, slots))
        m.submodules.sram_out = sram_out = StreamQueue(shape=self.sram.payload.shape(), depth=2)
        m.submodules.fetch_out = fetch_out = StreamQueue(shape=self.fetch.payload.shape(), depth=2)
        connect(m, sram_out.o, flipped(self.sram))
        connect(m, fetch_out.o, flipped(self.fetch))

        freed_head = heads.read(self.freed.leaf)
        freed_state = states.read(self.freed.leaf)
        heads.write(self.freed.valid, self.freed.leaf, (freed_head + 1)[:pointer])
        m.d.comb += [
            scheduler.hint.valid.eq(self.freed.valid & self.freed.wake & ~freed_state.finished),
            scheduler.hint.node.eq(self.freed.leaf),
        ]

        # Leaves come out of a block RAM, which answers late.
        m.submodules.behind = behind = StreamRegister(shape=self.leaves.payload.shape())
        connect(m, flipped(self.leaves), behind.i)
        # The leaf of the next first visit, with its first request.
        m.submodules.front = front = StreamRegister(shape=data.StructLayout({"last": 1, "empty": 1, **ask}))
        given_leaf, leaf = behind.o.payload, front.o.payload
        number = Signal(range(self.radix))
        with m.If(front.i.valid & front.i.ready):
            m.d.sync += number.eq(Mux(given_leaf.last, 0, number + 1))
        whole = Mux(is_long(number), long_burst, burst)
        m.d.comb += [
            front.i.valid.eq(behind.o.valid),
            behind.o.ready.eq(front.i.ready),
            front.i.payload.last.eq(given_leaf.last),
            front.i.payload.empty.eq(given_leaf.lines == 0),
            front.i.payload.in_memory.eq(given_leaf.in_memory),
            front.i.payload.unit.eq(given_leaf.unit),
            front.i.payload.line.eq(given_leaf.line),
            front.i.payload.lines.eq(given_leaf.lines),
            front.i.payload.count.eq(
                Mux(given_leaf.in_memory, Mux(given_leaf.lines < whole, given_leaf.lines, whole), 1)
            ),
            front.i.payload.ends.eq(given_leaf.lines <= Mux(given_leaf.in_memory, whole, 1)),
        ]

        # The leaf that is visited next is looked up a cycle ahead. Slots that become free meanwhile still count as used: they
        # are hinted at.
        visit = scheduler.present
        known = Signal(state_shape)
        usage_shape = data.StructLayout({"used": range(long_slots + 1), "none": 1, "memory_room": 1, "sram_room": 1})
        usage = Signal(usage_shape)  # of the leaf's slots
        after = Signal(state_shape)
        written = Signal()
        again = written & (scheduler.next.node == visit.node)
        issue = Signal()
        count = Signal(range(long_burst + 1))
        looked_up = states.read(scheduler.next.node)
        in_use = Signal(pointer)
        # What was freed in the cycle in which the leaf at hand was looked up shows only now.
        freed_before = Signal(freed_line(self.radix))
        kept = Signal(range(long_slots + 1))
        m.d.sync += freed_before.eq(self.freed)
        m.d.comb += [
            in_use.eq(looked_up.tail - heads.read(scheduler.next.node)),
            kept.eq(usage.used - (freed_before.valid & (freed_before.leaf == visit.node))),
        ]
        # While a first visit is at hand, the next one is of the leaf behind. What a first visit begins with is not in the table.
        ahead = visit.valid & visit.first
        begun = Signal(front.o.payload.shape())
        m.d.comb += begun.eq(Mux(ahead, front.i.payload, front.o.payload))
        held = Signal()  # lines in the slots came from memory
        empty = Signal()
        m.d.sync += [
            known.eq(Mux(again, after, looked_up)),
            held.eq(Mux(again, after.in_memory, looked_up.in_memory)),
            empty.eq(begun.empty),
        ]
        with m.If(scheduler.next.first):
            m.d.sync += [known[name].eq(begun[name]) for name in ask]
        # What the next visit may ask for is known before it is known whether this one changes it.
        cases = [Signal(usage_shape, name=f"usage_{name}") for name in ("looked_up", "kept", "issued")]
        for case, number_used in zip(cases, (in_use, kept, kept + count), strict=True):
            m.d.comb += [
                case.used.eq(number_used),
                case.none.eq(case.used == 0),
                # For a whole burst, even if less is left: nothing is added up before the comparison.
                case.memory_room.eq(
                    Mux(
                        is_long(scheduler.next.node),
                        at_most(case.used, long_slots - long_burst),
                        at_most(case.used, slots - burst),
                    )
                ),
                case.sram_room.eq(case.used[slots.bit_length() - 1 :] == 0),
            ]
        m.d.sync += usage.eq(Mux(again, Mux(issue, cases[2], cases[1]), cases[0]))
        m.d.comb += [
            scheduler.available.eq(Mux(ahead, behind.o.valid, front.o.valid) & sweep.over),
            scheduler.final.eq(Mux(ahead, given_leaf.last, leaf.last)),
        ]

        in_memory, lines = known.in_memory, known.lines
        room = Signal()
        long = is_long(visit.node)
        turned = visit.first & (held != in_memory) & ~usage.none
        idle = Signal()  # a visit with nothing to do
        ended = Signal()
        m.d.comb += [
            count.eq(known.count),
            room.eq(Mux(in_memory, usage.memory_room, usage.sram_room)),
            idle.eq(Mux(visit.first, empty, known.finished | ~room)),
            issue.eq(visit.valid & ~idle & room & ~turned & Mux(in_memory, fetch_out.i.ready, sram_out.i.ready)),
            ended.eq((visit.first & empty) | known.ends),
            scheduler.done.eq(issue | (visit.valid & idle)),
            scheduler.ended.eq(ended & (issue | visit.first)),
            front.o.ready.eq(visit.first & scheduler.done),
            sram_out.i.valid.eq(issue & ~in_memory),
            sram_out.i.payload.leaf.eq(visit.node),
            sram_out.i.payload.line.eq(known.line),
            fetch_out.i.valid.eq(issue & in_memory),
            fetch_out.i.payload.leaf.eq(visit.node),
            fetch_out.i.payload.position.eq(Cat(Const(0, index_width(self.lanes)), known.line)),
            fetch_out.i.payload.lines.eq(count),
            fetch_out.i.payload.unit.eq(known.unit),
            written.eq(issue | (visit.first & scheduler.done)),
        ]
        # What follows a whole burst: its size is found beside the subtraction, not behind it.
        fewer = Mux(long, lines < 2 * long_burst, lines < 2 * burst)
        twice = Mux(long, lines == 2 * long_burst, lines == 2 * burst)
        rest = Mux(long, lines[: long_burst.bit_length() - 1], lines[: burst.bit_length() - 1])
        m.d.comb += [
            after.finished.eq(ended),
            after.tail.eq(known.tail + Mux(issue, count, 0)),
            # Where the lines in the slots came from, so an empty leaf changes nothing.
            after.in_memory.eq(Mux(issue, in_memory, held)),
            after.unit.eq(known.unit),
            after.line.eq(known.line + count),
            after.lines.eq(lines - count),
            after.count.eq(Mux(in_memory, Mux(fewer, rest, Mux(long, long_burst, burst)), 1)),
            after.ends.eq(Mux(in_memory, fewer | twice, lines == 2)),
        ]
        states.write(written, visit.node, after)
        return m
