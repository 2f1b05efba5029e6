"""Accessor B and the lookup together over a banked SRAM: every segment found where the lookup says it is."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.accessor.b import AccessorB
from rtl.accessor.lookup import FiberLookup
from rtl.accessor.quadrants import QuadrantCounters
from rtl.accessor.segment_placement import REMEMBERED_SEGMENTS
from rtl.buffer.banked_sram import BankedSram
from rtl.types import selection
from sw.golden.partition import Capacity
from sw.plan.placement import placement
from sw.timing.hardware import REMEMBERED_SEGMENTS as REMEMBERED_BY_MODEL
from verif.benches.partition import REMEMBERED, placed

from .clients import ClientMemory, patient
from .test_accessor_a import ELEMENTS, POINTERS, POSITIONS, elements_of, random_matrix

LINES = 64
BASE = 8
FIFO = 4
# What a tile says of a ring means nothing without windows.
NO_RING = {"kept": 3, "entry": 5, "line": 7, "lines": 9, "metadata": 11}


class Bench:
    """B's accessor, the SRAM and the lookup, joined as in the machine: a selection waits until its fiber is there."""

    def __init__(
        self, matrix: Any, lanes: int, seed: int, *, lines: int = LINES, fifo: int = FIFO, quadrants: bool = False
    ) -> None:
        self.matrix = matrix
        self.lanes = lanes
        self.lines = lines
        self.fifo = fifo
        sram_lines = -(-lines // 4) * 4
        width = (sram_lines - 1).bit_length()
        self.memory = ClientMemory(ELEMENTS + 8 * matrix.nnz + 4096, 8 * lanes, seed=seed)
        self.memory.store(POINTERS, matrix.indptr.astype(np.uint32))
        self.memory.store(ELEMENTS, elements_of(matrix))
        m = Module()
        m.submodules.b = self.b = AccessorB(
            lanes=lanes, address_width=40, line_address_width=width, burst_beats=16, quadrants=quadrants
        )
        m.submodules.lookup = self.lookup = FiberLookup(lanes=lanes, address_width=40, line_address_width=width)
        m.submodules.sram = self.sram = BankedSram(lines=sram_lines, banks=4, lanes=lanes, read_ports=2, write_ports=2)
        self.hold = Signal(2)  # keeps a write port of the accessor waiting
        for n in range(2):
            source, sink = self.b.sram_write[n], self.sram.write[n]
            m.d.comb += [
                sink.payload.eq(source.payload),
                sink.valid.eq(source.valid & ~self.hold[n]),
                source.ready.eq(sink.ready & ~self.hold[n]),
            ]
        connect(m, self.lookup.sram_request, self.sram.read_request[0])
        self.ask = ask = stream.Signature(selection()).create()
        self.number = Signal(32)  # with planned places, of the load that the selection waits for
        waits_for = Mux(self.b.planned, self.number, ask.payload.index)
        there = self.b.idle | ~ask.payload.present | (waits_for < self.b.settled)
        m.d.comb += [
            self.lookup.sram_response.eq(self.sram.read_response[0]),
            self.lookup.selections.valid.eq(ask.valid & there),
            self.lookup.selections.payload.eq(ask.payload),
            ask.ready.eq(self.lookup.selections.ready & there),
        ]
        self.sim = Simulator(m)
        self.sim.add_clock(1e-8)
        for n in range(5):
            self.sim.add_testbench(self.memory.reader(self.b.read_request[n], self.b.read_data[n], n), background=True)
        self.sim.add_testbench(self.memory.reader(self.lookup.read_request, self.lookup.read_data, 8), background=True)
        self.sim.add_testbench(self.memory.writer(self.b.write_request, self.b.write_data, 9), background=True)

        self.blamed: list[int] = []
        self.misplaced: list[int] = []  # places of a list whose rows would lie outside the partition
        self.sim.add_testbench(self._watch, background=True)

    async def _watch(self, ctx: Any) -> None:
        b = self.b
        watched = ctx.tick().sample(b.wrong, b.coordinate, b.misplaced, b.place)
        async for _, _, wrong, coordinate, misplaced, place in watched:
            if wrong:
                self.blamed.append(coordinate)
            if misplaced:
                self.misplaced.append(place)

    async def configure(self, ctx: Any) -> None:
        for name, value in (("pointers", POINTERS), ("positions", POSITIONS), ("elements", ELEMENTS)):
            ctx.set(getattr(self.b, name), value)
        ctx.set(self.b.base, BASE)
        ctx.set(self.b.lines, self.lines - BASE)
        ctx.set(self.b.fifo_lines, self.fifo)
        ctx.set(self.lookup.metadata_line, self.lines - 1)
        ctx.set(self.lookup.elements, ELEMENTS)

    async def begin(self, ctx: Any, tile: dict[str, Any]) -> None:
        ctx.set(self.b.tile.payload, {"ring": NO_RING} | tile)
        ctx.set(self.b.tile.valid, 1)
        for _ in patient(2000):
            if (await ctx.tick().sample(self.b.tile.ready))[2]:
                break
        ctx.set(self.b.tile.valid, 0)

    async def loaded(self, ctx: Any) -> None:
        for _ in patient(20000):
            if (await ctx.tick().sample(self.b.idle))[2]:
                break

    async def load(self, ctx: Any, tile: dict[str, Any]) -> None:
        await self.begin(ctx, tile)
        await self.loaded(ctx)

    async def find(self, ctx: Any, indices: list[int]) -> list[Any]:
        """Leaves for these fiber indices, asked and answered with pauses."""
        random = self.memory.random
        found: list[Any] = []
        asked = 0
        for _ in patient(200 * len(indices) + 20000):
            ask = asked < len(indices) and (random.random() < 0.8)
            take = random.random() < 0.8
            # A selection once offered stays; so only begin to offer at random.
            offering = getattr(self, "_offering", False) or ask
            self._offering = offering and asked < len(indices)
            ctx.set(self.ask.valid, self._offering)
            if self._offering:
                index = indices[asked]
                ctx.set(
                    self.ask.payload,
                    {"index": max(index, 0), "weight": asked, "present": index >= 0, "last": asked % 3 == 0},
                )
            ctx.set(self.lookup.leaves.ready, take)
            _, _, accepted, valid, item = await ctx.tick().sample(
                self.ask.ready, self.lookup.leaves.valid, self.lookup.leaves.payload
            )
            if self._offering and accepted:
                asked += 1
                self._offering = False
            if valid and take:
                found.append(item)
            if len(found) == len(indices):
                break
        ctx.set(self.ask.valid, 0)
        ctx.set(self.lookup.leaves.ready, 0)
        return found

    async def sram_element(self, ctx: Any, position: int) -> tuple[int, int]:
        """An element of the tile in place; its line is read once."""
        line = position // self.lanes
        if line not in self.seen:
            self.seen[line] = await self.sram_line(ctx, line)
        return self.seen[line][position % self.lanes]

    async def sram_line(self, ctx: Any, line: int) -> list[tuple[int, int]]:
        ctx.set(self.sram.read_request[1].payload, line)
        ctx.set(self.sram.read_request[1].valid, 1)
        for _ in patient(50):
            if (await ctx.tick().sample(self.sram.read_request[1].ready))[2]:
                break
        ctx.set(self.sram.read_request[1].valid, 0)
        for _ in patient(50):
            _, _, response = await ctx.tick().sample(self.sram.read_response[1])
            if response.valid:
                return [(element.coordinate, element.value) for element in response.line]
        return []

    async def check_tile(self, ctx: Any, tile: dict[str, int]) -> tuple[int, int]:
        """Compares every fiber of the tile, which may still be on its way; returns (resident, bumped) elements."""
        matrix = self.matrix
        self.seen: dict[int, list[tuple[int, int]]] = {}
        indices = [*range(tile["size_k"]), -1, *range(tile["size_k"] - 1, -1, -3)]
        leaves = await self.find(ctx, indices)
        await self.loaded(ctx)
        resident = bumped = 0
        for order, (index, leaf) in enumerate(zip(indices, leaves, strict=True)):
            assert leaf.leaf.last == (order % 3 == 0)
            if index < 0:
                assert not leaf.present
                continue
            row = tile["begin_k"] + index
            lo, hi = matrix.indptr[row : row + 2]
            inside = [
                at for at in range(lo, hi) if tile["begin_j"] <= matrix.indices[at] < tile["begin_j"] + tile["size_j"]
            ]
            assert leaf.present == bool(inside)
            if not inside:
                continue
            assert leaf.leaf.length == len(inside) and leaf.leaf.weight == order and not leaf.leaf.unit
            if leaf.leaf.in_memory:
                assert leaf.leaf.position == ELEMENTS // 8 + inside[0]
                bumped += len(inside) * (order < tile["size_k"])
                continue
            resident += len(inside) * (order < tile["size_k"])
            for n, at in enumerate(inside if order < tile["size_k"] else inside[:1]):
                got = await self.sram_element(ctx, leaf.leaf.position + n)
                assert got == (matrix.indices[at], matrix.data[at]), f"row {row} element {n}"
        return resident, bumped


def tiles_of(matrix: Any, tile_k: int, tile_j: int) -> list[dict[str, int]]:
    rows, columns = matrix.shape
    return [
        {
            "begin_k": k,
            "size_k": min(tile_k, rows - k),
            "begin_j": j,
            "size_j": min(tile_j, columns - j),
            "from_pointers_b": j == 0,
            "last_j": j + tile_j >= columns,
            "whole_j": tile_j >= columns,
            "advance_b": j + tile_j < columns,
        }
        for k in range(0, rows, tile_k)
        for j in range(0, columns, tile_j)
    ]


def run(
    matrix: Any, tiles: list[dict[str, int]], lanes: int, streaming: bool = False, **options: int
) -> list[tuple[int, int, int]]:
    bench = Bench(matrix, lanes, seed=1, **options)
    seen: list[tuple[int, int, int]] = []

    async def test(ctx: Any) -> None:
        await bench.configure(ctx)
        for number, tile in enumerate(tiles):
            if streaming:
                ctx.set(bench.lookup.streaming, 1)
                ctx.set(bench.lookup.pointers, POINTERS + 4 * tile["begin_k"])
            elif number % 2:
                await bench.load(ctx, tile)
            else:
                await bench.begin(ctx, tile)
            resident, bumped = await bench.check_tile(ctx, tile)
            if not streaming:
                assert ctx.get(bench.b.nonzeros) == resident + bumped
                assert ctx.get(bench.b.bumped_elements) == bumped
            seen.append((resident, bumped, ctx.get(bench.b.occupied)))

    bench.sim.add_testbench(test)
    bench.sim.run()
    assert bench.blamed == bench.misplaced == []
    return seen


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("tile_j", [7, 30])
def test_tiles_that_fit(lanes: int, tile_j: int) -> None:
    matrix = random_matrix(20, 30, 0.1, seed=1)
    assert all(bumped == 0 for _, bumped, _ in run(matrix, tiles_of(matrix, 10, tile_j), lanes))


def quadrants_of(matrix: Any, tile: dict[str, int], tile_k: int, tile_j: int) -> list[int]:
    """Nonzeros of a tile: low and high half along j of its low rows, then of its high ones.

    A row that is read whole counts as spread evenly, the odd element in the low half.
    """
    counts = [0] * 4
    for row in range(tile["size_k"]):
        columns = matrix[[tile["begin_k"] + row]].indices - tile["begin_j"]
        columns = columns[(columns >= 0) & (columns < tile["size_j"])]
        low = (len(columns) + 1) // 2 if tile["whole_j"] else int((columns < tile_j // 2).sum())
        high_rows = row >= tile_k // 2
        counts[2 * high_rows] += low
        counts[2 * high_rows + 1] += len(columns) - low
    return counts


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("tile_j", [7, 16, 30])
def test_quadrants_of_every_tile(lanes: int, tile_j: int) -> None:
    """Their counts four cycles after the tile is in place, of tiles that fit and of some that do not."""
    matrix = random_matrix(20, 30, 0.3, seed=3)
    tiles = tiles_of(matrix, 10, tile_j)
    bench = Bench(matrix, lanes, seed=2, quadrants=True)
    seen = []

    async def test(ctx: Any) -> None:
        await bench.configure(ctx)
        ctx.set(bench.b.side_k, 10)
        ctx.set(bench.b.side_j, tile_j)
        for tile in tiles:
            await bench.load(ctx, tile)
            await ctx.tick().repeat(QuadrantCounters.latency)
            seen.append([ctx.get(bench.b.quadrant_counts[n]) for n in range(4)])

    bench.sim.add_testbench(test)
    bench.sim.run()
    assert seen == [quadrants_of(matrix, tile, 10, tile_j) for tile in tiles]


def test_columns_out_of_order_and_beyond_the_last_tile_are_blamed() -> None:
    rows = [[1, 9, 4], [2, 3], [17, 30], [], [12, 11], [29, 31]]
    columns = np.array([column for row in rows for column in row])
    matrix = sp.csr_array(
        (np.arange(len(columns)) + 1, columns, np.cumsum([0, *map(len, rows)])), shape=(len(rows), 30)
    )
    bench = Bench(matrix, 2, seed=1)
    blamed = []

    async def test(ctx: Any) -> None:
        await bench.configure(ctx)
        for tile in tiles_of(matrix, 6, 10):
            await bench.load(ctx, tile)
            await ctx.tick().repeat(3)
            blamed.append(list(bench.blamed))
            bench.blamed.clear()

    bench.sim.add_testbench(test)
    bench.sim.run()
    assert blamed == [[4], [11], [30, 31]]


def test_the_model_remembers_as_many_segments() -> None:
    assert REMEMBERED_BY_MODEL == REMEMBERED_SEGMENTS == REMEMBERED


@settings(max_examples=500)
@given(st.lists(st.integers(0, 5), max_size=200), st.integers(0, 60), st.integers(0, 200))
def test_the_model_places_segments_as_the_contract_says(lengths: list[int], regular: int, region: int) -> None:
    assert placement(np.array(lengths, np.int64), Capacity(regular + region, regular)) == placed(
        lengths, regular, regular + region
    )


def segment_lengths(matrix: Any, tile: dict[str, int]) -> np.ndarray:
    rows = slice(tile["begin_k"], tile["begin_k"] + tile["size_k"])
    columns = slice(tile["begin_j"], tile["begin_j"] + tile["size_j"])
    return np.diff(matrix[rows, columns].indptr).astype(np.int64)


def capacities(tile: dict[str, int], lanes: int, lines: int = LINES, fifo: int = FIFO) -> tuple[int, int]:
    """Elements before the FIFO-managed region and with it."""
    free = lines - BASE - -(-tile["size_k"] // lanes)
    return lanes * (free - fifo), lanes * free


@pytest.mark.parametrize("tile_j", [25, 40])
def test_overbooked_tiles_bump_from_the_first_segment_that_ends_in_the_region(tile_j: int) -> None:
    matrix = random_matrix(24, 40, 0.4, seed=2)
    lanes = 2
    tiles = tiles_of(matrix, 12, tile_j)
    overbooked = 0
    for tile, (resident, bumped, occupied) in zip(tiles, run(matrix, tiles, lanes), strict=True):
        lengths = segment_lengths(matrix, tile)
        first, _ = placed(lengths, *capacities(tile, lanes))
        assert (resident, bumped) == (lengths[:first].sum(), lengths[first:].sum())
        assert occupied == -(-tile["size_k"] // lanes) + -(-resident // lanes)
        overbooked += bumped > 0
    assert overbooked


def test_a_bumped_whole_tile_is_not_read_beyond_what_fits() -> None:
    """Segments that the region held until it was cleared have been read once."""
    matrix = random_matrix(12, 60, 0.5, seed=3)
    tile = tiles_of(matrix, 12, 60)[0]
    lengths = segment_lengths(matrix, tile)
    first, stop = placed(lengths, *capacities(tile, 2, fifo=20))
    assert first < stop < len(lengths)
    bench = Bench(matrix, 2, seed=4, fifo=20)

    async def test(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.load(ctx, tile)
        assert ctx.get(bench.b.bumped_elements) == lengths[first:].sum()
        assert bench.memory.beats_read[2] == -(-lengths[:stop].sum() // 2)

    bench.sim.add_testbench(test)
    bench.sim.run()


def rows_of_lengths(lengths: list[int], columns: int) -> Any:
    """A matrix with rows of these lengths, none of them reaching column 30."""
    rng = np.random.default_rng(6)
    indices = [np.sort(rng.choice(30, length, replace=False)) for length in lengths]
    data = rng.integers(1, 2**32, sum(lengths), dtype=np.uint32).astype(np.int64)
    return sp.csr_array((data, np.concatenate(indices), np.cumsum([0, *lengths])), shape=(len(lengths), columns))


# 100 rows leave 140 elements in 128 lines from line 8 on, 60 of them before the FIFO-managed region of 40 lines.
FULL = [3] * 20 + [5, 0, 25, 20, 0, 30] + [0] * 74
MANY = [3] * 20 + [0] * 5 + [1] * 30 + [0] * 5 + [1] * 34 + [0] * 6
BOUNDARIES = {
    "exactly the partition": (FULL, 0),
    "one element more": ([*FULL[:20], 6, *FULL[21:]], 81),
    "one more at the end": ([*FULL[:99], 1], 81),
    "one before the end of the regular part": ([2, *FULL[1:20], 2, *[30] * 3, *[0] * 76], 92),
    "exactly the regular part": ([3] * 20 + [0] * 80, 0),
    "64 segments in the region": (MANY, 0),
    "65 segments in the region": ([*MANY[:99], 1], 65),
    "65 segments, the last of several words": ([*MANY[:98], 7, 0], 71),
    "a segment across the begin of the region": ([25, *[30] * 5, *[0] * 94], 120),
}


@pytest.mark.parametrize("columns", [30, 40])
@pytest.mark.parametrize("lengths, bumped", BOUNDARIES.values(), ids=BOUNDARIES.keys())
def test_the_region_belongs_to_a_tile_that_fits(lengths: list[int], bumped: int, columns: int) -> None:
    """At the limits of room and of memory for segments, with whole rows (30 columns) and with scanned ones (40)."""
    matrix = rows_of_lengths(lengths, columns)
    tiles = tiles_of(matrix, 100, 30)
    assert capacities(tiles[0], 2, 128, 40) == (60, 140)
    (found, *_) = run(matrix, tiles, 2, lines=128, fifo=40)
    first, _ = placed(lengths, 60, 140)
    assert sum(lengths[first:]) == bumped
    assert found == (sum(lengths) - bumped, bumped, 50 + -(-(sum(lengths) - bumped) // 2))


def test_tiles_follow_one_another_whatever_the_region_held() -> None:
    """What is remembered of one tile does not reach the next: fitting, overbooked and fitting ones in turn."""
    matrix = rows_of_lengths([*FULL, *BOUNDARIES["65 segments in the region"][0], *MANY], 30)
    found = run(matrix, tiles_of(matrix, 100, 30), 2, lines=128, fifo=40)
    assert [bumped for _, bumped, _ in found] == [0, 65, 0]


def test_a_tile_right_after_one_that_filled_the_region() -> None:
    """64 segments are remembered when the next tile comes at once; they are none of its."""
    matrix = rows_of_lengths([*MANY, *FULL[:99], 1], 30)
    bench = Bench(matrix, 2, seed=7, lines=128, fifo=40)
    first, second = tiles_of(matrix, 100, 30)

    async def test(ctx: Any) -> None:
        await bench.configure(ctx)
        await bench.load(ctx, first)
        await bench.load(ctx, second)
        assert await bench.check_tile(ctx, second) == (60, 81)
        assert ctx.get(bench.b.bumped_elements) == 81

    bench.sim.add_testbench(test)
    bench.sim.run()


def test_streaming_finds_fibers_through_the_pointers() -> None:
    matrix = random_matrix(30, 20, 0.2, seed=5)
    run(matrix, tiles_of(matrix, 13, 20), 2, streaming=True)
