"""One level of the merge tree: many nodes, one comparator."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from .common import Sweep, Table, check_power_of_two, heads
from .node_store import NodeStore
from .visits import VisitScheduler

__all__ = ["MergeLevel", "choose", "leaf_above"]

#: As many items as cycles from popped to refilled: one node alone can give an item a cycle.
SLOTS = 4


def leaf_above(chosen: Any, takes_right: Value) -> Value:
    """The ``leaf`` of a child's item as its parent numbers them."""
    return Cat(chosen.leaf, takes_right) if "leaf" in dict(chosen.shape()) else takes_right


def choose(m: Module, left: Any, right: Any, left_over: Value, right_over: Value) -> tuple[Value, Value, Any, Value]:
    """Which of two heads goes first: (can be said, it is the right one, the item, nothing is left after it).

    The smaller coordinate; the left one of equals, so that elements of equal coordinates come in leaf order.
    ``left_over``, ``right_over``: that child has given its last item.
    """
    known = Signal()
    takes_right = Signal()
    chosen = Signal(left.item.shape())
    ends = Signal()
    m.d.comb += [
        known.eq((left.valid | left_over) & (right.valid | right_over)),
        takes_right.eq(left_over | (~right_over & (right.item.coordinate < left.item.coordinate))),
        chosen.eq(Mux(takes_right, right.item, left.item)),
        # Where one child is over the choice is known without a comparison.
        ends.eq((left_over & right.item.last) | (~left_over & right_over & left.item.last)),
    ]
    return known, takes_right, chosen, ends


class MergeLevel(Block):
    """Merges pairs of children into nodes, at one item a cycle over all nodes together.

    A node is refilled when the level above has popped it: in one cycle the heads of its two children are read, in the
    next one the comparator looks at them, moves the smaller one up and pops it. So no more than one node of each level
    is compared in a cycle: what a root that takes one item a cycle needs, and no more.

    Parameters
    ----------
    nodes : int
        Nodes of this level, power of two, at least 2; it has twice as many children.
    span : int
        Leaves below a node, power of two.
    leaf_bits : int
        Width of ``leaf`` in the children's items; in this level's items it is one more, the new bit on top.
    waiting_jobs : int
        Jobs that may wait.

    Members
    -------
    jobs : In(stream(leaves of a job))
        Jobs in order. Children from the first absent leaf on are not looked at.
    children : Out(heads)
    heads : In(heads)
        This level's nodes, for the level above.

    Timing: popped to refilled, as the level above sees it, 4 cycles. The comparator's choice is combinational from both
    children's heads, which are registers; it goes into registers and RAMs of this level and of the one below.
    """

    def __init__(self, *, nodes: int, span: int, leaf_bits: int, waiting_jobs: int) -> None:
        self.nodes = check_power_of_two("Nodes of a level", nodes, 2, 128)
        self.span = check_power_of_two("Leaves below a node", span, 2, 128)
        self.leaf_bits = leaf_bits
        self.waiting_jobs = waiting_jobs
        super().__init__(
            {
                "jobs": In(stream.Signature(range(nodes * span + 1))),
                "children": Out(heads(nodes, leaf_bits)),
                "heads": In(heads(nodes // 2, leaf_bits + 1)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        # Of a job the number of its last child waits, so that what is compared with it comes straight out of the RAM.
        m.submodules.waiting_jobs = waiting_jobs = StreamQueue(shape=range(2 * self.nodes), depth=self.waiting_jobs)
        m.submodules.scheduler = scheduler = VisitScheduler(nodes=self.nodes, node_depth=SLOTS)
        m.submodules.store = store = NodeStore(nodes=self.nodes, node_depth=SLOTS, leaf_bits=self.leaf_bits + 1)
        connect(m, flipped(self.heads), store.heads)
        m.d.comb += scheduler.hint.eq(store.hint)

        sweep = Sweep(m, self.nodes)
        # A job is looked at during the first visits only: they note which children are absent.
        job = waiting_jobs.o
        visit = scheduler.present
        node = visit.node
        last_child = job.payload
        m.d.comb += [
            waiting_jobs.i.valid.eq(self.jobs.valid),
            waiting_jobs.i.payload.eq((self.jobs.payload - 1) >> (self.span // 2 - 1).bit_length()),
            self.jobs.ready.eq(waiting_jobs.i.ready),
            scheduler.available.eq(job.valid & sweep.over),
            scheduler.is_last.eq(scheduler.next.node == last_child[1:]),
            job.ready.eq(visit.first & scheduler.done & visit.final),
        ]
        # First visits go no further than to the last child's node.
        right_absent = Signal()
        m.d.comb += right_absent.eq(scheduler.is_last & ~last_child[0])

        # Which children are over is read a cycle ahead; what this visit makes of it is not in the table yet.
        sides = data.StructLayout({"left": 1, "right": 1})
        over = Table(m, "over", shape=sides, depth=self.nodes, sweep=sweep)
        noted = over.read(scheduler.next.node)
        known_over = Signal(sides)
        after = Signal(sides)
        serve = Signal()
        same_node = scheduler.next.node == node
        with m.If(scheduler.next.first):
            m.d.sync += [known_over.left.eq(0), known_over.right.eq(right_absent)]
        with m.Else():
            m.d.sync += known_over.eq(Mux(same_node & serve, after, noted))
        left_over, right_over = known_over.left, known_over.right

        children = self.children
        known, takes_right, chosen, ends = choose(m, children.left, children.right, left_over, right_over)
        idle = Signal()  # a visit with nothing to do
        m.d.comb += [
            store.query.eq(scheduler.next.node),
            idle.eq(~visit.first & (store.finished | store.full)),
            serve.eq(visit.valid & ~idle & ~store.full & known),
            scheduler.done.eq(serve | (visit.valid & idle)),
            scheduler.ended.eq(serve & ends),
            children.pair.eq(scheduler.next.node),
            children.pop_left.eq(serve & ~takes_right),
            children.pop_right.eq(serve & takes_right),
            store.reserve.eq(serve),
            store.reserve_last.eq(ends),
            store.push.valid.eq(serve),
            store.push.node.eq(node),
            store.push.item.coordinate.eq(chosen.coordinate),
            store.push.item.value.eq(chosen.value),
            store.push.item.leaf.eq(leaf_above(chosen, takes_right)),
            store.push.item.last.eq(ends),
            store.push.item.void.eq(chosen.void),
            after.left.eq(left_over | (~takes_right & chosen.last)),
            after.right.eq(right_over | (takes_right & chosen.last)),
        ]
        over.write(serve, node, after)
        return m
