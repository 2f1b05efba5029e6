"""Stream queue on its pins: order, capacity and stalls, under Verilator and Icarus.

Fits any build of ``StreamQueue``, ``StreamSkid`` or ``StreamRegister`` with a payload of at least 8 bits.
"""

import random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.pauses import PATTERN_NAMES, never, pattern
from verif.agents.stream import StreamDriver, StreamMonitor, StreamReceiver
from verif.clocking import begin, reset, wait_until
from verif.coverage import Coverage
from verif.scoreboard import Scoreboard

CYCLE_LIMIT = 20_000
coverage = Coverage("stream_queue")


class QueueBench:
    """A driver, a receiver, monitors at both ends; the items that go in are expected to come out."""

    def __init__(self, dut: Any, idle: str, backpressure: str) -> None:
        self.dut = dut
        self.rng = random.Random(f"{idle} {backpressure}")
        self.board = Scoreboard(f"idle {idle}, backpressure {backpressure}", hex)
        self.driver = StreamDriver(dut, "i", dut.clk, pattern(idle, "in"))
        self.receiver = StreamReceiver(dut, "o", dut.clk, pattern(backpressure, "out"))
        self.monitors = [
            StreamMonitor(dut, "i", dut.clk, lambda bits: self.board.expect("o", bits), self.board.fail, dut.rst),
            StreamMonitor(dut, "o", dut.clk, lambda bits: self.board.observe("o", bits), self.board.fail, dut.rst),
        ]

    async def start(self) -> None:
        await begin(self.dut)
        for agent in (self.driver, self.receiver, *self.monitors):
            agent.start()
        cocotb.start_soon(self._cover())

    def send(self, count: int) -> None:
        for _ in range(count):
            self.driver.send(self.rng.getrandbits(len(self.driver.payload)))

    async def settle(self) -> None:
        await wait_until(
            self.dut.clk,
            lambda: self.driver.idle and not self.board.outstanding(),
            limit=CYCLE_LIMIT,
            what=f"{self.board.context}: the queue did not run empty",
        )
        for _ in range(5):
            await RisingEdge(self.dut.clk)
        self.board.check()
        coverage.save()

    async def _cover(self) -> None:
        dut = self.dut
        while True:
            await ReadOnly()
            into = [bool(dut.i__valid.value), bool(dut.i__ready.value)]
            out = [bool(dut.o__valid.value), bool(dut.o__ready.value)]
            coverage.hit("full", into == [True, False])
            coverage.hit("empty", out == [False, True])
            coverage.hit("through", all(into) and all(out))
            await RisingEdge(dut.clk)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def keeps_order(dut: Any, idle: str, backpressure: str) -> None:
    """Every item comes out once, in order, unchanged, with any behaviour of both sides."""
    bench = QueueBench(dut, idle, backpressure)
    await bench.start()
    bench.send(500)
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def full_rate(dut: Any) -> None:
    """With neither side pausing, an item a cycle goes through."""
    bench = QueueBench(dut, "none", "none")
    await bench.start()
    bench.send(200)
    await bench.settle()
    monitor = bench.monitors[1]
    assert monitor.items == 200 and monitor.stalled_cycles == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_empties(dut: Any) -> None:
    """After a reset no earlier item comes out."""
    bench = QueueBench(dut, "none", "none")
    bench.receiver.pause = lambda: iter(lambda: True, None)
    await bench.start()
    bench.send(3)
    for _ in range(10):
        await RisingEdge(dut.clk)
    coverage.hit("reset_loaded", bool(dut.o__valid.value))
    bench.driver.stop()
    bench.receiver.stop()
    await reset(dut)
    bench.board.forget()
    bench.receiver.pause = never
    bench.receiver.start()
    for _ in range(10):
        await RisingEdge(dut.clk)
    assert not bench.board.matched("o")
    bench.driver.start()
    bench.send(50)
    await bench.settle()
