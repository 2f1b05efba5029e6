"""Accessor B and the lookup while windows of k move over the rows of B: what is kept stays, what is new goes where it is told.

A model of the partition (``verif/benches/partition.py``) says what lies where; a watch holds every write and every
promise (``settled``) against it, and rows are looked up and read as soon as the accessor says that they can be.
"""

from collections import deque
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from rtl.accessor.fiber_reader import READ_CLIENTS
from sw.plan.gather import gather
from verif.benches.partition import (
    Load,
    LoadWatch,
    Partition,
    Segment,
    Window,
    data_lines,
    listed_rows,
    placed,
    rows_of_all_lengths,
)
from verif.benches.sparse import Operand

from .clients import patient
from .test_accessor_a import ELEMENTS, POINTERS, POSITIONS
from .test_accessor_b import BASE, MANY, Bench, capacities, rows_of_lengths, tiles_of

COLUMNS = 30


def csr_of(operand: Operand) -> Any:
    nonzeros = operand.nonzeros.astype(np.int64)
    return sp.csr_array((nonzeros[:, 1], nonzeros[:, 0], operand.pointers), shape=(len(operand.rows), operand.columns))


def operand_of(matrix: Any) -> Operand:
    pairs = list(zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True))
    return Operand(matrix.shape[1], [pairs[lo:hi] for lo, hi in zip(matrix.indptr, matrix.indptr[1:], strict=False)])


