"""Divide and mod on their pins, either form, against schoolbook division. Testplan: ``verif/testplans/divmod.toml``."""

from typing import Any

import cocotb

from sw.golden.mint_bits import divided
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("divmod")


class DivmodBench(StreamBench):
    """A vector is divided by the divisor that was taken last before it."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut, drive=["divisor", "dividends"], receive=["results"], idle=idle, backpressure=backpressure, seed=seed
        )
        sizes = self.block.parameters
        self.lanes, self.width = int(sizes["lanes"]), int(sizes["width"])
        self.divisor_width = int(sizes["divisor_width"])
        self.divisor = 0

    def load(self, divisor: int) -> None:
        self.send("divisor", divisor)
        top = (1 << self.divisor_width) - 1
        coverage.hit("by_one", divisor == 1)
        coverage.hit("by_the_largest", divisor == top)
        coverage.hit("by_a_power_of_two", divisor > 1 and not divisor & (divisor - 1))

    def vectors(self, divisor: int, number: int) -> None:
        """Dividends beside multiples of the divisor, at both ends, and any."""
        most = (1 << self.width) - 1
        for _ in range(number):
            vector = []
            for _ in range(self.lanes):
                multiple = divisor * self.rng.randint(0, most // divisor)
                dividend = self.rng.choice(
                    [
                        0,
                        1,
                        most,
                        multiple,
                        max(multiple - 1, 0),
                        min(multiple + 1, most),
                        self.rng.getrandbits(self.width),
                    ]
                )
                vector.append(dividend)
                quotient, remainder = divided(dividend, divisor)
                coverage.hit("multiple", quotient > 0 and remainder == 0)
                coverage.hit("largest_remainder", divisor > 1 and remainder == divisor - 1)
                coverage.hit("quotient_zero", quotient == 0 and remainder > 0)
            self.send("dividends", vector)

    def taken(self, port: str, item: Any) -> None:
        if port == "divisor":
            self.divisor = item
            return
        pairs = [divided(dividend, self.divisor) for dividend in item]
        quotients, remainders = ([pair[n] for pair in pairs] for n in range(2))
        self.board.expect("results", {"quotients": quotients, "remainders": remainders})

    def every_cycle(self) -> None:
        dut = self.dut
        coverage.hit("refused", bool(dut.results__valid.value) and not dut.results__ready.value)
        coverage.hit("divisor_waits", bool(dut.divisor__valid.value) and not dut.divisor__ready.value)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def quotients_and_remainders(dut: Any, idle: str, backpressure: str) -> None:
    """Vectors by divisor after divisor; a divisor is offered while vectors are inside."""
    bench = DivmodBench(dut, idle, backpressure)
    await bench.start()
    top = (1 << bench.divisor_width) - 1
    for divisor in (
        1,
        2,
        3,
        top,
        top - 1,
        1 << (bench.divisor_width - 1),
        *(bench.rng.randint(1, top) for _ in range(3)),
    ):
        bench.load(divisor)
        await bench.wait(lambda: bench.drivers["divisor"].idle, "a divisor was not taken")
        bench.vectors(divisor, 25)
        await bench.wait(lambda: bench.drivers["dividends"].idle, "a vector was not taken")
    await bench.settle()
    assert not int(dut.error.value)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def divisor_zero(dut: Any) -> None:
    """Divisor 0 raises the error and no vector is taken until another divisor comes."""
    bench = DivmodBench(dut)
    await bench.start()
    bench.load(0)
    await bench.wait(lambda: bool(int(dut.error.value)), "no error")
    coverage.hit("zero")
    bench.vectors(5, 3)
    await bench.cycles(2 * bench.width)
    assert not bench.drivers["dividends"].sent
    bench.load(5)
    await bench.settle()
    assert not int(dut.error.value) and bench.board.matched("results") == 3
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops divisor and vectors."""
    bench = DivmodBench(dut, "fourth", "random")
    await bench.start()
    bench.load(7)
    bench.vectors(7, 40)
    await bench.wait(lambda: bench.board.matched("results") > 3, "no results")
    coverage.hit("reset", bool(bench.board.outstanding()))
    await bench.restart()
    bench.load(3)
    bench.vectors(3, 10)
    await bench.settle()
    coverage.save()
