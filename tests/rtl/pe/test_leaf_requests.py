"""What leaves ask for and the slots they ask into: each part alone, and the feeder that is made of them."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from rtl.leaf_lines import LONG_LEAVES, long_leaf_lines, memory_burst
from rtl.pe.leaf_feeder import LeafFeeder
from rtl.pe.leaf_requests import FirstRequests, NextRequest
from rtl.pe.slot_usage import SlotUsage

SIZES = {"lanes": 2, "address_width": 12}
FIELDS = ("in_memory", "unit", "line", "lines")


def simulate(dut, *benches):
    top = Module()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    for bench in benches:
        simulator.add_testbench(bench)
    simulator.run()


def burst_of(leaf, leaf_lines):
    """Lines of a whole burst of memory."""
    return memory_burst(long_leaf_lines(leaf_lines) if leaf < LONG_LEAVES else leaf_lines)


def requests_of(leaf, given, leaf_lines):
    """First line and number of lines of each request that a leaf needs."""
    size = burst_of(leaf, leaf_lines) if given["in_memory"] else 1
    first, end = given["line"], given["line"] + given["lines"]
    return [(line, min(size, end - line)) for line in range(first, end, size)]


def random_jobs(rng, radix, count, *, most=12):
    jobs = []
    for _ in range(count):
        leaves = [
            {
                "in_memory": rng.random() < 0.5,
                "unit": rng.random() < 0.5,
                "last": 0,
                "line": rng.randrange(64),
                "lines": rng.choice([0, 1, 1, rng.randrange(2, most)]),
            }
            for _ in range(rng.randrange(1, radix + 1))
        ]
        leaves[-1]["last"] = 1
        jobs.append([{name: int(value) for name, value in leaf.items()} for leaf in leaves])
    return jobs


@pytest.mark.parametrize("leaf_lines", [1, 2, 4])
def test_first_requests_of_jobs_one_after_another(leaf_lines):
    rng = random.Random(leaf_lines)
    dut = FirstRequests(radix=8, leaf_lines=leaf_lines, **SIZES)
    jobs = random_jobs(rng, 8, 25, most=40)
    expected = [(number, leaf) for job in jobs for number, leaf in enumerate(job)]

    def check(ctx, at):
        number, leaf = expected[at]
        first = ctx.get(dut.first)
        assert {name: int(first.request[name]) for name in FIELDS} == {name: leaf[name] for name in FIELDS}
        asked = requests_of(number, leaf, leaf_lines)
        assert first.last == leaf["last"] and first.empty == (not asked)
        if asked:
            assert first.request.count == asked[0][1] and first.request.ends == (len(asked) == 1)

    async def give(ctx):
        for _, leaf in expected:
            ctx.set(dut.leaves.payload, leaf)
            ctx.set(dut.leaves.valid, 1)
            await ctx.tick().until(dut.leaves.ready)
            ctx.set(dut.leaves.valid, 0)
            if rng.random() < 0.3:
                await ctx.tick().repeat(rng.choice([1, 3]))

    async def visit(ctx):
        taken = skipped = 0
        while taken < len(expected):
            ctx.set(dut.past_first, 0)
            ctx.set(dut.take, 0)
            here = ctx.get(dut.available)
            if here:
                check(ctx, taken)
                ctx.set(dut.past_first, 1)
                if ctx.get(dut.available):
                    skipped += 1
                    check(ctx, taken + 1)
                ctx.set(dut.take, rng.random() < 0.6)
            taken += int(here and ctx.get(dut.take))
            await ctx.tick()
        assert skipped > 20

    simulate(dut, give, visit)


@pytest.mark.parametrize("leaf_lines", [1, 2, 4])
@pytest.mark.parametrize("in_memory", [0, 1])
@pytest.mark.parametrize("leaf", [0, LONG_LEAVES])
def test_requests_of_a_leaf_follow_each_other_without_a_gap(leaf_lines, in_memory, leaf):
    dut = NextRequest(leaf_lines=leaf_lines, **SIZES)
    assert dut.latency == 0

    async def bench(ctx):
        ctx.set(dut.long, leaf < LONG_LEAVES)
        size = burst_of(leaf, leaf_lines) if in_memory else 1
        for lines in range(1, 4 * size + 3):
            asked = requests_of(leaf, {"in_memory": in_memory, "line": 5, "lines": lines}, leaf_lines)
            request = {"in_memory": in_memory, "unit": lines % 2, "line": 5, "lines": lines}
            request |= {"count": asked[0][1], "ends": int(len(asked) == 1)}
            for number, (line, count) in enumerate(asked):
                assert request["line"] == line and request["count"] == count
                assert request["ends"] == (number == len(asked) - 1)
                assert request["in_memory"] == in_memory and request["unit"] == lines % 2
                ctx.set(dut.made, request)
                request = {name: int(ctx.get(dut.following[name])) for name in (*FIELDS, "count", "ends")}

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("leaf_lines", [1, 2, 4])
def test_usage_of_slots_is_never_too_low(leaf_lines):
    """Random visits: what the unit says is used is what is, but for slots that became free since the leaf was looked up."""
    radix = 8
    rng = random.Random(leaf_lines + 10)
    dut = SlotUsage(radix=radix, leaf_lines=leaf_lines)
    capacity = [long_leaf_lines(leaf_lines) if leaf < LONG_LEAVES else leaf_lines for leaf in range(radix)]
    assert dut.latency == 1

    async def bench(ctx):
        used = [0] * radix
        following, exact, issued = 0, 0, 0
        freed_now = None
        ctx.set(dut.next_leaf, following)
        await ctx.tick()
        for _ in range(600):
            leaf = following
            usage = ctx.get(dut.usage)
            # Freed in the cycle of the look-up, or in this one: still counted.
            assert used[leaf] <= usage.used <= min(capacity[leaf], used[leaf] + 2)
            exact += usage.used == used[leaf]
            assert usage.none == (usage.used == 0)
            burst = burst_of(leaf, leaf_lines)
            assert usage.memory_room == (usage.used + burst <= capacity[leaf])
            assert usage.sram_room == (usage.used < leaf_lines)
            count = rng.choice([1, rng.randrange(1, burst + 1)])
            room = usage.sram_room if count == 1 else usage.memory_room
            issue = bool(room) and rng.random() < 0.6
            freed_now = rng.choice([n for n in range(radix) if used[n]] or [None])
            freed_now = freed_now if rng.random() < 0.5 else None
            following = leaf if rng.random() < 0.3 else rng.randrange(radix)
            ctx.set(dut.leaf, leaf)
            ctx.set(dut.issue, issue)
            ctx.set(dut.count, count)
            ctx.set(dut.next_leaf, following)
            ctx.set(dut.repeated, following == leaf)
            ctx.set(dut.in_use, used[following])
            ctx.set(dut.freed, {"valid": freed_now is not None, "leaf": freed_now or 0})
            used[leaf] += count * issue
            issued += issue
            if freed_now is not None:
                used[freed_now] -= 1
            await ctx.tick()
        assert exact > 300 and issued > 100

    simulate(dut, bench)


@pytest.mark.parametrize("leaf_lines", [1, 2, 4])
def test_the_feeder_asks_for_every_line_in_order_and_no_more_than_slots(leaf_lines):
    radix = 4
    rng = random.Random(leaf_lines)
    dut = LeafFeeder(radix=radix, leaf_lines=leaf_lines, line_address_width=7, **SIZES)
    jobs = random_jobs(rng, radix, 30)
    expected = [[] for _ in range(radix)]  # of each leaf: from memory?, first line, lines
    for job in jobs:
        for leaf, given in enumerate(job):
            expected[leaf] += [(given["in_memory"], *request) for request in requests_of(leaf, given, leaf_lines)]
    total = sum(map(len, expected))
    capacity = [long_leaf_lines(leaf_lines) if leaf < LONG_LEAVES else leaf_lines for leaf in range(radix)]
    held = [[] for _ in range(radix)]  # lines in the slots: from memory?
    asked = [[] for _ in range(radix)]

    async def give(ctx):
        for job in jobs:
            for leaf in job:
                ctx.set(dut.leaves.payload, leaf)
                ctx.set(dut.leaves.valid, 1)
                await ctx.tick().until(dut.leaves.ready)
                ctx.set(dut.leaves.valid, 0)

    async def serve(ctx):
        for _ in range(20_000):
            ctx.set(dut.sram.ready, rng.random() < 0.7)
            ctx.set(dut.fetch.ready, rng.random() < 0.5)
            choices = [leaf for leaf in range(radix) if held[leaf]]
            freed = rng.choice(choices) if choices and rng.random() < 0.7 else None
            ctx.set(dut.freed, {"valid": freed is not None, "leaf": freed or 0})
            taken = [dut.sram.valid & dut.sram.ready, dut.fetch.valid & dut.fetch.ready]
            sample = await ctx.tick().sample(*taken, dut.sram.payload, dut.fetch.payload)
            _, _, from_sram, from_memory, sram, fetch = sample
            if freed is not None:
                held[freed].pop(0)
            if from_sram:
                note(sram.leaf, 0, sram.line, 1)
            if from_memory:
                note(fetch.leaf, 1, fetch.position >> 1, fetch.lines)
            if sum(map(len, asked)) == total:
                return
        raise AssertionError(f"{sum(map(len, asked))} of {total} requests")

    def note(leaf, in_memory, line, lines):
        leaf, lines = int(leaf), int(lines)
        asked[leaf].append((in_memory, int(line), lines))
        assert asked[leaf] == expected[leaf][: len(asked[leaf])]
        assert set(held[leaf]) <= {in_memory}, "lines of SRAM and memory in the slots of one leaf"
        held[leaf] += [in_memory] * lines
        assert len(held[leaf]) <= capacity[leaf]

    simulate(dut, give, serve)
    assert asked == expected


@pytest.mark.parametrize("leaf_lines", [1, 2, 4])
@pytest.mark.parametrize("leaf", [0, LONG_LEAVES])
def test_a_burst_is_asked_for_as_soon_as_it_fits(leaf_lines, leaf):
    """Leaves in memory of any length, one job after another: whichever of them the lines in the slots are of."""
    radix = 8
    rng = random.Random(leaf_lines + leaf)
    dut = LeafFeeder(radix=radix, leaf_lines=leaf_lines, line_address_width=7, **SIZES)
    capacity = long_leaf_lines(leaf_lines) if leaf < LONG_LEAVES else leaf_lines
    burst = burst_of(leaf, leaf_lines)
    sizes = [rng.choice([1, burst - 1 or 1, burst + 1, 2 * burst, 2 * burst + 1, 5 * burst]) for _ in range(20)]
    given = [{"in_memory": 1, "unit": 0, "line": 0, "lines": lines} for lines in sizes]
    requests = [count for job in given for _, count in requests_of(leaf, job, leaf_lines)]
    empty = {"in_memory": 1, "unit": 0, "last": 0, "line": 0, "lines": 0}

    async def give(ctx):
        for job in given:
            for item in [*[empty] * leaf, job | {"last": 1}]:
                ctx.set(dut.leaves.payload, item)
                ctx.set(dut.leaves.valid, 1)
                await ctx.tick().until(dut.leaves.ready)
                ctx.set(dut.leaves.valid, 0)

    async def serve(ctx):
        ctx.set(dut.fetch.ready, 1)
        asked, used, quiet = 0, 0, 0
        while asked < len(requests):
            # A first visit comes late, after those of the empty leaves before it.
            fits = used + burst <= capacity
            quiet = quiet + 1 if fits else 0
            assert quiet < 40, f"{used} of {capacity} slots in use, {asked} of {len(requests)} bursts asked for"
            frees = bool(used) and not fits and rng.random() < 0.5
            ctx.set(dut.freed, {"valid": frees, "leaf": leaf})
            _, _, taken, lines = await ctx.tick().sample(dut.fetch.valid, dut.fetch.payload.lines)
            used -= frees
            if taken:
                assert lines == requests[asked]
                asked, used, quiet = asked + 1, used + int(lines), 0

    simulate(dut, give, serve)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: FirstRequests(radix=3, leaf_lines=2, **SIZES),
            "^Merge radix must be a power of two from 2 to 256, not 3$",
        ),
        (
            lambda: NextRequest(lanes=1, leaf_lines=2, address_width=9),
            "^Lanes must be a power of two from 2 to 64, not 1$",
        ),
        (
            lambda: NextRequest(leaf_lines=128, **SIZES),
            "^Lines of a leaf must be a power of two from 1 to 64, not 128$",
        ),
        (lambda: SlotUsage(radix=0, leaf_lines=2), "^Merge radix must be a power of two from 2 to 256, not 0$"),
        (lambda: SlotUsage(radix=2, leaf_lines=3), "^Lines of a leaf must be a power of two from 1 to 64, not 3$"),
        (
            lambda: LeafFeeder(radix=2, lanes=3, leaf_lines=2, address_width=9, line_address_width=4),
            "^Lanes must be a power of two from 2 to 64, not 3$",
        ),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
