"""Controller and tuning unit together against the model's walk: every tile, every change of shape.

And against what ``verif/benches/walk.py`` says by the contract alone: tiles of whatever sides are all of the product, once.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from amaranth.hdl import Module
from amaranth.sim import Simulator

from rtl.tiling.controller import TilingController
from rtl.tiling.loop_order import ORDERS
from rtl.tiling.tuning import TuningUnit
from sw.formats.csr import Csr
from sw.golden.partition import Partition
from sw.golden.tuning import cells, quadrants, tile_grid
from sw.model.walk import TileWalk, Tuning
from tests.rtl.accessor.clients import ClientMemory, patient
from tests.rtl.tiling.test_controller import record
from verif.benches.walk import ShapedWalk

A_MAP, B_MAP = 0x100, 0x800
LANES = 2
WIDTH = 9
Triple = tuple[int, int, int]


def csr(matrix: Any) -> Csr:
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    return Csr.from_scipy(matrix, np.ones(matrix.nnz, np.uint32), "int32")


def operands(seed: int, extent: Triple) -> tuple[Csr, Csr]:
    """A evenly sparse, B with dense, sparse and empty regions."""
    rng = np.random.default_rng(seed)
    rows, columns, inner = extent
    dense = np.kron(rng.choice([0.0, 0.02, 0.2, 0.8], (4, 4)), np.ones((-(-inner // 4), -(-columns // 4))))
    b = rng.random((inner, columns)) < dense[:inner, :columns]
    return csr(sp.random_array((rows, inner), density=0.1, rng=rng)), csr(b)


def run(seed: int, extent: Triple, tile: Triple, order: str, lines: int, maps: bool = True) -> int:
    """Compares tile by tile; returns how often the shape changed."""
    a, b = operands(seed, extent)
    partition = Partition(lines=lines, fifo_lines=4, lanes=LANES)
    grid_j, grid_k = (tile_grid(tile[r], extent[r]) for r in (1, 2))
    tile = (tile[0], grid_j.start, grid_k.start)
    occupied = cells(a, tile[0], grid_k.grain), cells(b, grid_k.grain, grid_j.grain)
    memory = ClientMemory(0x1000, 8 * LANES, seed=1)
    for address, flags in zip((A_MAP, B_MAP), occupied, strict=True):
        memory.store(address, np.packbits(flags.ravel(), bitorder="little"))
    if not maps:
        for flags in occupied:
            flags[:] = True
    judge = ShapedWalk(extent, tile[0], order, *(operand.to_scipy().toarray() != 0 for operand in (a, b)))
    tuning = Tuning(grain_j=grid_j.grain, grain_k=grid_k.grain, partition=partition)
    walk = TileWalk(extent, tile, order, *occupied, line_bits=64 * LANES, tuning=tuning)
    m = Module()
    m.submodules.dut = dut = TilingController(lanes=LANES, address_width=40, tuning=True)
    m.submodules.unit = unit = TuningUnit(lanes=LANES, line_address_width=WIDTH)
    m.d.comb += [
        unit.start.eq(dut.decide),
        unit.side_j.eq(dut.side[1]),
        unit.side_k.eq(dut.side[2]),
        unit.extent_j.eq(extent[1]),
        unit.extent_k.eq(extent[2]),
        unit.movable.eq(dut.movable),
        unit.halvable.eq(dut.halvable),
        unit.lines.eq(lines),
        unit.fifo_lines.eq(4),
        dut.decided.eq(unit.done),
        dut.change.eq(unit.change),
    ]
    sim = Simulator(m)
    sim.add_clock(1e-8)
    for n in range(2):
        sim.add_testbench(memory.reader(dut.read_request[n], dut.read_data[n], n), background=True)
    adjusted = 0

    async def count(ctx: Any) -> None:
        nonlocal adjusted
        while True:
            _, _, event = await ctx.tick().sample(dut.event_adjust)
            adjusted += event

    sim.add_testbench(count, background=True)

    async def bench(ctx: Any) -> None:
        config = {
            "extent": list(extent),
            "tile": list(tile),
            "tiles": [-(-extent[0] // tile[0]), -(-extent[1] // grid_j.grain), -(-extent[2] // grid_k.grain)],
            "order": ORDERS.index(order),
            "a_map": A_MAP if maps else 0,
            "b_map": B_MAP if maps else 0,
        }
        ctx.set(dut.settings, config)
        ctx.set(dut.tune, {"enable": 1, "level": [grid_j.level, grid_k.level]})
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        in_place = None
        for number, want in enumerate(walk):
            for _ in patient(20_000):
                go = memory.random.random() < 0.7
                ctx.set(dut.tiles.ready, go)
                _, _, valid, got = await ctx.tick().sample(dut.tiles.valid, dut.tiles.payload)
                if valid and go:
                    break
            ctx.set(dut.tiles.ready, 0)
            seen = {
                "i": got.begin_i, "j": got.begin_j, "k": got.begin_k,
                "size_i": got.size_i, "size_j": got.size_j, "size_k": got.size_k,
                "carry": bool(got.carry), "partial_in": bool(got.partial_in), "k_step": bool(got.k_step),
                "from_pointers_a": bool(got.from_pointers_a), "from_pointers_b": bool(got.from_pointers_b),
                "last_k": bool(got.last_k), "advance_a": bool(got.advance_a), "advance_b": bool(got.advance_b),
                "whole_j": bool(got.whole_j), "whole_k": bool(got.whole_k),
            }  # fmt: skip
            assert seen == {name: getattr(want, name) for name in seen}, f"tile {number}"
            assert got.last_j == (want.j + want.size_j == extent[1]), f"tile {number}"
            assert judge.check(record(got)) == [], f"tile {number}"
            tiles_i = -(-extent[0] // tile[0])
            assert got.position_index == want.index_j * (extent[0] + tiles_i) + want.i + want.index_i
            place = (want.j, want.size_j, want.k, want.size_k)
            loads = not want.carry and place != in_place
            if loads:
                in_place = place
                counts = quadrants(
                    b,
                    (want.k, want.k + (walk.shape[2] >> 1), want.k + want.size_k),
                    (want.j, want.j + (walk.shape[1] >> 1), want.j + want.size_j),
                )
                ctx.set(unit.counts, counts)
                walk.loaded(counts)
            await ctx.tick().repeat(memory.random.randint(1, 20))
            ctx.set(dut.placed, 1)
            ctx.set(dut.loaded, loads)
            await ctx.tick()
            ctx.set(dut.placed, 0)
            ctx.set(dut.loaded, 0)
        assert got.last and judge.end() == []
        assert ctx.get(dut.walked_j) == walk.tiles[1]

    sim.add_testbench(bench)
    sim.run()
    assert adjusted == len(walk.adjustments)
    if maps:
        assert {"A": memory.beats_read.get(0, 0), "B": memory.beats_read.get(1, 0)} == walk.map_lines
    return adjusted


@pytest.mark.parametrize("order", ORDERS)
def test_every_order(order: str) -> None:
    """Static schedules right and wrong by two and four in each dimension, i cut and not."""
    changes = 0
    for n, tile in enumerate(((15, 8, 8), (6, 16, 8), (15, 2, 8), (6, 8, 32), (15, 30, 3), (6, 25, 35))):
        changes += run(n, (15, 30, 35), tile, order, (20, 40, 110)[n % 3])
    assert changes > 0


@pytest.mark.parametrize("order", ["ijk", "kji"])
def test_without_maps(order: str) -> None:
    run(3, (10, 20, 25), (7, 10, 9), order, 30, maps=False)


@pytest.mark.parametrize("order", ORDERS)
def test_small_shapes(order: str) -> None:
    for extent, tile in (((1, 1, 1), (1, 1, 1)), ((3, 4, 5), (1, 1, 1)), ((2, 9, 3), (2, 3, 3))):
        run(5, extent, tile, order, 12)
