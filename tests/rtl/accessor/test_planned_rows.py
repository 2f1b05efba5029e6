"""Accessor B and the lookup where the plan says at which lines and entries rows lie: every row is found, at once if it was told."""

from typing import Any

import numpy as np
import pytest

from rtl.accessor.fiber_reader import READ_CLIENTS
from sw.plan.gather import RowPlan
from sw.plan.replacement import place_rows
from sw.stats.pattern import Pattern

from .clients import patient
from .test_accessor_a import ELEMENTS, POINTERS, POSITIONS, random_matrix
from .test_accessor_b import BASE, Bench
from .test_listed_rows import PORTS

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
        self.misplaced: list[int] = []
        self.sim.add_testbench(self._look, background=True)

    async def _look(self, ctx: Any) -> None:
        async for _, _, misplaced, place in ctx.tick().sample(self.b.misplaced, self.b.place):
            if misplaced:
                self.misplaced.append(place)

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
