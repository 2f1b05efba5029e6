"""Dispatcher against the grouping that its contract defines. Testplan: ``verif/testplans/dispatcher.toml``."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

PARTIAL_REGION = 1000
POSITION_BITS = 30  # of a scratch fiber in its slot
KINDS = ("rows", "scratch fibers")
SPACING = 10  # positions between fibers, so that a position names its fiber
coverage = Coverage("dispatcher")
Leaf = tuple[str, int]


class DispatcherBench(StreamBench):
    """Sends rows, stands in for PEs, collector and scratch memory, and knows the jobs of each row.

    Fibers leave their PEs in job order, rows in row order, scratch fibers in theirs: a deadlock of the machine shows
    here too.
    """

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        jobs = described().streams("jobs")
        super().__init__(
            dut,
            drive=["leaves", "partials", "scratch_results"],
            receive=[*jobs, "tickets"],
            keep=[*jobs, "tickets"],
            idle=idle,
            backpressure=backpressure,
            zero=("with_partials", "columns", "partial_region", "merged_out"),
            seed=seed,
        )
        self.radix = int(self.block.parameters["radix"])
        self.scratch_slots = int(self.block.parameters["scratch_slots"])
        self.pes = len(jobs)
        self.forget()

    def forget(self) -> None:
        self.open: dict[int, list[Leaf]] = {}
        self.tickets: list[dict[str, int]] = []
        self.queued: list[list[int]] = [[] for _ in range(self.pes)]  # tickets of each PE, in order
        self.done: list[list[list[Leaf]]] = [[] for _ in range(self.pes)]  # its jobs
        self.left = [0] * self.pes  # fibers that have left it
        self.lines: tuple[deque[int], deque[int]] = (deque(), deque())  # rows, scratch: tickets whose turn is to come
        self.numbers = 0  # tickets expected so far
        self.rows = self.events = 0
        self.tag = 0
        self.slotted = 0

    async def configure(self, *, with_partials: bool) -> None:
        self.with_partials = with_partials
        for name, value in (
            ("with_partials", int(with_partials)),
            ("columns", 1000),
            ("partial_region", PARTIAL_REGION),
        ):
            getattr(self.dut, name).value = value
        await self.cycles(1)

    def scratch_length(self, job: int) -> int:
        """Every fifth scratch fiber turns out to be empty."""
        return 0 if job % 5 == 4 else 7

    def row(self, leaves: int, absent: float = 0.2, partial: int = 0) -> None:
        """Queue a row and the jobs and tickets that it must give."""
        present: list[Leaf] = []
        if self.with_partials:
            self.send("partials", {"in_memory": 1, "position": SPACING * self.rows, "length": partial})
            coverage.hit("empty_partial", partial == 0)
            coverage.hit("partial", partial > 0)
            if partial:
                present.append(("partial", self.rows))
        for n in range(max(leaves, 1)):
            here = n < leaves and self.rng.random() >= absent
            coverage.hit("absent", n < leaves and not here)
            leaf = {"position": self.tag, "length": 1 + self.tag % 3, "weight": self.tag, "last": int(n >= leaves - 1)}
            self.send("leaves", {"present": int(here), "leaf": leaf})
            if here:
                present.append(("b", self.tag))
            self.tag += 1
        self.rows += 1
        self._expect(present)

    def _expect(self, leaves: list[Leaf]) -> None:
        coverage.hit("empty_row", not leaves)
        coverage.hit("one_job", 0 < len(leaves) < self.radix)
        coverage.hit("full_job", len(leaves) == self.radix)
        coverage.hit("several_jobs", len(leaves) > self.radix)
        if len(leaves) <= self.radix:
            self._job(leaves)
            return
        table: list[Leaf] = []
        for at in range(0, len(leaves), self.radix):
            if len(table) == self.radix:
                table = [self._job(table, scratch=1)]
                coverage.hit("merged_scratch")
            table.append(self._job(leaves[at : at + self.radix], scratch=1, first=int(at == 0)))
        self._job(table, merged=1)

    def _job(self, leaves: list[Leaf], *, scratch: int = 0, first: int = 0, merged: int = 0) -> Leaf:
        number = self.numbers
        self.numbers += 1
        kept = [leaf for leaf in leaves if leaf[0] != "scratch" or self.scratch_length(leaf[1])]
        coverage.hit("empty_scratch", len(kept) < len(leaves))
        self.board.expect(KINDS[scratch], (kept or [("none", 0)], first, merged))
        return "scratch", number

    def came(self, port: str, item: Any) -> None:
        if port == "tickets":
            number = len(self.tickets)
            self.tickets.append(item)
            self.queued[item["pe"]].append(number)
            self.lines[item["scratch"]].append(number)
            coverage.hit("overlap", any(self.tickets[n]["merged"] and not self._given(n) for n in self.lines[0]))
            self.slotted += item["first"]
            coverage.hit("all_slots", self.slotted == self.scratch_slots)
            assert self.slotted <= self.scratch_slots, "more long rows than slots"
        else:
            pe = int(port.rpartition("__")[2])
            job = self.open.setdefault(pe, [])
            job.append(self._leaf(item))
            if item["last"]:
                self.done[pe].append(self.open.pop(pe))

    def _given(self, ticket: int) -> bool:
        pe = self.tickets[ticket]["pe"]
        return self.queued[pe].index(ticket) < len(self.done[pe])

    async def collect(self) -> None:
        """A fiber of each kind may leave in each cycle, when its turn has come and it is at its PE's output."""
        merged_out = self.dut.merged_out
        while True:
            await RisingEdge(self.dut.clk)
            merged = 0
            for line in self.lines:
                if line and self.rng.random() < 0.5:
                    merged |= self._leave(line)
            merged_out.value = merged
            self.slotted -= merged

    def _leave(self, line: deque[int]) -> int:
        number = line[0]
        ticket = self.tickets[number]
        pe = ticket["pe"]
        at = self.left[pe]
        if self.queued[pe][at] != number or at >= len(self.done[pe]):
            return 0
        line.popleft()
        self.left[pe] += 1
        self.board.observe(KINDS[ticket["scratch"]], (self.done[pe][at], ticket["first"], ticket["merged"]))
        if ticket["scratch"]:
            length = self.scratch_length(number)
            self.send("scratch_results", {"slot": ticket["slot"], "position": SPACING * number, "length": length})
        return ticket["merged"]

    def _leaf(self, item: dict[str, int]) -> Leaf:
        if not item["length"]:
            return "none", 0
        if not item["unit"]:
            return "b", item["weight"]
        if not item["scratch"]:
            return "partial", (item["position"] - PARTIAL_REGION) // SPACING
        return "scratch", item["position"] % (1 << POSITION_BITS) // SPACING

    def every_cycle(self) -> None:
        self.events += int(self.dut.event_row.value)
        stalled = bool(int(self.dut.event_stall.value))
        coverage.hit("no_pe_free", stalled and self.slotted < self.scratch_slots)
        coverage.hit("no_slot", stalled and self.slotted == self.scratch_slots)

    async def start(self) -> None:
        await super().start()
        self.collecting = cocotb.start_soon(self.collect())

    async def restart(self, cycles: int = 2) -> None:
        self.collecting.cancel()
        self.dut.merged_out.value = 0
        await super().restart(cycles)
        self.forget()
        self.collecting = cocotb.start_soon(self.collect())

    async def finish(self) -> None:
        await self.settle()
        assert self.events == self.rows, f"{self.events} rows done of {self.rows}"
        assert not self.open and not any(self.lines), "a job without an end, or a ticket without a job"
        assert sum(map(len, self.done)) == len(self.tickets), "a job without a ticket"
        assert int(self.dut.idle.value)


