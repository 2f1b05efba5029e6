"""Counter bank against a sum and a maximum for each name. Testplan: ``verif/testplans/counter_bank.toml``."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from gen.headers import REGISTERS
from verif.agents.layouts import described
from verif.clocking import begin
from verif.coverage import Coverage

coverage = Coverage("counter_bank")
HALF = 1 << 32


class CounterBench:
    """Events at random, and reads beside them; each counter is compared at the end, too."""

    def __init__(self, dut: Any) -> None:
        block = described()
        self.dut = dut
        self.rng = random.Random(1)
        self.latency = int(block.parameters["latency"])
        self.spacing = int(block.parameters["read_spacing"])
        self.wrap = 1 << int(block.parameters["width"])
        self.events = block.layout("events")
        self.widths = {name: width for name, (_, width, _) in self.events.tree["fields"].items()}
        self.peaks = {register.name.lower() for register in REGISTERS if "peak" in register.name.lower()}
        self.names = list(self.widths)
        self.forget()

    def forget(self) -> None:
        """All counters are zero, and no event is on its way."""
        self.expected = dict.fromkeys(self.widths, 0)
        self.seen = [self.expected] * self.latency  # by reads of this cycle, and of the next ones
        self.asked: tuple[str, int] | None = None  # what is read, and what it must be
        self.rest = 0  # cycles without a read

    async def start(self) -> None:
        await begin(self.dut, zero=("events", "clear", "enable", "read", "number"))

    async def cycle(self, events: dict[str, int], enable: bool, read: str | None = None) -> None:
        """``read`` names a counter."""
        self.dut.events.value = self.events.pack(events)
        self.dut.enable.value = int(enable)
        self.dut.read.value = int(read is not None)
        self.dut.number.value = self.names.index(read or self.names[0])
        asked, self.asked = self.asked, None if read is None else (read, self.seen[0][read])
        self.rest = self.spacing - 1 if read else max(0, self.rest - 1)
        self.expected = dict(self.expected)
        for name, value in events.items() if enable else ():
            before = self.expected[name]
            peak = name in self.peaks
            after = max(before, value) if peak else before + value
            coverage.hit("carry", before < HALF <= after and not peak)
            coverage.hit("wrapped", after >= self.wrap)
            coverage.hit("smaller_peak", peak and 0 < value < before)
            coverage.hit("higher_peak", peak and 0 < before < value)
            self.expected[name] = after % self.wrap
        coverage.hit("disabled", not enable and any(events.values()))
        coverage.hit("all_at_once", enable and all(events.values()))
        self.seen = [*self.seen[1:], self.expected]
        if asked is not None:
            await ReadOnly()
            assert int(self.dut.count.value) == asked[1], asked[0]
            coverage.hit("read_beside_events", any(events.values()))
        await RisingEdge(self.dut.clk)

    async def check(self) -> None:
        for _ in range(self.latency):
            await self.cycle({}, False)
        for name in self.names:
            await self.cycle({}, False, name)
            for _ in range(self.spacing - 1):
                await self.cycle({}, False)

    async def clear(self) -> None:
        """Events that come with it are lost, and those of the cycle before."""
        self.dut.events.value = self.events.pack(dict.fromkeys(self.widths, 1))
        self.dut.enable.value = 1
        self.dut.read.value = 0
        await RisingEdge(self.dut.clk)
        self.dut.clear.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.clear.value = 0
        self.dut.enable.value = 0
        self.forget()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sums_and_maxima(dut: Any) -> None:
    """Small and full increments, enabled or not, cleared in between."""
    bench = CounterBench(dut)
    await bench.start()
    for run in range(3):
        for _ in range(150):
            events = {name: bench.rng.getrandbits(width) for name, width in bench.widths.items()}
            if bench.rng.random() < 0.1:
                events = {name: (1 << width) - 1 for name, width in bench.widths.items()}
            read = bench.rng.choice(bench.names) if bench.rest == 0 else None
            await bench.cycle(events, bench.rng.random() < 0.8, read)
        await bench.check()
        coverage.hit("cleared", any(bench.expected.values()))
        await bench.clear()
        if run:
            await bench.check()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def long_runs(dut: Any) -> None:
    """Counts beyond 32 bits and beyond the counter."""
    bench = CounterBench(dut)
    await bench.start()
    widest = max(bench.widths, key=lambda name: (name not in bench.peaks, bench.widths[name]))
    step = (1 << bench.widths[widest]) - 1
    for _ in range(2 * bench.wrap // step + 3):
        await bench.cycle({widest: step}, True)
    await bench.check()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_clears(dut: Any) -> None:
    """A reset while events come leaves zeros."""
    bench = CounterBench(dut)
    await bench.start()
    ones = dict.fromkeys(bench.widths, 1)
    for _ in range(5):
        await bench.cycle(ones, True)
    coverage.hit("reset", any(bench.expected.values()))
    dut.rst.value = 1
    for _ in range(2):
        await RisingEdge(dut.clk)
    dut.enable.value = 0
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    bench.forget()
    await bench.check()
    for _ in range(3):
        await bench.cycle(ones, True)
    await bench.check()
    coverage.save()
