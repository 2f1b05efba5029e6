"""Tuning unit against the golden decision. Testplan: ``verif/testplans/tuning.toml``."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from sw.golden.partition import Partition
from sw.golden.tuning import decide, legal_candidates
from verif.agents.layouts import described
from verif.clocking import begin
from verif.coverage import Coverage

coverage = Coverage("tuning")
INPUTS = ("counts", "side_k", "side_j", "extent_k", "extent_j", "movable", "halvable", "lines", "fifo_lines")
NAMES = {0: "same", 1: "double", -1: "half"}


class TuningBench:
    """Cases in; the change that the unit chooses is the golden one."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        block = described()
        self.block = block
        self.lanes = int(block.parameters["lanes"])
        self.most_lines = 1 << int(block.parameters["line_address_width"])
        self.longest = int(block.parameters["longest"])
        self.rng = random.Random(self.lanes)

    async def start(self) -> None:
        await begin(self.dut, zero=("start", *INPUTS))

    def case(self) -> dict[str, Any]:
        rng = self.rng
        lines = rng.randint(8, self.most_lines)
        fifo = rng.randrange(max(1, lines // 3))
        side_k = rng.randint(1, max(1, self.lanes * (lines - fifo - 1)))
        side_j = rng.randint(1, 1 << rng.randint(1, 31))
        scale = self.lanes * lines * rng.choice([0.1, 0.3, 1, 3])
        power = rng.choice([0.2, 1, 5])
        return {
            "counts": [int(scale * rng.random() ** power) for _ in range(4)],
            "side_k": side_k,
            "side_j": side_j,
            "extent_k": rng.choice([side_k, side_k + 1, 10 * side_k]),
            "extent_j": rng.choice([side_j, side_j + 1, 2**32 - 1]),
            "movable": rng.randrange(4),
            "halvable": rng.randrange(4),
            "lines": lines,
            "fifo_lines": fifo,
        }

    def wanted(self, case: dict[str, Any]) -> tuple[int, int]:
        """Change of T_k and of T_j, as in the order ``jki``, in which both may change while both are cut."""
        partition = Partition(lines=case["lines"], fifo_lines=case["fifo_lines"], lanes=self.lanes)
        side, extent = case["side_k"], case["extent_k"]
        capacities = {
            k: partition.capacity(min(tall, extent)) for k, tall in ((-1, side >> 1), (0, side), (1, side << 1))
        }
        fixed_j, fixed_k = not case["movable"] & 1, not case["movable"] >> 1
        grain_j, grain_k = (0 if case["halvable"] >> n & 1 else case[f"side_{'jk'[n]}"] for n in (0, 1))
        legal = legal_candidates(
            "jki", False, fixed_j, fixed_k, (side, case["side_j"]), (grain_k, grain_j), (extent, case["extent_j"]),
            partition.most_rows,
        )  # fmt: skip
        if fixed_k:
            legal = frozenset(change for change in legal if change[0] == 0)
        c00, c01, c10, c11 = case["counts"]
        return decide((c00, c01, c10, c11), capacities, legal)

    async def decided(self, case: dict[str, Any]) -> tuple[int, int]:
        for name in INPUTS:
            value = case[name]
            getattr(self.dut, name).value = sum(v << 32 * n for n, v in enumerate(value)) if name == "counts" else value
        self.dut.start.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.start.value = 0
        for _ in range(self.longest + 1):
            await ReadOnly()
            if self.dut.done.value:
                break
            await RisingEdge(self.dut.clk)
        assert self.dut.done.value, "takes too long"
        bits = int(self.dut.change.value)
        await RisingEdge(self.dut.clk)
        codes = {value: {"STAY": 0, "DOUBLE": 1, "HALVE": -1}[name] for name, value in self.changes.items()}
        width = len(self.dut.change) // 2
        return codes[bits >> width], codes[bits & ((1 << width) - 1)]

    # The encoding of ``rtl.tiling.shape_changes.Change``, which an array's description does not carry.
    changes = {"STAY": 0, "DOUBLE": 1, "HALVE": 2}

    async def check(self, case: dict[str, Any]) -> None:
        wanted = self.wanted(case)
        got = await self.decided(case)
        assert got == wanted, f"{case}: {got}, expected {wanted}"
        coverage.hit(f"k_{NAMES[wanted[0]]}_j_{NAMES[wanted[1]]}")
        coverage.hit("nothing_movable", case["movable"] == 0)
        coverage.hit("nothing_halvable", case["halvable"] == 0)
        coverage.hit("no_region", case["fifo_lines"] == 0)
        coverage.hit("empty_tile", not any(case["counts"]))
        coverage.hit("ragged", case["extent_k"] == case["side_k"] + 1)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def decisions(dut: Any) -> None:
    """Random tiles; each decision is the golden one, and every change occurs that can."""
    bench = TuningBench(dut)
    await bench.start()
    for n in range(500):
        case = bench.case()
        if n % 2:
            case |= {"movable": 3, "halvable": 3}
        await bench.check(case)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def empty_and_full_counters(dut: Any) -> None:
    """Nothing, one nonzero, and counters that are full, in all quadrants."""
    bench = TuningBench(dut)
    await bench.start()
    for n in range(81):
        counts = [(0, 1, 2**32 - 1)[n // 3**q % 3] for q in range(4)]
        sides = {"side_k": 16, "side_j": 16, "extent_k": 64, "extent_j": 64, "movable": 3, "halvable": 3}
        await bench.check(sides | {"counts": counts, "lines": bench.most_lines, "fifo_lines": 4})
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset during a decision ends it; the next one is right."""
    bench = TuningBench(dut)
    await bench.start()
    for cycles in (1, 5, 30):
        case = bench.case()
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        for _ in range(cycles):
            await RisingEdge(dut.clk)
        coverage.hit("reset", not dut.done.value)
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        for _ in range(bench.longest + 1):
            await ReadOnly()
            assert not dut.done.value
            await RisingEdge(dut.clk)
        await bench.check(case)
    coverage.save()
