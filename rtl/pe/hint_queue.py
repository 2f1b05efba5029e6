"""Hints that wait for their turn: which node is worth a visit, oldest first."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .common import check_power_of_two, index_width
from .node_store import node_hint

__all__ = ["HintQueue"]


class HintQueue(Block):
    """Gives out one hint a cycle while any waits: those that came in order, one that failed behind those that wait.

    Parameters
    ----------
    nodes, node_hints : int
        Powers of two: there is space for so many hints a node.

    Members
    -------
    hint : In({valid, node})
        Comes in this cycle. It is stored if ``waiting``, else it is for the parent to use at once.
    failed : In({valid, node})
        One that was given out before comes again. It is stored if ``waiting`` or if ``hint`` is valid, else it is for the
        parent as well.
    waiting : Out(1), node : Out(range(nodes))
        The hint given out in this cycle, whatever comes in it.

    Timing
    ------
    A hint can be given out in the cycle after it came; one a cycle.
    """

    latency = 1

    def __init__(self, *, nodes: int, node_hints: int) -> None:
        self.nodes = check_power_of_two("Nodes of a level", nodes, 2, 256)
        self.node_hints = check_power_of_two("Hints of a node", node_hints, 1, 64)
        hint = node_hint(nodes)
        super().__init__({"hint": In(hint), "failed": In(hint), "waiting": Out(1), "node": Out(index_width(nodes))})

    def build(self, platform: Any) -> Module:
        m = Module()
        arrived = Signal(node_hint(self.nodes))  # one that came in the cycle before, and was not given out at once
        returned = Signal(node_hint(self.nodes))  # one that failed in the cycle before
        oldest = Signal(node_hint(self.nodes))  # of the others, the rest in a RAM behind it
        depth = self.nodes * self.node_hints
        stored = Signal(range(depth + 1))
        some_stored = Signal()  # stored != 0
        write_index = Signal(range(depth))
        read_index = Signal(range(depth))
        m.submodules.ring = hints = memory.Memory(shape=index_width(self.nodes), depth=depth, init=[])
        write, read = hints.write_port(), hints.read_port(domain="comb")
        m.d.sync += [
            arrived.valid.eq(self.hint.valid & self.waiting),
            arrived.node.eq(self.hint.node),
            returned.valid.eq(self.failed.valid & (self.hint.valid | self.waiting)),
            returned.node.eq(self.failed.node),
        ]
        # One that came while another failed is given out first, since only one can be stored in a cycle.
        spare = Signal(node_hint(self.nodes))  # to be stored, or given out when nothing waits before it
        at_once = Signal()
        store = Signal()
        leave = Signal()  # `oldest` is given out
        taken = Signal()  # `spare` is given out
        pull = Signal()
        m.d.comb += [
            self.waiting.eq(arrived.valid | returned.valid | oldest.valid),
            self.node.eq(Mux(at_once, arrived.node, Mux(oldest.valid, oldest.node, spare.node))),
            at_once.eq(arrived.valid & returned.valid),
            spare.valid.eq(arrived.valid | returned.valid),
            spare.node.eq(Mux(returned.valid, returned.node, arrived.node)),
            leave.eq(oldest.valid & ~at_once),
            taken.eq(~oldest.valid & ~at_once),
            store.eq(spare.valid & ~taken & (some_stored | (oldest.valid & ~leave))),
            pull.eq(some_stored & (leave | ~oldest.valid)),
            write.addr.eq(write_index),
            write.data.eq(spare.node),
            write.en.eq(store),
            read.addr.eq(read_index),
        ]
        with m.If(store):
            m.d.sync += write_index.eq(write_index + 1)
        with m.If(leave | ~oldest.valid):
            m.d.sync += [
                oldest.valid.eq(some_stored | (spare.valid & ~taken)),
                oldest.node.eq(Mux(some_stored, read.data, spare.node)),
            ]
        with m.If(pull):
            m.d.sync += read_index.eq(read_index + 1)
        m.d.sync += stored.eq(stored + store - pull)
        m.d.sync += some_stored.eq(Mux(store, 1, some_stored & ~(pull & (stored == 1))))
        return m
