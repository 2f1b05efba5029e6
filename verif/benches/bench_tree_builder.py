"""The tree builder against the definition of a CSF tree. Testplan: ``verif/testplans/tree_builder.toml``."""

from typing import Any

import cocotb

from sw.golden.mint import tree_nodes
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.vector_bench import VectorBench
from verif.coverage import Coverage

RANKS = ("i", "j", "k")


class TreeBuilderBench(VectorBench):
    """The model keeps the entries of the present tensor and looks at them all anew for each vector."""

    coverage = Coverage("tree_builder")

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none") -> None:
        super().__init__(dut, idle, backpressure)
        self.highest = (1 << int(self.block.parameters["width"])) - 1
        self.tensor: list[tuple[int, int, int]] = []
        self.place = [0, 0, 0]

    def forget(self) -> None:
        self.tensor, self.place = [], [0, 0, 0]

    def result(self, vector: Any) -> Any:
        before, count = len(self.tensor), vector["count"]
        self.tensor += [(item["i"], item["j"], item["k"]) for item in vector["items"][:count]]
        new_i, new_j, falls, fibers = tree_nodes(self.tensor)
        items = []
        for lane, item in enumerate(vector["items"]):
            n = before + lane
            here = {"new_i": 0, "new_j": 0, "falls": 0, "fibers": fibers[-1] if fibers else 0}
            if lane < count:
                here = {"new_i": int(new_i[n]), "new_j": int(new_j[n]), "falls": int(falls[n]), "fibers": fibers[n]}
            items.append(item | here)
        self.coverage.hit("new_i", any(new_i[max(before, 1) :]))
        self.coverage.hit("fiber_goes_on", before > 0 and count > 0 and not new_j[before])
        self.coverage.hit("same_j_of_another_i", any(self._same_j(n) for n in range(max(before, 1), len(self.tensor))))
        self.coverage.hit("falls", any(falls[before:]))
        self.coverage.hit("nothing", not count)
        self.coverage.hit("largest", (self.highest,) * 3 in self.tensor[before:])
        self.coverage.hit("tensor_of_several", bool(vector["last"]) and before > 0)
        if vector["last"]:
            self.tensor = []
        return {"items": items, "count": count, "entries": before, "last": vector["last"]}

    def _same_j(self, n: int) -> bool:
        former, here = self.tensor[n - 1 : n + 1]
        return former[0] != here[0] and former[1] == here[1]

    def vector(self, last: float = 0.1) -> dict[str, Any]:
        """Places that rise by a step of any rank, to the largest one, and now and then do not rise."""
        ends = self.rng.random() < last
        items = []
        for _ in range(self.inputs):
            rank = self.rng.choice((0, 1, 2, 2, 2))
            if self.rng.random() < 0.05:
                self.place = [self.highest] * 3
            elif self.place[rank] < self.highest:
                self.place[rank] += 1
                if self.rng.random() < 0.5:
                    self.place[rank + 1 :] = [0] * (2 - rank)
            items.append(dict(zip(RANKS, self.place, strict=True)))
        count = self.rng.choice((self.inputs, self.inputs, self.rng.randint(0, self.inputs)))
        if ends or self.place == [self.highest] * 3:
            self.place = [0, 0, 0]
        return {"items": items, "count": count, "last": int(ends)}


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def nodes_of_trees(dut: Any, idle: str, backpressure: str) -> None:
    """Tensors of one vector and of many, with any behaviour of both sides."""
    bench = TreeBuilderBench(dut, idle, backpressure)
    await bench.any_pauses(*(bench.vector() for _ in range(120)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_vector_a_cycle(dut: Any) -> None:
    """One tensor of many vectors, back to back."""
    bench = TreeBuilderBench(dut)
    await bench.full_rate(*(bench.vector(last=0) for _ in range(60)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Vectors, coordinates and numbers of before are gone."""
    bench = TreeBuilderBench(dut)
    await bench.reset_in_the_middle(lambda: bench.vector(last=0.02))
