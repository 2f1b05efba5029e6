"""Takes the lines of the leaves apart into items."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..types import POSITION_WIDTH, line
from .common import Sweep, Table, check_power_of_two, heads, index_width
from .leaf_feeder import freed_line, memory_burst
from .node_store import NodeStore
from .refill import RefillScheduler

__all__ = ["LeafUnpacker", "unpack_leaf"]

SLOTS = 4


def unpack_leaf(lanes: int) -> data.StructLayout:
    """What the unpacker knows of a leaf: the lane of its first element, how many there are. ``last`` ends the job."""
    return data.StructLayout({"in_memory": 1, "last": 1, "lane": index_width(lanes), "length": POSITION_WIDTH})


class LeafUnpacker(Block):
    """The leaves as the lowest level of the merge sees them: a short queue of items each, filled from the line store.

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
    freed : Out({valid, leaf, wake})
        A line has been used up.
    heads : In(heads)

    Timing: popped to refilled 3 cycles; with ``SLOTS`` = 4 items a leaf gives one a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, leaf_lines: int) -> None:
        check_power_of_two("Merge radix", radix, 2, 256)
        check_power_of_two("Lanes", lanes, 2, 64)
        check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        self.radix = radix
        self.lanes = lanes
        self.leaf_lines = leaf_lines
        self.pointer_width = leaf_lines.bit_length()
        super().__init__(
            {
                "leaves": In(stream.Signature(unpack_leaf(lanes))),
                "query": Out(range(radix)),
                "arrived": In(self.pointer_width),
                "read_enable": Out(1),
                "read_leaf": Out(range(radix)),
                "read_slot": Out(index_width(leaf_lines)),
                "line": In(line(lanes)),
                "freed": Out(freed_line(radix)),
                "heads": In(heads(radix // 2, 0)),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"r": self.radix, "l": self.lanes, "n": self.leaf_lines}

    def build(self, platform: Any) -> Module:
        m = Module()
        lane_bits = index_width(self.lanes)
        burst = memory_burst(self.leaf_lines)
        state_shape = data.StructLayout(
            {
                "head": self.pointer_width,
                "in_memory": 1,
                "burst": index_width(burst),
                "lane": lane_bits,
                "length": POSITION_WIDTH,
            }
        )
        sweep = Sweep(m, self.radix)
        states = Table(m, "states", shape=state_shape, depth=self.radix, sweep=sweep)
        m.submodules.scheduler = scheduler = RefillScheduler(nodes=self.radix, slots=SLOTS)
        m.submodules.store = store = NodeStore(nodes=self.radix, slots=SLOTS, leaf_bits=0, delayed=True)
        connect(m, flipped(self.heads), store.heads)
        m.d.comb += scheduler.hint.eq(store.hint)

        request = scheduler.request
        node = request.node
        leaf = self.leaves.payload
        known = states.read(node)
        now = Signal(state_shape)
        m.d.comb += now.eq(known)
        with m.If(request.first):
            m.d.comb += [
                now.in_memory.eq(leaf.in_memory),
                now.burst.eq(0),
                now.lane.eq(leaf.lane),
                now.length.eq(leaf.length),
            ]

        # Visit: note what is taken, read the line. The item comes out of the line in the cycle after.
        void = Signal()
        last = Signal()
        idle = Signal()
        serve = Signal()
        line_over = Signal()
        m.d.comb += [
            self.query.eq(node),
            store.query.eq(node),
            void.eq(request.first & (leaf.length == 0)),
            last.eq(now.length[1:] == 0),
            idle.eq(~request.first & (store.finished | store.full)),
            serve.eq(request.valid & ~idle & ~store.full & (void | (self.arrived != known.head)) & ~sweep.active),
            line_over.eq(serve & ~void & (last | now.lane.all())),
            scheduler.available.eq(self.leaves.valid & store.ready),
            scheduler.final.eq(leaf.last),
            scheduler.done.eq(serve | (request.valid & idle)),
            scheduler.ended.eq(serve & last),
            self.leaves.ready.eq(request.valid & request.first & serve),
            store.reserve.eq(serve),
            store.reserve_last.eq(last),
            self.read_enable.eq(serve),
            self.read_leaf.eq(node),
            self.read_slot.eq(known.head),
            self.freed.valid.eq(line_over),
            self.freed.leaf.eq(node),
            self.freed.wake.eq(~now.in_memory | last | (now.burst == burst - 1)),
        ]
        after = Signal(state_shape)
        m.d.comb += [
            after.head.eq(known.head + line_over),
            after.in_memory.eq(now.in_memory),
            after.burst.eq(Mux(line_over, Mux(now.burst == burst - 1, 0, now.burst + 1), now.burst)),
            after.lane.eq(now.lane + 1),
            after.length.eq(now.length - 1),
        ]
        states.write(serve, node, after)

        lane = Signal(lane_bits)
        m.d.sync += [
            store.push.valid.eq(serve),
            store.push.node.eq(node),
            store.push.item.last.eq(last),
            store.push.item.void.eq(void),
            lane.eq(now.lane),
        ]
        element = Array(self.line[n] for n in range(self.lanes))[lane]
        m.d.comb += [
            store.push.item.coordinate.eq(element.coordinate),
            store.push.item.value.eq(element.value),
        ]
        return m
