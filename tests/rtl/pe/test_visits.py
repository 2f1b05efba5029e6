"""Hints and visits: each node is served until its job is over, whatever fails on the way."""

import random
from collections import Counter

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from rtl.pe.hint_queue import HintQueue
from rtl.pe.visits import VisitScheduler


def simulate(dut, bench):
    top = Module()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("nodes", "node_depth"), [(2, 1), (4, 2), (8, 4)])
def test_hints_come_out_once_and_those_that_failed_come_again(nodes, node_depth):
    dut = HintQueue(nodes=nodes, node_hints=node_depth)
    rng = random.Random(nodes)
    assert dut.latency == 1

    async def bench(ctx):
        waiting = []  # hints inside
        longest = failures = 0
        together = False
        given = None  # the hint of the cycle before: given out, or passed by
        for _ in range(1500):
            # As the scheduler does: hints of a node are never more than its slots.
            held = Counter(waiting + ([given] if given is not None else []))
            free = [node for node in range(nodes) if held[node] < node_depth]
            hint = rng.choice(free) if free and rng.random() < 0.6 else None
            fails = given is not None and rng.random() < 0.5
            failures += fails
            ctx.set(dut.hint, {"valid": hint is not None, "node": hint or 0})
            ctx.set(dut.failed, {"valid": fails, "node": given or 0})
            assert ctx.get(dut.waiting) == bool(waiting)
            coming = ([hint] if hint is not None else []) + ([given] if fails else [])
            if not waiting:
                given = coming.pop(0) if coming else None
            else:
                # Oldest first; but of two that came together the first is given out at once.
                given = waiting.pop(-2 if together else 0)
                assert ctx.get(dut.node) == given
            together = len(coming) == 2
            waiting += coming
            longest = max(longest, len(waiting))
            await ctx.tick()
        assert failures > 200 and longest >= max(1, nodes * node_depth // 2)

    simulate(dut, bench)


@pytest.mark.parametrize(("nodes", "node_depth"), [(2, 2), (4, 2), (8, 4)])
@pytest.mark.parametrize("failing", [0.0, 0.4])
def test_every_node_is_visited_until_it_has_ended(nodes, node_depth, failing):
    """Nodes that need some items each and have room for ``node_depth``: first visits in order, then as room comes."""
    dut = VisitScheduler(nodes=nodes, node_depth=node_depth)
    rng = random.Random(nodes + int(10 * failing))
    jobs = [[rng.choice([1, 1, 3, 9]) for _ in range(rng.randrange(1, nodes + 1))] for _ in range(25)]

    async def bench(ctx):
        held = [0] * nodes
        for job in jobs:
            given = [0] * nodes
            firsts = 0
            cycles = 0
            while [given[n] for n in range(len(job))] != job:
                cycles += 1
                assert cycles < 40 * sum(job) + 200, "a node is forgotten"
                # The first visit that is named next: the one behind that at hand, if that is one.
                present = ctx.get(dut.present)
                following = ctx.get(dut.next)
                ctx.set(dut.available, rng.random() < 0.8)
                ctx.set(dut.is_last, following.node == len(job) - 1)
                done = ended = False
                if present.valid:
                    node = present.node
                    # A hint that stayed from the job before may come early: the node has nothing to do yet.
                    over = node >= firsts + present.first or given[node] == job[node]
                    if present.first:
                        assert node == firsts
                        done = rng.random() >= failing
                        firsts += done
                    else:
                        done = over or held[node] == node_depth or rng.random() >= failing
                    gives = done and not over and held[node] < node_depth
                    given[node] += gives
                    held[node] += gives
                    ended = gives and given[node] == job[node]
                ctx.set(dut.done, done)
                ctx.set(dut.ended, ended)
                popped = rng.choice([n for n in range(nodes) if held[n]] or [None]) if rng.random() < 0.7 else None
                ctx.set(dut.hint, {"valid": popped is not None, "node": popped or 0})
                if popped is not None:
                    held[popped] -= 1
                await ctx.tick()
            ctx.set(dut.done, 0)
            ctx.set(dut.ended, 0)

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("block", "change", "message"),
    [
        (VisitScheduler, {"nodes": 5}, "^Nodes of a level must be a power of two from 2 to 256, not 5$"),
        (VisitScheduler, {"node_depth": 3}, "^Depth of a node must be a power of two from 1 to 64, not 3$"),
        (HintQueue, {"nodes": 1}, "^Nodes of a level must be a power of two from 2 to 256, not 1$"),
        (HintQueue, {"node_hints": 3}, "^Hints of a node must be a power of two from 1 to 64, not 3$"),
    ],
)
def test_bad_parameters_are_refused(block, change, message):
    good = {"nodes": 4, "node_depth" if block is VisitScheduler else "node_hints": 2}
    with pytest.raises(ValueError, match=message):
        block(**(good | change))
