"""The sorting network against NumPy's stable sort. Testplan: ``verif/testplans/sorter.toml``."""

from typing import Any

import cocotb
import numpy as np

from sw.golden.mint import sorted_lanes
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.vector_bench import VectorBench
from verif.coverage import Coverage


class SorterBench(VectorBench):
    """Keys of few values and of many, in any order; lanes without an item."""

    coverage = Coverage("sorter")

    def result(self, vector: Any) -> Any:
        keys = np.array([item["key"] for item in vector], np.uint64)
        present = np.array([item["present"] for item in vector], bool)
        order = sorted_lanes(keys, present).tolist()
        inside = keys[present].tolist()
        self.coverage.hit("sorted", order == list(range(self.inputs)))
        self.coverage.hit("reversed", order == list(range(self.inputs))[::-1])
        self.coverage.hit("all_equal", len(set(inside)) == 1 and len(inside) == self.inputs)
        self.coverage.hit("some_equal", 1 < len(set(inside)) < len(inside))
        self.coverage.hit("absent", 0 < len(inside) < self.inputs)
        self.coverage.hit("nothing", not inside)
        return [vector[lane] | {"lane": lane} for lane in order]

    def vector(self) -> list[dict[str, int]]:
        bits, payload_bits = (int(self.block.parameters[name]) for name in ("key_width", "payload_width"))
        kind = self.rng.randrange(6)
        keys = [self.rng.getrandbits(bits if kind % 2 else 1) for _ in range(self.inputs)]
        if kind < 3:
            keys = [[0] * self.inputs, sorted(keys), list(range(self.inputs))[::-1]][kind]
        present = self.rng.choice([1.0, 1.0, 0.5, 0.0])
        return [
            {"key": key, "present": int(self.rng.random() < present), "payload": self.rng.getrandbits(payload_bits)}
            for key in keys
        ]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def sorts(dut: Any, idle: str, backpressure: str) -> None:
    """Present items by key, then absent ones, equal keys in order of their lanes."""
    bench = SorterBench(dut, idle, backpressure)
    await bench.any_pauses(*(bench.vector() for _ in range(120)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_vector_a_cycle(dut: Any) -> None:
    """Back to back."""
    bench = SorterBench(dut)
    await bench.full_rate(*(bench.vector() for _ in range(60)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Vectors of before are gone."""
    bench = SorterBench(dut)
    await bench.reset_in_the_middle(bench.vector)
