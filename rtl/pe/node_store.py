"""The item queues of one level of the merge tree, in RAM."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .common import Sweep, Table, check_power_of_two, heads, index_width, item, node_item

__all__ = ["NodeStore", "node_hint"]


def node_hint(nodes: int) -> data.StructLayout:
    """A node that has room and work left."""
    return data.StructLayout({"valid": 1, "node": index_width(nodes)})


class NodeStore(Block):
    """Holds a queue of ``node_depth`` items for each of ``nodes`` nodes; left and right nodes of the pairs have separate RAMs.

    One item enters a cycle, at any node; one leaves a cycle, of any pair. All state is in RAM: the cost in logic
    grows with the logarithm of ``nodes``.

    Parameters
    ----------
    nodes : int
        Power of two, at least 2.
    node_depth : int
        Items in a node's queue, power of two, at least 2.
    leaf_bits : int
        Width of the items' ``leaf``.

    Members
    -------
    heads : In(heads)
        The level above reads and pops here; a head that is not ``valid`` must not be popped. Heads come from registers.
    query : In(index), full : Out(1), finished : Out(1)
        State of the node ``query`` of the cycle before, from registers: it has no free slot; its last item was reserved already
        (also before its first job). A slot that is freed while the state is read still counts as taken, but is hinted at.
    reserve : In(1), reserve_last : In(1)
        Takes a slot of the node that ``full`` speaks of; ``reserve_last``: for the last item of its job. Never while
        ``full``.
    push : In({valid, node, item})
        The item, in the cycle in which its slot is reserved.
    hint : Out({valid, node})
        An item was popped from a node that is not finished. Combinational from the pop, two gates behind it.

    Timing: a pushed item can be at its head two cycles after, if its pair is named in the cycle between. For ``nodes / 2``
    cycles after a reset the RAMs are set; nothing may be reserved then.
    """

    def __init__(self, *, nodes: int, node_depth: int, leaf_bits: int) -> None:
        self.nodes = check_power_of_two("Nodes of a level", nodes, 2, 256)
        self.node_depth = check_power_of_two("Depth of a node", node_depth, 2, 16)
        self.leaf_bits = leaf_bits
        super().__init__(
            {
                "heads": In(heads(nodes // 2, leaf_bits)),
                "query": In(index_width(nodes)),
                "full": Out(1),
                "finished": Out(1),
                "reserve": In(1),
                "reserve_last": In(1),
                "push": In(node_item(nodes, leaf_bits)),
                "hint": Out(node_hint(nodes)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        sweep = Sweep(m, self.nodes // 2)
        # The pair whose heads are shown. When it is named again its next items are fetched: one of them may be popped now.
        shown = Signal.like(self.heads.pair)
        same = Signal()
        m.d.sync += shown.eq(self.heads.pair)
        m.d.comb += same.eq(self.heads.pair == shown)
        holder = Signal.like(self.query)  # the node that `full` speaks of
        m.d.sync += holder.eq(self.query)
        states, wakes = [], []
        sides = ((self.heads.left, self.heads.pop_left), (self.heads.right, self.heads.pop_right))
        for side, (out, pop) in enumerate(sides):
            state, wake = self._side(m, sweep, side, out, pop, shown, same, holder)
            states.append(state)
            wakes.append(wake)
        full, full_after, finished = (Mux(self.query[0], right, left) for left, right in zip(*states, strict=True))
        reserved = self.reserve & (self.query == holder)
        m.d.sync += [
            self.full.eq(Mux(reserved, full_after, full)),
            self.finished.eq(Mux(reserved, self.reserve_last, finished)),
        ]
        m.d.comb += [
            self.hint.valid.eq(wakes[0] | wakes[1]),
            self.hint.node.eq(Cat(wakes[1], shown)),
        ]
        return m

    def _side(
        self,
        m: Module,
        sweep: Sweep,
        side: int,
        out: Any,
        pop: Value,
        shown: Signal,
        same: Value,
        holder: Signal,
    ) -> tuple[tuple[Value, Value, Value], Value]:
        """The nodes whose lowest index bit is ``side``.

        Returns of the query: full, full with one more slot reserved, finished; and the hint.
        """
        name = ("left", "right")[side]
        depth = self.nodes // 2
        pointer = index_width(self.node_depth) + 1
        slot = slice(0, pointer - 1)
        state = data.StructLayout({"tail": pointer, "finished": 1})

        states = Table(m, f"{name}_states", shape=state, depth=depth, sweep=sweep, initial=1 << pointer)
        read = Table(m, f"{name}_heads", shape=pointer, depth=depth, sweep=sweep)
        asked, pair = holder[1:], self.heads.pair
        pushed = self.push.node[1:]
        wanted, seen = states.read(asked), states.read(pair)
        queried = states.read(self.query[1:])
        queried_head, seen_head = read.read(self.query[1:]), read.read(pair)
        popped_from = states.read(shown)
        head = Signal(pointer, name=f"{name}_head")  # of the node that is shown
        fetched = Signal(pointer, name=f"{name}_fetched")
        following = same & out.valid
        m.d.comb += fetched.eq(seen_head + following)
        reserve = self.reserve & (holder[0] == side)
        states.write(reserve, asked, Cat((wanted.tail + 1)[:pointer], self.reserve_last))
        read.write(pop, shown, (head + 1)[:pointer])

        push = self.push.valid & (self.push.node[0] == side)
        m.submodules[f"{name}_items"] = items = memory.Memory(
            shape=item(self.leaf_bits), depth=depth * self.node_depth, init=[]
        )
        write_port, read_port = items.write_port(), items.read_port(domain="comb")
        # A level of two nodes has one pair: its index bit is there only because ports are never zero wide.
        # The slot is on top: it is known last, and chooses among words that the node's index has read by then.
        place = [] if depth == 1 else [pushed]
        look = [] if depth == 1 else [pair]
        m.d.comb += [
            write_port.en.eq(push),
            write_port.addr.eq(Cat(*place, wanted.tail[slot])),
            write_port.data.eq(self.push.item),
            read_port.addr.eq(Cat(*look, fetched[slot])),
        ]
        stored = seen.tail != fetched
        with m.If(~following | pop):
            m.d.sync += [out.valid.eq(stored), out.item.eq(read_port.data), head.eq(fetched)]
            # Not a bare register behind the RAM, or synthesis makes a block RAM of both, whose output comes too late.
            m.d.sync += out.item.last.eq(read_port.data.last & stored)
        with m.If(sweep.active):
            m.d.sync += out.valid.eq(0)
        full = (queried.tail ^ queried_head) == self.node_depth
        full_after = ((queried.tail + 1)[:pointer] ^ queried_head) == self.node_depth
        return (full, full_after, queried.finished), pop & ~popped_from.finished
