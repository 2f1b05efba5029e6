"""The weight-stationary PE against its golden model, bit for bit."""

import random

import pytest

from rtl.pe.common import operator_latencies
from rtl.pe.weight_stationary import WeightStationaryPe
from sw.golden.weight_stationary import BusCycle, StationaryColumn, bumped_words, row_sums
from tests.rtl.pe.weight_stationary_cases import Sizes, again, column, loaded, on_the_bus, streamed
from tests.rtl.port_bench import PortBench

Case = tuple[StationaryColumn, list[BusCycle]]


class Pe:
    """Columns and As, one after the other; words are sent again as they are asked for."""

    def __init__(self, sizes: Sizes, *, seed: int = 1, chance: float = 0.6) -> None:
        self.sizes = sizes
        self.dut = WeightStationaryPe(**sizes.keywords)
        self.bench = PortBench(self.dut, seed=seed, chance=chance)
        self.weights, self.bus = self.bench.feed(self.dut.weights), self.bench.feed(self.dut.bus)
        self.sums, self.asked = self.bench.collect(self.dut.sums), self.bench.collect(self.dut.again)
        self.stationary = StationaryColumn([], [], True)
        self.parts: list[int] = []
        self.macs = self.bumped = 0

    def each(self, ctx) -> None:
        for part in self.asked:
            self.weights.extend(again(self.stationary, part["index"], part["count"]))
            self.parts.append(part["count"])
        self.asked.clear()
        self.macs += ctx.get(self.dut.event_macs)
        self.bumped += ctx.get(self.dut.event_bumped)
        assert ctx.get(self.dut.error).value == 0

    async def one(self, ctx, number: int, case: Case, *, bare: bool = False, reload: bool = True) -> int:
        self.stationary, cycles = case
        if reload:
            self.weights.extend(loaded(number, self.stationary, self.sizes.entries))
            await self.bench.until(ctx, lambda: not self.weights, each=self.each)
        self.parts.clear()
        self.macs = self.bumped = 0
        begin = self.bench.cycle
        self.bus.extend(on_the_bus(cycles, self.sizes.words, bare=bare))
        await self.bench.until(ctx, lambda: bool(self.sums) and self.sums[-1]["last"], each=self.each)
        self.check(number, cycles)
        return self.bench.cycle - begin

    def check(self, number: int, cycles: list[BusCycle]) -> None:
        latency, _ = operator_latencies(self.sizes.value)
        wanted = row_sums(cycles, self.stationary, vector=self.sizes.vector, sums=latency, value=self.sizes.value)
        found, came = [], list(self.sums)
        self.sums.clear()
        assert [one["last"] for one in came] == [0] * (len(came) - 1) + [1]
        for one in came:
            assert one["column"] == number
            found.append((one["row"], 0 if one["void"] else one["value"], not one["void"]))
        assert found == ([tuple(one) for one in wanted] or [(found[0][0], 0, False)])
        parts = bumped_words(cycles, self.stationary, entries=self.sizes.entries, region=self.sizes.region)
        assert self.parts == parts
        assert self.bumped == sum(parts)
        stationary = set(self.stationary.coordinates)
        assert self.macs == sum(k in stationary for cycle in cycles for k in cycle.columns)


def cases(sizes: Sizes, rng: random.Random, acf: str, dense: bool, count: int) -> list[Case]:
    """Columns that are empty, fit, fill the buffer, overflow it by little and by much; As of no row and of several."""
    found = []
    per = 1 if dense else 2
    for n in range(count):
        depth = max(1, [sizes.entries // per, rng.randint(1, 3 * sizes.entries), sizes.entries // per + 1][n % 3])
        density = rng.choice([0.3, 0.7, 1.0])
        held = column(rng, depth, dense, density, sizes.value)
        found.append((held, streamed(rng, sizes, acf, rows=rng.randint(0, 4), depth=depth, density=density / 2)))
    return found


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize("acf", ["dense", "csr", "coo"])
@pytest.mark.parametrize("dense", [True, False], ids=["B dense", "B csc"])
@pytest.mark.parametrize("value", ["int32", "fp32"])
def test_sums_are_golden(value: str, dense: bool, acf: str, chance: float) -> None:
    """Every pair of formats; columns that fit and columns that are overbooked."""
    sizes = Sizes(value=value)
    rng = random.Random(f"{value} {dense} {acf} {chance}")
    pe = Pe(sizes, chance=chance)

    async def script(ctx):
        for number, case in enumerate(cases(sizes, rng, acf, dense, 9)):
            await pe.one(ctx, number, case, bare=rng.random() < 0.5)

    pe.bench.simulate(script)
