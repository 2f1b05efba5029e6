"""The block flags against sets of block columns. Testplan: ``verif/testplans/block_flags.toml``."""

from typing import Any

import cocotb
import numpy as np

from sw.golden.mint import block_flags
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.vector_bench import VectorBench
from verif.coverage import Coverage


class BlockFlagsBench(VectorBench):
    """The model keeps the vectors of the present row of blocks and looks at them all anew for each."""

    coverage = Coverage("block_flags")

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none") -> None:
        super().__init__(dut, idle, backpressure)
        self.columns = int(self.block.parameters["columns"])
        self.row: list[list[dict[str, int]]] = []

    def forget(self) -> None:
        self.row = []

    def result(self, vector: Any) -> Any:
        self.row.append(vector["items"])
        columns = np.array([[item["column"] for item in items] for items in self.row])
        present = np.array([[item["present"] for item in items] for items in self.row], bool)
        marks, occupied = block_flags(columns, present, np.zeros(len(self.row), bool))
        fresh = marks[-1].tolist()
        before = occupied[-2] if len(occupied) > 1 else set()
        here = [column for column, is_present in zip(columns[-1].tolist(), present[-1], strict=True) if is_present]
        self.coverage.hit("seen_before", bool(before & set(here)))
        self.coverage.hit("seen_in_vector", len(here) > len(set(here)))
        self.coverage.hit("all_fresh", all(fresh))
        self.coverage.hit("nothing", not here)
        self.coverage.hit("full_row", len(occupied[-1]) == self.columns)
        self.coverage.hit("row_of_one_vector", bool(vector["last"]) and len(self.row) == 1)
        self.coverage.hit("row_of_several", bool(vector["last"]) and len(self.row) > 1)
        if vector["last"]:
            self.row = []
        items = [item | {"fresh": int(mark)} for item, mark in zip(vector["items"], fresh, strict=True)]
        return {"last": vector["last"], "items": items, "flags": sum(1 << column for column in occupied[-1])}

    def vector(self, last: float = 0.2) -> dict[str, Any]:
        few = self.rng.random() < 0.4
        present = self.rng.choice([1.0, 1.0, 0.5, 0.0])
        items = [
            {
                "column": self.rng.randrange(2) * (self.columns - 1) if few else self.rng.randrange(self.columns),
                "present": int(self.rng.random() < present),
            }
            for _ in range(self.inputs)
        ]
        return {"last": int(self.rng.random() < last), "items": items}


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def flags_of_rows(dut: Any, idle: str, backpressure: str) -> None:
    """Rows of blocks of one vector and of many, with any behaviour of both sides."""
    bench = BlockFlagsBench(dut, idle, backpressure)
    await bench.any_pauses(*(bench.vector() for _ in range(120)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_vector_a_cycle(dut: Any) -> None:
    """One row of blocks of many vectors, back to back."""
    bench = BlockFlagsBench(dut)
    await bench.full_rate(*(bench.vector(last=0) for _ in range(60)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Vectors and flags of before are gone."""
    bench = BlockFlagsBench(dut)
    await bench.reset_in_the_middle(lambda: bench.vector(last=0.02))
