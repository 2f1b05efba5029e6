"""The merge tree over whole fibers: what comes out is the sorted list of everything that went in."""

from typing import Any

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from .spec import Spec, fixed_value, implies, obey_streams

__all__ = ["SortedJobs"]

COORDINATE_BITS = 2


class _Item:
    """An element of a leaf in a job: it is the same in every cycle, and in the job or not."""

    def __init__(self, m: Module, job: int, leaf: int, place: int) -> None:
        name = f"job{job}_leaf{leaf}_{place}"
        self.job, self.leaf, self.place = job, leaf, place
        self.present = fixed_value(m, 1, f"{name}_present")
        self.coordinate = fixed_value(m, COORDINATE_BITS, f"{name}_coordinate")
        self.bit = fixed_value(m, 1, f"{name}_bit")

    def before(self, other: "_Item") -> Value:
        """Whether it comes out before another of its job."""
        if self.leaf <= other.leaf:
            return self.present & (self.coordinate <= other.coordinate)
        return self.present & (self.coordinate < other.coordinate)


class SortedJobs(Spec):
    """Jobs of any fibers of up to ``longest`` elements, whose heads appear whenever they like.

    Each item that comes out is compared with the one that has so many of its job before it: nothing is lost, nothing is
    invented, the order is that of coordinate and leaf, and a job ends with its last element and not before. Where nothing
    pauses all jobs are out after ``within`` cycles.

    Parameters
    ----------
    tree : MergeTree
    jobs, longest : int
        Jobs, elements of a fiber.
    within : int
        Cycles.
    pauses : bool
        False: every head is there at once and every item is taken at once; only what the fibers hold is free.
    """

    def __init__(self, tree: Any, *, jobs: int, longest: int, within: int, pauses: bool = True) -> None:
        super().__init__()
        self.tree = tree
        self.jobs = jobs
        self.longest = longest
        self.within = within
        self.pauses = pauses

    def claims(self, m: Module) -> None:
        m.submodules.tree = tree = self.tree
        radix = tree.radix
        counts = [fixed_value(m, range(radix + 1), f"job{job}_leaves") for job in range(self.jobs)]
        items = [
            [[_Item(m, job, leaf, n) for n in range(self.longest)] for leaf in range(radix)] for job in range(self.jobs)
        ]
        for count, leaves in zip(counts, items, strict=True):
            m.d.comb += Assume((count >= 1) & (count <= radix))
            for number, fiber in enumerate(leaves):
                m.d.comb += Assume(fiber[0].present == (number < count))
                for one, two in zip(fiber, fiber[1:], strict=False):
                    m.d.comb += Assume(implies(two.present, one.present & (two.coordinate > one.coordinate)))

        asked = Signal(range(self.jobs + 1))
        quick = Signal(init=1)  # nothing has paused yet
        m.d.comb += [
            tree.jobs.valid.eq(asked != self.jobs),
            tree.jobs.payload.eq(Array(counts)[asked]),
            tree.merged.ready.eq(AnySeq(1) if self.pauses else 1),
        ]
        m.d.sync += asked.eq(asked + (tree.jobs.valid & tree.jobs.ready))
        obey_streams(m, tree)
        pair = Signal.like(tree.leaves.pair)  # a pair's heads are seen in the cycle after it was named
        m.d.sync += pair.eq(tree.leaves.pair)
        pauses = [self._leaf(m, leaf, pair, [item for job in items for item in job[leaf]]) for leaf in range(radix)]
        m.d.sync += quick.eq(quick & tree.merged.ready & ~Cat(*pauses).any())

        # What should come.
        number, rank = Signal(range(self.jobs + 1)), Signal(range(radix * self.longest + 1))
        gives, out = tree.merged.valid & tree.merged.ready, tree.merged.payload
        found: Value | int = 0
        total: Value | int = 0
        for job, leaves in enumerate(items):
            every = [item for fiber in leaves for item in fiber]
            mine = number == job
            total = Mux(mine, sum(item.present for item in every), total)
            for item in every:
                place = sum(other.before(item) for other in every if other is not item)
                same = (out.coordinate == item.coordinate) & (out.leaf == item.leaf) & (out.value == item.bit)
                found |= mine & item.present & (rank == place) & same & ~out.void
        with m.If(gives):
            m.d.sync += rank.eq(rank + 1)
            with m.If(out.last):
                m.d.sync += [rank.eq(0), number.eq(number + 1)]
        cycle = Signal(range(self.within + 1))
        m.d.sync += cycle.eq(cycle + (cycle != self.within))
        m.d.comb += [
            Assert(implies(gives, number != self.jobs), "nothing comes out beyond the last job"),
            Assert(implies(gives, found), "what comes out is the next of the sorted list"),
            Assert(implies(gives, out.last == (rank + 1 == total)), "a job ends with its last element and not before"),
            Assert(~(quick & (cycle == self.within) & (number != self.jobs)), "without pauses everything comes out"),
            Cover(number == self.jobs),
        ]

    def _leaf(self, m: Module, number: int, pair: Value, items: list[_Item]) -> Value:
        """Shows the items of a leaf one by one while ``pair`` is its; gives whether one that is there is not shown."""
        leaves = self.tree.leaves
        here = (pair == number // 2) if self.tree.radix > 2 else 1
        port = leaves.right if number % 2 else leaves.left
        pop = (leaves.pop_right if number % 2 else leaves.pop_left) & here
        # The items that are there, from the present one on: one more is left behind at each pop.
        place = Signal(range(len(items) + 1), name=f"leaf{number}_place")
        shown = Signal(name=f"leaf{number}_shown")
        left = Signal(name=f"leaf{number}_left")
        skips = Signal(name=f"leaf{number}_skips")
        current = Array([*(item.present for item in items), 0])[place]
        m.d.comb += [left.eq(current), skips.eq((place != len(items)) & ~current)]
        appears = AnySeq(1) if self.pauses else Value.cast(1)
        valid = left & (shown | appears)
        with m.If(pop | skips):
            m.d.sync += [place.eq(place + 1), shown.eq(0)]
        with m.Else():
            m.d.sync += shown.eq(valid)
        follows = [
            items[n + 1].present if n + 1 < len(items) and items[n + 1].job == item.job else Value.cast(0)
            for n, item in enumerate(items)
        ]
        with m.If(here):
            m.d.comb += [
                port.valid.eq(valid),
                port.item.coordinate.eq(Array([*(item.coordinate for item in items), 0])[place]),
                port.item.value.eq(Array([*(item.bit for item in items), 0])[place]),
                port.item.last.eq(~Array([*follows, 0])[place]),
            ]
        m.d.comb += Assert(implies(pop, valid), "a head that is not there is not popped")
        return left & ~valid