def lengths(radix: int) -> list[int]:
    """Lengths around the radix, around its square, and beyond."""
    return [0, 1, radix - 1, radix, radix + 1, 2 * radix, radix * radix, radix * radix + 1, 3 * radix * radix]


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def rows_become_jobs(dut: Any, idle: str, backpressure: str) -> None:
    """Rows of every length: the jobs' leaves, their order, tickets and scratch fibers are as the contract says."""
    bench = DispatcherBench(dut, idle, backpressure)
    await bench.start()
    await bench.configure(with_partials=False)
    rows = [*lengths(bench.radix)] * 2
    bench.rng.shuffle(rows)
    for length in rows:
        bench.row(length, absent=bench.rng.choice([0.0, 0.2]))
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=["none", "random"], backpressure=PATTERN_NAMES)
async def long_rows_overlap(dut: Any, idle: str, backpressure: str) -> None:
    """Long rows among short ones and long ones only, more of them than slots: all come to an end, in row order."""
    bench = DispatcherBench(dut, idle, backpressure)
    await bench.start()
    await bench.configure(with_partials=False)
    radix = bench.radix
    for n in range(24):
        bench.row(radix + 1 + bench.rng.randrange(radix) if n % 3 else bench.rng.randrange(radix), absent=0.0)
    for _ in range(4 * bench.scratch_slots):
        bench.row(radix + 1 + bench.rng.randrange(radix * (radix - 1)), absent=0.0)
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def partials_come_first(dut: Any, backpressure: str) -> None:
    """The partial fiber of an earlier k step is the row's first leaf; an empty one is none."""
    bench = DispatcherBench(dut, "random", backpressure)
    await bench.start()
    await bench.configure(with_partials=True)
    for length in [*lengths(bench.radix), bench.radix - 1, 0, 0, bench.radix]:
        bench.row(length, absent=0.0, partial=bench.rng.choice([0, 4]))
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset inside a row of many jobs drops all of it."""
    bench = DispatcherBench(dut, "none", "fourth")
    await bench.start()
    await bench.configure(with_partials=False)
    bench.row(5 * bench.radix * bench.radix)
    await bench.cycles(70)
    assert bench.board.outstanding() and not int(dut.idle.value)
    coverage.hit("reset")
    await bench.restart()
    await bench.configure(with_partials=False)
    for length in lengths(bench.radix):
        bench.row(length)
    await bench.finish()
    coverage.save()
