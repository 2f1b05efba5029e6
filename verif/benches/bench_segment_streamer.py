"""Segment streamer over an SRAM: streamed leaves stay in the SRAM until their row has ended.

Testplan: ``verif/testplans/segment_streamer.toml``.
"""

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.leaf_lines import short_leaf_lines
from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

BASE, ELEMENTS, LONGEST = 10, 2048, 24
coverage = Coverage("segment_streamer")


class StreamerBench(StreamBench):
    """Leaves in and out, in order; rows end in order, some time after their last leaf was taken."""

    def __init__(self, dut: Any, lines: int, idle: str = "none", backpressure: str = "none", units: int = 0) -> None:
        zero = ("base", "lines", "units", "origin", "row_done")
        super().__init__(
            dut, drive=["leaves"], receive=["streamed"], idle=idle, backpressure=backpressure, zero=zero, seed=lines
        )
        self.lanes = int(self.block.parameters["lanes"])
        self.lines, self.units = lines, units
        self.memory = ClientMemory(dut, self.block, 8 * ELEMENTS, 8 * self.lanes)
        grant, data = self.pattern(backpressure, "grant"), self.pattern(backpressure, "data")
        self.memory.reader("read_request", "read_data", grant, data)
        self.words = np.random.default_rng(1).integers(0, 1 << 63, ELEMENTS, dtype=np.uint64)
        self.memory.store(0, self.words)
        self.sram = SramAgent(dut, self.block, self.lanes)
        self.sram.writer("sram_write", self.pattern(backpressure, "sram"))
        self.helpers = [self.memory, self.sram]
        self.row: list[tuple[int, dict[str, Any]]] = []
        self.rows: deque[list[tuple[int, dict[str, Any]]]] = deque()
        self.waiting: deque[dict[str, Any]] = deque()
        self.beats = self.rows_left = 0
        self.short = short_leaf_lines(int(self.block.parameters["leaf_lines"]))
        self.cycle, self.found_none = (
            0,
            -3,
        )  # this one, and that in which a leaf of the row came that had found no lines
        self.pause = self.pattern(idle, "rows")()

    async def start(self) -> None:
        await super().start()
        self.configure()
        cocotb.start_soon(self._end_rows())

    def configure(self) -> None:
        self.dut.base.value, self.dut.lines.value, self.dut.units.value = BASE, self.lines, self.units

    def give(self, rows: int, leaves: int) -> None:
        rng = self.rng
        for _ in range(rows):
            count = rng.randint(1, leaves)
            self.rows_left += 1
            for n in range(count):
                kind = rng.choices(("bumped", "resident", "unit", "absent", "empty"), (8, 1, 1, 1, 1))[0]
                length = rng.randint(1, LONGEST) if kind not in ("absent", "empty") else 0
                leaf = {
                    "in_memory": int(kind in ("bumped", "unit", "empty")),
                    "unit": int(kind == "unit"),
                    "last": int(n == count - 1),
                    "position": rng.randrange(ELEMENTS - LONGEST),
                    "length": length,
                    "weight": rng.getrandbits(32),
                }
                self.send("leaves", {"present": int(kind not in ("absent", "empty")), "leaf": leaf})

    def covered(self, leaf: dict[str, Any]) -> int:
        return -(-(leaf["position"] + leaf["length"]) // self.lanes) - leaf["position"] // self.lanes

    def taken(self, port: str, item: Any) -> None:
        self.waiting.append(item)

    def came(self, port: str, item: Any) -> None:
        if not self.waiting:
            self.board.fail("a leaf too many")
            return
        sent = self.waiting.popleft()
        leaf, found = sent["leaf"], item["leaf"]
        for name in ("length", "last", "unit", "weight") if sent["present"] else ("last",):
            if leaf[name] != found[name]:
                self.board.fail(f"{name} of {leaf} became {found[name]}")
        may = bool(sent["present"] and leaf["in_memory"] and (self.units or not leaf["unit"]))
        streamed = may and not found["in_memory"]
        if streamed:
            first, lines = found["position"] // self.lanes, self.covered(leaf)
            self.beats += lines
            self.row.append((leaf["position"], found))
            if not (BASE <= first and first + lines <= BASE + self.lines):
                self.board.fail(f"{found} lies outside the region")
            self.compare(leaf["position"], found)
        elif sent["present"] and (found["position"], found["in_memory"]) != (leaf["position"], leaf["in_memory"]):
            self.board.fail(f"{leaf} went on as {found}")
        coverage.hit("streamed", streamed)
        coverage.hit("too_long", may and not streamed and self.covered(leaf) > self.lines)
        coverage.hit("no_room", may and not streamed and self.covered(leaf) <= self.lines)
        found_none = may and not streamed and self.covered(leaf) <= self.lines and not self.row
        soon = self.cycle - self.found_none <= 2
        coverage.hit("short", found_none and soon and self.covered(leaf) <= self.short)
        self.found_none = self.cycle if found_none and not leaf["last"] else -3
        coverage.hit("resident", bool(sent["present"]) and not leaf["in_memory"])
        coverage.hit("absent", not sent["present"])
        coverage.hit("unit_streamed", streamed and bool(leaf["unit"]))
        coverage.hit("unit_passed", bool(leaf["unit"]) and not may)
        coverage.hit("unaligned", streamed and leaf["position"] % self.lanes != 0)
        if leaf["last"]:
            self.rows.append(self.row)
            self.row = []

    def compare(self, position: int, found: dict[str, Any]) -> None:
        """Every nonzero of a streamed leaf is that of memory."""
        for n in range(found["length"]):
            if self.sram.nonzero(found["position"] + n) != int(self.words[position + n]):
                self.board.fail(f"element {n} of {found} was overwritten")
                return

    def every_cycle(self) -> None:
        self.cycle += 1
        coverage.hit("full", int(self.dut.occupied.value) == self.lines > 0)
        coverage.hit("stall", bool(self.dut.event_stall.value))

    async def _end_rows(self) -> None:
        while True:
            for _ in range(self.rng.choice((1, 3, 30))):
                await RisingEdge(self.dut.clk)
            if self.rows and not next(self.pause):
                coverage.hit("rows_open", len(self.rows) > 1)
                for position, found in self.rows.popleft():
                    self.compare(position, found)
                self.rows_left -= 1
                self.dut.row_done.value = 1
                await RisingEdge(self.dut.clk)
                self.dut.row_done.value = 0

    async def finish(self) -> None:
        await self.wait(lambda: not self.rows_left and self.settled(), "rows did not end")
        await self.settle()
        assert int(self.dut.idle.value) and not int(self.dut.occupied.value)
        assert self.memory.beats["read_request"] == self.beats, "lines are read once, those that cover a leaf"


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(lines=[0, 1, 5, 16, 50], backpressure=PATTERN_NAMES)
async def leaves_of_any_length(dut: Any, lines: int, backpressure: str) -> None:
    """From no region to one in which all fits; every leaf goes on in order, as it was or from the region."""
    bench = StreamerBench(dut, lines, "none" if lines % 2 else "random", backpressure)
    await bench.start()
    bench.give(40, 6)
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def unit_leaves_are_streamed_too(dut: Any) -> None:
    """With ``units`` partial fibers of C go through the region."""
    bench = StreamerBench(dut, 20, units=1)
    await bench.start()
    bench.give(40, 4)
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops rows, lines and leaves in flight; the run after it finds the region empty."""
    bench = StreamerBench(dut, 12, "none", "random")
    await bench.start()
    bench.give(12, 4)
    await bench.cycles(120)
    coverage.hit("reset", int(dut.occupied.value) > 0 and not int(dut.idle.value))
    bench.rows.clear()
    bench.row, bench.rows_left = [], 0
    bench.waiting.clear()
    await bench.restart(4)
    bench.rows.clear()
    bench.waiting.clear()
    bench.row, bench.rows_left, bench.beats = [], 0, 0
    bench.memory.beats["read_request"] = 0
    await bench.cycles(1)
    assert not int(dut.occupied.value) and int(dut.idle.value)
    bench.give(12, 4)
    await bench.finish()
    coverage.save()
