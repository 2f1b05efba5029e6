"""Decides which node of a level is served next."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .common import check_power_of_two, index_width
from .node_store import node_hint

__all__ = ["RefillScheduler"]


class RefillScheduler(Block):
    """Order in which a level fills its nodes: those that were popped first; else a job's first items, node by node;
    then passes that fill the remaining slots.

    A hint that cannot be served yet goes back to the end of the queue, so that it holds nobody up.

    A level works on one job at a time. The job is over when every node that was visited first is finished, and the
    next one may begin while items of this one still wait in the nodes.

    Parameters
    ----------
    nodes : int
        Power of two.
    slots : int
        Things a node holds: items, lines.

    Members
    -------
    hint : In({valid, node})
        The node has room for one more. Remembered, whatever it may be worth when its turn comes: there is space for
        ``slots`` hints a node, and a node that holds h things has at most ``slots - h`` of them waiting.
    available : In(1), final : In(1)
        The next first visit may be made; it is the last one of its job.
    request : Out({valid, node, first, fill})
        Serve this node. ``first``: its first visit in this job. ``fill``: a filling pass, to be skipped when there is
        nothing to do. Neither: a hint. It may change from cycle to cycle until ``done``.
    done : In(1), ended : In(1)
        The request has been dealt with; with it the node got its last thing of this job (then never again).

    Timing: a hint can be the request of the next cycle; the next job begins in the cycle after the last one ended.
    """

    def __init__(self, *, nodes: int, slots: int) -> None:
        check_power_of_two("Nodes of a level", nodes, 2, 256)
        check_power_of_two("Slots of a node", slots, 1, 64)
        self.nodes = nodes
        self.slots = slots
        super().__init__(
            {
                "hint": In(node_hint(nodes)),
                "available": In(1),
                "final": In(1),
                "request": Out(data.StructLayout({"valid": 1, "node": index_width(nodes), "first": 1, "fill": 1})),
                "done": In(1),
                "ended": In(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"n": self.nodes, "s": self.slots}

    def build(self, platform: Any) -> Module:
        m = Module()
        width = index_width(self.nodes)
        request = self.request

        # Hints: one that just came, which is late in its cycle, in a register; the oldest of those that wait in another;
        # the others in a RAM behind it.
        came = Signal(node_hint(self.nodes))
        taken = Signal()  # it is served at once
        first = Signal()  # the request is a first visit
        waiting = Signal()
        oldest = Signal(width)
        depth = self.nodes * self.slots
        stored = Signal(range(depth + 1))
        write_index = Signal(range(depth))
        read_index = Signal(range(depth))
        m.submodules.hints = hints = memory.Memory(shape=width, depth=depth, init=[])
        write, read = hints.write_port(), hints.read_port(domain="comb")
        leave = Signal()
        behind = Signal()
        store = Signal()
        rotate = Signal()  # the oldest cannot be served yet: it goes to the end, another one gets its turn
        m.d.sync += came.eq(self.hint)
        m.d.comb += [
            leave.eq(waiting & self.done),
            taken.eq(~waiting & came.valid & self.done),
            behind.eq(stored != 0),
            rotate.eq(waiting & ~self.done & behind & ~came.valid),
            store.eq(came.valid & ((waiting & ~leave) | behind)),
            write.addr.eq(write_index),
            write.data.eq(Mux(came.valid, came.node, oldest)),
            write.en.eq(store | rotate),
            read.addr.eq(read_index),
        ]
        take = leave | ~waiting | rotate
        with m.If(store | rotate):
            m.d.sync += write_index.eq(write_index + 1)
        with m.If(take):
            m.d.sync += [waiting.eq((came.valid & ~taken) | behind), oldest.eq(Mux(behind, read.data, came.node))]
            with m.If(behind):
                m.d.sync += read_index.eq(read_index + 1)
        m.d.sync += stored.eq(stored + (store | rotate) - (behind & take))

        # Visits. `opened` counts nodes of this job that are not finished.
        filling = Signal()  # all first visits are done
        index = Signal(width)
        newest = Signal(width)  # node of the final first visit
        passes = Signal(range(self.slots + 1))
        opened = Signal(range(self.nodes + 1))
        over = Signal()
        hinted = waiting | came.valid
        m.d.comb += [
            first.eq(~filling & ~hinted),
            # This cycle finishes the last node of the job.
            over.eq(self.done & self.ended & Mux(first, self.final & (opened == 0), filling & (opened == 1))),
            request.first.eq(first),
            request.fill.eq(~hinted & filling),
            request.node.eq(Mux(waiting, oldest, Mux(came.valid, came.node, index))),
            request.valid.eq(hinted | Mux(filling, passes != self.slots - 1, self.available)),
        ]
        m.d.sync += opened.eq(opened + (self.done & first & ~self.ended) - (self.done & ~first & self.ended))
        with m.If(over):
            m.d.sync += [filling.eq(0), index.eq(0), passes.eq(0)]
        with m.Elif(self.done & ~hinted):
            m.d.sync += index.eq(index + 1)
            with m.If(first & self.final):
                m.d.sync += [filling.eq(1), newest.eq(index), index.eq(0)]
            with m.If(filling & (index == newest)):
                m.d.sync += [index.eq(0), passes.eq(passes + 1)]
        return m
