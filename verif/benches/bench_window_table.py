"""Window table against the table in memory. Testplan: ``verif/testplans/window_table.toml``."""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.client_memory import ClientMemory
from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES, pattern
from verif.clocking import begin, reset
from verif.coverage import Coverage

TABLE, MEMORY_BYTES, LIMIT = 0x100, 0x1000, 4000
ENTRIES, ENTRY_BYTES = 100, 16
# Bits of each field of an entry, from the lowest one on.
FIELDS = {"begin": 32, "line": 16, "lines": 16, "size": 24, "kept": 23, "early": 1, "metadata": 16}
AT_HAND = 3  # cycles of an answer from the beat that is held
coverage = Coverage("window_table")


class TableBench:
    """Asks for windows; counts the beats that the block reads."""

    def __init__(self, dut: Any, pause: str = "none") -> None:
        block = described()
        self.dut = dut
        self.line_bytes = 8 * int(block.parameters["lanes"])
        self.in_beat = self.line_bytes // ENTRY_BYTES  # windows
        self.layout = block.layout("window")
        self.rng = random.Random(f"{block.module} {pause}")
        self.memory = ClientMemory(dut, block, MEMORY_BYTES, self.line_bytes)
        self.memory.reader("read_request", "read_data", pattern(pause, "grant"), pattern(pause, "data"))
        self.fill()
        self.kept_beat, self.beats = -1, 0

    def fill(self) -> None:
        """Another table at the same place."""
        self.windows: list[dict[str, int]] = []
        entries = b""
        for _ in range(ENTRIES):
            # All ones or all zeros now and then, and else any field may be.
            ends = self.rng.choice([(0,), (1,), (0, 1, 2), (2,)])
            window, bits, at = {}, 0, 0
            for name, width in FIELDS.items():
                window[name] = self.rng.choice([[0, 2**width - 1, self.rng.getrandbits(width)][n] for n in ends])
                bits |= window[name] << at
                at += width
            self.windows.append(window)
            entries += bits.to_bytes(ENTRY_BYTES, "little")
        self.memory.store(TABLE, np.frombuffer(entries, np.uint8))

    async def start(self) -> None:
        await begin(self.dut, zero=("table_address", "index", "ask", "clear"))
        self.memory.start()
        self.dut.table_address.value = TABLE

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
        self.kept_beat, self.beats = -1, self.memory.beats["read_request"]

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
        beat, window = index // self.in_beat, self.windows[index]
        kept = beat == self.kept_beat and "clear" not in also
        if not kept:
            self.kept_beat, self.beats = beat, self.beats + 1
        await self.pulse("ask", *also)
        found, cycles = await self.answer()
        assert found == window, f"window {index}"
        assert self.memory.beats["read_request"] == self.beats, "each beat is read once"
        assert (cycles == AT_HAND) == kept, f"{cycles} cycles"
        coverage.hit("kept_beat", kept)
        coverage.hit("other_beat", not kept)
        coverage.hit("empty", not window["size"])
        coverage.hit("largest", all(window[name] == 2**width - 1 for name, width in FIELDS.items()))
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
    assert bench.beats == -(-ENTRIES // bench.in_beat)
    for _ in range(200):
        near = bench.kept_beat * bench.in_beat + bench.rng.randrange(bench.in_beat)
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
        bench.kept_beat = -1
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
