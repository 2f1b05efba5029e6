"""Accessor C alone: rows, partial rows and scratch fibers reach memory packed, with positions, and come back."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accessor.c import AccessorC

from .clients import ClientMemory, patient

REGIONS = {
    "pointers": 0x1000,
    "elements": 0x2000,
    "finished": 0x4000,
    "partial0": 0x6000,
    "partial1": 0x8000,
    "tile_positions": 0xA000,
    "scratch": 0xC000,
}
SIZE = 0xE000
Fiber = list[tuple[int, int]]


class Bench:
    def __init__(self, lanes: int, seed: int, *, burst_beats: int = 4, reads: float | None = None) -> None:
        self.lanes = lanes
        self.random = Random(seed)
        self.memory = ClientMemory(SIZE, 8 * lanes, seed=seed)
        self.dut = dut = AccessorC(
            lanes=lanes, address_width=40, line_address_width=6, burst_beats=burst_beats, scratch_slots=2
        )
        self.sim = Simulator(dut)
        self.sim.add_clock(1e-8)
        self.sim.add_testbench(self.memory.reader(dut.read_request, dut.read_data, 0, reads), background=True)
        for n in range(4):
            retired = dut.scratch_retired if n == 2 else None
            writer = self.memory.writer(dut.write_request[n], dut.write_data[n], n, retired)
            self.sim.add_testbench(writer, background=True)

    async def configure(self, ctx: Any, whole_rows: bool) -> None:
        regions = dict(REGIONS) | {f"{name}_bytes": 0x2000 for name in ("elements", "finished", "partial", "scratch")}
        ctx.set(self.dut.regions, regions)
        ctx.set(self.dut.written, 15)
        ctx.set(self.dut.whole_rows, whole_rows)

    async def begin(self, ctx: Any, **tile: int) -> None:
        ctx.set(self.dut.tile.payload, tile)
        ctx.set(self.dut.tile.valid, 1)
        for _ in patient(2000):
            if (await ctx.tick().sample(self.dut.tile.ready))[2]:
                break
        ctx.set(self.dut.tile.valid, 0)

    def words(self, fiber: Fiber, **ticket: int) -> list[tuple[dict[str, Any], dict[str, int]]]:
        """A fiber's words, each with what its ticket says."""
        lanes = self.lanes
        pieces = [fiber[at : at + lanes] for at in range(0, len(fiber), lanes)] or [[]]
        words = []
        for n, piece in enumerate(pieces):
            line = [{"coordinate": c, "value": v} for c, v in piece] + [
                {"coordinate": 0xDEAD, "value": 0xBEEF} for _ in range(lanes - len(piece))
            ]
            words.append(({"line": line, "count": len(piece), "last": n == len(pieces) - 1}, ticket))
        return words

    async def give(self, ctx: Any, word: dict[str, Any], ticket: dict[str, int]) -> None:
        while self.random.random() < 0.2:
            await ctx.tick()
        ctx.set(self.dut.collected.payload, word)
        for name in ("scratch", "first", "slot"):
            ctx.set(getattr(self.dut, name), ticket.get(name, 0))
        ctx.set(self.dut.collected.valid, 1)
        for _ in patient(2000):
            if (await ctx.tick().sample(self.dut.collected.ready))[2]:
                break
        ctx.set(self.dut.collected.valid, 0)

    async def fiber(self, ctx: Any, fiber: Fiber, **ticket: int) -> None:
        for word, said in self.words(fiber, **ticket):
            await self.give(ctx, word, said)

    async def drain(self, ctx: Any) -> None:
        for _ in range(400):
            await ctx.tick()
        assert ctx.get(self.dut.drained)

    def stored(self, region: str, position: int, fiber: Fiber) -> None:
        """The fiber lies at this position."""
        at = REGIONS[region] + 8 * position
        found = self.memory.bytes[at : at + 8 * len(fiber)].view(np.uint32).reshape(-1, 2)
        assert [tuple(map(int, element)) for element in found] == fiber, f"{region} position {position}"

    def untouched(self, region: str, position: int) -> None:
        at = REGIONS[region] + 8 * position
        assert (self.memory.bytes[at : at + 64] == 0xAA).all(), f"{region} written beyond position {position}"


