"""Accessor B and the lookup where the plan says at which lines and entries rows lie: each is found, at once if it was told."""

from random import Random
from typing import Any

import numpy as np
import pytest

from rtl.accessor.fiber_reader import READ_CLIENTS
from sw.plan.gather import RowPlan
from sw.plan.replacement import place_rows
from sw.stats.pattern import Pattern
from verif.benches.partition import Load, LoadWatch, Segment, rows_of_all_lengths
from verif.benches.planned_rows import PlannedRows, PlannedTile
from verif.benches.sparse import Operand

from .test_accessor_a import ELEMENTS, POINTERS, POSITIONS, random_matrix
from .test_accessor_b import BASE, Bench
from .test_accessor_b_windows import COLUMNS, WindowBench, of_lengths

# Patterns of A: rows, nonzeros of each.
ROWS, USED = 60, 4


class PlannedBench(Bench):
    """Loads what a plan says, tile by tile, and looks for every row that the tile uses."""

    def __init__(self, lanes: int, seed: int, *, lines: int, fifo: int, height: int, hurry: float = 0.7) -> None:
        rng = np.random.default_rng(seed)
        matrix = random_matrix(40, 30, 0.2, seed=seed)
        super().__init__(matrix, lanes, seed, lines=lines + BASE, fifo=fifo)
        self.memory.hurry = hurry
        uses = [np.sort(rng.choice(40, int(rng.integers(0, USED + 1)), replace=False)) for _ in range(ROWS)]
        pointers = np.append(0, np.cumsum([len(row) for row in uses])).astype(np.int64)
        self.a = Pattern(ROWS, 40, pointers, np.concatenate(uses).astype(np.int64))
        self.begins = np.append(np.arange(0, ROWS, height), ROWS)
        starts = matrix.indptr.astype(np.int64)
        self.plan: RowPlan = place_rows(self.a, self.begins, starts, lines - fifo, lanes)
        rows, entries = self.plan.rows, self.plan.entries
        assert rows is not None and entries is not None
        places = np.maximum(self.plan.lines, 0) | entries << 16
        self.list = np.stack([starts[rows], places], axis=1).astype(np.uint32)
        self.memory.store(POSITIONS, np.concatenate([[77, 78], self.list.ravel()]).astype(np.uint32))
        self.memory.store(POINTERS, np.concatenate([[79, 80], starts[rows + 1]]).astype(np.uint32))

    async def configure(self, ctx: Any) -> None:
        await super().configure(ctx)
        for name in ("gathered", "by_list", "planned"):
            ctx.set(getattr(self.b, name), 1)

    def tile(self, number: int) -> dict[str, Any]:
        plan = self.plan
        first, end = int(plan.fresh[number]), int(plan.windows[number, 1])
        ring = {"kept": 1, "lines": int(plan.placed[number]), "metadata": int(plan.metadata[number])}
        whole = {"whole_j": 1, "last_j": 1, "size_j": self.matrix.shape[1], "from_pointers_b": 1}
        return {"begin_k": first, "size_k": end - first + 1, "ring": ring, **whole}

    async def check_uses(self, ctx: Any, number: int) -> int:
        """Looks up each nonzero of A's tile; returns how many of them were bumped."""
        plan, matrix = self.plan, self.matrix
        assert plan.entries is not None
        low, high = self.a.pointers[self.begins[number]], self.a.pointers[self.begins[number + 1]]
        self.seen: dict[int, list[tuple[int, int]]] = {}
        leaves = await self.find(ctx, [int(plan.entries[plan.places[n]]) for n in range(low, high)])
        bumped = 0
        for n, leaf in zip(range(low, high), leaves, strict=True):
            row = int(self.a.coordinates[n])
            lo, hi = int(matrix.indptr[row]), int(matrix.indptr[row + 1])
            assert leaf.present == (hi > lo)
            if hi == lo:
                continue
            assert leaf.leaf.length == hi - lo
            stays = bool(plan.lines[plan.places[n]] >= 0)
            assert leaf.leaf.in_memory != stays
            if not stays:
                assert leaf.leaf.position == ELEMENTS // 8 + lo
                bumped += 1
                continue
            assert leaf.leaf.position == (BASE + int(plan.lines[plan.places[n]])) * self.lanes
            for at in range(lo, hi):
                got = await self.sram_element(ctx, leaf.leaf.position + at - lo)
                assert got == (matrix.indices[at], matrix.data[at]), f"tile {number} row {row} nonzero {at - lo}"
        return bumped


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize(("lines", "height"), [(24, 3), (60, 5), (200, 8)])
def test_every_row_is_found(lanes: int, lines: int, height: int) -> None:
    bench = PlannedBench(lanes, lines + lanes, lines=lines, fifo=2, height=height)
    plan, bumped = bench.plan, 0

    async def test(ctx: Any) -> None:
        nonlocal bumped
        await bench.configure(ctx)
        for number in range(len(plan.windows)):
            if plan.fresh[number] < plan.windows[number, 1]:
                await bench.load(ctx, bench.tile(number))
            bumped += await bench.check_uses(ctx, number)

    bench.sim.add_testbench(test)
    bench.sim.run()
    assert bench.blamed == [] and bench.misplaced == []
    assert (bumped > 0) == (lines * lanes < 200)
    loads = int((plan.windows[:, 1] - plan.fresh).sum())
    assert loads == len(plan.lines)


