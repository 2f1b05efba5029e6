"""The merge tree: sorted leaves in, one sorted stream out with every element in it once."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from .models import ModelQueue, WatchedItem
from .spec import Spec, fixed_value, implies, obey_streams, upto

__all__ = ["MergeContract"]

COORDINATE_BITS = 2
JOBS_INSIDE = 6  # jobs between the port and the end of their stream, at most
PATIENCE = 12  # cycles with everything at hand in which the next item has to come


class MergeContract(Spec):
    """A merge tree over leaves whose items come whenever they like, job after job.

    One leaf, any of them, is watched: what leaves the tree with its number is what was popped from it, in that order; it
    ends within its own job; and a job ends when the leaf, if it takes part, has given its last item. Over all leaves the
    stream rises, by coordinate and then by leaf. Coordinates are narrow and payloads one bit: the tree only compares the
    ones and carries the others.
    """

    def __init__(self, tree: Any) -> None:
        super().__init__()
        self.tree = tree

    def claims(self, m: Module) -> None:
        m.submodules.tree = tree = self.tree
        radix = tree.radix
        jobs, leaves, merged = tree.jobs, tree.leaves, tree.merged
        m.d.comb += [
            jobs.valid.eq(AnySeq(1)),
            jobs.payload.eq(AnySeq(len(jobs.payload))),
            merged.ready.eq(AnySeq(1)),
            Assume(upto(jobs.payload, 1, radix)),
        ]
        obey_streams(m, tree)
        shown = Signal.like(leaves.pair)  # a pair's heads are seen in the cycle after it was named
        m.d.sync += shown.eq(leaves.pair)
        heads = [self._leaf(m, n, shown) for n in range(radix)]
        for side, name in enumerate(("left", "right")):
            port = getattr(leaves, name)
            for pair in range(radix // 2):
                with m.If((shown == pair) if radix > 2 else 1):
                    m.d.comb += [port.valid.eq(heads[2 * pair + side].valid), *heads[2 * pair + side].show(port.item)]

        watched = fixed_value(m, range(radix), "watched")
        item, popped = Signal(3 + COORDINATE_BITS), Signal()
        for n, head in enumerate(heads):
            with m.If(watched == n):
                m.d.comb += [popped.eq(head.popped), item.eq(Cat(head.last, head.bit, head.void, head.coordinate))]
        gives = merged.valid & merged.ready
        out = merged.payload
        mine = gives & (out.leaf == watched)
        inside = WatchedItem(m, "inside", width=len(item), most=6 * (radix - 1), push=popped, item=item, pop=mine)
        running = ModelQueue(
            m,
            "running",
            width=len(jobs.payload),
            depth=JOBS_INSIDE,
            push=jobs.valid & jobs.ready,
            item=jobs.payload,
            pop=gives & out.last,
        )
        takes_part = watched < running.head
        leaves_now = mine & inside.next
        is_last = inside.item[0]
        over = Signal()  # the watched item was its leaf's last in the job that is coming out
        more = Signal()  # the watched item was not, and nothing followed it yet
        given = Signal()  # the watched leaf gave an item of this job
        with m.If(mine):
            m.d.sync += more.eq(leaves_now & ~is_last)
        with m.If(gives):
            m.d.sync += [over.eq((over | (leaves_now & is_last)) & ~out.last), given.eq((given | mine) & ~out.last)]
        begun = Signal()
        before = Signal(COORDINATE_BITS + len(out.leaf))
        rank = Cat(out.leaf, out.coordinate[:COORDINATE_BITS])
        with m.If(gives):
            m.d.sync += [begun.eq(~out.last), before.eq(rank)]
        patience = Signal(range(PATIENCE + 1))
        at_hand = Cat(*(head.valid for head in heads)).all() & merged.ready & (running.level != 0)
        m.d.sync += patience.eq(Mux(at_hand & ~merged.valid, patience + (patience != PATIENCE), 0))
        content = Cat(out.value[0], out.void, out.coordinate[:COORDINATE_BITS])
        m.d.comb += [
            Assert(implies(leaves.pop_left, leaves.left.valid), "a head that is not there is not popped"),
            Assert(implies(leaves.pop_right, leaves.right.valid), "a head that is not there is not popped"),
            Assert(~running.overflows, "no more jobs than the model holds"),
            Assert(~inside.overflows, "no more items than the model holds"),
            Assert(implies(gives, running.level != 0), "nothing comes out without a job"),
            Assert(implies(mine, inside.level != 0), "nothing comes out that did not go in"),
            Assert(
                implies(mine & inside.next, content == inside.item[1:]),
                "a leaf's items come out as they went in, in order",
            ),
            Assert(implies(mine, takes_part), "a leaf that takes no part gives nothing"),
            Assert(implies(mine, ~over), "a leaf gives nothing beyond its last item"),
            Assert(
                implies(gives & out.last, ~(leaves_now & ~is_last) & (~more | mine)), "a job ends when its leaves have"
            ),
            Assert(implies(gives & out.last & takes_part, given | mine), "no leaf of a job is left out"),
            Assert(implies(gives & begun, rank > before), "coordinates rise; equal ones come in leaf order"),
            Assert(patience != PATIENCE, "with everything at hand the next item comes"),
            Cover(gives & out.last & begun & (running.head == radix) & (running.level > 1)),
            Cover(gives & begun & (out.coordinate == before[len(out.leaf) :])),
        ]

    def _leaf(self, m: Module, n: int, shown: Value) -> "_Leaf":
        leaves = self.tree.leaves
        pop = leaves.pop_right if n % 2 else leaves.pop_left
        here = (shown == n // 2) if self.tree.radix > 2 else Value.cast(1)
        return _Leaf(m, n, pop & here)


class _Leaf:
    """A leaf: at its head an item that may take any time to come and then stays until it is popped."""

    def __init__(self, m: Module, n: int, popped: Value) -> None:
        self.popped = popped
        self.valid = Signal(name=f"leaf{n}_valid")
        self.last = Signal(name=f"leaf{n}_last")
        self.bit = Signal(name=f"leaf{n}_bit")
        self.void = Signal(name=f"leaf{n}_void")
        self.coordinate = Signal(COORDINATE_BITS, name=f"leaf{n}_coordinate")
        begun = Signal(name=f"leaf{n}_begun")  # an item of the same job came before
        least = Signal(COORDINATE_BITS, name=f"leaf{n}_least")  # the coordinate of that one
        with m.If(~self.valid | popped):
            fields = (self.valid, self.last, self.bit, self.void)
            m.d.sync += [*(field.eq(AnySeq(1)) for field in fields), self.coordinate.eq(AnySeq(COORDINATE_BITS))]
        with m.If(popped):
            m.d.sync += [begun.eq(~self.last), least.eq(self.coordinate)]
        m.d.comb += Assume(implies(self.valid & begun, self.coordinate > least))

    def show(self, port: Any) -> list[Any]:
        return [
            port.coordinate.eq(self.coordinate),
            port.value.eq(self.bit),
            port.last.eq(self.last),
            port.void.eq(self.void),
        ]
