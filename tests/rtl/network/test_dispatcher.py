"""Dispatcher: rows become jobs of at most ``radix`` leaves; longer rows meet again through scratch fibers, beside later rows."""

from collections import deque
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.network.dispatcher import Dispatcher
from rtl.types import scratch_position
from tests.rtl.accessor.clients import patient

PARTIAL_REGION = 1000
JOBS_IN_PE = 3


def expected_jobs(
    rows: list[list[int]], partials: list[int] | None, radix: int
) -> list[tuple[list[Any], bool, bool, bool]]:
    """(leaves, scratch, first, merged) in ticket order; leaves are ("b", tag), ("partial", row) or ("scratch", ticket)."""
    jobs: list[tuple[list[Any], bool, bool, bool]] = []
    for number, row in enumerate(rows):
        leaves: list[Any] = [("partial", number)] if partials and partials[number] else []
        leaves += [("b", tag) for tag in row if tag >= 0]
        if len(leaves) <= radix:
            jobs.append((leaves, False, False, False))
            continue
        table: list[Any] = []
        first = True
        for at in range(0, len(leaves), radix):
            if len(table) == radix:
                jobs.append((table, True, False, False))
                table = [("scratch", len(jobs) - 1)]
            jobs.append((leaves[at : at + radix], True, first, False))
            first = False
            table.append(("scratch", len(jobs) - 1))
        jobs.append((table, False, False, True))
    return jobs


def length_of(ticket: int) -> int:
    """Scratch fibers of every fifth job are empty."""
    return 0 if ticket % 5 == 4 else 7


class Network:
    """Plays PEs, collector and scratch memory by their rules: what would wait for ever there, does so here.

    A PE takes ``JOBS_IN_PE`` jobs and gives their fibers in job order; rows leave in row order, scratch fibers
    in theirs. ``slow``: chance that nothing happens in a cycle, for each part.
    """

    def __init__(self, dut: Dispatcher, seed: int, slow: float) -> None:
        self.dut = dut
        self.random = Random(seed)
        self.slow = slow
        self.tickets: list[Any] = []
        self.by_pe: list[list[int]] = [[] for _ in dut.jobs]  # tickets in order
        self.jobs: list[list[list[Any]]] = [[] for _ in dut.jobs]  # complete ones in order
        self.open: list[list[Any]] = [[] for _ in dut.jobs]
        self.left = [0] * len(dut.jobs)  # fibers that have left
        self.lines: tuple[deque[int], deque[int]] = (deque(), deque())  # rows, scratch: tickets whose turn is to come
        self.results: deque[int] = deque()
        self.overlaps = 0  # later rows' jobs while a merge was to come
        self.scratch_slots: set[int] = set()

    def pause(self) -> bool:
        return self.random.random() < self.slow

    async def run(self, ctx: Any) -> None:
        dut = self.dut
        ready = [False] * len(dut.jobs)
        for _ in patient(60_000):
            result = None
            merged_out = False
            if self.results and not self.pause():
                ticket = self.results.popleft()
                result = {"slot": self.tickets[ticket].slot, "position": 100 * ticket, "length": length_of(ticket)}
            for line in self.lines:
                if line and not self.pause():
                    merged_out |= self._leave(line)
            for n in range(len(dut.jobs)):
                if not ready[n]:
                    ready[n] = len(self.jobs[n]) - self.left[n] < JOBS_IN_PE and not self.pause()
                ctx.set(dut.jobs[n].ready, ready[n])
            ctx.set(dut.scratch_results.valid, result is not None)
            if result:
                ctx.set(dut.scratch_results.payload, result)
            ctx.set(dut.merged_out, merged_out)
            ctx.set(dut.tickets.ready, can := not self.pause())
            sample = await ctx.tick().sample(
                dut.tickets.valid, dut.tickets.payload, *(x for job in dut.jobs for x in (job.valid, job.payload))
            )
            if sample[2] and can:
                self._ticket(sample[3])
            for n in range(len(dut.jobs)):
                valid, leaf = sample[4 + 2 * n : 6 + 2 * n]
                if valid and ready[n]:
                    self.open[n].append(leaf)
                    if leaf.last:
                        self.jobs[n].append(self.open[n])
                        self.open[n] = []
                        ready[n] = False
            if self.finished():
                return

    def finished(self) -> bool:
        raise NotImplementedError

    def _ticket(self, ticket: Any) -> None:
        number = len(self.tickets)
        self.tickets.append(ticket)
        self.by_pe[ticket.pe].append(number)
        self.lines[ticket.scratch].append(number)
        if ticket.scratch:
            self.scratch_slots.add(ticket.slot)
        waiting = [n for n in self.lines[0] if self.tickets[n].merged and not self._given(n)]
        self.overlaps += any(n < number for n in waiting)

    def _given(self, ticket: int) -> bool:
        pe = self.tickets[ticket].pe
        return self.by_pe[pe].index(ticket) < len(self.jobs[pe])

    def _leave(self, line: deque[int]) -> bool:
        """The fiber whose turn it is leaves, if it is at its PE's output; whether its row was merged."""
        ticket = self.tickets[line[0]]
        at = self.by_pe[ticket.pe].index(line[0])
        if at != self.left[ticket.pe] or at >= len(self.jobs[ticket.pe]):
            return False
        self.left[ticket.pe] += 1
        number = line.popleft()
        if ticket.scratch:
            self.results.append(number)
        return bool(ticket.merged)