class WindowBench(Bench):
    """Loads windows, and ordinary tiles between them, under the watch."""

    def __init__(
        self,
        operand: Operand,
        lanes: int,
        seed: int,
        *,
        lines: int,
        fifo: int,
        hurry: float = 0.7,
        row_list: list[int] | None = None,
    ) -> None:
        super().__init__(csr_of(operand), lanes, seed, lines=lines, fifo=fifo)
        self.operand = operand
        self.partition = Partition(operand, lanes=lanes, base=BASE, lines=lines - BASE, fifo=fifo, row_list=row_list)
        self.memory.hurry = hurry
        self.memory.store(POINTERS, self.partition.pointers)
        self.memory.store(POSITIONS, self.partition.positions)
        self.random = Random(seed)
        self.watch = LoadWatch(lanes, lines - 1, self.fail)
        self.coming: Load | None = None
        self.early = 0  # rows that were found before their load ended
        self.sim.add_testbench(self.follow, background=True)
        self.sim.add_testbench(self.disturb, background=True)

    def fail(self, text: str) -> None:
        raise AssertionError(f"{self.partition.window}: {text}")

    async def disturb(self, ctx: Any) -> None:
        """Writes to the SRAM wait now and then, for data, for entries or for both."""
        random = Random(self.random.random())
        while True:
            for hold, cycles in ((random.choice([0, 1, 2, 2, 3]), [1, 1, 2, 5, 12]), (0, [1, 2, 8, 60])):
                ctx.set(self.hold, hold)
                for _ in range(random.choice(cycles)):
                    await ctx.tick()

    async def follow(self, ctx: Any) -> None:
        b = self.b
        ports = [pin for port in b.sram_write for pin in (port.valid, port.ready, port.payload)]
        while True:
            _, _, valid, ready, idle, settled, *pins = await ctx.tick().sample(
                b.tile.valid, b.tile.ready, b.idle, b.settled, *ports
            )
            writes = []
            for port in range(2):
                offered, taken, write = pins[3 * port : 3 * port + 3]
                if offered and taken:
                    lanes = [lane.coordinate | lane.value << 32 for lane in write.line]
                    writes.append((port, write.address, write.mask, lanes))
            self.watch.cycle(bool(idle), settled, writes)
            if valid and ready and self.coming is not None:
                self.watch.start(self.coming)

    async def windowed(self, ctx: Any, windows: bool = True) -> None:
        ctx.set(self.b.gathered, windows)
        ctx.set(self.b.by_list, windows and self.partition.row_list is not None)
        ctx.set(self.lookup.entry, 0)
        ctx.set(self.lookup.entries, 0)

    async def go(self, ctx: Any, window: Window) -> Load:
        """Loads a window and reads its rows meanwhile."""
        before = dict(self.memory.beats_read)
        self.coming = load = self.partition.load(window)
        ctx.set(self.lookup.entry, window.entry)
        ctx.set(self.lookup.entries, load.entries)
        if self.random.random() < 0.5:
            await ctx.tick().repeat(self.random.randrange(1, 20))
        await self.begin(ctx, window.tile(self.operand.columns))
        await self.read(ctx, load)
        await self.loaded(ctx)
        self.told(ctx, window, load)
        wanted = self.partition.reads(window)
        for port, name in enumerate(READ_CLIENTS):
            read = self.memory.beats_read.get(port, 0) - before.get(port, 0)
            assert read == wanted.get(name, 0), f"{window}: {read} beats of {name}"
        return load

    def told(self, ctx: Any, window: Window, load: Load) -> None:
        """What the accessor says of a load: of the new rows, and of the partition."""
        new = load.segments[window.kept :]
        assert ctx.get(self.b.nonzeros) == sum(len(segment.nonzeros) for segment in new)
        bumped = sum(len(segment.nonzeros) for segment in new if segment.position is None)
        assert ctx.get(self.b.bumped_elements) == bumped
        assert ctx.get(self.b.occupied) == self.partition.occupied
        assert ctx.get(self.b.fifo_base) == self.lines - window.metadata - self.fifo

    def looks(self, load: Load) -> list[tuple[int, int, Segment]]:
        """What can be looked up: an index, the number of the load that it waits for, the segment that must be found."""
        return [(n, n, segment) for n, segment in enumerate(load.segments)]

    async def read(self, ctx: Any, load: Load) -> None:
        """Looks every row up and reads it from the SRAM, each as soon as it may be, then some of them again."""
        looks = sorted(self.looks(load), key=lambda one: one[1])
        size = len(looks)
        order = sorted([*range(size), *(self.random.randrange(size) for _ in range(size // 2))])
        order += [*(self.random.randrange(size) for _ in range(4))]
        uses: list[tuple[int, int, Segment]] = [looks[n] for n in order]
        uses.insert(len(uses) - 4, (-1, 0, Segment(0, [], None, 0)))
        asked, found = 0, 0
        lines: deque[tuple[int, Segment]] = deque()  # to be read, and for which segment
        coming: deque[tuple[int, Segment]] = deque()
        ask, answer, port = self.ask, self.lookup.leaves, self.sram.read_request[1]
        for _ in patient(40000):
            ctx.set(ask.valid, asked < len(uses))
            if asked < len(uses):
                index, number, _ = uses[asked]
                ctx.set(self.number, number)
                item = {"index": max(index, 0), "weight": asked, "present": index >= 0, "last": asked % 3 == 0}
                ctx.set(ask.payload, item)
            ctx.set(answer.ready, take := self.random.random() < 0.9)
            ctx.set(port.valid, bool(lines))
            if lines:
                ctx.set(port.payload, lines[0][0])
            _, _, accepted, valid, item, granted, response, idle = await ctx.tick().sample(
                ask.ready, answer.valid, answer.payload, port.ready, self.sram.read_response[1], self.b.idle
            )
            asked += bool(accepted and asked < len(uses))
            if lines and granted:
                coming.append(lines.popleft())
            if response.valid:
                self.compare(*coming.popleft(), response.line)
            if valid and take:
                segment = uses[found][2]
                assert item.leaf.last == (found % 3 == 0)
                self.same(item, segment, found)
                lines.extend((line, segment) for line in data_lines(segment, self.lanes))
                self.early += bool(segment.nonzeros and not idle)
                found += 1
            if found == len(uses) and not lines and not coming:
                break
        ctx.set(ask.valid, 0)
        ctx.set(answer.ready, 0)
        ctx.set(port.valid, 0)

    def same(self, item: Any, segment: Segment, order: int) -> None:
        """The leaf is this segment's."""
        assert item.present == bool(segment.nonzeros)
        if not item.present:
            return
        assert (item.leaf.length, item.leaf.weight) == (len(segment.nonzeros), order)
        bumped = segment.position is None
        assert item.leaf.in_memory == bumped
        assert item.leaf.position == (ELEMENTS // 8 + segment.memory if bumped else segment.position)

    def compare(self, line: int, segment: Segment, lanes: Any) -> None:
        """The line's part of the segment is in place."""
        assert segment.position is not None
        for lane in range(self.lanes):
            n = line * self.lanes + lane - segment.position
            if 0 <= n < len(segment.nonzeros):
                got = (lanes[lane].coordinate, lanes[lane].value)
                assert got == segment.nonzeros[n], f"{self.partition.window}: line {line}, lane {lane}"

    def test(self, body: Any) -> None:
        self.sim.add_testbench(body)
        self.sim.run()


# Lanes, lines of the SRAM (8 before the partition), lines of the FIFO-managed region, pace of the memory.
SIZES = {
    "two lanes, tight": (2, 26, 2, 0.7),
    "two lanes, roomy, fast memory": (2, 64, 4, 1.0),
    "four lanes": (4, 32, 3, 0.5),
    "four lanes, no region, fast memory": (4, 40, 0, 1.0),
    "eight lanes": (8, 24, 1, 0.8),
}


@pytest.mark.parametrize("lanes, lines, fifo, hurry", SIZES.values(), ids=SIZES.keys())
def test_windows_move_over_the_rows(lanes: int, lines: int, fifo: int, hurry: float) -> None:
    """Chains of windows at random: rings of several lengths, wraps, bumped rows, empty rows, chains that begin anew."""
    random = Random(lanes * lines)
    bench = WindowBench(
        rows_of_all_lengths(random, 150, COLUMNS, lanes), lanes, 11, lines=lines, fifo=fifo, hurry=hurry
    )

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.windowed(ctx)
        for _ in range(32):
            await bench.go(ctx, bench.partition.draw(random))

    bench.test(body)
    assert bench.early > 10, "rows are found while their load goes on"


@pytest.mark.parametrize("lanes, hurry", [(2, 0.6), (4, 1.0)])
def test_windows_of_a_list(lanes: int, hurry: float) -> None:
    """The same for windows of a list of rows, which has gaps and begins anew."""
    random = Random(lanes)
    rows, row_list = rows_of_all_lengths(random, 150, COLUMNS, lanes), listed_rows(random, 150, 300)
    bench = WindowBench(rows, lanes, 19, lines=48, fifo=2, hurry=hurry, row_list=row_list)

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.windowed(ctx)
        for _ in range(28):
            await bench.go(ctx, bench.partition.draw(random))

    bench.test(body)
    assert bench.early > 10


def chain(sizes: list[tuple[int, int]], metadata: int, lanes: int, places: list[tuple[int, int]]) -> list[Window]:
    """Windows, each (rows that leave, rows that come), at these places (line, lines); the first one begins at row 0."""
    found: list[Window] = []
    begin, end, entry = 0, 0, 0
    for (leave, come), (line, lines) in zip(sizes, places, strict=True):
        begin, entry = begin + leave, (entry + leave) % (metadata * lanes)
        found.append(Window(begin, end + come, end - begin, entry, line, lines, metadata))
        end += come
    return found


def run(bench: WindowBench, windows: list[Window]) -> list[Load]:
    loads: list[Load] = []

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.windowed(ctx)
        loads.extend([await bench.go(ctx, window) for window in windows])

    bench.test(body)
    return loads


def of_lengths(lengths: list[int]) -> Operand:
    return operand_of(rows_of_lengths(lengths, COLUMNS))


def test_a_row_at_a_time() -> None:
    """A ring of six entries and one of six lines go round five times; most windows share a line of entries with the last."""
    bench = WindowBench(of_lengths([3, 1, 4, 2] * 8), 2, 12, lines=BASE + 6 + 3, fifo=0)
    places = [(0, 6), *((2 * ((row - 1) % 3), 2) for row in range(3, 32))]
    run(bench, chain([(0, 3), *[(1, 1)] * 29], 3, 2, places))


def test_lines_filled_to_the_last_element_and_one_more() -> None:
    """What fits exactly stays; one element more is bumped, and so is all behind it, for as long as it is kept."""
    lengths = [2, 2, 0, 3, 3, 0, 3, 4, 0, 1, 1, 1]
    bench = WindowBench(of_lengths(lengths), 2, 13, lines=8 + 4 + 14, fifo=2)
    places = [(0, 2), (2, 3), (6, 3), (0, 1)]
    windows = chain([(0, 3), (0, 3), (2, 3), (3, 3)], 6, 2, places)
    loads = run(bench, windows)
    resident = [[segment.position is not None for segment in load.segments if segment.nonzeros] for load in loads]
    assert resident == [[True] * 2, [True] * 4, [True, True, True, False], [True, False, True, True, False]]


def test_windows_without_lines_and_without_elements() -> None:
    """Nothing fits into no lines; rows without elements need none."""
    bench = WindowBench(of_lengths([0, 0, 0, 1, 0, 2, 0, 0, 5, 0]), 4, 14, lines=8 + 2 + 6, fifo=0)
    loads = run(bench, chain([(0, 3), (0, 1), (2, 3), (2, 3)], 2 + 1, 4, [(0, 0), (5, 0), (0, 1), (1, 0)]))
    assert [sum(segment.position is None for segment in load.segments) for load in loads] == [0, 1, 1, 2]


def test_settled_rows_grow_with_the_load() -> None:
    """Kept rows count in the third cycle, new ones with their lines, and never wait for the load's end."""
    bench = WindowBench(of_lengths([2] * 24 + [30]), 2, 15, lines=BASE + 45 + 14, fifo=0, hurry=0.3)
    windows = chain([(0, 5), (1, 20)], 14, 2, [(0, 40), (5, 40)])
    seen: list[int] = []

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.windowed(ctx)
        await bench.go(ctx, windows[0])
        bench.coming = bench.partition.load(windows[1])
        await bench.begin(ctx, windows[1].tile(COLUMNS))
        for _ in patient(5000):
            _, _, idle, settled = await ctx.tick().sample(bench.b.idle, bench.b.settled)
            if idle:
                break
            seen.append(settled)

    bench.test(body)
    # Row 4 has the entry beside the first new one; row 24, of 15 lines, ends after all entries before it are complete.
    assert seen[:3] == [0, 0, 3]
    assert max(seen) == 23
    assert {5, 7, 9, 11} <= set(seen)


def test_kept_rows_may_all_wait_for_new_ones() -> None:
    """Kept rows in the line of entries that takes new ones settle with these, or at the load's end."""
    bench = WindowBench(of_lengths([1, 1, 1, 1, 28, 4, 4, 4]), 4, 16, lines=32, fifo=0, hurry=0.4)
    windows = chain([(0, 3), (0, 2), (2, 2), (3, 1)], 4, 4, [(0, 1), (2, 8), (10, 2), (0, 1)])
    seen: list[set[int]] = []

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.windowed(ctx)
        for window in windows:
            bench.coming = bench.partition.load(window)
            await bench.begin(ctx, window.tile(COLUMNS))
            settled: set[int] = set()
            for _ in patient(5000):
                _, _, idle, now = await ctx.tick().sample(bench.b.idle, bench.b.settled)
                if idle:
                    break
                settled.add(now)
            seen.append(settled)

    bench.test(body)
    # Entries 0 to 2; then 3 and 4, with which line 0 is complete; then 5 and 6 beside 4, and 7 beside 5 and 6.
    assert seen[0] == {0} and seen[2] == {0, 2}
    assert 4 in seen[1] and seen[1] <= {0, 4}
    assert seen[3] <= {0, 3}


def test_windows_and_other_tiles_in_turn() -> None:
    """An ordinary tile begins anew whatever windows left, and windows whatever it left: 64 segments remembered, an overflow."""
    matrix = rows_of_lengths(MANY + [3] * 20 + [6, 0, 25, 20, 0, 30] + [0] * 74, COLUMNS)
    operand = operand_of(matrix)
    lines, fifo = 128, 40
    bench = WindowBench(operand, 2, 17, lines=lines, fifo=fifo)
    random = Random(17)
    tiles = [*tiles_of(matrix, 100, COLUMNS), *tiles_of(matrix, 100, COLUMNS)]

    def ordinary(tile: dict[str, int]) -> Load:
        rows = range(tile["begin_k"], tile["begin_k"] + tile["size_k"])
        lengths = [len(operand.rows[row]) for row in rows]
        held, _ = placed(lengths, *capacities(tile, 2, lines, fifo))
        segments = []
        at = 2 * BASE
        for n, row in enumerate(rows):
            segments.append(Segment(n, operand.rows[row], at if n < held else None, operand.position(row, 0)))
            at += lengths[n]
        return Load(segments, 0, range(BASE, lines - 50))

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        for number, tile in enumerate(tiles):
            await bench.windowed(ctx, False)
            bench.coming = ordinary(tile)
            await bench.begin(ctx, tile)
            if number != 1:
                await bench.read(ctx, bench.coming)
            await bench.loaded(ctx)
            resident = sum(len(segment.nonzeros) for segment in bench.coming.segments if segment.position is not None)
            assert ctx.get(bench.b.occupied) == 50 + -(-resident // 2)
            assert ctx.get(bench.b.fifo_base) == lines - 50 - fifo
            await bench.windowed(ctx)
            for n in range(8):
                await bench.go(ctx, bench.partition.draw(random, anew=float(n == 0)))

    bench.test(body)


@pytest.mark.parametrize("T_i, lines", [(3, 72), (8, 96)])
def test_places_of_the_scheduler(T_i: int, lines: int) -> None:
    """Windows over a band, where the plan puts their rows: as many find room as it says."""
    random, lanes, fifo, rows = Random(T_i), 2, 2, 120
    near = [(i, k) for i in range(rows) for k in range(max(0, i - 6), min(rows, i + 7))]
    row, column = np.array(near).T
    a = sp.csr_array((np.ones(len(row)), (row, column)), shape=(rows, rows))
    b = rows_of_all_lengths(random, rows, COLUMNS, lanes)
    operand = SimpleNamespace(pointers=a.indptr, coordinates=a.indices)
    pointers = b.pointers.astype(np.int64)
    plan = gather(operand, np.append(np.arange(0, rows, T_i), rows), pointers, lines - BASE - fifo, lanes)
    assert plan.rows is not None
    bench = WindowBench(b, lanes, 18, lines=lines, fifo=fifo, row_list=plan.rows.tolist())
    kept: list[int] = []

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.windowed(ctx)
        entry, before = 0, 0
        for n, (begin, end) in enumerate(plan.windows.tolist()):
            if begin == end:
                continue
            entry = (entry + begin - before) % (int(plan.metadata[n]) * lanes) if plan.kept[n] else 0
            before = begin
            rows_kept, *place = (int(values[n]) for values in (plan.kept, plan.line, plan.free, plan.metadata))
            window = Window(begin, end, rows_kept, entry, *place)
            kept.append(rows_kept)
            if window.fresh == end:
                bench.partition.load(replace(window, lines=0))  # nothing is sent
                continue
            load = await bench.go(ctx, window)
            assert sum(segment.position is not None for segment in load.segments[window.kept :]) == plan.placed[n]

    bench.test(body)
    assert sum(number > 0 for number in kept) > len(kept) // 2, "most windows keep rows"
