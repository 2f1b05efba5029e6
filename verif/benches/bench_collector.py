"""Collector against lists of tickets and fibers. Testplan: ``verif/testplans/collector.toml``."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

KINDS = ("rows", "scratch")
coverage = Coverage("collector")


class CollectorBench(StreamBench):
    """PEs give their fibers in the order of their tickets, at any time; the model takes rows and scratch fibers
    each in ticket order.
    """

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        streams = list(_ports("fibers"))
        super().__init__(
            dut, drive=["tickets", *streams], receive=["collected"], idle=idle, backpressure=backpressure, seed=seed
        )
        self.pes = len(streams)
        self.closed = self.pattern(backpressure, "scratch closed")()
        self.lanes = int(self.block.parameters["lanes"])
        self.fibers: list[deque[list[dict[str, Any]]]] = [deque() for _ in streams]
        self.last_pe = -1
        self.forget()

    def forget(self) -> None:
        for queue in self.fibers:
            queue.clear()
        self.merged = self.merged_events = 0
        self.taken_kinds: list[int] = []
        self.came_words: list[tuple[int, int]] = []  # kind, last

    def fiber(self, nonzeros: int) -> list[dict[str, Any]]:
        """Words of a fiber of so many nonzeros; lanes without one are filled too."""
        words = []
        for at in range(0, max(nonzeros, 1), self.lanes):
            count = min(self.lanes, nonzeros - at)
            line = [
                {"coordinate": self.rng.getrandbits(32), "value": self.rng.getrandbits(32)} for _ in range(self.lanes)
            ]
            words.append({"line": line, "count": count, "last": int(at + self.lanes >= nonzeros)})
        return words

    def jobs(self, count: int) -> None:
        """Queue jobs with their fibers."""
        for _ in range(count):
            pe = self.rng.randrange(self.pes)
            size = self.rng.choice([0, 1, self.lanes - 1, self.lanes, self.lanes + 1, 5 * self.lanes])
            scratch = self.rng.randrange(2)
            merged = (1 - scratch) * self.rng.randrange(2)
            ticket = {
                "pe": pe,
                "scratch": scratch,
                "first": scratch * self.rng.randrange(2),
                "merged": merged,
                "slot": self.rng.randrange(2),
                "bound": size + 3,
            }
            self.merged += merged
            coverage.hit("merged", bool(merged))
            words = self.fiber(size)
            self.fibers[pe].append(words)
            self.send(f"fibers__{pe}", *words)
            self.send("tickets", ticket)
            coverage.hit("empty_fiber", size == 0)
            coverage.hit("long_fiber", len(words) > 2)
            coverage.hit("scratch", bool(scratch))
            coverage.hit("same_pe_twice", pe == self.last_pe)
            self.last_pe = pe

    def taken(self, port: str, item: Any) -> None:
        if port != "tickets":
            return
        self.taken_kinds.append(item["scratch"])
        told = ("first", "slot") if item["scratch"] else ("bound",)
        for word in self.fibers[item["pe"]].popleft():
            self.board.expect(KINDS[item["scratch"]], (word, {name: item[name] for name in told}))

    def came(self, port: str, item: Any) -> None:
        told = ("first", "slot") if item["scratch"] else ("bound",)
        self.board.observe(KINDS[item["scratch"]], (item["word"], {name: item[name] for name in told}))
        before = self.came_words[-1] if self.came_words else (0, 1)
        coverage.hit("took_turns", item["scratch"] != before[0] and not before[1])
        self.came_words.append((item["scratch"], item["word"]["last"]))
        ended = [kind for kind, last in self.came_words if last]
        coverage.hit("overtaken", ended != self.taken_kinds[: len(ended)])

    async def start(self) -> None:
        self.dut.scratch_open.value = 1
        await super().start()
        cocotb.start_soon(self.open_and_close())

    async def open_and_close(self) -> None:
        """Scratch fibers may leave now and then."""
        while True:
            await RisingEdge(self.dut.clk)
            self.dut.scratch_open.value = int(not next(self.closed))

    def every_cycle(self) -> None:
        dut = self.dut
        starved = bool(int(dut.event_stall.value))
        self.merged_events += int(dut.merged_out.value)
        coverage.hit("closed", not int(dut.scratch_open.value))
        offered = any(int(driver.valid.value) for name, driver in self.drivers.items() if name != "tickets")
        coverage.hit("starved", starved)
        coverage.hit("waited_for_turn", starved and offered)
        coverage.hit("tickets_full", bool(int(dut.tickets__valid.value)) and not int(dut.tickets__ready.value))
        coverage.hit("refused", bool(int(dut.collected__valid.value)) and not int(dut.collected__ready.value))


def _ports(role: str) -> list[str]:
    from verif.agents.layouts import described

    return described().streams(role)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def words_leave_in_job_order(dut: Any, idle: str, backpressure: str) -> None:
    """Every word once, rows and scratch fibers each in the order of their tickets, with the fields of the ticket."""
    bench = CollectorBench(dut, idle, backpressure)
    await bench.start()
    bench.jobs(40)
    await bench.settle()
    assert int(dut.idle.value)
    assert bench.merged_events == bench.merged, "merged rows"
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def rows_leave_while_scratch_fibers_may_not(dut: Any) -> None:
    """Before they may, no word of a scratch fiber leaves; rows do, and the fiber follows when it may."""
    bench = CollectorBench(dut)
    bench.closed = iter([True] * 80 + [False] * 400)
    await bench.start()
    for pe, scratch in ((0, 1), (1, 0), (1, 0)):
        words = bench.fiber(3 * bench.lanes)
        bench.fibers[pe].append(words)
        bench.send(f"fibers__{pe}", *words)
        bench.send("tickets", {"pe": pe, "scratch": scratch, "first": 0, "merged": 0, "slot": 0, "bound": 0})
    await bench.cycles(60)
    assert [kind for kind, _ in bench.came_words] == [0] * 6, "two rows and nothing else"
    await bench.settle()
    assert [kind for kind, _ in bench.came_words] == [0] * 6 + [1] * 3
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops tickets and words; what follows is as after power up."""
    bench = CollectorBench(dut, "fourth", "random")
    await bench.start()
    bench.jobs(20)
    await bench.cycles(60)
    assert bench.board.outstanding() and not int(dut.idle.value)
    coverage.hit("reset")
    await bench.restart()
    bench.forget()
    await bench.cycles(10)
    assert int(dut.idle.value)
    bench.jobs(20)
    await bench.settle()
    coverage.save()
