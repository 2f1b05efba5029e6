"""Gustavson processing element against its golden model, bit for bit. Fits any build.

Testplan: ``verif/testplans/gustavson_pe.toml``.
"""

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.leaf_lines import leaf_slots
from sw.golden.arithmetic import in_slots
from sw.golden.pe import JobLeaf, merge_job
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

MEMORY_LINES = 1 << 20  # lines of memory are numbered from here
CORNERS = (0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF)
coverage = Coverage("gustavson_pe")


class FetchAgent:
    """Answers fetch requests in order, a line at a time, after a while; lines are those of an :class:`SramAgent`."""

    def __init__(self, bench: "PeBench", pause: str) -> None:
        self.bench = bench
        self.due: deque[tuple[int, int]] = deque()
        self.layout = bench.block.layout("fetch_response")
        self.pauses = bench.pattern(pause, "fetch response")()
        self.breaches: list[str] = []
        self.handle = bench.dut.fetch_response
        self.handle.value = 0

    def asked(self, item: dict[str, int]) -> None:
        if not 1 <= item["lines"] <= max(1, self.bench.line_slots(item["leaf"]) // 2):
            self.breaches.append(f"fetch_request of {item['lines']} lines")
        first = item["position"] // self.bench.lanes
        self.due.extend((item["leaf"], first + n) for n in range(item["lines"]))

    def start(self) -> None:
        cocotb.start_soon(self._run())

    def resume(self) -> None:
        """Nothing to do: the task goes on."""

    def stop(self) -> None:
        self.due.clear()

    async def _run(self) -> None:
        while True:
            answer = 0
            if self.due and not next(self.pauses):
                leaf, number = self.due.popleft()
                line = sum(lane << 64 * n for n, lane in enumerate(self.bench.sram.line(number)))
                answer = self.layout.pack({"valid": 1, "leaf": leaf, "line": line})
            self.handle.value = answer
            await RisingEdge(self.bench.dut.clk)


class PeBench(StreamBench):
    """Sends jobs whose segments lie in SRAM or memory; the golden PE gives the fiber of each job."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["leaves"],
            receive=["fiber", "fetch_request"],
            idle=idle,
            backpressure=backpressure,
            seed=seed,
            limit=60_000,
        )
        parameters = self.block.parameters
        self.lanes, self.radix = int(parameters["lanes"]), int(parameters["radix"])
        self.value = str(parameters["value"])
        self.leaf_lines = int(parameters["leaf_lines"])
        self.sram = SramAgent(dut, self.block, self.lanes)
        self.sram.reader("sram_request", "sram_response", self.pattern(backpressure, "sram"))
        self.fetch = FetchAgent(self, backpressure)
        self.helpers = [self.sram, self.fetch]
        self.places = {"sram": 0, "memory": MEMORY_LINES * self.lanes}
        self.forget()

    def line_slots(self, leaf: int) -> int:
        """Line slots of leaf number ``leaf``."""
        return leaf_slots(self.leaf_lines, leaf)

    def forget(self) -> None:
        self.golden: deque[Any] = deque()
        self.fiber: list[tuple[int, int]] = []
        self.macs = self.wanted_macs = self.merged = self.wanted_merged = 0
        self.places["sram"] = 0

    def bits(self) -> int:
        bits = self.rng.choice(CORNERS)
        if not self.value.startswith("int") and self.rng.random() < 0.9:
            bits = int(np.float32(self.rng.uniform(-4, 4)).view(np.uint32))
        else:
            coverage.hit("corner_value")
        return int(in_slots(np.array(bits, np.uint32), self.value))

    def job(self, leaves: list[list[int]]) -> None:
        """Queue a job; each leaf is the list of its coordinates."""
        golden = []
        for number, coordinates in enumerate(leaves):
            unit, in_memory = self.rng.random() < 0.2, self.rng.random() < 0.4
            values = [self.bits() for _ in coordinates]
            weight = self.bits()
            position = self._place("memory" if in_memory else "sram", coordinates, values)
            self.send(
                "leaves",
                {
                    "in_memory": int(in_memory),
                    "unit": int(unit),
                    "last": int(number == len(leaves) - 1),
                    "position": position,
                    "length": len(coordinates),
                    "weight": weight,
                },
            )
            words = np.array(coordinates, np.uint32), np.array(values, np.uint32)
            golden.append(JobLeaf(*words, None if unit else weight))
            self.wanted_macs += 0 if unit else len(coordinates)
            self.wanted_merged += len(coordinates)
            coverage.hit("unit", unit)
            coverage.hit("in_memory" if in_memory else "in_sram")
            coverage.hit("long_leaf", len(coordinates) > self.lanes * self.line_slots(number))
            coverage.hit("largest_coordinate", 0xFFFFFFFF in coordinates)
        coverage.hit("empty_job", not leaves[0])
        coverage.hit("one_leaf", len(leaves) == 1)
        coverage.hit("all_leaves", len(leaves) == self.radix)
        coverage.hit("equal_coordinates", len(leaves) > 2 and all(leaf == leaves[0] for leaf in leaves))
        self.golden.append(merge_job(golden, self.radix, self.value))

    def _place(self, where: str, coordinates: list[int], values: list[int]) -> int:
        position = self.places[where] + self.rng.randrange(self.lanes)
        for n, (coordinate, value) in enumerate(zip(coordinates, values, strict=True)):
            line, lane = divmod(position + n, self.lanes)
            self.sram.line(line)[lane] = coordinate | value << 32
        self.places[where] = position + len(coordinates)
        return position

    def jobs(self, count: int) -> None:
        """Jobs of every kind."""
        rng = self.rng
        for _ in range(count):
            leaves = rng.choice([1, 2, self.radix, rng.randint(1, self.radix)])
            kind = rng.randrange(5)
            if kind == 0:
                self.job([[]])
            elif kind == 1:
                self.job([[rng.choice([0, 5, 0xFFFFFFFF])]] * leaves)
            elif kind == 2:
                capacity = self.lanes * self.line_slots(0)
                fibers = [[rng.randrange(99)] for _ in range(leaves)]
                fibers[rng.randrange(leaves)] = sorted(rng.sample(range(5 * capacity), 2 * capacity))
                self.job(fibers)
            else:
                span = rng.choice([20, 1 << 32])
                self.job([sorted(rng.sample(range(span), rng.randint(1, 8))) for _ in range(leaves)])

    def taken(self, port: str, item: Any) -> None:
        if item["last"]:
            coordinates, values = self.golden.popleft()
            self.board.expect("fiber", list(zip(coordinates.tolist(), values.tolist(), strict=True)))

    def came(self, port: str, item: Any) -> None:
        if port == "fetch_request":
            self.fetch.asked(item)
            return
        if item["count"] < self.lanes and not item["last"]:
            self.board.fail("a word that is not full does not end its fiber")
        self.fiber += [(lane["coordinate"], lane["value"]) for lane in item["line"][: item["count"]]]
        if item["last"]:
            self.board.observe("fiber", self.fiber)
            self.fiber = []
        if not int(self.dut.busy.value):
            self.board.fail("busy is low while a word leaves")

    def every_cycle(self) -> None:
        self.macs += int(self.dut.event_mac.value)
        self.merged += int(self.dut.event_merged.value)
        coverage.hit("output_full", bool(int(self.dut.event_stall_output.value)))
        coverage.hit("input_waits", bool(int(self.dut.event_stall_input.value)))

    async def finish(self) -> None:
        await self.settle()
        assert not int(self.dut.busy.value) and not self.fiber
        assert self.macs == self.wanted_macs, f"{self.macs} products, expected {self.wanted_macs}"
        assert self.merged == self.wanted_merged, f"{self.merged} nonzeros merged, expected {self.wanted_merged}"


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(
    (("idle", "backpressure"), [("none", "none"), ("random", "none"), ("none", "random"), ("fourth", "fourth")])
)
async def fibers_are_golden(dut: Any, idle: str, backpressure: str) -> None:
    """Jobs of every kind, back to back: each fiber is the golden one, bit for bit, with any surroundings."""
    assert {idle, backpressure} <= set(PATTERN_NAMES)
    bench = PeBench(dut, idle, backpressure)
    await bench.start()
    bench.jobs(25)
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(after=[7, 60, 200])
async def reset_in_the_middle(dut: Any, after: int) -> None:
    """A reset at any moment: nothing of the jobs before appears, the jobs after are right."""
    bench = PeBench(dut, "none", "fourth", seed=after)
    await bench.start()
    bench.jobs(20)
    await bench.cycles(after)
    coverage.hit("reset", bool(int(dut.busy.value)))
    await bench.restart()
    bench.forget()
    bench.jobs(12)
    await bench.finish()
    coverage.save()
