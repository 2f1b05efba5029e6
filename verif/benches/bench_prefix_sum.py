"""Every form of the prefix sum against the plain sums. Testplan: ``verif/testplans/prefix_sum.toml``."""

from typing import Any

import cocotb
import numpy as np

from sw.golden.mint import prefix_sums
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.vector_bench import VectorBench
from verif.coverage import Coverage


class PrefixSumBench(VectorBench):
    """The model keeps the vectors of the present array and sums them all anew for each."""

    coverage = Coverage("prefix_sum")

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none") -> None:
        super().__init__(dut, idle, backpressure)
        self.width = int(self.block.parameters["width"])
        self.sum_width = int(self.block.parameters["sum_width"])
        self.array: list[list[int]] = []

    def forget(self) -> None:
        self.array = []

    def result(self, vector: Any) -> Any:
        begun = not self.array
        if vector["first"]:
            self.coverage.hit("array_begins", not begun)
            self.coverage.hit("several_vectors", len(self.array) > 1)
            self.array = []
        else:
            self.coverage.hit("begins_unsaid", begun)
        self.array.append(vector["values"])
        values = np.array(self.array, np.uint64)
        sums = prefix_sums(values, np.zeros(len(values), bool), self.sum_width)[-1].tolist()
        self.coverage.hit("wraps", any(after < before for before, after in zip(sums[:-1], sums[1:], strict=True)))
        self.coverage.hit("all_largest", all(value == (1 << self.width) - 1 for value in vector["values"]))
        self.coverage.hit("one_value", sum(value != 0 for value in vector["values"]) == 1)
        return {"first": vector["first"], "sums": sums}

    def vector(self, first: float = 0.15) -> dict[str, Any]:
        """Largest values, one value that is not 0, or noise; it begins an array by chance."""
        largest = (1 << self.width) - 1
        kind = self.rng.random()
        values = [largest if kind < 0.2 else self.rng.getrandbits(self.width) for _ in range(self.inputs)]
        if kind > 0.8:
            chosen = self.rng.randrange(self.inputs)
            values = [largest if lane == chosen else 0 for lane in range(self.inputs)]
        return {"first": int(self.rng.random() < first), "values": values}


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def sums_of_arrays(dut: Any, idle: str, backpressure: str) -> None:
    """Arrays of one vector and of many, with any behaviour of both sides."""
    bench = PrefixSumBench(dut, idle, backpressure)
    await bench.any_pauses(*(bench.vector() for _ in range(120)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_vector_a_cycle(dut: Any) -> None:
    """One array of many vectors, back to back."""
    bench = PrefixSumBench(dut)
    await bench.full_rate(*(bench.vector(first=0) for _ in range(60)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Vectors and offset of before are gone."""
    bench = PrefixSumBench(dut)
    await bench.reset_in_the_middle(lambda: bench.vector(first=0.02))
