"""The cluster counter against runs as they are defined. Testplan: ``verif/testplans/cluster_counter.toml``."""

from typing import Any

import cocotb
import numpy as np

from sw.golden.mint import equal_runs
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.vector_bench import VectorBench
from verif.coverage import Coverage


class ClusterCounterBench(VectorBench):
    """Sorted keys, grouped ones and noise; lanes without a key."""

    coverage = Coverage("cluster_counter")

    def result(self, vector: Any) -> Any:
        keys = np.array([item["key"] for item in vector], np.uint64)
        present = np.array([item["present"] for item in vector], bool)
        counts, last = equal_runs(keys, present)
        lengths = counts[last].tolist()
        self.coverage.hit("whole_vector", lengths == [self.inputs])
        self.coverage.hit("all_alone", lengths == [1] * self.inputs)
        self.coverage.hit("several_runs", len(lengths) > 1 and max(lengths) > 1)
        self.coverage.hit("absent", 0 < present.sum() < self.inputs)
        self.coverage.hit("nothing", not lengths)
        divided = any(
            keys[lane - 1] == keys[lane] == keys[lane + 1] and present[lane - 1 : lane + 2].tolist() == [1, 0, 1]
            for lane in range(1, self.inputs - 1)
        )
        self.coverage.hit("divided", divided)
        return [
            item | {"count": int(count), "last": int(end)}
            for item, count, end in zip(vector, counts, last, strict=True)
        ]

    def vector(self) -> list[dict[str, int]]:
        bits = int(self.block.parameters["key_width"])
        kind = self.rng.randrange(5)
        if kind == 0:
            keys = [self.rng.getrandbits(bits)] * self.inputs
        elif kind == 1:
            keys = [(lane + self.rng.getrandbits(bits)) % (1 << bits) for lane in range(self.inputs)]
        else:
            keys = [self.rng.getrandbits(1) << self.rng.randrange(bits) for _ in range(self.inputs)]
        present = self.rng.choice([1.0, 1.0, 0.7, 0.0])
        items = [{"key": key, "present": int(self.rng.random() < present)} for key in keys]
        return sorted(items, key=lambda item: (-item["present"], item["key"])) if kind == 4 else items


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def counts_runs(dut: Any, idle: str, backpressure: str) -> None:
    """Every run has its length where it ends, and every lane its place in its run."""
    bench = ClusterCounterBench(dut, idle, backpressure)
    await bench.any_pauses(*(bench.vector() for _ in range(120)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_vector_a_cycle(dut: Any) -> None:
    """Back to back."""
    bench = ClusterCounterBench(dut)
    await bench.full_rate(*(bench.vector() for _ in range(60)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Vectors of before are gone."""
    bench = ClusterCounterBench(dut)
    await bench.reset_in_the_middle(bench.vector)
