"""Merge tree against a sort by coordinate and leaf. Testplan: ``verif/testplans/merge_tree.toml``."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("merge_tree")
Job = list[list[int]]


class MergeBench(StreamBench):
    """Leaves whose heads appear by a pattern; jobs are lists of fibers, a coordinate's value is made of it and its leaf."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        zero = ("leaves__left", "leaves__right")
        super().__init__(
            dut, drive=["jobs"], receive=["merged"], idle="none", backpressure=backpressure, zero=zero, seed=seed
        )
        self.radix = int(self.block.parameters["radix"])
        self.head = self.block.layout("leaves__left")
        self.pauses = [self.pattern(idle, f"leaf {n}")() for n in range(self.radix)]
        self.leaves: list[deque[tuple[int, int]]] = [deque() for _ in range(self.radix)]
        self.visible = [False] * self.radix

    def give(self, *jobs: Job) -> None:
        for job in jobs:
            items = []
            for leaf, fiber in enumerate(job):
                void = not fiber
                assert not void or len(job) == 1, "only a job of one leaf may be empty"
                for n, coordinate in enumerate(fiber or [0]):
                    self.leaves[leaf].append(self.entry(coordinate, leaf, n >= len(fiber) - 1, void))
                    items.append((coordinate, leaf, void))
            items.sort()
            for n, (coordinate, leaf, void) in enumerate(items):
                self.board.expect("merged", (coordinate, leaf, int(n == len(items) - 1), int(void)))
            self.cover(job, items)
            self.send("jobs", len(job))

    def entry(self, coordinate: int, leaf: int, last: bool, void: bool) -> tuple[int, int]:
        value = coordinate ^ 0xA5A5A5A5 ^ leaf << 16
        item = {"coordinate": coordinate, "value": value, "last": int(last), "void": int(void)}
        return coordinate, self.head.pack({"valid": 1, "item": item})

    def cover(self, job: Job, items: list[Any]) -> None:
        coverage.hit("one_leaf", len(job) == 1)
        coverage.hit("some_leaves", 1 < len(job) < self.radix)
        coverage.hit("all_leaves", len(job) == self.radix)
        coverage.hit("void", not job[0])
        coverage.hit("equal_everywhere", len(job) == self.radix and len({c for c, _, _ in items}) == 1)
        coverage.hit("equal", any(a[0] == b[0] for a, b in zip(items, items[1:], strict=False)))
        coverage.hit("highest_coordinate", items[-1][0] == 0xFFFFFFFF)
        coverage.hit(
            "one_after_another", len(job) > 1 and all(max(a) < min(b) for a, b in zip(job, job[1:], strict=False))
        )

    def came(self, port: str, item: Any) -> None:
        assert item["void"] or item["value"] == item["coordinate"] ^ 0xA5A5A5A5 ^ item["leaf"] << 16, item
        self.board.observe(port, (item["coordinate"], item["leaf"], item["last"], item["void"]))

    def every_cycle(self) -> None:
        merged_waits = bool(self.dut.merged__valid.value) and not self.dut.merged__ready.value
        coverage.hit("refused", merged_waits)
        coverage.hit("starved", bool(self.dut.starved.value))

    async def start(self) -> None:
        await super().start()
        cocotb.start_soon(self._leaves())

    async def _leaves(self) -> None:
        """Shows the heads of the pair that was named in the cycle before, and takes what is popped."""
        dut = self.dut
        pair = 0
        while True:
            for n in range(self.radix):
                self.visible[n] = bool(self.leaves[n]) and (self.visible[n] or not next(self.pauses[n]))
            for side, port in enumerate((dut.leaves__left, dut.leaves__right)):
                leaf = 2 * pair + side
                port.value = self.leaves[leaf][0][1] if self.visible[leaf] else 0
            await ReadOnly()
            popped = []
            for side, pop in enumerate((dut.leaves__pop_left, dut.leaves__pop_right)):
                if pop.value and not dut.rst.value:
                    assert self.visible[2 * pair + side], "popped what was not there"
                    popped.append(2 * pair + side)
            pair = int(dut.leaves__pair.value) if self.radix > 2 else 0
            await RisingEdge(dut.clk)
            for leaf in popped:
                self.visible[leaf] = False
                if self.leaves[leaf]:  # not taken away for a reset
                    self.leaves[leaf].popleft()

    def random_job(self) -> Job:
        rng = self.rng
        span = rng.choice((2, 6, 30, 2**32))
        count = rng.choice((1, self.radix, rng.randint(1, self.radix)))
        if count == 1 and rng.random() < 0.3:
            return [[]]
        return [sorted(rng.sample(range(span), rng.randint(1, min(span, 5)))) for _ in range(count)]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def sorted_and_complete(dut: Any, idle: str, backpressure: str) -> None:
    """Every item of every leaf comes out once, by coordinate and then by leaf, job after job."""
    bench = MergeBench(dut, idle, backpressure)
    await bench.start()
    bench.give(*(bench.random_job() for _ in range(40)))
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def borders(dut: Any) -> None:
    """Equal coordinates in all leaves, the highest one, leaves that follow one another."""
    bench = MergeBench(dut)
    await bench.start()
    bench.give([[7]] * bench.radix, [[0xFFFFFFFF]] * (bench.radix - 1), [[0, 0xFFFFFFFF]] * bench.radix, [[]], [[]])
    bench.give([[10 * n, 10 * n + 9] for n in range(bench.radix)], [[10 * n] for n in reversed(range(bench.radix))])
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset between two items of a job; the jobs after it are whole."""
    bench = MergeBench(dut, "none", "random")
    await bench.start()
    bench.give(*([list(range(n, 60, bench.radix)) for n in range(bench.radix)] for _ in range(3)))
    await bench.cycles(40)
    coverage.hit("reset", bench.board.matched("merged") > 0 and bench.board.outstanding() > 0)
    for leaf in bench.leaves:
        leaf.clear()
    bench.visible = [False] * bench.radix
    await bench.restart()
    bench.give(*(bench.random_job() for _ in range(10)))
    await bench.settle()
    coverage.save()
