"""Round-robin arbiter against a list in the order of the last grants. Testplan: ``verif/testplans/arbiter.toml``."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.layouts import described
from verif.clocking import begin
from verif.coverage import Coverage

coverage = Coverage("arbiter")


class ArbiterBench:
    """Requests at random; the model grants the first requester after the one granted last."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.count = int(described().parameters["count"])
        self.rng = random.Random(self.count)
        self.next = 0  # where the search begins
        self.waited = [0] * self.count  # used grants to others

    async def start(self) -> None:
        await begin(self.dut, zero=("requests", "advance"))

    async def cycle(self, requests: int, advance: bool) -> int:
        """One cycle; the index that is granted, -1 for none."""
        self.dut.requests.value = requests
        self.dut.advance.value = int(advance)
        await ReadOnly()
        grant = int(self.dut.grant.value)
        order = [(self.next + n) % self.count for n in range(self.count)]
        wanted = next((n for n in order if requests >> n & 1), -1)
        assert grant == (1 << wanted if wanted >= 0 else 0), f"{requests:b} after {self.next}: {grant:b}"
        coverage.hit("nobody", wanted < 0)
        coverage.hit("alone", requests == grant != 0)
        coverage.hit("everybody", requests == (1 << self.count) - 1)
        coverage.hit("around", 0 <= wanted < self.next)
        coverage.hit("not_used", wanted >= 0 and not advance)
        if wanted >= 0 and advance:
            self.next = (wanted + 1) % self.count
            for n in range(self.count):
                self.waited[n] = self.waited[n] + 1 if requests >> n & 1 and n != wanted else 0
            assert max(self.waited) <= self.count - 1, "a requester starves"
            coverage.hit("longest_wait", max(self.waited) == self.count - 1)
        await RisingEdge(self.dut.clk)
        return wanted


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(density=[0.1, 0.5, 0.95])
async def grants_in_turn(dut: Any, density: float) -> None:
    """Every grant is the model's, used or not, from no request to all requesting for long."""
    bench = ArbiterBench(dut)
    await bench.start()
    for _ in range(400):
        requests = sum((bench.rng.random() < density) << n for n in range(bench.count))
        await bench.cycle(requests, bench.rng.random() < 0.8)
    for _ in range(3 * bench.count):
        await bench.cycle((1 << bench.count) - 1, True)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_begins_anew(dut: Any) -> None:
    """After a reset the search begins at the first."""
    bench = ArbiterBench(dut)
    await bench.start()
    await bench.cycle(1, True)
    coverage.hit("reset", bench.next != 0)
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    bench.next = 0
    for _ in range(2 * bench.count):
        await bench.cycle((1 << bench.count) - 1, True)
    coverage.save()