class WatchedBench(WindowBench):
    """Loads tiles whose rows go anywhere, under the watch, and reads their rows meanwhile."""

    def __init__(
        self,
        lanes: int,
        seed: int,
        *,
        lines: int,
        fifo: int,
        metadata: int,
        tiles: int,
        hurry: float,
        rows: Operand | None = None,
    ) -> None:
        operand = rows_of_all_lengths(Random(seed), 60, COLUMNS, lanes) if rows is None else rows
        super().__init__(operand, lanes, seed, lines=lines, fifo=fifo, hurry=hurry)
        sizes = {"lanes": lanes, "base": BASE, "lines": lines - BASE, "fifo": fifo, "metadata": metadata}
        self.planned = PlannedRows(operand, Random(seed), tiles=tiles, **sizes)
        self.uses: list[tuple[int, int, Segment]] = []

    async def configure(self, ctx: Any) -> None:
        await super().configure(ctx)
        self.memory.store(POSITIONS, self.planned.positions)
        self.memory.store(POINTERS, self.planned.pointers)
        for name in ("gathered", "by_list", "planned"):
            ctx.set(getattr(self.b, name), 1)

    def looks(self, load: Load) -> list[tuple[int, int, Segment]]:
        return self.uses

    async def load_tile(self, ctx: Any, tile: PlannedTile) -> None:
        before = dict(self.memory.beats_read)
        self.coming, self.uses = tile.load, tile.uses
        if self.random.random() < 0.5:
            await ctx.tick().repeat(self.random.randrange(1, 20))
        await self.begin(ctx, tile.announced(self.operand.columns))
        await self.read(ctx, tile.load)
        await self.loaded(ctx)
        new = tile.load.segments[1:]
        assert ctx.get(self.b.nonzeros) == sum(len(segment.nonzeros) for segment in new)
        assert ctx.get(self.b.bumped_elements) == sum(len(s.nonzeros) for s in new if s.position is None)
        assert ctx.get(self.b.occupied) == tile.occupied
        assert ctx.get(self.b.fifo_base) == self.lines - tile.metadata - self.fifo
        wanted = self.planned.reads(tile)
        for port, name in enumerate(READ_CLIENTS):
            read = self.memory.beats_read.get(port, 0) - before.get(port, 0)
            assert read == wanted.get(name, 0), f"{read} beats of {name}"


# Lanes, lines of the SRAM (8 before the partition), of the FIFO-managed region, of metadata, pace of the memory.
SIZES = {
    "two lanes, slow memory": (2, 40, 2, 8, 0.3),
    "two lanes, no region": (2, 60, 0, 12, 1.0),
    "four lanes": (4, 36, 3, 5, 0.6),
    "eight lanes, fast memory": (8, 30, 1, 4, 1.0),
}


