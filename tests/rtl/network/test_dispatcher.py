# amaranth: UnusedElaboratable=no
"""Dispatcher: rows become jobs of at most ``radix`` leaves; longer rows meet again through scratch fibers."""

from collections import deque
from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.network.dispatcher import Dispatcher
from tests.rtl.accessor.clients import patient

PARTIAL_REGION, SCRATCH_REGION = 1000, 2000


def expected_jobs(rows: list[list[int]], partials: list[int] | None, radix: int) -> list[tuple[list[Any], bool, bool]]:
    """(leaves, scratch, first) of each job; leaves are ("b", tag), ("partial", row) or ("scratch", job number)."""
    jobs: list[tuple[list[Any], bool, bool]] = []
    for number, row in enumerate(rows):
        leaves: list[Any] = [("partial", number)] if partials and partials[number] else []
        leaves += [("b", tag) for tag in row if tag >= 0]
        if len(leaves) <= radix:
            jobs.append((leaves, False, False))
            continue
        table: list[Any] = []
        first = True
        for at in range(0, len(leaves), radix):
            if len(table) == radix:
                jobs.append((table, True, False))
                table = [("scratch", len(jobs) - 1)]
            jobs.append((leaves[at : at + radix], True, first))
            first = False
            table.append(("scratch", len(jobs) - 1))
        jobs.append((table, False, False))
    return jobs


def run(
    rows: list[list[int]], *, partials: list[int] | None = None, radix: int = 4, elements: int = 3, seed: int = 0
) -> None:
    """``rows`` hold tags of leaves, -1 for an absent one; scratch fibers of every fifth job are empty."""
    random = Random(seed)
    dut = Dispatcher(elements=elements, radix=radix, address_width=40)
    jobs: list[list[Any]] = []
    tickets: list[Any] = []
    results: deque[tuple[int, int]] = deque()
    open_jobs: dict[int, list[Any]] = {}
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    expected = expected_jobs(rows, partials, radix)
    scratch_of: dict[int, int] = {}  # position -> job number

    async def feed(ctx: Any) -> None:
        ctx.set(dut.with_partials, partials is not None)
        ctx.set(dut.partial_region, PARTIAL_REGION)
        ctx.set(dut.scratch_region, SCRATCH_REGION)
        for row in rows:
            for n, tag in enumerate(row or [-1]):
                item = {
                    "present": tag >= 0,
                    "leaf": {
                        "position": max(tag, 0),
                        "length": 1,
                        "weight": max(tag, 0),
                        "last": n == len(row or [-1]) - 1,
                    },
                }
                while random.random() < 0.3:
                    await ctx.tick()
                ctx.set(dut.leaves.payload, item)
                ctx.set(dut.leaves.valid, 1)
                for _ in patient(3000):
                    if (await ctx.tick().sample(dut.leaves.ready))[2]:
                        break
                ctx.set(dut.leaves.valid, 0)

    async def feed_partials(ctx: Any) -> None:
        for number, length in enumerate(partials or []):
            ctx.set(dut.partials.payload, {"in_memory": 1, "position": 10 * number, "length": length})
            ctx.set(dut.partials.valid, 1)
            for _ in patient(20000):
                if (await ctx.tick().sample(dut.partials.ready))[2]:
                    break
            ctx.set(dut.partials.valid, 0)

    async def take(ctx: Any) -> None:
        ready = [False] * elements
        for _ in patient(50000):
            for n in range(elements):
                if n not in open_jobs and random.random() < 0.3:
                    ready[n] = not ready[n]
                ctx.set(dut.jobs[n].ready, ready[n])
            ctx.set(dut.tickets.ready, can := random.random() < 0.8)
            sample = await ctx.tick().sample(
                dut.tickets.valid, dut.tickets.payload, *(x for job in dut.jobs for x in (job.valid, job.payload))
            )
            ticket_valid, ticket = sample[2:4]
            for n in range(elements):
                valid, leaf = sample[4 + 2 * n : 6 + 2 * n]
                if valid and ready[n]:
                    open_jobs.setdefault(n, []).append(leaf)
                    if leaf.last:
                        assert ticket_valid and can and ticket.pe == n, "a job ends with its ticket"
                        jobs.append(open_jobs.pop(n))
                        tickets.append(ticket)
                        if ticket.scratch:
                            number = len(jobs) - 1
                            scratch_of[100 * number] = number
                            results.append((100 * number, 0 if number % 5 == 4 else 7))
            if len(jobs) == len(expected) and not results:
                return

    async def give(ctx: Any) -> None:
        while True:
            await ctx.tick()
            if results and random.random() < 0.2:
                position, length = results.popleft()
                ctx.set(dut.scratch_results.payload, {"position": position, "length": length})
                ctx.set(dut.scratch_results.valid, 1)
                await ctx.tick()
                ctx.set(dut.scratch_results.valid, 0)

    sim.add_testbench(feed)
    sim.add_testbench(feed_partials)
    sim.add_testbench(give, background=True)
    sim.add_testbench(take)
    sim.run()

    for (leaves, scratch, first), got, ticket in zip(expected, jobs, tickets, strict=True):
        assert (ticket.scratch, ticket.first) == (scratch, first)
        wanted = [leaf for leaf in leaves if not (leaf[0] == "scratch" and leaf[1] % 5 == 4)]
        if not wanted:
            assert len(got) == 1 and got[0].length == 0
            continue
        found: list[Any] = []
        for leaf in got:
            if not leaf.unit:
                found.append(("b", leaf.weight))
            elif leaf.position < SCRATCH_REGION:
                found.append(("partial", (leaf.position - PARTIAL_REGION) // 10))
            else:
                found.append(("scratch", scratch_of[leaf.position - SCRATCH_REGION]))
        assert found == wanted
        assert [leaf.last for leaf in got] == [0] * (len(got) - 1) + [1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radix", [2, 4])
def test_rows_of_all_lengths(seed: int, radix: int) -> None:
    """Up to more leaves than ``radix`` squared, where scratch fibers are themselves merged on the way."""
    random = Random(seed)
    lengths = [0, 1, radix - 1, radix, radix + 1, 2 * radix, radix * radix, radix * radix + 1, 3 * radix * radix]
    random.shuffle(lengths)
    tags = iter(range(10000))
    rows = [[next(tags) if random.random() < 0.8 else -1 for _ in range(n)] for n in lengths * 2]
    run(rows, radix=radix, seed=seed)


def test_partials_come_first_and_empty_ones_are_no_leaf() -> None:
    rows = [[1, 2], [], [3, 4, 5, 6], [7, 8, 9, 10], []]
    run(rows, partials=[5, 4, 3, 0, 0], seed=4)


def test_one_element() -> None:
    run([[1, 2, 3, 4, 5], [6]], elements=1, seed=5)
