"""Window table against the table in memory. Testplan: ``verif/testplans/window_table.toml``."""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge
from numpy.typing import NDArray

from verif.agents.client_memory import ClientMemory
from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES, pattern
from verif.clocking import begin, reset
from verif.coverage import Coverage

TABLE, MEMORY_BYTES, LIMIT = 0x100, 0x1000, 4000
ENTRIES, TOP = 100, 2**32 - 1
AT_HAND = 3  # cycles of an answer from the beat that is held
coverage = Coverage("window_table")


class TableBench:
    """Asks for windows; counts the beats that the block reads."""

    def __init__(self, dut: Any, pause: str = "none") -> None:
        block = described()
        self.dut = dut
        self.lanes = int(block.parameters["lanes"])
        self.layout = block.layout("window")
        self.rng = random.Random(f"{block.module} {pause}")
        self.memory = ClientMemory(dut, block, MEMORY_BYTES, 8 * self.lanes)
        self.memory.reader("read_request", "read_data", pattern(pause, "grant"), pattern(pause, "data"))
        self.fill()
        self.held, self.beats = -1, 0

    def fill(self) -> None:
        """Another table at the same place."""
        values = [self.rng.choice([0, 1, TOP, self.rng.getrandbits(32)]) for _ in range(2 * ENTRIES)]
        self.windows: NDArray[np.uint32] = np.array(values, np.uint32).reshape(-1, 2)
        self.memory.store(TABLE, self.windows)

    async def start(self) -> None:
        await begin(self.dut, zero=("table", "index", "ask", "clear"))
        self.memory.start()
        self.dut.table.value = TABLE

    async def pulse(self, *names: str) -> None:
        for name in names:
            getattr(self.dut, name).value = 1
        await RisingEdge(self.dut.clk)
        for name in names:
            getattr(self.dut, name).value = 0

    async def reset(self) -> None:
        """Together with the memory."""
        self.memory.stop()
        await reset(self.dut)
        self.memory.resume()
        await RisingEdge(self.dut.clk)
        self.held, self.beats = -1, self.memory.beats["read_request"]

    async def answer(self) -> tuple[dict[str, int], int]:
        """The window, and the cycles since the question."""
        for cycles in range(1, LIMIT):
            await ReadOnly()
            done = bool(self.dut.done.value)
            found = self.layout.unpack(int(self.dut.window.value)) if done else {}
            await RisingEdge(self.dut.clk)
            if done:
                return found, cycles
        raise AssertionError("no answer")

    async def ask(self, index: int, *also: str) -> None:
        """``also``: pins of a pulse with the question."""
        self.dut.index.value = index
        kept = index // self.lanes == self.held and "clear" not in also
        if not kept:
            self.held, self.beats = index // self.lanes, self.beats + 1
        await self.pulse("ask", *also)
        found, cycles = await self.answer()
        begins, size = (int(value) for value in self.windows[index])
        assert found == {"begin": begins, "size": size}, f"window {index}"
        assert self.memory.beats["read_request"] == self.beats, "each beat is read once"
        assert (cycles == AT_HAND) == kept, f"{cycles} cycles"
        coverage.hit("kept_beat", kept)
        coverage.hit("other_beat", not kept)
        coverage.hit("empty", not size)
        coverage.hit("largest", size == TOP and begins == TOP)
        coverage.hit("slow", cycles > 30)
        # The answer stays, whatever the index is by now.
        self.dut.index.value = self.rng.randrange(ENTRIES)
        for _ in range(self.rng.randrange(3)):
            assert await self.answer() == (found, 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=PATTERN_NAMES)
async def every_window(dut: Any, pause: str) -> None:
    """In order, as the controller asks, then in any; beats are read once while they are held."""
    bench = TableBench(dut, pause)
    await bench.start()
    for index in range(ENTRIES):
        await bench.ask(index)
    assert bench.beats == -(-ENTRIES // bench.lanes)
    for _ in range(200):
        near = bench.held * bench.lanes + bench.rng.randrange(bench.lanes)
        await bench.ask(bench.rng.choice([bench.rng.randrange(ENTRIES), min(near, ENTRIES - 1)]))
    assert not bench.memory.breaches
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgotten_beats(dut: Any) -> None:
    """After a pulse of ``clear``, with the question or before it, memory is read again: it may hold another table."""
    bench = TableBench(dut)
    await bench.start()
    for index in (0, 1, 7, 8, 42):
        await bench.ask(index)
        bench.fill()
        await bench.pulse("clear")
        bench.held = -1
        await bench.ask(index)
        coverage.hit("clear_holding")
        bench.fill()
        await bench.ask(index, "clear")
        coverage.hit("clear_asking")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=["none", "fourth"])
async def reset_in_the_middle(dut: Any, pause: str) -> None:
    """A reset ends a lookup, wherever it is; nothing is held afterwards."""
    bench = TableBench(dut, pause)
    await bench.start()
    for wait in range(14):
        await bench.ask(5)
        bench.dut.index.value = 40
        await bench.pulse("ask")
        for _ in range(wait):
            await RisingEdge(dut.clk)
        await ReadOnly()
        coverage.hit("reset_asking", not int(dut.done.value))
        coverage.hit("reset_holding", bool(int(dut.done.value)))
        await RisingEdge(dut.clk)
        await bench.reset()
        bench.fill()
        await bench.ask(bench.rng.choice([5, 40]))
    coverage.save()