def fibers(count: int, seed: int, longest: int = 9) -> list[Fiber]:
    random = Random(seed)
    return [
        [(c, random.getrandbits(32)) for c in sorted(random.sample(range(100), random.choice([0, 0, 1, 2, longest])))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("lanes", [2, 8])
def test_rows_become_compressed_sparse_rows_over_several_tiles(lanes: int) -> None:
    bench = Bench(lanes, seed=1)
    rows = fibers(25, 2)

    async def test(ctx: Any) -> None:
        await bench.configure(ctx, True)
        for begin, size in ((0, 10), (10, 10), (20, 5)):
            await bench.begin(ctx, begin_i=begin, size_i=size, last_k=1, whole_j=1, k_step=begin == 0)
            for row in rows[begin : begin + size]:
                await bench.fiber(ctx, row)
            await bench.drain(ctx)
        ends = np.cumsum([0, *map(len, rows)])
        assert bench.memory.words(REGIONS["pointers"], 26).tolist() == ends.tolist()
        for row, position in zip(rows, ends, strict=False):
            bench.stored("elements", int(position), row)
        bench.untouched("elements", int(ends[-1]))
        assert ctx.get(bench.dut.stored) == ends[-1]

    bench.sim.add_testbench(test)
    bench.sim.run()


@pytest.mark.parametrize(("burst_beats", "reads"), [(4, None), (1, None), (1, 0.05)])
def test_partial_rows_leave_and_come_back_in_turn(burst_beats: int, reads: float | None) -> None:
    """With bursts of one beat and slow reads: new positions replace old ones that have been read only.

    The second tile's begins at the last word of a beat, which is then written at once.
    """
    bench = Bench(2, seed=3, burst_beats=burst_beats, reads=reads)
    dut = bench.dut

    async def test(ctx: Any) -> None:
        await bench.configure(ctx, True)
        before: dict[int, list[Fiber]] = {}
        for step in range(4):
            position = 0  # each step along k begins at the begin of its region
            for tile, (begin, size) in enumerate(((0, 6), (6, 3))):
                rows = fibers(size, 10 * step + tile)
                index = begin + tile
                await bench.begin(
                    ctx,
                    begin_i=begin,
                    size_i=size,
                    last_k=0,
                    partial_in=step > 0,
                    k_step=tile == 0,
                    position_index=index,
                )
                if step:
                    region = ctx.get(dut.partial_region)
                    assert region * 8 in (REGIONS["partial0"], REGIONS["partial1"])
                    for fiber in before[tile]:
                        ctx.set(dut.partials.ready, 1)
                        for _ in patient(1000):
                            _, _, valid, partial = await ctx.tick().sample(dut.partials.valid, dut.partials.payload)
                            if valid:
                                break
                        ctx.set(dut.partials.ready, 0)
                        assert partial.length == len(fiber) and partial.in_memory
                        assert not fiber or partial.position == position
                        position += len(fiber)
                        name = "partial0" if region * 8 == REGIONS["partial0"] else "partial1"
                        bench.stored(name, partial.position, fiber)
                for row in rows:
                    await bench.fiber(ctx, row)
                await bench.drain(ctx)
                before[tile] = rows

    bench.sim.add_testbench(test)
    bench.sim.run()


def test_scratch_fibers_are_reported_when_in_memory() -> None:
    """Rows take turns with two slots, the words of scratch fibers and of rows with each other; nobody waits for memory."""
    bench = Bench(2, seed=5)
    dut = bench.dut
    rows = fibers(8, 6)
    scratch = [fibers(1 + row % 4, 20 + row, 21) for row in range(8)]
    told: list[tuple[int, int]] = []
    half = 0x2000 // 2 // 8  # elements of a slot
    fiber_numbers = [(row, n) for row, group in enumerate(scratch) for n in range(len(group))]

    async def test(ctx: Any) -> None:
        await bench.configure(ctx, True)
        ctx.set(dut.scratch_results.ready, 1)
        await bench.begin(ctx, begin_i=0, size_i=8, last_k=1, whole_j=1, k_step=1)
        lines = [[word for row in rows for word in bench.words(row)], []]
        for row, group in enumerate(scratch):
            for n, fiber in enumerate(group):
                lines[1] += bench.words(fiber, scratch=1, first=n == 0, slot=row % 2, row=row)
        due = {row: row - 2 for row in range(2, 8)}  # the row before in the slot
        for _ in patient(5000):
            if not any(lines):
                break
            line = bench.random.choice([line for line in lines if line])
            number = line[0][1].get("row", 0)
            if number in due and (due[number], len(scratch[due[number]]) - 1) not in told:
                await ctx.tick()
                continue
            await bench.give(ctx, *line.pop(0))
        await bench.drain(ctx)
        ends = np.cumsum([0, *map(len, rows)])
        assert bench.memory.words(REGIONS["pointers"], 9).tolist() == ends.tolist()
        for fiber, position in zip(rows, ends, strict=False):
            bench.stored("elements", int(position), fiber)

    async def results(ctx: Any) -> None:
        for row, n in fiber_numbers:
            for _ in patient(3000):
                _, _, valid, result = await ctx.tick().sample(dut.scratch_results.valid, dut.scratch_results.payload)
                if valid:
                    break
            before = sum(map(len, scratch[row][:n]))
            assert (result.slot, result.position) == (row % 2, before)
            assert result.length == len(scratch[row][n])
            bench.stored("scratch", half * (row % 2) + result.position, scratch[row][n])
            told.append((row, n))

    bench.sim.add_testbench(test)
    bench.sim.add_testbench(results)
    bench.sim.run()


@pytest.mark.parametrize("whole", [True, False], ids=["rows", "pieces of rows"])
def test_a_region_that_is_too_small_says_how_much_is_needed(whole: bool) -> None:
    """The region is that of C, or that of the finished pieces which the assembly puts together; the other has room."""
    bench = Bench(2, seed=7)
    dut = bench.dut
    region, other = ("elements", "finished") if whole else ("finished", "elements")

    async def test(ctx: Any) -> None:
        await bench.configure(ctx, whole)
        ctx.set(dut.regions[f"{region}_bytes"], 64)
        await bench.begin(ctx, begin_i=0, size_i=2, last_k=1, whole_j=int(whole), k_step=1)
        await bench.fiber(ctx, [(n, n) for n in range(7)])
        line = [{"coordinate": 1, "value": 1}, {"coordinate": 2, "value": 2}]
        ctx.set(dut.collected.payload, {"line": line, "count": 2, "last": 1})
        ctx.set(dut.collected.valid, 1)
        for _ in range(50):
            await ctx.tick()
        assert ctx.get(dut.overflow) == 1 and ctx.get(dut.needed) == 72
        bench.untouched(region, 8)
        bench.untouched(other, 0)

    bench.sim.add_testbench(test)
    bench.sim.run()


def test_a_region_may_be_filled_to_its_end() -> None:
    bench = Bench(2, seed=8)
    dut = bench.dut

    async def test(ctx: Any) -> None:
        await bench.configure(ctx, True)
        ctx.set(dut.regions.elements_bytes, 64)
        await bench.begin(ctx, begin_i=0, size_i=2, last_k=1, whole_j=1, k_step=1)
        rows = [[(n, n) for n in range(7)], [(3, 5)]]
        for row in rows:
            await bench.fiber(ctx, row)
        await bench.drain(ctx)
        assert not ctx.get(dut.overflow)
        bench.stored("elements", 0, rows[0] + rows[1])

    bench.sim.add_testbench(test)
    bench.sim.run()
