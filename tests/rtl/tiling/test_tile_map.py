"""Tile map: rectangles of cells are looked at row by row until one is set, each beat read once."""

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.tiling.tile_map import TileMap
from tests.rtl.accessor.clients import ClientMemory, patient

LANES = 2
MAP = 0x100


@pytest.mark.parametrize("density", [0.0, 0.002, 0.02, 0.5])
def test_rectangles(density: float) -> None:
    rng = np.random.default_rng(int(1000 * density))
    height, width = 30, 100
    cells = rng.random((height, width)) < density
    memory = ClientMemory(0x1000, 8 * LANES, seed=1)
    memory.store(MAP, np.packbits(cells.ravel(), bitorder="little"))
    dut = TileMap(lanes=LANES, address_width=40, ranged=True)
    held, beats = -1, 0

    async def bench(ctx: Any) -> None:
        nonlocal held, beats
        ctx.set(dut.map, MAP)
        ctx.set(dut.stride, width)
        for _ in range(60):
            row, column = int(rng.integers(0, height)), int(rng.integers(0, width))
            rows, columns = int(rng.integers(1, height - row + 1)), int(rng.integers(1, width - column + 1))
            ctx.set(dut.rows, rows)
            ctx.set(dut.columns, columns)
            ctx.set(dut.index, row * width + column)
            ctx.set(dut.ask, 1)
            await ctx.tick()
            ctx.set(dut.ask, 0)
            for _ in patient(20_000):
                if ctx.get(dut.done):
                    break
                await ctx.tick()
            await ctx.tick()
            part = cells[row : row + rows, column : column + columns]
            assert ctx.get(dut.done) and ctx.get(dut.known)
            assert ctx.get(dut.occupied) == part.any(), (row, column, rows, columns)
            for at in range(part.size):
                index = (row + at // columns) * width + column + at % columns
                if index // (64 * LANES) != held:
                    held, beats = index // (64 * LANES), beats + 1
                if part.flat[at]:
                    break

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(memory.reader(dut.read_request, dut.read_data, 0), background=True)
    sim.add_testbench(bench)
    sim.run()
    assert memory.beats_read.get(0, 0) == beats
