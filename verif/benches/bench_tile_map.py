"""Tile map against the bits in memory, cell by cell. Testplan: ``verif/testplans/tile_map.toml``.

Fits both builds, of single cells and of rectangles.
"""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.client_memory import ClientMemory
from verif.agents.layouts import described
from verif.agents.pauses import pattern
from verif.clocking import begin, reset
from verif.coverage import Coverage

MAP, MEMORY_BYTES, LIMIT = 0x100, 0x1000, 40_000
HEIGHT, WIDTH = 30, 100
coverage = Coverage("tile_map")


class MapBench:
    """Asks for cells or rectangles; counts the beats that the block reads."""

    def __init__(self, dut: Any, density: float, pause: str) -> None:
        block = described()
        self.dut = dut
        self.ranged = bool(block.parameters["ranged"])
        lanes = int(block.parameters["lanes"])
        self.beat_bits = 64 * lanes
        self.rng = random.Random(f"{block.module} {density} {pause}")
        self.cells = np.random.default_rng(int(1000 * density)).random((HEIGHT, WIDTH)) < density
        self.memory = ClientMemory(dut, block, MEMORY_BYTES, 8 * lanes)
        self.memory.reader("read_request", "read_data", pattern(pause, "grant"), pattern(pause, "data"))
        self.memory.store(MAP, np.packbits(self.cells.ravel(), bitorder="little"))
        self.kept_beat, self.beats = -1, 0

    async def start(self) -> None:
        await begin(
            self.dut, zero=("map", "index", "ask", "clear", *(("rows", "columns", "stride") if self.ranged else ()))
        )
        self.memory.start()
        self.dut.map.value = MAP
        if self.ranged:
            self.dut.stride.value = WIDTH

    async def pulse(self, name: str) -> None:
        getattr(self.dut, name).value = 1
        await RisingEdge(self.dut.clk)
        getattr(self.dut, name).value = 0

    async def answer(self) -> tuple[bool, bool]:
        """Whether there is a map, and the bit."""
        for _ in range(LIMIT):
            await ReadOnly()
            done = bool(self.dut.done.value)
            found = bool(self.dut.known.value), bool(self.dut.occupied.value)
            await RisingEdge(self.dut.clk)
            if done:
                return found
        raise AssertionError("no answer")

    def rectangle(self) -> tuple[int, int, int, int]:
        row, column = self.rng.randrange(HEIGHT), self.rng.randrange(WIDTH)
        if not self.ranged:
            return row, column, 1, 1
        return row, column, self.rng.randint(1, HEIGHT - row), self.rng.randint(1, WIDTH - column)

    async def ask(self, row: int, column: int, rows: int, columns: int) -> None:
        self.dut.index.value = row * WIDTH + column
        if self.ranged:
            self.dut.rows.value, self.dut.columns.value = rows, columns
        await self.pulse("ask")
        known, occupied = await self.answer()
        part = self.cells[row : row + rows, column : column + columns]
        assert known and occupied == part.any(), (row, column, rows, columns)
        coverage.hit("set", bool(occupied))
        coverage.hit("clear", not occupied)
        seen = 0
        for at in range(part.size):
            index = (row + at // columns) * WIDTH + column + at % columns
            seen += 1
            coverage.hit("kept_beat", index // self.beat_bits == self.kept_beat)
            if index // self.beat_bits != self.kept_beat:
                self.kept_beat, self.beats = index // self.beat_bits, self.beats + 1
            if part.flat[at]:
                break
        coverage.hit("later_cell", bool(occupied) and seen > 1)
        coverage.hit("several_rows", seen > columns)
        assert self.memory.beats["read_request"] == self.beats, "each beat is read once"


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(density=[0.0, 0.002, 0.02, 0.5], pause=["none", "random"])
async def cells_and_rectangles(dut: Any, density: float, pause: str) -> None:
    """Occupied when one cell is; beats are read once while they are held."""
    bench = MapBench(dut, density, pause)
    await bench.start()
    for _ in range(40):
        await bench.ask(*bench.rectangle())
    assert not bench.memory.breaches
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def without_a_map(dut: Any) -> None:
    """Without a map nothing is read."""
    bench = MapBench(dut, 0.5, "none")
    await bench.start()
    dut.map.value = 0
    for _ in range(5):
        dut.index.value = bench.rng.randrange(3000)
        if bench.ranged:
            dut.rows.value = dut.columns.value = 2
        await bench.pulse("ask")
        known, _ = await bench.answer()
        assert not known and not bench.memory.beats["read_request"]
        coverage.hit("no_map")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgotten_beats(dut: Any) -> None:
    """After a pulse of ``clear``, and after a reset, memory is read again: it may hold another map."""
    bench = MapBench(dut, 0.02, "none")
    await bench.start()
    for name in ("clear", "reset"):
        await bench.ask(3, 4, 1, 1)
        bench.cells = ~bench.cells
        bench.memory.store(MAP, np.packbits(bench.cells.ravel(), bitorder="little"))
        if name == "clear":
            await bench.pulse("clear")
        else:
            bench.memory.stop()
            await reset(dut)
            bench.memory.resume()
            await RisingEdge(dut.clk)
        bench.kept_beat = -1
        coverage.hit(f"{name}_holding")
        await bench.ask(3, 4, 1, 1)
    coverage.save()
