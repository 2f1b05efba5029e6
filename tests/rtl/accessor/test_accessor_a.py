# amaranth: UnusedElaboratable=no
"""Accessor A against slices of a SciPy matrix: whole rows, scanned segments, positions, empty tiles, any lanes."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from amaranth.sim import Simulator

from rtl.accessor.a import AccessorA

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


def run(matrix: Any, tiles: list[dict[str, int]], lanes: int, seed: int, hurry: float = 0.7) -> ClientMemory:
    dut = AccessorA(lanes=lanes, address_width=40, burst_beats=16)
    memory = ClientMemory(0x10000 + 8 * matrix.nnz + 4096, 8 * lanes, seed=seed, hurry=hurry)
    memory.store(POINTERS, matrix.indptr.astype(np.uint32))
    memory.store(ELEMENTS, elements_of(matrix))
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    for n in range(4):
        sim.add_testbench(memory.reader(dut.read_request[n], dut.read_data[n], n), background=True)
    sim.add_testbench(memory.writer(dut.write_request, dut.write_data, 4), background=True)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.pointers, POINTERS)
        ctx.set(dut.positions, POSITIONS)
        ctx.set(dut.elements, ELEMENTS)
        for tile in tiles:
            ctx.set(dut.tile.payload, tile)
            ctx.set(dut.tile.valid, 1)
            for _ in patient(5000):
                if (await ctx.tick().sample(dut.tile.ready))[2]:
                    break
            ctx.set(dut.tile.valid, 0)
            for row, inside in enumerate(expected(matrix, tile)):
                got: list[tuple[int, int]] = []
                for _ in patient(20000):
                    go = memory.random.random() < hurry
                    ctx.set(dut.selections.ready, go)
                    _, _, valid, item = await ctx.tick().sample(dut.selections.valid, dut.selections.payload)
                    if valid and go:
                        if item.present:
                            got.append((item.index, item.weight))
                        if item.last:
                            break
                assert got == inside, f"row {row} of {tile}"
            ctx.set(dut.selections.ready, 0)
        for _ in patient(1000):
            if (await ctx.tick().sample(dut.idle))[2]:
                break

    sim.add_testbench(bench)
    sim.run()
    return memory


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


def test_carried_tiles_give_empty_rows() -> None:
    matrix = random_matrix(6, 20, 0.5, seed=8)
    tiles = walk(matrix, 3, 20, "ik", 1)
    tiles[0]["carry"] = 1
    run(matrix, tiles, 2, seed=9)


def test_empty_rows_and_one_element_rows() -> None:
    matrix = sp.csr_array(([7, 9], ([0, 40], [0, 99])), shape=(80, 100), dtype=np.int64)
    run(matrix, walk(matrix, 80, 100, "ik", 1) + walk(matrix, 80, 30, "ki", 1), 2, seed=10)


def test_whole_rows_are_read_once() -> None:
    """A run of whole rows costs the beats that hold it and the pointers, whatever the timing."""
    matrix = random_matrix(40, 64, 0.2, seed=11)
    for hurry in (0.2, 0.9):
        memory = run(matrix, walk(matrix, 40, 64, "ik", 1), 2, seed=12, hurry=hurry)
        assert memory.beats_read[2] == -(-matrix.nnz // 2)
        assert memory.beats_read[0] == -(-41 // 4)
        assert 3 not in memory.beats_read and 4 not in memory.beats_written