def run(
    rows: list[list[int]],
    *,
    partials: list[int] | None = None,
    radix: int = 4,
    pes: int = 3,
    scratch_slots: int = 2,
    seed: int = 0,
    slow: float = 0.4,
) -> Network:
    """``rows`` hold tags of leaves, -1 for an absent one."""
    random = Random(seed)
    dut = Dispatcher(pes=pes, radix=radix, address_width=40, scratch_slots=scratch_slots)
    network = Network(dut, seed, slow)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    expected = expected_jobs(rows, partials, radix)
    network.finished = lambda: sum(network.left) == len(expected) and not network.results  # type: ignore[method-assign]

    async def feed(ctx: Any) -> None:
        ctx.set(dut.with_partials, partials is not None)
        ctx.set(dut.columns, 1000)
        ctx.set(dut.partial_region, PARTIAL_REGION)
        for row in rows:
            for n, tag in enumerate(row or [-1]):
                leaf = {"position": max(tag, 0), "length": 1, "weight": max(tag, 0), "last": n == len(row or [-1]) - 1}
                while random.random() < slow / 2:
                    await ctx.tick()
                ctx.set(dut.leaves.payload, {"present": tag >= 0, "leaf": leaf})
                ctx.set(dut.leaves.valid, 1)
                for _ in patient(20_000):
                    if (await ctx.tick().sample(dut.leaves.ready))[2]:
                        break
                ctx.set(dut.leaves.valid, 0)

    async def feed_partials(ctx: Any) -> None:
        for number, length in enumerate(partials or []):
            ctx.set(dut.partials.payload, {"in_memory": 1, "position": 10 * number, "length": length})
            ctx.set(dut.partials.valid, 1)
            for _ in patient(40_000):
                if (await ctx.tick().sample(dut.partials.ready))[2]:
                    break
            ctx.set(dut.partials.valid, 0)

    counted = {"row": 0, "job": 0, "leaf": 0}

    async def count(ctx: Any) -> None:
        async for _, _, row, job, leaf in ctx.tick().sample(dut.event_row, dut.event_job, dut.event_leaf):
            counted["row"] += row
            counted["job"] += job
            counted["leaf"] += leaf

    async def take(ctx: Any) -> None:
        await network.run(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)

    sim.add_testbench(count, background=True)
    sim.add_testbench(feed)
    sim.add_testbench(feed_partials)
    sim.add_testbench(take)
    sim.run()

    assert len(network.tickets) == len(expected)
    for number, ((leaves, *flags), ticket) in enumerate(zip(expected, network.tickets, strict=True)):
        assert [ticket.scratch, ticket.first, ticket.merged] == flags
        bound = sum(1 for kind, _ in leaves if kind == "b") + sum(
            (partials or [])[n] for k, n in leaves if k == "partial"
        )
        assert ticket.scratch or ticket.merged or ticket.bound == bound
        got = network.jobs[ticket.pe][network.by_pe[ticket.pe].index(number)]
        assert [leaf.last for leaf in got] == [0] * (len(got) - 1) + [1]
        wanted = [leaf for leaf in leaves if leaf[0] != "scratch" or length_of(leaf[1])]
        assert [found for leaf in got if (found := leaf_of(leaf))] == wanted
        assert wanted or len(got) == 1
        slots = {place_of(leaf, scratch_slots).row for leaf in got if leaf.scratch}
        assert not slots or slots == {slot_of(network, number)}
    full = [leaf for leaves, *_ in expected for leaf in leaves if leaf[0] != "scratch" or length_of(leaf[1])]
    assert counted == {"row": len(rows), "job": len(expected), "leaf": len(full)}
    return network


