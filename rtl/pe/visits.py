"""Decides which node of a merge level is visited next, one visit ahead of the comparator."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .common import check_power_of_two, index_width
from .node_store import node_hint

__all__ = ["VisitScheduler", "visit"]


def visit(nodes: int) -> data.StructLayout:
    """Serve this node. ``first``: its first visit in this job, ``final``: the last such one of the job. ``fill``: a filling
    pass, to be skipped when there is nothing to do. Neither: a hint."""
    return data.StructLayout({"valid": 1, "node": index_width(nodes), "first": 1, "final": 1, "fill": 1})


class VisitScheduler(Block):
    """Decides which node of a level is served next: those that were popped first; else a job's first items, node by node; then
    passes that fill the remaining slots.

    A level works on one job at a time. The job is over when every node that was visited first is finished, and the next one
    may begin while items of this one still wait in the nodes.

    What becomes of a visit shows a cycle after it. Meanwhile the next visit is named as if this one went well. One that fails
    comes again: a hint behind those that wait, so that it holds nobody up; a first visit or one of a filling pass at once, and
    the one named after it is void.

    Parameters
    ----------
    nodes : int
        Power of two.
    slots : int
        Things a node holds: items, lines.

    Members
    -------
    hint : In({valid, node})
        The node has room for one more. Remembered, whatever it may be worth when its turn comes: there is space for ``slots``
        hints a node, and a node that holds h things has at most ``slots - h`` of them waiting. Goes into a register and
        nowhere else.
    first_node : Out
        The node of the next first visit, from a register.
    available : In(1), final : In(1)
        That visit may be made; it is the last one of its job.
    next : Out(visit)
        What ``present`` will be, unless it is void.
    present : Out(visit)
        The visit at hand, from registers.
    done : In(1), ended : In(1)
        ``present`` has been dealt with, else it has failed; with it the node got its last item of this job.

    Timing: a hint can be ``next`` in the cycle after it came; the next job begins in the cycle after the last one ended.
    """

    def __init__(self, *, nodes: int, slots: int) -> None:
        check_power_of_two("Nodes of a level", nodes, 2, 256)
        check_power_of_two("Slots of a node", slots, 1, 64)
        self.nodes = nodes
        self.slots = slots
        super().__init__(
            {
                "hint": In(node_hint(nodes)),
                "first_node": Out(index_width(nodes)),
                "available": In(1),
                "final": In(1),
                "next": Out(visit(nodes)),
                "present": Out(visit(nodes)),
                "done": In(1),
                "ended": In(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"n": self.nodes, "s": self.slots}

    def build(self, platform: Any) -> Module:
        m = Module()
        width = index_width(self.nodes)
        following, present = self.next, self.present
        failed = Signal()
        turned = Signal()  # `present` is no hint
        m.d.comb += [
            failed.eq(present.valid & ~self.done),
            turned.eq(present.first | present.fill),
        ]

        # Hints: one that just came, one that just failed, the oldest of those that wait, the others in a RAM behind it.
        came = Signal(node_hint(self.nodes))
        again = Signal(node_hint(self.nodes))
        oldest = Signal(node_hint(self.nodes))
        depth = self.nodes * self.slots
        stored = Signal(range(depth + 1))
        behind = Signal()  # stored != 0
        write_index = Signal(range(depth))
        read_index = Signal(range(depth))
        m.submodules.hints = hints = memory.Memory(shape=width, depth=depth, init=[])
        write, read = hints.write_port(), hints.read_port(domain="comb")
        m.d.sync += [
            came.eq(self.hint),
            again.valid.eq(failed & ~turned),
            again.node.eq(present.node),
        ]
        # One that came while another failed is visited at once, since only one can be stored in a cycle.
        spare = Signal(node_hint(self.nodes))  # to be stored, or taken at once when nothing waits
        at_once = Signal()
        store = Signal()
        leave = Signal()  # `oldest` is named
        taken = Signal()  # `spare` is named
        m.d.comb += [
            at_once.eq(came.valid & again.valid),
            spare.valid.eq(came.valid | again.valid),
            spare.node.eq(Mux(again.valid, again.node, came.node)),
            leave.eq(oldest.valid & ~at_once),
            taken.eq(~oldest.valid & ~at_once),
            store.eq(spare.valid & ~taken & (behind | (oldest.valid & ~leave))),
            write.addr.eq(write_index),
            write.data.eq(spare.node),
            write.en.eq(store),
            read.addr.eq(read_index),
        ]
        with m.If(store):
            m.d.sync += write_index.eq(write_index + 1)
        pull = Signal()
        m.d.comb += pull.eq(behind & (leave | ~oldest.valid))
        with m.If(leave | ~oldest.valid):
            m.d.sync += [
                oldest.valid.eq(behind | (spare.valid & ~taken)),
                oldest.node.eq(Mux(behind, read.data, spare.node)),
            ]
        with m.If(pull):
            m.d.sync += read_index.eq(read_index + 1)
        m.d.sync += stored.eq(stored + store - pull)
        m.d.sync += behind.eq(Mux(store, 1, behind & ~(pull & (stored == 1))))

        # Visits. `opened` counts nodes of this job that are not finished.
        filling = Signal()  # all first visits are done
        index = Signal(width)
        newest = Signal(width)  # node of the final first visit
        passes = Signal(range(self.slots + 1))
        opened = Signal(range(self.nodes + 1))
        over = Signal()  # this cycle finishes the last node of the job
        hinted = Signal()
        m.d.comb += [
            self.first_node.eq(index),
            hinted.eq(oldest.valid | spare.valid),
            following.node.eq(
                Mux(at_once, came.node, Mux(oldest.valid, oldest.node, Mux(spare.valid, spare.node, index)))
            ),
            following.first.eq(~hinted & ~filling),
            following.fill.eq(~hinted & filling),
            following.final.eq(self.final),
            following.valid.eq(hinted | Mux(filling, passes != self.slots - 1, self.available)),
            over.eq(
                self.done & self.ended & Mux(present.first, present.final & (opened == 0), filling & (opened == 1))
            ),
        ]
        before = Signal.like(passes)  # `passes` when `present` was named
        m.d.sync += [
            present.eq(following),
            before.eq(passes),
            opened.eq(opened + (self.done & present.first & ~self.ended) - (self.done & ~present.first & self.ended)),
        ]
        with m.If(following.valid & ~hinted):
            m.d.sync += index.eq(index + 1)
            with m.If(~filling & self.final):
                m.d.sync += [filling.eq(1), newest.eq(index), index.eq(0)]
            with m.If(filling & (index == newest)):
                m.d.sync += [index.eq(0), passes.eq(passes + 1)]
        with m.If(failed & turned):
            m.d.sync += [index.eq(present.node), filling.eq(present.fill), passes.eq(before)]
        with m.If(over):
            m.d.sync += [filling.eq(0), index.eq(0), passes.eq(0)]
        # What was named in the same cycle as one that fails or ends the job came too early.
        with m.If(((failed & turned) | over) & ~hinted):
            m.d.sync += present.valid.eq(0)
        return m
