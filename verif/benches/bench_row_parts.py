"""Row parts against the positions that several k steps left in memory. Testplan: ``verif/testplans/row_parts.toml``."""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.client_memory import ClientMemory
from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES, pattern
from verif.agents.stream import StreamMonitor, StreamReceiver
from verif.clocking import begin, reset, wait_until
from verif.coverage import Coverage

POSITIONS, MEMORY_BYTES, LIMIT = 0x1000, 0x8000, 20_000
WORDS_OF_A_STEP = 48
LARGEST = 2**32 - 1
MOST_PARTS = 32  # steps that may have left parts of a row: what the pin says holds no more
AHEAD = 16  # parts that wait
coverage = Coverage("row_parts")

Words = list[list[int] | None]
Part = tuple[int, int]


class PartsBench:
    """Asks for the parts of tiles, and compares what comes with what the positions say."""

    def __init__(self, dut: Any, pause: str = "none", backpressure: str = "none") -> None:
        block = described()
        self.dut = dut
        line_bytes = 8 * int(block.parameters["lanes"])
        self.words = line_bytes // 4  # of a line
        assert MOST_PARTS.bit_length() == len(dut.steps)
        self.stride = WORDS_OF_A_STEP  # whole lines
        self.rng = random.Random(f"{block.module} {pause} {backpressure}")
        self.memory = ClientMemory(dut, block, MEMORY_BYTES, line_bytes)
        self.memory.reader("read_request", "read_data", pattern(pause, "grant"), pattern(pause, "data"))
        layout, self.request = block.layout("partials"), block.layout("read_request")
        self.receiver = StreamReceiver(dut, "partials", dut.clk, pattern(backpressure, "partials"))
        self.breaches: list[str] = []
        self.monitor = StreamMonitor(
            dut, "partials", dut.clk, lambda bits: self.came(layout.unpack(bits)), self.breaches.append, dut.rst
        )
        self.wanted: list[list[Part]] = []
        self.forget()

    def forget(self) -> None:
        """A reset: what was under way is gone."""
        self.seen: list[list[Part]] = []
        self.row: list[Part] = []
        self.lines = self.memory.beats["read_request"]

    async def start(self) -> None:
        await begin(self.dut, zero=("start", "first", "rows", "steps", "stride", "positions"))
        self.memory.start()
        self.receiver.start()
        self.monitor.start()
        cocotb.start_soon(self.watch())

    async def watch(self) -> None:
        """What the pins show: parts that wait, and lines that do."""
        waited = starved = 0
        while True:
            await ReadOnly()
            if int(self.dut.read_request__valid.value):
                address = self.request.unpack(int(self.dut.read_request__payload.value))["address"]
                assert address % self.memory.line_bytes == 0, "lines are asked for by where they begin"
            valid, ready = int(self.dut.partials__valid.value), int(self.dut.partials__ready.value)
            waited = waited + 1 if valid and not ready else 0
            starved = starved + 1 if not valid and not int(self.dut.idle.value) else 0
            coverage.hit("part_waited", waited == 1)
            # Longer than it takes to fill the queue behind it.
            coverage.hit("long_wait", waited == 2 * AHEAD)
            coverage.hit("slow", starved == 40)
            await RisingEdge(self.dut.clk)

    def came(self, fiber: dict[str, int]) -> None:
        assert fiber["in_memory"]
        if fiber["length"]:
            self.row.append((fiber["position"], fiber["length"]))
        else:
            assert not self.row and not fiber["more"], "an empty one stands for a row without parts"
        if not fiber["more"]:
            self.seen.append(self.row)
            self.row = []

    def store(self, rows: int, steps: int, visited: float, first: int, *, large: bool = False) -> Words:
        """Positions of a tile, from 1; those of a step that has not visited it are 0, or what an earlier tile left there."""
        found: Words = []
        for step in range(steps):
            sizes = [self.rng.choice([0, 0, 0, 1, 5, 200]) for _ in range(rows)]
            begin_at = LARGEST - sum(sizes) if large else self.rng.randrange(1, 1000)
            words = [begin_at + sum(sizes[:n]) for n in range(rows + 1)]
            visits = self.rng.random() < visited
            if not visits:
                words = [0, *(self.rng.getrandbits(32) for _ in range(rows))]
            self.memory.store(POSITIONS + 4 * (step * self.stride + first), np.array(words, np.uint32))
            found.append(words if visits else None)
        return found

    def ask(self, rows: int, steps: int, visited: float, *, large: bool = False) -> None:
        """Sets the pins for another tile, which begins with the next pulse of ``start``."""
        first = self.rng.randrange(self.stride - rows)
        found = self.store(rows, steps, visited, first, large=large)
        blocks = -(-(first % self.words + rows + 1) // self.words)
        self.lines += sum(blocks if words else 1 for words in found)
        parts = [
            [(words[row] - 1, words[row + 1] - words[row]) for words in found if words and words[row + 1] > words[row]]
            for row in range(rows)
        ]
        self.wanted = parts
        values = {"first": first, "rows": rows, "steps": steps, "stride": self.stride, "positions": POSITIONS}
        for name, value in values.items():
            getattr(self.dut, name).value = value
        for name, holds in {
            "one_step": steps == 1,
            "all_steps": steps == MOST_PARTS,
            "one_row": rows == 1,
            "step_left_out": any(words is None for words in found) and any(found),
            "no_step": not any(found),
            "row_without_parts": any(not of for of in parts),
            "row_of_all_steps": steps > 1 and any(len(of) == steps for of in parts),
            "begins_in_a_line": first % self.words != 0,
            "several_lines": blocks > 1,
            "end_alone": (first + rows) % self.words == 0,
            "largest": large,
        }.items():
            coverage.hit(name, holds)

    async def pulse(self) -> None:
        self.dut.start.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.start.value = 0

    async def tile(self, rows: int, steps: int, visited: float, *, large: bool = False) -> None:
        """One tile from begin to end."""
        self.seen = []
        await self.pulse()
        self.ask(rows, steps, visited, large=large)
        await ReadOnly()
        assert not int(self.dut.idle.value), "busy from the cycle behind the pulse on"
        await RisingEdge(self.dut.clk)
        await wait_until(self.dut.clk, lambda: int(self.dut.idle.value), limit=LIMIT, what="idle")
        assert self.seen == self.wanted
        assert self.memory.beats["read_request"] == self.lines, (
            "a line of each step, the others of those that have the tile"
        )
        assert self.memory.quiet, "nothing is asked for that nobody waits for"
        assert not [*self.breaches, *self.memory.breaches]


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def parts_in_order(dut: Any, pause: str, backpressure: str) -> None:
    """Tiles in turn, of any rows and steps, at any place of a line."""
    bench = PartsBench(dut, pause, backpressure)
    await bench.start()
    shapes = [(1, 1, 1.0), (1, 3, 0.0), (2, 2, 1.0), (9, 2, 0.5), (5, MOST_PARTS, 0.6), (30, 7, 0.7), (17, 5, 0.0)]
    for rows, steps, visited in shapes:
        await bench.tile(rows, steps, visited)
    await bench.tile(6, 4, 0.8, large=True)
    for _ in range(25):
        await bench.tile(bench.rng.randrange(1, 40), bench.rng.randrange(1, 9), bench.rng.choice([0.3, 0.8, 1.0]))
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_part_in_each_cycle(dut: Any) -> None:
    """Rows of parts of all steps come without a pause once their lines are at hand: one part a cycle, two cycles a line."""
    bench = PartsBench(dut)
    await bench.start()
    rows, steps = bench.words - 1, 4
    came: list[int] = []
    await bench.pulse()
    values = {"first": 0, "rows": rows, "steps": steps, "stride": bench.stride, "positions": POSITIONS}
    for step in range(steps):
        bench.memory.store(POSITIONS + 4 * step * bench.stride, np.arange(1, rows + 2, dtype=np.uint32))
    for name, value in values.items():
        getattr(dut, name).value = value
    for cycle in range(100):
        await ReadOnly()
        if int(dut.partials__valid.value):
            came.append(cycle)
        await RisingEdge(dut.clk)
    assert came == list(range(came[0], came[0] + rows * steps))
    coverage.hit("full_rate")
    coverage.save()


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=["none", "fourth"])
async def reset_in_the_middle(dut: Any, pause: str) -> None:
    """A reset ends a tile wherever it is; the next one begins afresh."""
    bench = PartsBench(dut, pause, "fourth")
    await bench.start()
    for wait in range(0, 90, 3):
        await bench.pulse()
        bench.ask(11, 3, 0.9)
        for _ in range(wait):
            await RisingEdge(dut.clk)
        await ReadOnly()
        coverage.hit("reset_asking", not int(dut.partials__valid.value) and not int(dut.idle.value))
        coverage.hit("reset_with_parts", bool(int(dut.partials__valid.value)))
        await RisingEdge(dut.clk)
        bench.memory.stop()
        bench.receiver.stop()
        await reset(dut)
        bench.memory.resume()
        bench.receiver.start()
        await RisingEdge(dut.clk)
        bench.forget()
        assert int(dut.idle.value)
        await bench.tile(7, 3, 0.7)
    coverage.save()