def leaf_of(leaf: Any) -> tuple[str, int] | None:
    """Whose leaf it is, by its position."""
    if not leaf.length:
        return None
    if not leaf.unit:
        return "b", leaf.weight
    if not leaf.scratch:
        return "partial", (leaf.position - PARTIAL_REGION) // 10
    return "scratch", place_of(leaf, 1).nonzero % (1 << 30) // 100


def place_of(leaf: Any, scratch_slots: int) -> Any:
    """Where a scratch fiber lies."""
    return scratch_position(40, scratch_slots).from_bits(leaf.position)


def slot_of(network: "Network", number: int) -> int:
    """The slot of the last fiber for scratch memory up to a ticket: that of its row."""
    return next(int(ticket.slot) for ticket in reversed(network.tickets[: number + 1]) if ticket.scratch)


def tagged(lengths: list[int], absent: float, random: Random) -> list[list[int]]:
    tags = iter(range(100_000))
    return [[next(tags) if random.random() >= absent else -1 for _ in range(n)] for n in lengths]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radix", [2, 4])
def test_rows_of_all_lengths(seed: int, radix: int) -> None:
    """Up to more leaves than ``radix`` squared, where scratch fibers are themselves merged on the way."""
    random = Random(seed)
    lengths = [0, 1, radix - 1, radix, radix + 1, 2 * radix, radix * radix, radix * radix + 1, 3 * radix * radix]
    lengths *= 2
    random.shuffle(lengths)
    run(tagged(lengths, 0.2, random), radix=radix, seed=seed)


def test_partials_come_first_and_empty_ones_are_no_leaf() -> None:
    rows = [[1, 2], [], [3, 4, 5, 6], [7, 8, 9, 10], []]
    run(rows, partials=[5, 4, 3, 0, 0], seed=4)


@pytest.mark.parametrize("slow", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("pes", "scratch_slots"), [(1, 1), (1, 2), (2, 1), (2, 4), (3, 2), (4, 4), (8, 8)])
def test_no_mix_of_long_and_short_rows_waits_for_ever(pes: int, scratch_slots: int, slow: float) -> None:
    """Long rows among short ones, long ones only, more of them than slots, some longer than radix squared."""
    random = Random(f"{pes} {scratch_slots} {slow}")
    mixed = [random.choice([0, 1, 3, 4, 5, 9, 13, 16]) for _ in range(40)]
    for lengths in (mixed, [random.randrange(5, 17) for _ in range(16)], [9, 17, 1, 33, 2, 3, 5, 70, 4, 4]):
        run(tagged(lengths, 0.0, random), pes=pes, scratch_slots=scratch_slots, seed=len(lengths), slow=slow)


def test_later_rows_do_not_wait_for_a_long_one() -> None:
    """All slots are used, and jobs of later rows go before the last job of an earlier one."""
    random = Random(3)
    lengths = [6, 2, 7, 1, 6, 3, 8, 2, 7, 4, 6, 1]
    network = run(tagged(lengths, 0.0, random), pes=8, scratch_slots=4, seed=3, slow=0.8)
    assert network.scratch_slots == {0, 1, 2, 3} and network.overlaps > 4


def pes_of(jobs: int, masks: list[int], pes: int, leaves: int, pause: int) -> list[list[int]]:
    """Which PE each job of ``leaves`` leaves went to, ``jobs`` for each mask of PEs that become free again.

    They are so at once, or after ``pause`` cycles: sooner than its turn comes. One that is free stays so until a job comes.
    """
    dut = Dispatcher(pes=pes, radix=4, address_width=40, scratch_slots=1)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    chosen: list[list[int]] = []

    async def drive(ctx: Any) -> None:
        ctx.set(dut.columns, 1000)
        ctx.set(dut.tickets.ready, 1)
        free, resting = [False] * pes, [0] * pes
        for mask in masks:
            chosen.append([])
            given = 0
            for _ in patient(100 * jobs):
                if len(chosen[-1]) == jobs:
                    break
                for n in range(pes):
                    free[n] |= bool(mask >> n & 1) and resting[n] == 0
                    ctx.set(dut.jobs[n].ready, free[n])
                    resting[n] = max(0, resting[n] - 1)
                last = given % leaves == leaves - 1
                ctx.set(dut.leaves.payload, {"present": 1, "leaf": {"length": 1, "weight": given, "last": last}})
                ctx.set(dut.leaves.valid, given < jobs * leaves)
                sample = await ctx.tick().sample(
                    dut.leaves.ready, *(x for job in dut.jobs for x in (job.valid & job.ready, job.payload.last))
                )
                given += sample[2] and given < jobs * leaves
                for n in range(pes):
                    if sample[3 + 2 * n] and sample[4 + 2 * n]:
                        chosen[-1].append(n)
                        free[n], resting[n] = False, pause

    sim.add_testbench(drive)
    sim.run()
    return chosen


