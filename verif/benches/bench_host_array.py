"""The host array on its pins: it computes, is lent, and computes again. Testplan: ``verif/testplans/host_array.toml``."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.layouts import described
from verif.clocking import begin
from verif.coverage import Coverage

coverage = Coverage("host_array")
ROWS = COLUMNS = 16
DIVIDERS, PAIRS, LANES = 8, 4, 8
WORD, LONG = (1 << 32) - 1, (1 << 64) - 1
INPUTS = ("vector_valid", "vector", "operands", "pair_valid", "dividends", "divisors")


class HostBench:
    """Items at random; what comes out is compared in order."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.block = described()
        self.rng = random.Random(7)
        self.totals: list[list[int]] = []
        self.quotients: list[list[tuple[int, int]]] = []
        self.sums: list[list[int]] = []
        self.long: list[list[tuple[int, int]]] = []
        self.rows: list[tuple[int, list[list[int]]]] = []  # operands that are due: since when, and all of them
        self.now = 0
        self.total = 0

    async def start(self) -> None:
        names = [f"compute__{name}" for name in INPUTS]
        await begin(self.dut, zero=(*names, "claimed", "sum_valid", "sum", "division_valid", "division"))

    def numbers(self, count: int, most: int) -> list[int]:
        return [self.rng.choice([0, most, self.rng.randint(0, most)]) for _ in range(count)]

    def put(self, port: str, value: Any) -> None:
        getattr(self.dut, port).value = self.block.layout(port).pack(value)

    def get(self, port: str) -> Any:
        return self.block.layout(port).unpack(int(getattr(self.dut, port).value))

    async def cycle(self) -> None:
        """Shows the operands of this cycle, and compares what is at the outputs."""
        operands = [[0] * COLUMNS for _ in range(ROWS)]
        for since, own in self.rows:
            if self.now - since < ROWS:
                operands[self.now - since] = own[self.now - since]
        self.put("compute__operands", operands)
        await ReadOnly()
        dut = self.dut
        if int(dut.compute__total_valid.value):
            assert self.get("compute__totals") == self.totals.pop(0)
        if int(dut.compute__quotient_valid.value):
            shown = zip(self.get("compute__quotients"), self.get("compute__remainders"), strict=True)
            for pair, wanted in zip(shown, self.quotients.pop(0), strict=True):
                assert wanted[1] is None or pair == wanted
        if int(dut.sums_valid.value):
            assert self.get("sums")["sums"] == self.sums.pop(0)
        if int(dut.divided_valid.value):
            shown = self.get("divided")
            assert list(zip(shown["quotients"], shown["remainders"], strict=True)) == self.long.pop(0)
        await RisingEdge(dut.clk)
        self.now += 1

    async def compute(self, count: int) -> None:
        """Vectors and pairs, one of each a cycle."""
        for _ in range(count):
            vector = self.numbers(COLUMNS, WORD)
            operands = [self.numbers(COLUMNS, WORD) for _ in range(ROWS)]
            pairs = list(zip(self.numbers(DIVIDERS, WORD), self.numbers(DIVIDERS, WORD), strict=True))
            self.put("compute__vector", vector)
            self.put("compute__dividends", [pair[0] for pair in pairs])
            self.put("compute__divisors", [pair[1] for pair in pairs])
            self.dut.compute__vector_valid.value = self.dut.compute__pair_valid.value = 1
            self.rows = [*self.rows[-ROWS:], (self.now, operands)]
            self.totals.append([(n + sum(row[c] for row in operands)) & WORD for c, n in enumerate(vector)])
            self.quotients.append([divmod(a, b) if b else (WORD, None) for a, b in pairs])  # type: ignore[misc]
            coverage.hit("added")
            coverage.hit("divided")
            coverage.hit("divided_by_zero", any(b == 0 for _, b in pairs))
            await self.cycle()
        self.dut.compute__vector_valid.value = self.dut.compute__pair_valid.value = 0

    async def convert(self, count: int) -> None:
        """Sums and long divisions, with cycles between them."""
        divisor = self.rng.choice([1 << 32, self.rng.randint(1, WORD)])
        for n in range(count):
            first, values = n == 0 or self.rng.random() < 0.2, self.numbers(LANES, LONG)
            sends = n == 0 or self.rng.random() < 0.7
            self.dut.sum_valid.value = self.dut.division_valid.value = int(sends)
            self.put("sum", {"first": int(first), "client": n % 4, "values": values})
            dividends = self.numbers(PAIRS, LONG)
            self.put("division", {"dividends": dividends, "divisor": divisor})
            if sends:
                self.total = 0 if first else self.total
                coverage.hit("summed", not first)
                self.sums.append([(self.total + sum(values[: lane + 1])) & LONG for lane in range(LANES)])
                self.total = self.sums[-1][-1]
                self.long.append([divmod(dividend, divisor) for dividend in dividends])
                coverage.hit("passed_the_word", self.total > WORD)
                coverage.hit("long_division", max(dividends) > WORD)
            await self.cycle()
        self.dut.sum_valid.value = self.dut.division_valid.value = 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_after_the_other(dut: Any) -> None:
    """Compute, convert, compute, convert, compute: nothing is lost at the borders."""
    bench = HostBench(dut)
    await bench.start()
    for turn in range(3):
        await bench.compute(40)
        coverage.hit("given_back", turn > 0)
        if turn == 2:
            break
        dut.claimed.value = 1
        coverage.hit("claimed_at_work", bool(bench.totals))
        while not int(dut.owned.value):
            await bench.cycle()
            assert not int(dut.compute__ready.value)
        assert not bench.totals
        assert not bench.quotients
        await bench.convert(60)
        for _ in range(70):
            await bench.cycle()
        assert not bench.sums
        assert not bench.long
        dut.claimed.value = 0
        await bench.cycle()
        await bench.cycle()
    for _ in range(40):
        await bench.cycle()
    assert not bench.totals
    assert not bench.quotients
    coverage.save()
