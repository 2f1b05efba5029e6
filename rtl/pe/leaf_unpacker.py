"""Takes the lines of the leaves apart into items."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..leaf_lines import long_leaf_lines
from ..lib.block import Block
from ..lib.stream import StreamRegister
from ..types import POSITION_WIDTH, line
from .common import Sweep, Table, check_power_of_two, heads, index_width
from .node_store import NodeStore
from .slot_usage import freed_line
from .visits import VisitScheduler

__all__ = ["LeafUnpacker", "unpack_leaf"]

SLOTS = 4


def unpack_leaf(lanes: int) -> data.StructLayout:
    """What the unpacker knows of a leaf: the lane of its first nonzero, how many there are. ``last`` ends the job."""
    return data.StructLayout({"last": 1, "lane": index_width(lanes), "length": POSITION_WIDTH})


class LeafUnpacker(Block):
    """Gives the lowest level of the merge a short queue of items for each leaf, filled from the line store.

    Parameters
    ----------
    radix, lanes, leaf_lines : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.

    Members
    -------
    leaves : In(stream(unpack_leaf))
        Leaves 0, 1, ... of one job after another.
    query, arrived, read_enable, read_leaf, read_slot, line
        To the :class:`LineStore`.
    freed : Out(freed_line)
        A line has been used up.
    heads : In(heads)

    Timing: popped to refilled 3 cycles; with ``SLOTS`` = 4 items a leaf gives one a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, leaf_lines: int) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.leaf_lines = check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        self.pointer_width = long_leaf_lines(leaf_lines).bit_length()
        super().__init__(
            {
                "leaves": In(stream.Signature(unpack_leaf(lanes))),
                "query": Out(range(radix)),
                "arrived": In(self.pointer_width),
                "read_enable": Out(1),
                "read_leaf": Out(range(radix)),
                "read_slot": Out(self.pointer_width - 1),
                "line": In(line(lanes)),
                "freed": Out(freed_line(radix)),
                "heads": In(heads(radix // 2, 0)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lane_bits = index_width(self.lanes)
        state_shape = data.StructLayout(
            {
                "head": self.pointer_width,
                "lane": lane_bits,
                "length": POSITION_WIDTH,
                "last": 1,  # one nonzero is left
            }
        )
        sweep = Sweep(m, self.radix)
        states = Table(m, "states", shape=state_shape, depth=self.radix, sweep=sweep, initial={"head": 0})
        m.submodules.scheduler = scheduler = VisitScheduler(nodes=self.radix, node_depth=SLOTS)
        m.submodules.store = store = NodeStore(nodes=self.radix, node_depth=SLOTS, leaf_bits=0)
        connect(m, flipped(self.heads), store.heads)
        m.d.comb += scheduler.hint.eq(store.hint)

        # Leaves come out of a block RAM, which answers late. A register costs no time here: lines take longer.
        m.submodules.entry = entry = StreamRegister(shape=self.leaves.payload.shape())
        connect(m, flipped(self.leaves), entry.i)
        # The leaf of the next first visit.
        m.submodules.front = front = StreamRegister(
            shape=data.StructLayout({"final": 1, "void": 1, "lane": lane_bits, "length": POSITION_WIDTH, "last": 1})
        )
        given, leaf = entry.o.payload, front.o.payload
        m.d.comb += [
            front.i.valid.eq(entry.o.valid),
            entry.o.ready.eq(front.i.ready),
            front.i.payload.final.eq(given.last),
            front.i.payload.void.eq(given.length == 0),
            front.i.payload.lane.eq(given.lane),
            front.i.payload.length.eq(given.length),
            front.i.payload.last.eq(given.length[1:] == 0),
        ]

        # The leaf that is visited next is looked up, and its line read, a cycle ahead; what a first visit begins with is not in
        # the table.
        visit, following = scheduler.present, scheduler.next
        now = Signal(state_shape)
        is_void = Signal()
        line_arrived = Signal()  # a line of this leaf
        after = Signal(state_shape)
        serve = Signal()
        line_over = Signal()
        looked_up = states.read(following.node)
        same_leaf = following.node == visit.node
        next_head = Signal(self.pointer_width)
        # While a first visit is at hand, the next one is of the leaf behind.
        past_first = visit.valid & visit.first
        begun = Signal(front.o.payload.shape())
        m.d.comb += begun.eq(Mux(past_first, front.i.payload, front.o.payload))
        m.d.sync += [
            now.eq(Mux(same_leaf & serve, after, looked_up)),
            is_void.eq(0),
            line_arrived.eq(Mux(same_leaf & line_over, self.arrived != next_head, self.arrived != looked_up.head)),
        ]
        with m.If(following.first):
            m.d.sync += [
                now.lane.eq(begun.lane),
                now.last.eq(begun.last),
                is_void.eq(begun.void),
            ]
        m.d.comb += [
            scheduler.available.eq(Mux(past_first, entry.o.valid, front.o.valid) & sweep.over),
            scheduler.is_last.eq(Mux(past_first, given.last, leaf.final)),
            self.query.eq(following.node),
            store.query.eq(following.node),
            self.read_enable.eq(following.valid),
            self.read_leaf.eq(following.node),
            next_head.eq(now.head + 1),
            self.read_slot.eq(Mux(same_leaf & line_over, next_head, looked_up.head)),
        ]

        # Visit: the item comes out of the line, if that was there.
        idle = Signal()  # a visit with nothing to do
        m.d.comb += [
            idle.eq(~visit.first & (store.finished | store.full)),
            serve.eq(visit.valid & ~idle & ~store.full & (is_void | line_arrived)),
            line_over.eq(serve & ~is_void & (now.last | now.lane.all())),
            scheduler.done.eq(serve | (visit.valid & idle)),
            scheduler.ended.eq(serve & now.last),
            front.o.ready.eq(visit.first & serve),
            store.reserve.eq(serve),
            store.reserve_last.eq(now.last),
            self.freed.valid.eq(line_over),
            self.freed.leaf.eq(visit.node),
        ]
        # In a first visit the leaf is in front: so many bits are selected once here, not twice where the state is looked up.
        length = Mux(visit.first, leaf.length, now.length)
        m.d.comb += [
            after.head.eq(Mux(line_over, next_head, now.head)),
            after.lane.eq(now.lane + 1),
            after.length.eq(length - 1),
            after.last.eq(length == 2),
        ]
        states.write(serve, visit.node, after)

        nonzero = Array(self.line[n] for n in range(self.lanes))[now.lane]
        m.d.comb += [
            store.push.valid.eq(serve),
            store.push.node.eq(visit.node),
            store.push.item.last.eq(now.last),
            store.push.item.void.eq(is_void),
            store.push.item.coordinate.eq(nonzero.coordinate),
            store.push.item.value.eq(nonzero.value),
        ]
        return m
