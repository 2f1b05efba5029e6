"""Memory fetch against the memory's own lines. Testplan: ``verif/testplans/memory_fetch.toml``."""

from typing import Any

import cocotb

from rtl.leaf_lines import leaf_slots
from verif.agents.client_memory import ClientMemory
from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

MEMORY_BYTES = 1 << 16
REGION_BYTES = 1 << 15  # of other things, before scratch memory
RING_BASE, RING_LINES, KEPT = 20, 50, 42
coverage = Coverage("memory_fetch")


class MemoryFetchBench(StreamBench):
    """PEs request; each request is answered by its lines, in request order, one owner at a time."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        ports = described().streams("requests")
        super().__init__(dut, drive=ports, idle=idle, backpressure=backpressure, seed=seed)
        self.pes = len(ports)
        parameters = self.block.parameters
        self.lanes = int(parameters["lanes"])
        # Half of the slots of a job's first leaves, which have more than the others.
        self.most_lines = max(1, leaf_slots(int(parameters["leaf_lines"]), 0) // 2)
        self.radix = int(parameters["radix"])
        self.line_bytes = 8 * self.lanes
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, self.line_bytes)
        self.memory.bytes[:] = list(self.rng.randbytes(MEMORY_BYTES))
        self.memory.reader(
            "read_request", "read_data", self.pattern(backpressure, "grant"), self.pattern(backpressure, "data")
        )
        self.sram = SramAgent(dut, self.block, self.lanes)
        self.sram.reader("sram_request", "sram_response", self.pattern(backpressure, "sram"))
        for line in range(RING_BASE, RING_BASE + RING_LINES):
            self.sram.lines[line] = [self.rng.getrandbits(64) for _ in range(self.lanes)]
        self.helpers = [self.memory, self.sram]
        self.rows = int(parameters["scratch_slots"])
        self.slot_lines = (MEMORY_BYTES - REGION_BYTES) // self.rows // self.line_bytes
        self.begins = [self.rng.randrange(RING_LINES) for _ in range(self.rows)]
        self.response = self.block.layout("responses__0")
        self.events = {"event_bumped": 0, "event_unit": 0, "event_scratch": 0}
        self.wanted = dict(self.events)
        self.last_owner = -1
        self.idle_cycles = 0  # in a row with a request that is not answered
        self.position_bits = (
            self.block.layout("requests__0").tree["fields"]["position"][1] - (self.rows - 1).bit_length()
        )

    async def start(self) -> None:
        await super().start()
        self.place()
        await self.cycles(2 + 2 * self.rows)

    def place(self) -> None:
        """Where scratch fibers lie."""
        region, sizes = REGION_BYTES // 8, {"base": RING_BASE, "lines": RING_LINES, "kept": KEPT}
        self.set("places", {**sizes, "begins": self.begins, "region": region, "slot_lines": self.slot_lines})

    def scratch_line(self, row: int, line: int) -> tuple[bytes, bool]:
        """A line of a slot, and whether it stays on chip."""
        if line < KEPT:
            lanes = self.sram.lines[RING_BASE + (self.begins[row] + line) % RING_LINES]
            return b"".join(lane.to_bytes(8, "little") for lane in lanes), True
        at = REGION_BYTES + (row * self.slot_lines + line) * self.line_bytes
        return self.memory.bytes[at : at + self.line_bytes].tobytes(), False

    def scratch(self, lines: int) -> dict[str, int]:
        """A request around the last line that stays on chip, most often."""
        first = self.rng.choice([0, KEPT - lines, KEPT - 1, KEPT, self.rng.randrange(2 * KEPT)])
        row = self.rng.randrange(self.rows)
        position = max(0, first) * self.lanes + self.rng.randrange(self.lanes)
        return {"position": position | row << self.position_bits, "unit": 1, "scratch": 1}

    def requests(self, count: int) -> None:
        for _ in range(count):
            for port in self.drivers:
                lines = self.rng.choice([1, 1, self.most_lines, self.rng.randint(1, self.most_lines)])
                position = self.rng.randrange(MEMORY_BYTES // 8 - lines * self.lanes)
                item = {"leaf": self.rng.randrange(self.radix), "position": position, "lines": lines}
                self.send(port, item | {"unit": self.rng.randrange(2)} | self.rng.choice([{}, self.scratch(lines)]))

    def taken(self, port: str, item: Any) -> None:
        pe = int(port.rsplit("__", 1)[1])
        coverage.hit("one_line", item["lines"] == 1)
        coverage.hit("most_lines", item["lines"] == self.most_lines)
        coverage.hit("middle_of_line", item["position"] % self.lanes != 0)
        if item["scratch"]:
            row, offset = divmod(item["position"], 1 << self.position_bits)
            first = offset // self.lanes
            found = [self.scratch_line(row, first + n) for n in range(item["lines"])]
            for raw, kept in found:
                self.board.expect("lines", (pe, item["leaf"], raw.hex()))
                self.wanted["event_unit"] += not kept
                self.wanted["event_scratch"] += not kept
            places = [(self.begins[row] + first + n) % RING_LINES for n, (_, kept) in enumerate(found) if kept]
            coverage.hit("kept", bool(places))
            coverage.hit("split", 0 < len(places) < item["lines"])
            coverage.hit("round_the_ring", places != sorted(places))
            return
        base = item["position"] * 8 // self.line_bytes * self.line_bytes
        for n in range(item["lines"]):
            raw = self.memory.bytes[base + n * self.line_bytes : base + (n + 1) * self.line_bytes].tobytes()
            self.board.expect("lines", (pe, item["leaf"], raw.hex()))
        self.wanted["event_unit" if item["unit"] else "event_bumped"] += item["lines"]
        coverage.hit("unit" if item["unit"] else "bumped")

    def every_cycle(self) -> None:
        dut = self.dut
        coverage.hit("contended", sum(int(driver.valid.value) for driver in self.drivers.values()) > 1)
        for name in self.events:
            self.events[name] += int(getattr(dut, name).value)
        came = []
        for n in range(self.pes):
            bits = getattr(dut, f"responses__{n}").value
            item = self.response.unpack(int(bits))
            if item["valid"]:
                lanes = [lane["coordinate"] | lane["value"] << 32 for lane in item["line"]]
                raw = b"".join(lane.to_bytes(8, "little") for lane in lanes)
                came.append((n, item["leaf"], raw.hex()))
        for line in came:
            self.board.observe("lines", line)
            coverage.hit("interleaved", self.last_owner not in (-1, line[0]))
            self.last_owner = line[0]
        # In the cycle in which a request is taken the block may still be idle.
        self.idle_cycles = self.idle_cycles + 1 if int(dut.idle.value) and self.board.outstanding() else 0
        assert self.idle_cycles < 2, "idle with a request that is not answered"

    async def finish(self) -> None:
        await self.settle()
        assert self.events == self.wanted
        assert int(self.dut.idle.value)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def lines_reach_their_owner(dut: Any, idle: str, backpressure: str) -> None:
    """Every line of every request, once, to the PE and leaf of the request, in request order."""
    bench = MemoryFetchBench(dut, idle, backpressure)
    await bench.start()
    bench.requests(25)
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nobody_starves(dut: Any) -> None:
    """A PE that requests once among others that never stop is served within a round."""
    bench = MemoryFetchBench(dut)
    await bench.start()
    *busy, quiet = list(bench.drivers)
    for port in busy:
        bench.send(port, *({"leaf": 0, "position": 8 * n, "lines": 1} for n in range(60)))
    await bench.cycles(20)
    bench.send(quiet, {"leaf": 1, "position": 4, "lines": 1})
    waited = await bench.wait(lambda: bench.drivers[quiet].idle, f"{quiet} is not served")
    assert waited <= 4 * bench.pes, f"{quiet} waited {waited} cycles"
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset with requests in flight; the lines of later requests go to their owners."""
    bench = MemoryFetchBench(dut, "fourth", "random")
    await bench.start()
    bench.requests(10)
    await bench.cycles(40)
    assert bench.board.outstanding()
    coverage.hit("reset")
    await bench.restart(4)
    bench.place()
    await bench.cycles(2 + 2 * bench.rows)
    bench.events, bench.wanted = dict.fromkeys(bench.events, 0), dict.fromkeys(bench.wanted, 0)
    bench.requests(10)
    await bench.finish()
    coverage.save()
