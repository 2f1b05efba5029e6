"""The merge tree alone, in Amaranth's simulator: order, leaf numbers, ends of jobs."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator

from rtl.pe.merge_tree import MergeTree
from rtl.pe.node_store import NodeStore
from rtl.pe.visits import VisitScheduler


def merged(jobs):
    """(coordinate, leaf, last) of every item, job by job."""
    out = []
    for job in jobs:
        items = sorted((coordinate, leaf) for leaf, fiber in enumerate(job) for coordinate in fiber)
        out += [(*item, n == len(items) - 1) for n, item in enumerate(items)]
    return out


def run_tree(radix, jobs, *, leaf_rate=1.0, ready_rate=1.0, seed=0, jobs_under_way=4):
    """What the tree gives for leaves whose heads appear at ``leaf_rate``; and in how many cycles."""
    rng = random.Random(seed)
    dut = MergeTree(radix=radix, jobs=jobs_under_way)
    leaves = [deque() for _ in range(radix)]
    for job in jobs:
        for leaf, fiber in enumerate(job):
            leaves[leaf] += [(coordinate, coordinate == fiber[-1]) for coordinate in fiber]
    visible = [False] * radix
    got = []
    cycles = 0

    async def bench(ctx):
        nonlocal cycles
        waiting = deque(len(job) for job in jobs)
        total = len(merged(jobs))
        pair = 0
        while len(got) < total:
            cycles += 1
            assert cycles < 200 + 40 * total, "the tree is stuck"
            for leaf in range(radix):
                visible[leaf] = bool(leaves[leaf]) and (visible[leaf] or rng.random() < leaf_rate)
            for side, head in enumerate((dut.leaves.left, dut.leaves.right)):
                leaf = 2 * pair + side
                ctx.set(head.valid, visible[leaf])
                if visible[leaf]:
                    coordinate, last = leaves[leaf][0]
                    ctx.set(head.item, {"coordinate": coordinate, "value": coordinate ^ 0xA5A5A5A5, "last": last})
            ctx.set(dut.jobs.valid, bool(waiting))
            ctx.set(dut.jobs.payload, waiting[0] if waiting else 0)
            ctx.set(dut.merged.ready, rng.random() < ready_rate)
            for side, pop in enumerate((dut.leaves.pop_left, dut.leaves.pop_right)):
                if ctx.get(pop):
                    leaf = 2 * pair + side
                    assert visible[leaf], "popped what was not there"
                    leaves[leaf].popleft()
                    visible[leaf] = False if leaf_rate < 1 else bool(leaves[leaf])
            if waiting and ctx.get(dut.jobs.ready):
                waiting.popleft()
            if ctx.get(dut.merged.valid) and ctx.get(dut.merged.ready):
                item = ctx.get(dut.merged.payload)
                assert item.value == item.coordinate ^ 0xA5A5A5A5
                got.append((item.coordinate, item.leaf, bool(item.last)))
            pair = ctx.get(dut.leaves.pair)  # to be seen in the next cycle
            await ctx.tick()
        assert not ctx.get(dut.merged.valid) or not any(leaves)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return got, cycles


def random_jobs(rng, radix, count):
    jobs = []
    for _ in range(count):
        span = rng.choice((3, 30, 2**32))
        job = [
            sorted(rng.sample(range(span), rng.randint(1, 3)))
            for _ in range(rng.choice((1, radix, rng.randint(1, radix))))
        ]
        jobs.append(job)
    return jobs


@pytest.mark.parametrize("radix", [2, 4, 8, 16])
@pytest.mark.parametrize(("leaf_rate", "ready_rate"), [(1.0, 1.0), (0.2, 1.0), (1.0, 0.3), (0.5, 0.5)])
def test_merges_in_order(radix, leaf_rate, ready_rate):
    jobs = random_jobs(random.Random(radix), radix, 12)
    got, _ = run_tree(radix, jobs, leaf_rate=leaf_rate, ready_rate=ready_rate)
    assert got == merged(jobs)


def test_equal_coordinates_come_in_leaf_order():
    jobs = [[[5, 9]] * 8, [[0xFFFFFFFF]] * 7, [[0]] * 8]
    got, _ = run_tree(8, jobs)
    assert got == merged(jobs)


def test_few_leaves_cost_nothing_for_the_others():
    _, few = run_tree(16, [[list(range(100))]])
    _, two = run_tree(16, [[list(range(0, 100, 2)), list(range(1, 100, 2))]])
    assert few <= 100 + 25 and two <= 100 + 25


def test_jobs_follow_each_other_without_a_gap():
    jobs = [[[n, n + 10] for n in range(8)] for _ in range(20)]
    _, cycles = run_tree(8, jobs)
    assert cycles <= 16 * 20 * 1.3 + 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MergeTree(radix=6, jobs=4), r"^Merge radix must be a power of two from 2 to 256, not 6$"),
        (lambda: MergeTree(radix=4, jobs=0), r"^Jobs under way must be a positive integer, not 0$"),
        (
            lambda: NodeStore(nodes=1, node_depth=2, leaf_bits=0),
            r"^Nodes of a level must be a power of two from 2 to 256, not 1$",
        ),
        (
            lambda: NodeStore(nodes=2, node_depth=3, leaf_bits=0),
            r"^Depth of a node must be a power of two from 2 to 16, not 3$",
        ),
        (
            lambda: VisitScheduler(nodes=5, node_depth=4),
            r"^Nodes of a level must be a power of two from 2 to 256, not 5$",
        ),
    ],
)
def test_refuses_impossible_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()
