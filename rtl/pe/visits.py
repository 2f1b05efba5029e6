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
    the one named after it is void. The node of the next visit is a register: which one it will be is chosen in the cycle
    before, the hint of that cycle last, so that RAMs are read from the begin of a cycle on.

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
        hints a node, and a node that holds h things has at most ``slots - h`` of them waiting. Goes through two gates into
        registers, and nowhere else.
    next : Out(visit)
        What ``present`` will be, unless it is void. ``node``, ``first`` and ``fill`` from registers.
    available : In(1), final : In(1)
        ``next``, if it is a first visit, may be made; it is the last one of its job.
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
                "next": Out(visit(nodes)),
                "available": In(1),
                "final": In(1),
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

        # Hints that are not named at once: one that came, one that failed, the oldest of the others, the rest in a RAM behind it.
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
        waiting = Signal()  # one of them is named
        m.d.comb += waiting.eq(came.valid | again.valid | oldest.valid)
        m.d.sync += [
            came.valid.eq(self.hint.valid & waiting),
            came.node.eq(self.hint.node),
            again.valid.eq(failed & ~turned & (self.hint.valid | waiting)),
            again.node.eq(present.node),
        ]
        # One that came while another failed is named first, since only one can be stored in a cycle.
        spare = Signal(node_hint(self.nodes))  # to be stored, or named when nothing waits before it
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

        # Turns: first visits, then filling passes, one node after the other, until they are all done and nothing is `left`.
        turn = data.StructLayout({"node": width, "fill": 1, "passes": range(self.slots + 1), "left": 1})
        begin = turn.const({"left": 1})
        named = Signal(turn, init={"left": 1})  # `next`; of a hint only the node counts
        hinted = Signal()  # `next` is a hint
        was_named = Signal(turn)  # `present`
        kept = Signal(turn)  # the turn behind the hints
        onward = Signal(turn)  # the one behind `next`
        upcoming = Signal(turn)  # the next one, if `present` does not fail
        filling = Signal()  # all first visits are done
        newest = Signal(width)  # node of the final first visit
        opened = Signal(range(self.nodes + 1))  # nodes of this job that are not finished
        over = Signal()  # this cycle finishes the last node of the job
        m.d.comb += [
            following.node.eq(named.node),
            following.first.eq(~hinted & ~named.fill),
            following.fill.eq(~hinted & named.fill),
            following.final.eq(self.final),
            following.valid.eq(hinted | Mux(named.fill, named.left, self.available)),
            over.eq(
                self.done & self.ended & Mux(present.first, present.final & (opened == 0), filling & (opened == 1))
            ),
        ]
        m.d.sync += [
            present.eq(following),
            was_named.eq(named),
            opened.eq(opened + (self.done & present.first & ~self.ended) - (self.done & ~present.first & self.ended)),
        ]
        m.d.comb += onward.eq(named)
        with m.If(hinted):
            m.d.comb += onward.eq(kept)
        with m.Elif(following.valid):
            m.d.comb += onward.node.eq(named.node + 1)
            with m.If(named.fill & (named.node == newest)):
                m.d.comb += [
                    onward.node.eq(0),
                    onward.passes.eq(named.passes + 1),
                    onward.left.eq(named.passes != self.slots - 2),
                ]
            with m.If(~named.fill):
                m.d.sync += newest.eq(named.node)
            with m.If(~named.fill & self.final):
                m.d.comb += [onward.node.eq(0), onward.fill.eq(1), onward.left.eq(self.slots != 1)]
                m.d.sync += filling.eq(1)
        m.d.comb += upcoming.eq(Mux(over, begin, onward))
        with m.If(over):
            m.d.sync += filling.eq(0)
        m.d.sync += [kept.eq(upcoming), named.eq(upcoming), hinted.eq(waiting | self.hint.valid | (failed & ~turned))]
        with m.If(failed & turned):
            m.d.sync += [filling.eq(present.fill), kept.eq(was_named), named.eq(was_named)]
        # The hint of this cycle comes late: few gates may lie behind it.
        with m.If(waiting):
            m.d.sync += named.node.eq(Mux(at_once, came.node, Mux(oldest.valid, oldest.node, spare.node)))
        with m.Elif(self.hint.valid):
            m.d.sync += named.node.eq(self.hint.node)
        with m.Elif(failed):
            m.d.sync += named.node.eq(present.node)
        # What was named in the same cycle as one that fails or ends the job came too early.
        with m.If(((failed & turned) | over) & ~hinted):
            m.d.sync += present.valid.eq(0)
        return m