@pytest.mark.parametrize(("lanes", "lines", "fifo", "metadata", "hurry"), SIZES.values(), ids=SIZES.keys())
def test_nothing_is_told_before_it_is_there(lanes: int, lines: int, fifo: int, metadata: int, hurry: float) -> None:
    """Rows that go anywhere, while writes wait: what has settled is there and stays, and is found while the load goes on."""
    bench = WatchedBench(lanes, lines, lines=lines, fifo=fifo, metadata=metadata, tiles=24, hurry=hurry)
    early = 0

    async def body(ctx: Any) -> None:
        nonlocal early
        await bench.configure(ctx)
        for tile in bench.planned.tiles:
            await bench.load_tile(ctx, tile)
            early += bench.watch.early > 1

    bench.test(body)
    assert bench.misplaced == [] and bench.blamed == []
    tiles = bench.planned.tiles
    assert early > 10, "new rows settle before their load ends"
    assert bench.early > 20, "rows are found while their load goes on"
    assert bench.watch.line_shared > 20, "entries are written beside those that can be used"
    assert any(0 < tile.placed < len(tile.rows) for tile in tiles), "some find place and some do not"
    top = {segment.entry for tile in tiles for segment in tile.load.segments[1:]}
    assert {0, metadata * lanes - 1} <= top, "the first entry and the last one"
    assert max(tile.occupied for tile in tiles) == lines - BASE - fifo, "the last line before the region"


def test_many_rows_have_places_under_way() -> None:
    """More rows in a tile than places that the loader keeps, of one nonzero or none, while writes wait."""
    lanes, count, metadata = 4, 300, 76
    rows = of_lengths([Random(n).randrange(2) for n in range(count)])
    bench = WatchedBench(lanes, 5, lines=BASE + 380, fifo=0, metadata=metadata, tiles=1, hurry=1.0, rows=rows)
    planned = bench.planned
    planned.rows[:] = range(count)
    planned.places[:] = [(count - n, n + 1) for n in range(count)]
    segments = [Segment(0, [], None, 0)]
    for n, nonzeros in enumerate(rows.rows):
        segments.append(Segment(n + 1, nonzeros, (BASE + count - n) * lanes, rows.position(n, 0)))
    data = {BASE + count - n for n in range(count)}
    load = Load(segments, 1, data, metadata * lanes, [])
    highest = max(count - n for n, nonzeros in enumerate(rows.rows) if nonzeros)
    tile = PlannedTile(0, planned.rows, count, metadata, load, metadata + highest + 1, [])

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.load_tile(ctx, tile)

    bench.test(body)
    assert bench.misplaced == []


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("fifo", [0, 3])
def test_a_row_outside_the_partition_is_told(lanes: int, fifo: int) -> None:
    """The place of each row that ends beyond the lines for data or has an entry beyond the last one, whichever tile loads it."""
    lines, metadata, tiles = 40, 6, 40
    bench = WatchedBench(lanes, 9 + fifo, lines=lines, fifo=fifo, metadata=metadata, tiles=tiles, hurry=0.8)
    planned, random = bench.planned, Random(lanes)
    capacity, entries = planned.capacity, metadata * lanes
    wrong: list[int] = []
    seen: set[str] = set()
    for tile in planned.tiles[4:]:
        for n in range(len(tile.rows)):
            if random.random() < 0.7:
                continue
            at = tile.begin + n
            line, entry = planned.places[at]
            length = len(bench.operand.rows[tile.rows[n]])
            needs = -(-length // lanes)
            stays = n < tile.placed
            kind = random.choice(["last line", "a line too far", "far", "last entry", "an entry too far", "any entry"])
            line = {"last line": capacity - needs, "a line too far": capacity - needs + 1, "far": 65535}.get(kind, line)
            entry = {"last entry": entries - 1, "an entry too far": entries, "any entry": 65535}.get(kind, entry)
            planned.places[at] = (line, entry)
            if entry >= entries or (stays and length and line + needs > capacity):
                wrong.append(at + 1)  # the list begins with a place that no row has
                seen.add(f"{kind}, {'stays' if stays else 'goes by'}")
            else:
                seen.add(f"{kind} is right, {'stays' if stays else 'goes by'}")
    bench.coming = None  # nothing that is read means anything
    bench.watch = LoadWatch(lanes, lines - 1, lambda text: None)

    async def body(ctx: Any) -> None:
        await bench.configure(ctx)
        for tile in planned.tiles:
            await bench.load(ctx, tile.announced(COLUMNS))
            await ctx.tick().repeat(3)

    bench.test(body)
    assert bench.misplaced == wrong
    assert {"a line too far, stays", "far, stays", "an entry too far, stays", "an entry too far, goes by"} <= seen
    assert {"last line is right, stays", "last entry is right, stays", "far is right, goes by"} <= seen
