"""Pair combiner and cascade against the defined shape of the sum. Testplan: ``verif/testplans/combiner.toml``.

``FIBERLOOM_VALUE`` is the value type of the build.
"""

import os
import random
from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge

from sw.golden.pe import reduce_run
from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES, pattern
from verif.clocking import begin, reset
from verif.coverage import Coverage

coverage = Coverage("combiner")
VALUE = os.environ.get("FIBERLOOM_VALUE", "int32")
Job = list[tuple[int, int]]


class CombinerBench:
    """Jobs are lists of (coordinate, value), sorted; an empty one is void. The output is compared nonzero by nonzero."""

    def __init__(self, dut: Any, idle: str = "none", stall: str = "none") -> None:
        block = described()
        self.dut = dut
        self.reduces = int(block.parameters.get("radix", 2))
        self.nonzero, self.result = block.layout("i"), block.layout("o")
        self.rng = random.Random(f"{block.module} {idle} {stall}")
        self.idle, self.stall = pattern(idle, "in")(), pattern(stall, "advance")()
        self.waiting: deque[dict[str, int]] = deque()
        self.due: deque[tuple[int, int, int, int]] = deque()
        self.limit = 0

    async def start(self) -> None:
        await begin(self.dut, zero=("i", "advance"))

    def give(self, *jobs: Job) -> None:
        for job in jobs:
            for n, (coordinate, value) in enumerate(job or [(0, 0)]):
                item = {"valid": 1, "coordinate": coordinate, "value": value, "last": int(n >= len(job) - 1)}
                self.waiting.append(item | {"void": int(not job)})
            runs: dict[int, list[np.uint32]] = {}
            for coordinate, value in job:
                runs.setdefault(coordinate, []).append(np.uint32(value))
            out = []
            for coordinate, run in runs.items():
                pieces = [run[at : at + self.reduces] for at in range(0, len(run), self.reduces)]
                out += [(coordinate, int(reduce_run(piece, self.reduces, VALUE))) for piece in pieces]
                coverage.hit("alone", len(run) == 1)
                coverage.hit("odd_run", len(run) > 1 and len(run) % 2 == 1)
                coverage.hit("full_run", len(run) == self.reduces)
                coverage.hit("longer_run", len(run) > self.reduces)
            self.due += [(c, v, int(n == len(out) - 1), 0) for n, (c, v) in enumerate(out)] or [(0, 0, 1, 1)]
            coverage.hit("void", not job)
            coverage.hit("several_runs", len(runs) > 1)
        self.limit += 400 + 60 * len(self.waiting)

    async def run(self, cycles: int = 0) -> None:
        """Wait until everything has come, or for this many cycles."""
        dut = self.dut
        last = None
        for _ in range(cycles or self.limit):
            advance = not next(self.stall)
            item = self.waiting[0] if self.waiting and not next(self.idle) else None
            noise = {"valid": 0, "coordinate": self.rng.getrandbits(32), "value": self.rng.getrandbits(32), "last": 1}
            dut.i.value = self.nonzero.pack(item or noise)
            dut.advance.value = int(advance)
            await ReadOnly()
            got = self.result.unpack(int(dut.o.value)) if str(dut.o.value).isdigit() else {"valid": 0}
            if advance and item:
                coverage.hit(
                    "jobs_meet", last is not None and bool(last["last"]) and last["coordinate"] == item["coordinate"]
                )
                last = item
                self.waiting.popleft()
            elif not item and self.waiting:
                coverage.hit("gap", last is not None and not last["last"])
            coverage.hit("stalled", bool(got["valid"]) and not advance)
            if advance and got["valid"]:
                assert self.due, f"an element too many: {got}"
                wanted = self.due.popleft()
                came = (got["coordinate"], got["value"], got["last"], got["void"])
                assert came == wanted or (wanted[3] and came[2:] == wanted[2:]), f"{came}, expected {wanted}"
            await RisingEdge(dut.clk)
            if not cycles and not self.due and not self.waiting:
                return
        assert cycles, f"{len(self.due)} elements never came"

    def word(self) -> int:
        if VALUE == "int32":
            return self.rng.getrandbits(32)
        return int(np.float32(self.rng.uniform(-1, 1) * 2.0 ** self.rng.randint(-20, 20)).view(np.uint32))

    def random_job(self) -> Job:
        """A cascade gets runs up to its radix; a pair combiner gets longer ones too, as in a cascade."""
        longest = self.reduces if self.reduces > 2 else 5
        places = sorted(self.rng.sample(range(40), self.rng.randint(0, 5)))
        return [(place, self.word()) for place in places for _ in range(self.rng.randint(1, longest))]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, stall=PATTERN_NAMES)
async def sums_of_runs(dut: Any, idle: str, stall: str) -> None:
    """Runs of all lengths, jobs of all kinds, gaps and stalls."""
    bench = CombinerBench(dut, idle, stall)
    await bench.start()
    for length in range(1, bench.reduces + 1):
        bench.give([(7, bench.word()) for _ in range(length)])
    bench.give(*(bench.random_job() for _ in range(25)))
    await bench.run()
    await bench.run(20)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops the nonzeros inside; the jobs after it are complete."""
    bench = CombinerBench(dut)
    await bench.start()
    bench.give(*([(n, bench.word()) for n in range(20)] for _ in range(3)))
    await bench.run(25)
    coverage.hit("reset", bool(bench.due))
    bench.waiting.clear()
    bench.due.clear()
    dut.i.value = 0
    await reset(dut)
    bench.give(*(bench.random_job() for _ in range(10)))
    await bench.run()
    coverage.save()