@pytest.mark.parametrize("leaves", [1, 3])
@pytest.mark.parametrize("pes", [2, 3, 8])
def test_jobs_rotate_over_all_pes(pes: int, leaves: int) -> None:
    """All are free whenever a job begins: each job goes to the one behind the last, and all get as many."""
    (chosen,) = pes_of(6 * pes, [(1 << pes) - 1], pes, leaves, pause=0)
    assert [(b - a) % pes for a, b in pairwise(chosen)] == [1] * (len(chosen) - 1)
    assert {chosen.count(n) for n in range(pes)} == {6}


def test_jobs_rotate_over_those_that_are_free() -> None:
    """PEs that stay busy are passed over, wherever they lie, and have their turn again when they are free."""
    masks = [0b111111, 0b101010, 0b000011, 0b110000, 0b010001, 0b000100, 0b111111]
    for mask, chosen in zip(masks, pes_of(20, masks, 6, 1, pause=0), strict=True):
        free = [n for n in range(6) if mask >> n & 1]
        # Those that the mask before left free have a job each.
        turns = chosen[7:]
        assert set(turns) == set(free), f"{mask:06b}"
        assert [free[(free.index(n) + 1) % len(free)] for n in turns[:-1]] == turns[1:], f"{mask:06b}: {chosen}"
        assert max(map(turns.count, free)) - min(map(turns.count, free)) <= 1


@pytest.mark.parametrize("slow", [0.0, 0.5])
def test_long_rows_leave_work_for_every_pe(slow: float) -> None:
    """Where rows wait for scratch fibers, a PE is kept out for a while; all have about as many jobs at the end."""
    lengths = [7, 1, 2, 9, 3, 1, 2, 6, 1, 4] * 6
    network = run(tagged(lengths, 0.0, Random(8)), pes=4, scratch_slots=2, seed=9, slow=slow)
    counts = [len(jobs) for jobs in network.jobs]
    mean = sum(counts) / len(counts)
    # A PE is passed over at most while it is kept or busy, so that no turn of four is missed more than once in three.
    assert min(counts) > 2 / 3 * mean and max(counts) < 4 / 3 * mean, counts


def test_a_merge_on_the_way_has_its_pes_turn() -> None:
    """The group after it goes to the PE behind it, as after any other job."""
    (row,) = tagged([40], 0.0, Random(5))
    network = run([row], radix=2, pes=4, slow=0.0)
    made = [(kind, ticket.pe) for (leaves, *_), ticket in zip(expected_jobs([row], None, 2), network.tickets, strict=True)
            for kind in [leaves[0][0]]]  # fmt: skip
    pairs = [(a, b) for (kind, a), (following, b) in pairwise(made[:-1]) if kind == "scratch" and following == "b"]
    assert len(pairs) > 10 and all(b == (a + 1) % 4 for a, b in pairs), pairs


def test_groups_that_no_pe_takes_count_as_waiting() -> None:
    dut = Dispatcher(pes=2, radix=4, address_width=40, scratch_slots=2)
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.columns, 1000)
        ctx.set(dut.tickets.ready, 1)
        for waits in (5, 17):
            waited = taken = 0
            leaf = {"position": 3, "length": 1, "weight": 2, "last": 1}
            ctx.set(dut.leaves.payload, {"present": 1, "leaf": leaf})
            ctx.set(dut.leaves.valid, 1)
            for cycle in range(waits + 30):
                for job in dut.jobs:
                    ctx.set(job.ready, cycle >= waits)
                _, _, stall, came, gone = await ctx.tick().sample(dut.event_stall, dut.leaves.ready, dut.event_leaf)
                waited += stall
                taken += gone
                if came:
                    ctx.set(dut.leaves.valid, 0)
            assert taken == 1
            # Some cycles pass before the leaf is a group, and between a PE that is ready and the job.
            assert waits - 3 <= waited <= waits + 2

    sim.add_testbench(bench)
    sim.run()


def test_slots_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        Dispatcher(pes=2, radix=4, address_width=40, scratch_slots=3)
