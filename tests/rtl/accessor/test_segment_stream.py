"""Segment streamer over a banked SRAM: what a leaf says is in the SRAM is there until its row has ended."""

from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from rtl.accessor.segment_stream import SegmentStreamer
from rtl.buffer.banked_sram import BankedSram

from .clients import ClientMemory, patient

SRAM_LINES = 64
BASE = 10
ELEMENTS = 4096  # in memory
PATIENCE = 6000


@dataclass
class Leaf:
    """A leaf to send; ``kind`` is one of bumped, resident, unit, absent."""

    kind: str
    position: int = 0
    length: int = 0
    last: bool = False

    @property
    def streams(self) -> bool:
        return self.kind == "bumped"

    def lines(self, lanes: int) -> int:
        return -(-(self.position + self.length) // lanes) - self.position // lanes

    def payload(self, weight: int) -> dict[str, Any]:
        return {
            "present": self.kind != "absent",
            "leaf": {
                "in_memory": self.kind in ("bumped", "unit"),
                "unit": self.kind == "unit",
                "last": self.last,
                "position": self.position,
                "length": self.length,
                "weight": weight,
            },
        }


def random_rows(random: Random, rows: int, longest: int, leaves: int) -> list[Leaf]:
    made: list[Leaf] = []
    for _ in range(rows):
        for n in range(last := random.randint(0, leaves)):
            kind = random.choices(("bumped", "resident", "unit", "absent"), (8, 1, 1, 1))[0]
            length = random.randint(1, longest) if kind != "absent" else 0
            made.append(Leaf(kind, random.randrange(ELEMENTS - longest), length, n == last - 1))
        if not last:
            made.append(Leaf("absent", last=True))
    return made


class Bench:
    """Feeds leaves, takes them, reads each streamed one line by line when it comes and just before its row ends.

    ``hurry``: chance each cycle that memory, feeder and consumer act.
    """

    def __init__(self, lanes: int, lines: int, *, seed: int, memory_hurry: float = 0.7, hurry: float = 0.7) -> None:
        self.lanes = lanes
        self.lines = lines
        self.random = Random(seed)
        self.hurry = hurry
        self.memory = ClientMemory(8 * ELEMENTS, 8 * lanes, seed=seed, hurry=memory_hurry)
        self.memory.store(0, np.random.default_rng(seed).integers(0, 2**63, ELEMENTS, dtype=np.uint64))
        m = Module()
        self.reset = Signal()
        self.dut = SegmentStreamer(lanes=lanes, address_width=40, line_address_width=6, leaf_lines=1, pending=8, rows=8)
        m.submodules.dut = ResetInserter(self.reset)(self.dut)
        m.submodules.sram = self.sram = BankedSram(lines=SRAM_LINES, banks=4, lanes=lanes, read_ports=2, write_ports=4)
        connect(m, self.dut.sram_write, self.sram.write[0])
        self.sim = Simulator(m)
        self.sim.add_clock(1e-8)
        self.sim.add_testbench(self.memory.reader(self.dut.read_request, self.dut.read_data, 0), background=True)
        self.sim.add_testbench(self.contend, background=True)
        self.taken: list[Any] = []
        self.open_rows: deque[list[tuple[Leaf, Any]]] = deque()
        self.rows_done = 0
        self.most_used = 0

    async def contend(self, ctx: Any) -> None:
        """Others write to lines outside the region, so that grants are not always at once."""
        random = Random(1)
        while True:
            line = random.randrange(BASE)
            for port in self.sram.write[1:]:
                ctx.set(port.valid, random.random() < 0.7)
                ctx.set(port.payload.address, line)
            await ctx.tick()

    async def feed(self, ctx: Any, leaves: list[Leaf]) -> None:
        ctx.set(self.dut.base, BASE)
        ctx.set(self.dut.lines, self.lines)
        for n, leaf in enumerate(leaves):
            while self.random.random() > self.hurry:
                await ctx.tick()
            ctx.set(self.dut.leaves.payload, leaf.payload(n))
            ctx.set(self.dut.leaves.valid, 1)
            for _ in patient(PATIENCE):
                if (await ctx.tick().sample(self.dut.leaves.ready))[2]:
                    break
            ctx.set(self.dut.leaves.valid, 0)

    async def take(self, ctx: Any) -> Any:
        while self.random.random() > self.hurry:
            await ctx.tick()
        ctx.set(self.dut.streamed.ready, 1)
        for _ in patient(PATIENCE):
            _, _, valid, item, used = await ctx.tick().sample(
                self.dut.streamed.valid, self.dut.streamed.payload, self.dut.occupied
            )
            self.most_used = max(self.most_used, used)
            if valid:
                break
        ctx.set(self.dut.streamed.ready, 0)
        return item

    async def sram_line(self, ctx: Any, port: int, line: int) -> int:
        ctx.set(self.sram.read_request[port].payload, line)
        ctx.set(self.sram.read_request[port].valid, 1)
        for _ in patient(50):
            if (await ctx.tick().sample(self.sram.read_request[port].ready))[2]:
                break
        ctx.set(self.sram.read_request[port].valid, 0)
        for _ in patient(50):
            _, _, response = await ctx.tick().sample(self.sram.read_response[port])
            if response.valid:
                return sum((e.value << 32 | e.coordinate) << 64 * n for n, e in enumerate(response.line))
        return -1

    async def check_leaf(self, ctx: Any, port: int, leaf: Leaf, found: Any) -> None:
        """Every line of a streamed leaf is what memory holds."""
        first = found.position // self.lanes
        assert found.position % self.lanes == leaf.position % self.lanes
        assert BASE <= first and first + leaf.lines(self.lanes) <= BASE + self.lines
        for n in range(leaf.lines(self.lanes)):
            memory = self.memory.beat(8 * (leaf.position // self.lanes * self.lanes + n * self.lanes))
            assert await self.sram_line(ctx, port, first + n) == memory, f"line {n} of {leaf}"

    async def consume(self, ctx: Any, leaves: list[Leaf]) -> None:
        """Takes all leaves, in order, each as it should be; checks streamed ones at once."""
        row: list[tuple[Leaf, Any]] = []
        for n, leaf in enumerate(leaves):
            item = await self.take(ctx)
            self.taken.append(item)
            found = item.leaf
            assert (item.present, found.weight) == (leaf.kind != "absent", n)
            assert (found.length, found.last, found.unit) == (leaf.length, leaf.last, leaf.kind == "unit")
            if leaf.streams and not found.in_memory:
                await self.check_leaf(ctx, 0, leaf, found)
                row.append((leaf, found))
            else:
                assert found.position == leaf.position and found.in_memory == (leaf.kind in ("bumped", "unit"))
            if leaf.last:
                self.open_rows.append(row)
                row = []

    async def end_rows(self, ctx: Any, rows: int, together: int) -> None:
        """Checks all leaves of the oldest row once more and ends it, when ``together`` rows are open or none is coming."""
        while self.rows_done < rows:
            quiet = 0
            while len(self.open_rows) < together and (quiet < 100 or not self.open_rows):
                taken = len(self.taken)
                await ctx.tick()
                quiet = quiet + 1 if len(self.taken) == taken else 0
            for leaf, found in self.open_rows.popleft():
                await self.check_leaf(ctx, 1, leaf, found)
            while self.random.random() > self.hurry:
                await ctx.tick()
            ctx.set(self.dut.row_done, 1)
            await ctx.tick()
            ctx.set(self.dut.row_done, 0)
            self.rows_done += 1

    def start(self, leaves: list[Leaf], together: int = 1, after: int = 0) -> None:
        """Testbenches for a whole run; it begins ``after`` that many cycles."""

        async def feed(ctx: Any) -> None:
            await ctx.tick().repeat(after + 1)
            await self.feed(ctx, leaves)

        async def consume(ctx: Any) -> None:
            await ctx.tick().repeat(after + 1)
            await self.consume(ctx, leaves)

        async def end(ctx: Any) -> None:
            await ctx.tick().repeat(after + 1)
            await self.end_rows(ctx, sum(leaf.last for leaf in leaves), together)
            await ctx.tick().repeat(3)
            assert ctx.get(self.dut.idle) and ctx.get(self.dut.occupied) == 0

        for testbench in (feed, consume, end):
            self.sim.add_testbench(testbench)

    def beats_of_streamed(self, leaves: list[Leaf]) -> int:
        return sum(
            leaf.lines(self.lanes)
            for leaf, item in zip(leaves, self.taken, strict=True)
            if leaf.streams and not item.leaf.in_memory
        )


def run(leaves: list[Leaf], lanes: int, lines: int, *, together: int = 1, **options: Any) -> Bench:
    bench = Bench(lanes, lines, **options)
    bench.start(leaves, together)
    bench.sim.run()
    assert bench.memory.beats_read.get(0, 0) == bench.beats_of_streamed(leaves)
    assert len(bench.taken) == len(leaves) and bench.most_used <= lines
    return bench


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("lines", [1, 2, 5, 16, SRAM_LINES - BASE])
@pytest.mark.parametrize("lanes", [2, 4])
def test_leaves_of_any_length_in_any_region(lanes: int, lines: int, together: int) -> None:
    """Leaves from one element to longer than the region, all kinds mixed, pauses everywhere."""
    leaves = random_rows(Random(lines), 40, 12 * lanes, 6)
    bench = run(leaves, lanes, lines, together=together, seed=lines)
    streamed = [
        item for leaf, item in zip(leaves, bench.taken, strict=True) if leaf.streams and not item.leaf.in_memory
    ]
    assert streamed or lines == 1


@pytest.mark.parametrize("memory_hurry, hurry", [(1.0, 1.0), (0.1, 1.0), (1.0, 0.1)])
def test_slow_memory_and_slow_elements(memory_hurry: float, hurry: float) -> None:
    leaves = random_rows(Random(7), 30, 10, 4)
    run(leaves, 2, 12, together=2, seed=3, memory_hurry=memory_hurry, hurry=hurry)


def test_without_a_region_everything_passes() -> None:
    leaves = random_rows(Random(8), 20, 20, 4)
    bench = run(leaves, 2, 0, seed=4)
    assert bench.memory.beats_read == {}


def test_a_row_longer_than_the_region_does_not_wait_for_itself() -> None:
    """The row fills the region; what follows of it passes."""
    row = [Leaf("bumped", 100 + 8 * n, 8, n == 5) for n in range(6)]
    bench = run([*row, *row], 2, 8, seed=5)
    assert [item.leaf.in_memory for item in bench.taken][:6] == [0, 0, 1, 1, 1, 1]


ROWS = [Leaf("bumped", 16 * n, 8, True) for n in range(3)]  # two of them fill a region of 8 lines


def went_to_memory(taken_before: int, leaves: list[Leaf] = ROWS, lines: int = 8, pause: int = 1) -> list[bool]:
    """Whether each leaf went to memory; row 0 ends after ``taken_before`` of them went on.

    ``pause``: cycles from the first leaf to the second one.
    """
    bench = Bench(2, lines, seed=6, hurry=1.0)
    items: list[Any] = []

    async def feed(ctx: Any) -> None:
        await bench.feed(ctx, leaves[:1])
        await ctx.tick().repeat(pause)
        await bench.feed(ctx, leaves[1:])

    async def test(ctx: Any) -> None:
        items.extend([await bench.take(ctx) for _ in range(taken_before)])
        await ctx.tick().repeat(50 + pause)
        ctx.set(bench.dut.row_done, 1)
        await ctx.tick()
        ctx.set(bench.dut.row_done, 0)
        items.extend([await bench.take(ctx) for _ in range(len(leaves) - taken_before)])

    bench.sim.add_testbench(feed)
    bench.sim.add_testbench(test)
    bench.sim.run()
    return [bool(item.leaf.in_memory) for item in items]


def test_a_leaf_waits_for_the_rows_before_it() -> None:
    """Row 1 is not taken yet, so row 2 may wait for the lines of row 0."""
    assert went_to_memory(taken_before=1) == [False, False, False]


def test_a_leaf_does_not_wait_when_nothing_stands_before_it() -> None:
    """Both rows have been taken: who takes leaves has nothing else to do."""
    assert went_to_memory(taken_before=2) == [False, False, True]


def test_short_leaves_of_a_row_that_found_no_lines_wait_for_none() -> None:
    """Row 0 fills the region. The first leaf of row 1 went on and waits; one of two lines goes on with it, one of three waits."""
    rows = [Leaf("bumped", 0, 16, True), Leaf("bumped", 64, 8)]
    short, longer = (Leaf("bumped", 128, length, True) for length in (4, 6))
    assert went_to_memory(taken_before=1, leaves=[*rows, short]) == [False, True, True]
    assert went_to_memory(taken_before=1, leaves=[*rows, longer]) == [False, True, False]
    several = [Leaf("bumped", 32 * n, 4) for n in range(3)]
    assert went_to_memory(taken_before=1, leaves=[*rows, *several, short]) == [False, *[True] * 5]


@pytest.mark.parametrize(
    "before", [Leaf("bumped", 64, 8, True), Leaf("resident", 64, 16)], ids=["of the row before", "resident"]
)
def test_a_short_leaf_waits_where_none_of_its_row_found_no_lines(before: Leaf) -> None:
    """Row 0 fills the region; what goes on behind it is no leaf of the same row that wanted lines."""
    leaves = [Leaf("bumped", 0, 16, True), before, Leaf("bumped", 128, 4, True)]
    assert went_to_memory(taken_before=1, leaves=leaves, pause=60) == [False, before.streams, False]


def test_a_leaf_waits_for_the_whole_region_when_its_row_holds_nothing() -> None:
    """With the lines that it would skip at the end it does not fit, in the empty region it does."""
    leaves = [Leaf("bumped", 0, 4, True), Leaf("resident", 0, 2, True), Leaf("bumped", 16, 8, True)]
    assert went_to_memory(taken_before=1, leaves=leaves, lines=5) == [False, False, False]


def test_a_roomy_region_takes_every_leaf() -> None:
    random = Random(11)
    leaves = random_rows(random, 60, 4, 3)
    bench = run(leaves, 2, SRAM_LINES - BASE, seed=11)
    assert all(item.leaf.in_memory == (leaf.kind == "unit") for leaf, item in zip(leaves, bench.taken, strict=True))


def test_a_long_leaf_meets_the_end_of_the_region() -> None:
    """A remainder that is too short is skipped, and is free again with its row."""
    leaves = [Leaf("bumped", 64 * n, length, True) for n, length in enumerate((10, 12, 10, 12, 16, 2, 16) * 6)]
    bench = run(leaves, 2, 40, together=2, seed=7)
    first = [item.leaf.position // 2 for item in bench.taken if not item.leaf.in_memory]
    assert len(first) > 20 and len(set(first)) > 4


def test_unaligned_leaves_keep_their_place_in_the_line() -> None:
    leaves = [Leaf("bumped", 40 + n, 1 + n % 9, n % 3 == 2) for n in range(24)]
    run(leaves, 4, 20, seed=8)


def test_latency_is_hidden() -> None:
    """Leaves of one line are asked for one a cycle, long before the first one comes back."""
    leaves = [Leaf("bumped", 2 * n, 2, True) for n in range(8)]
    bench = Bench(2, 32, seed=9, memory_hurry=1.0, hurry=1.0)
    asked: list[int] = []

    async def watch(ctx: Any) -> None:
        now = 0
        async for _, _, valid, ready in ctx.tick().sample(bench.dut.read_request.valid, bench.dut.read_request.ready):
            now += 1
            if valid and ready:
                asked.append(now)

    bench.sim.add_testbench(watch, background=True)
    bench.start(leaves)
    bench.sim.run()
    assert len(asked) == 8 and asked[-1] - asked[0] == 7


def test_reset_forgets_rows_and_lines() -> None:
    """A reset with lines in use and leaves waiting, memory being quiet: the next run finds the region empty."""
    leaves = [Leaf("bumped", 16 * n, 16, n % 2 == 1) for n in range(6)]
    bench = Bench(2, 24, seed=10)

    async def test(ctx: Any) -> None:
        ctx.set(bench.dut.base, BASE)
        ctx.set(bench.dut.lines, bench.lines)
        for n in range(3):
            ctx.set(bench.dut.leaves.payload, leaves[n].payload(n))
            ctx.set(bench.dut.leaves.valid, 1)
            await ctx.tick().until(bench.dut.leaves.ready)
        ctx.set(bench.dut.leaves.valid, 0)
        await ctx.tick().repeat(200)
        assert ctx.get(bench.dut.occupied) == 24 and not ctx.get(bench.dut.idle)
        ctx.set(bench.reset, 1)
        await ctx.tick()
        ctx.set(bench.reset, 0)
        assert ctx.get(bench.dut.occupied) == 0 and ctx.get(bench.dut.idle)

    bench.sim.add_testbench(test)
    bench.start(leaves, after=300)
    bench.sim.run()
    assert not any(item.leaf.in_memory for item in bench.taken[:3])
