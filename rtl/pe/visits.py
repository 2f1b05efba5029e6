"""Decides which node of a merge level is visited next, one visit ahead of the comparator."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .common import check_power_of_two, index_width
from .hint_queue import HintQueue
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
    node_depth : int
        Things a node holds: items, lines.

    Members
    -------
    hint : In({valid, node})
        The node has room for one more. Remembered, whatever it may be worth when its turn comes: there is space for
        ``node_depth`` hints a node, and a node that holds h things has at most ``node_depth - h`` of them waiting. Goes
        through two gates into registers, and nowhere else.
    next : Out(visit)
        What ``present`` will be, unless it is void. ``node``, ``first`` and ``fill`` from registers.
    available : In(1), is_last : In(1)
        ``next``, if it is a first visit, may be made; it is the last one of its job.
    present : Out(visit)
        The visit at hand, from registers.
    done : In(1), ended : In(1)
        ``present`` has been dealt with, else it has failed; with it the node got its last item of this job.

    Timing
    ------
    One visit a cycle. A hint can be ``next`` in the cycle after it came; the next job begins in the cycle after the last one
    ended.
    """

    def __init__(self, *, nodes: int, node_depth: int) -> None:
        self.nodes = check_power_of_two("Nodes of a level", nodes, 2, 256)
        self.node_depth = check_power_of_two("Depth of a node", node_depth, 1, 64)
        super().__init__(
            {
                "hint": In(node_hint(nodes)),
                "next": Out(visit(nodes)),
                "available": In(1),
                "is_last": In(1),
                "present": Out(visit(nodes)),
                "done": In(1),
                "ended": In(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        width = index_width(self.nodes)
        following, present = self.next, self.present
        failed = Signal()
        unhinted = Signal()  # `present` is no hint
        m.d.comb += [
            failed.eq(present.valid & ~self.done),
            unhinted.eq(present.first | present.fill),
        ]

        m.submodules.hints = hints = HintQueue(nodes=self.nodes, node_hints=self.node_depth)
        m.d.comb += [
            hints.hint.eq(self.hint),
            hints.failed.valid.eq(failed & ~unhinted),
            hints.failed.node.eq(present.node),
        ]

        # Turns: first visits, then filling passes, one node after the other, until they are all done and nothing is `left`.
        turn = data.StructLayout({"node": width, "fill": 1, "passes": range(self.node_depth + 1), "left": 1})
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
            following.final.eq(self.is_last),
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
                    onward.left.eq(named.passes != self.node_depth - 2),
                ]
            with m.If(~named.fill):
                m.d.sync += newest.eq(named.node)
            with m.If(~named.fill & self.is_last):
                m.d.comb += [onward.node.eq(0), onward.fill.eq(1), onward.left.eq(self.node_depth != 1)]
                m.d.sync += filling.eq(1)
        m.d.comb += upcoming.eq(Mux(over, begin, onward))
        with m.If(over):
            m.d.sync += filling.eq(0)
        m.d.sync += [
            kept.eq(upcoming),
            named.eq(upcoming),
            hinted.eq(hints.waiting | self.hint.valid | (failed & ~unhinted)),
        ]
        with m.If(failed & unhinted):
            m.d.sync += [filling.eq(present.fill), kept.eq(was_named), named.eq(was_named)]
        # The hint of this cycle comes late: one gate may lie behind it.
        known_node = Signal(width)  # the one to be named if that hint does not count
        m.d.comb += known_node.eq(Mux(hints.waiting, hints.node, Mux(failed, present.node, upcoming.node)))
        m.d.sync += named.node.eq(Mux(self.hint.valid & ~hints.waiting, self.hint.node, known_node))
        # What was named in the same cycle as one that fails or ends the job came too early.
        with m.If(((failed & unhinted) | over) & ~hinted):
            m.d.sync += present.valid.eq(0)
        return m
