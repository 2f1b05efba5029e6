"""Accessor A against slices of a SciPy matrix: streamed and kept in its partition, positions, empty tiles, any lanes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from rtl.accessor.a import AccessorA
from rtl.buffer.banked_sram import BankedSram

from .clients import ClientMemory, patient

POINTERS, POSITIONS, ELEMENTS = 0x1000, 0x8000, 0x10000


def elements_of(matrix: Any) -> np.ndarray:
    pairs = np.empty((matrix.nnz, 2), dtype=np.uint32)
    pairs[:, 0] = matrix.indices
    pairs[:, 1] = matrix.data
    return pairs


def random_matrix(rows: int, columns: int, density: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    matrix.data = rng.integers(1, 2**32, matrix.nnz, dtype=np.uint32).astype(np.int64)
    matrix.sort_indices()
    return matrix


def walk(matrix: Any, tile_i: int, tile_k: int, order: str, repeats: int) -> list[dict[str, int]]:
    """Tiles of A as the controller would announce them; ``repeats`` visits of each, the last one advances."""
    rows, columns = matrix.shape
    steps_i = range(0, rows, tile_i)
    steps_k = range(0, columns, tile_k)
    outer = [(i, k) for i in steps_i for k in steps_k] if order == "ik" else [(i, k) for k in steps_k for i in steps_i]
    return [
        {
            "begin_i": i,
            "size_i": min(tile_i, rows - i),
            "begin_k": k,
            "size_k": min(tile_k, columns - k),
            "from_pointers_a": k == 0,
            "last_k": k + tile_k >= columns,
            "whole_k": tile_k >= columns,
            "advance_a": visit == repeats - 1 and k + tile_k < columns,
            "carry": 0,
        }
        for i, k in outer
        for visit in range(repeats)
    ]


def expected(matrix: Any, tile: dict[str, int]) -> list[list[tuple[int, int]]]:
    """Selections (index, weight) of each row of the tile."""
    found = []
    for row in range(tile["begin_i"], tile["begin_i"] + tile["size_i"]):
        lo, hi = matrix.indptr[row : row + 2]
        inside = [
            (int(c) - tile["begin_k"], int(v))
            for c, v in zip(matrix.indices[lo:hi], matrix.data[lo:hi], strict=True)
            if tile["begin_k"] <= c < tile["begin_k"] + tile["size_k"] and not tile["carry"]
        ]
        found.append(inside)
    return found


def run(
    matrix: Any,
    tiles: list[dict[str, int]],
    lanes: int,
    seed: int,
    hurry: float = 0.7,
    kept: int = 0,
    wrong: Sequence[int] = (),
) -> tuple[ClientMemory, dict[str, list[int]]]:
    """Visits the tiles. ``kept``: lines of A's partition in buffering mode, where tiles are loaded as run control does.

    ``wrong``: coordinates that the accessor blames, in order. Returns the memory and, of each load, what the accessor says
    of it, of each visit, elements by where they came from.
    """
    memory = ClientMemory(0x10000 + 8 * matrix.nnz + 4096, 8 * lanes, seed=seed, hurry=hurry)
    memory.store(POINTERS, matrix.indptr.astype(np.uint32))
    memory.store(ELEMENTS, elements_of(matrix))
    m = Module()
    m.submodules.a = dut = AccessorA(lanes=lanes, address_width=40, line_address_width=7, burst_beats=16)
    busy = Signal()  # another requester wants the bank of its line
    if kept:
        m.submodules.sram = sram = BankedSram(lines=128, banks=4, lanes=lanes, read_ports=2, write_ports=2)
        for n in range(2):
            connect(m, dut.sram_write[n], sram.write[n])
        connect(m, dut.sram_request, sram.read_request[0])
        m.d.comb += [
            dut.sram_response.eq(sram.read_response[0]),
            sram.read_request[1].payload.eq(dut.selections.payload.index),
            sram.read_request[1].valid.eq(busy),
        ]
    sim = Simulator(m)
    sim.add_clock(1e-8)
    for n in range(5):
        sim.add_testbench(memory.reader(dut.read_request[n], dut.read_data[n], n), background=True)
    sim.add_testbench(memory.writer(dut.write_request, dut.write_data, 9), background=True)
    seen: dict[str, list[int]] = {"bumped": [], "occupied": [], "resident_uses": [], "bumped_uses": []}

    blamed: list[int] = []

    async def watch(ctx: Any) -> None:
        async for _, _, is_wrong, coordinate in ctx.tick().sample(dut.wrong, dut.coordinate):
            if is_wrong:
                blamed.append(coordinate)

    async def take(ctx: Any, port: Any, tile: dict[str, int]) -> None:
        ctx.set(port.payload, tile)
        ctx.set(port.valid, 1)
        for _ in patient(20000):
            if (await ctx.tick().sample(port.ready))[2]:
                break
        ctx.set(port.valid, 0)

    async def bench(ctx: Any) -> None:
        for name, value in (("pointers", POINTERS), ("positions", POSITIONS), ("elements", ELEMENTS)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.buffering, kept > 0)
        ctx.set(dut.base, 128 - kept)
        ctx.set(dut.lines, kept)
        in_place = None
        for tile in tiles:
            if kept and not tile["carry"] and in_place != (tile["begin_i"], tile["begin_k"]):
                in_place = (tile["begin_i"], tile["begin_k"])
                await take(ctx, dut.load, tile)
                for _ in patient(20000):
                    if (await ctx.tick().sample(dut.idle))[2]:
                        break
                seen["bumped"].append(ctx.get(dut.bumped_elements))
                seen["occupied"].append(ctx.get(dut.occupied))
            await take(ctx, dut.tile, tile)
            uses = [0, 0]
            for row, inside in enumerate(expected(matrix, tile)):
                got: list[tuple[int, int]] = []
                for _ in patient(20000):
                    go = memory.random.random() < hurry
                    ctx.set(dut.selections.ready, go)
                    ctx.set(busy, memory.random.random() < 0.5)
                    _, _, valid, item, resident, bumped = await ctx.tick().sample(
                        dut.selections.valid, dut.selections.payload, dut.event_resident, dut.event_bumped
                    )
                    uses = [uses[0] + resident, uses[1] + bumped]
                    if valid and go:
                        if item.present:
                            got.append((item.index, item.weight))
                        if item.last:
                            break
                assert got == inside, f"row {row} of {tile}"
            seen["resident_uses"].append(uses[0])
            seen["bumped_uses"].append(uses[1])
            ctx.set(dut.selections.ready, 0)
        for _ in patient(1000):
            if (await ctx.tick().sample(dut.idle))[2]:
                break

    sim.add_testbench(watch, background=True)
    sim.add_testbench(bench)
    sim.run()
    assert blamed == list(wrong)
    return memory, seen


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("order", ["ik", "ki"])
@pytest.mark.parametrize("tile_k", [5, 16, 64])
def test_segments_of_every_tile(lanes: int, order: str, tile_k: int) -> None:
    matrix = random_matrix(23, 50, 0.15, seed=tile_k)
    run(matrix, walk(matrix, 9, tile_k, order, 1), lanes, seed=1)


def test_revisited_tiles_read_the_same_segment() -> None:
    matrix = random_matrix(11, 40, 0.3, seed=3)
    run(matrix, walk(matrix, 4, 8, "ki", 3), 2, seed=2)


@pytest.mark.parametrize("tile_k", [100, 1000])
def test_long_rows_go_beyond_their_chunk(tile_k: int) -> None:
    matrix = random_matrix(3, 1000, 0.8, seed=4)
    run(matrix, walk(matrix, 3, tile_k, "ik", 1), 2, seed=5)


def test_skipped_tiles_are_scanned_over() -> None:
    """Begin positions of tiles that were left out stay behind; what lies before the tile is dropped."""
    matrix = random_matrix(6, 60, 0.5, seed=6)
    tiles = [tile for n, tile in enumerate(walk(matrix, 6, 10, "ik", 1)) if n in (0, 3, 5)]
    run(matrix, tiles, 2, seed=7)


@pytest.mark.parametrize("kept", [0, 120])
def test_a_column_that_falls_is_blamed_wherever_it_stands(kept: int) -> None:
    """In each lane, and at the borders of lines and of chunks (2 lines, then up to the next 16)."""
    places = (1, 2, 3, 4, 5, 30, 31, 32, 33, 34, 62, 63, 64, 65, 78)
    columns = np.array([np.arange(10, 168, 2) for _ in places])
    for row, at in enumerate(places):
        columns[row, at] = columns[row, at - 1] - 1
    rows = np.repeat(np.arange(len(places)), 79)
    matrix = sp.csr_array((np.arange(len(rows)) + 1, columns.ravel(), np.arange(0, len(rows) + 1, 79)), shape=(15, 400))
    assert not matrix.has_sorted_indices
    tiles = walk(matrix, 15, 200, "ik", 1)
    run(matrix, tiles[:1], 2, seed=11, kept=kept, wrong=[int(columns[row, at]) for row, at in enumerate(places)])


@pytest.mark.parametrize("last", [0, 1])
def test_columns_beyond_the_last_tile_are_blamed(last: int) -> None:
    """In another tile they belong to one that follows. Equal neighbours are none that fall."""
    rows = [[3, 20], [4, 5, 39, 40], [], [7, 7], [40], [8, 1 << 20]]
    pointers = np.cumsum([0, *map(len, rows)])
    columns = np.array([column for row in rows for column in row])
    matrix = sp.csr_array((np.arange(len(columns)) + 1, columns, pointers), shape=(6, 1 << 22))
    tile = {"begin_i": 0, "size_i": 6, "begin_k": 0, "size_k": 40, "from_pointers_a": 1, "whole_k": 0, "advance_a": 0}
    run(matrix, [tile | {"carry": 0, "last_k": last}], 2, seed=12, wrong=[40, 40, 1 << 20] if last else [])


def test_carried_tiles_give_empty_rows() -> None:
    matrix = random_matrix(6, 20, 0.5, seed=8)
    tiles = walk(matrix, 3, 20, "ik", 1)
    tiles[0]["carry"] = 1
    run(matrix, tiles, 2, seed=9)


def test_empty_rows_and_one_element_rows() -> None:
    matrix = sp.csr_array(([7, 9], ([0, 40], [0, 99])), shape=(80, 100), dtype=np.int64)
    run(matrix, walk(matrix, 80, 100, "ik", 1) + walk(matrix, 80, 30, "ki", 1), 2, seed=10)


def test_tiles_of_one_whole_row() -> None:
    """Nothing follows the row that could hold its request back: its address is right at once."""
    matrix = random_matrix(8, 30, 0.5, seed=3)
    run(matrix, walk(matrix, 1, 64, "ik", 1), 2, seed=3)


def test_whole_rows_are_read_once() -> None:
    """A run of whole rows costs the beats that hold it and the pointers, whatever the timing."""
    matrix = random_matrix(40, 64, 0.2, seed=11)
    for hurry in (0.2, 0.9):
        memory, _ = run(matrix, walk(matrix, 40, 64, "ik", 1), 2, seed=12, hurry=hurry)
        assert memory.beats_read[2] == -(-matrix.nnz // 2)
        assert memory.beats_read[0] == -(-41 // 4)
        assert 3 not in memory.beats_read and 4 not in memory.beats_written


def stay(tiles: list[dict[str, int]]) -> list[dict[str, int]]:
    """The flags of a kept tile, which begin positions follow at its load: all visits of a stay advance."""
    last = {(tile["begin_i"], tile["begin_k"]): tile["advance_a"] for tile in tiles}
    return [tile | {"advance_a": last[tile["begin_i"], tile["begin_k"]]} for tile in tiles]


def lines_between(matrix: Any, segments: list[tuple[int, int]], lanes: int) -> int:
    """Lines that hold these element ranges, each counted once."""
    return len({at // lanes for begin, end in segments for at in range(begin, end)})


def segments_of(matrix: Any, tile: dict[str, int]) -> list[tuple[int, int]]:
    """(begin, end) of each row's segment in the element array."""
    found = []
    for row in range(tile["begin_i"], tile["begin_i"] + tile["size_i"]):
        low, high = matrix.indptr[row : row + 2]
        begin, end = low + np.searchsorted(
            matrix.indices[low:high], [tile["begin_k"], tile["begin_k"] + tile["size_k"]]
        )
        found.append((int(begin), int(end)))
    return found


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("order", ["ik", "ki"])
@pytest.mark.parametrize("tile_k", [16, 64])
def test_kept_tiles_are_read_once(lanes: int, order: str, tile_k: int) -> None:
    matrix = random_matrix(23, 50, 0.15, seed=tile_k)
    once, _ = run(matrix, walk(matrix, 9, tile_k, order, 1), lanes, seed=1)
    again, seen = run(matrix, stay(walk(matrix, 9, tile_k, order, 3)), lanes, seed=2, kept=120)
    assert again.beats_read == once.beats_read and again.beats_written == once.beats_written
    assert set(seen["bumped"]) == {0} and set(seen["bumped_uses"]) == {0}
    assert sum(seen["resident_uses"]) == 3 * matrix.nnz
    for tile, occupied in zip(walk(matrix, 9, tile_k, order, 1), seen["occupied"], strict=True):
        elements = sum(end - begin for begin, end in segments_of(matrix, tile))
        assert occupied == -(-tile["size_i"] // lanes) + -(-elements // lanes)


@pytest.mark.parametrize(("lanes", "tile_k", "kept"), [(2, 20, 12), (2, 64, 8), (8, 20, 5), (8, 64, 20)])
def test_rows_that_do_not_fit_come_from_memory_at_each_visit(lanes: int, tile_k: int, kept: int) -> None:
    """Each line with an element of a bumped row is read once a visit, neighbours sharing it, whatever the timing."""
    matrix = random_matrix(12, 60, 0.6 if lanes == 8 else 0.3, seed=21)
    tiles = stay(walk(matrix, 12, tile_k, "ik", 2))
    loads, _ = run(matrix, walk(matrix, 12, tile_k, "ik", 1), lanes, seed=4)
    for hurry in (0.4, 1.0):
        memory, seen = run(matrix, tiles, lanes, seed=5, hurry=hurry, kept=kept)
        load_lines, use_lines = 0, 0
        for at, tile in enumerate(tiles[::2]):
            segments = segments_of(matrix, tile)
            room = lanes * (kept - -(-12 // lanes))
            held = int(np.searchsorted(np.cumsum([end - begin for begin, end in segments]), room, side="right"))
            bumped = sum(end - begin for begin, end in segments[held:])
            assert seen["bumped"][at] == bumped > 0
            assert seen["bumped_uses"][2 * at : 2 * at + 2] == [bumped] * 2
            use_lines += 2 * lines_between(matrix, segments[held:], lanes)
            load_lines += lines_between(matrix, segments[:held], lanes)
        if tile_k < 60:  # where scanned segments end shows only when they are read, bumped or not
            load_lines = loads.beats_read[2]
            assert memory.beats_read[3] == loads.beats_read[3]
        assert memory.beats_read[2] == load_lines + use_lines


def test_no_row_fits() -> None:
    matrix = random_matrix(9, 40, 0.4, seed=22)
    _, seen = run(matrix, walk(matrix, 9, 40, "ik", 2), 2, seed=6, kept=6)
    assert seen["resident_uses"] == [0, 0] and seen["bumped_uses"] == [matrix.nnz] * 2


def test_carried_tiles_leave_the_kept_one_in_place() -> None:
    matrix = random_matrix(10, 40, 0.4, seed=23)
    tiles = [dict(tile) for tile in stay(walk(matrix, 5, 10, "ki", 3))]
    for at in range(1, len(tiles), 3):
        tiles[at]["carry"] = 1
    _, seen = run(matrix, tiles, 2, seed=7, kept=30)
    assert len(seen["bumped"]) == len(tiles) // 3


def test_kept_empty_rows_and_long_rows() -> None:
    sparse = sp.csr_array(([7, 9], ([0, 40], [0, 99])), shape=(80, 100), dtype=np.int64)
    run(sparse, walk(sparse, 80, 100, "ik", 2), 2, seed=8, kept=42)
    run(sparse, stay(walk(sparse, 80, 30, "ki", 2)), 2, seed=8, kept=42)
    dense = random_matrix(3, 400, 0.8, seed=24)
    run(dense, stay(walk(dense, 3, 100, "ik", 2)), 2, seed=9, kept=90)
    run(dense, walk(dense, 3, 400, "ik", 2), 8, seed=10, kept=128)
