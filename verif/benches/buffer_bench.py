"""Shared by the benches of the buffet and of the Tailors buffer: ports, golden model, random operations.

The golden model is asked in the cycle in which the hardware takes an operation, from what monitors see on the pins.
"""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from sw.golden.buffet import IllegalOperation, Stall
from verif.agents.pauses import Pattern, pattern
from verif.agents.stream import StreamDriver, StreamMonitor, StreamReceiver
from verif.clocking import begin, wait_until
from verif.scoreboard import Scoreboard

__all__ = ["BufferBench"]

CYCLE_LIMIT = 20_000
RECENT = 10


class BufferBench:
    """Drivers on the operation ports, monitors that feed model and scoreboard.

    Parameters
    ----------
    model: golden model; its methods have the ports' names.
    operations: ports on which the model is asked.
    settings: configuration inputs.
    """

    def __init__(
        self,
        dut: Any,
        model: Any,
        operations: tuple[str, ...],
        settings: dict[str, int],
        *,
        idle: str = "none",
        backpressure: str = "none",
    ) -> None:
        self.dut = dut
        self.model = model
        self.operations = operations
        self.settings = settings
        self.rng = random.Random(f"{idle} {backpressure} {settings}")
        self.board = Scoreboard(f"{settings}, idle {idle}, backpressure {backpressure}", hex)
        self.recent: deque[str] = deque(maxlen=RECENT)
        self.illegal: list[str] = []
        self.width = len(dut.read_data__payload)
        self.drivers = {
            name: StreamDriver(dut, name, dut.clk, self._pattern(idle, name)) for name in (*operations, "shrink")
        }
        self.receiver = StreamReceiver(dut, "read_data", dut.clk, pattern(backpressure, "answers"))
        answers = StreamMonitor(
            dut, "read_data", dut.clk, lambda bits: self.board.observe("read_data", bits), self.board.fail, dut.rst
        )
        # The order in which the model sees operations of one cycle: a read sees what was there before it.
        order = [name for name in ("shrink", "read", "update", "fill", "overwrite") if name in self.drivers]
        self.monitors = [
            *(StreamMonitor(dut, name, dut.clk, self._operation(name), self._breach(name), dut.rst) for name in order),
            answers,
        ]

    def _pattern(self, idle: str, name: str) -> Pattern:
        return pattern(idle, name)

    def _breach(self, name: str) -> Any:
        return lambda text: self.board.fail(f"{text} (by the bench itself)")

    async def start(self) -> None:
        zero = [name for name in ("entry_release", "clear_error") if hasattr(self.dut, name)]
        for name, value in self.settings.items():
            getattr(self.dut, name).value = value
        await begin(self.dut, zero=tuple(zero))
        for agent in (*self.drivers.values(), self.receiver, *self.monitors):
            agent.start()
        cocotb.start_soon(self._watch())

    def _operation(self, name: str) -> Any:
        def taken(bits: int) -> None:
            self.recent.append(f"{name}({bits:#x})")
            try:
                if name == "update":
                    self.model.update(bits >> self.width, bits & (1 << self.width) - 1)
                elif name == "read":
                    self.board.expect("read_data", self.model.read(bits))
                else:
                    getattr(self.model, name)(bits)
            except Stall:
                self.board.fail(f"{name}({bits:#x}) was taken although it had to wait; last: {', '.join(self.recent)}")
            except IllegalOperation as illegal:
                self.illegal.append(illegal.name)

        return taken

    async def _watch(self) -> None:
        """Occupancy and credit are the model's in every cycle: compared before this cycle's operations count."""
        while True:
            await RisingEdge(self.dut.clk)
            wanted = (self.model.occupancy, self.model.credit)
            await ReadOnly()
            seen = (int(self.dut.occupancy.value), int(self.dut.credit.value))
            if seen != wanted and not self.dut.rst.value and not self.board.failures:
                self.board.fail(f"occupancy and credit are {seen}, expected {wanted}; last: {', '.join(self.recent)}")

    def send(self, name: str, *items: int) -> None:
        for item in items:
            self.drivers[name].send(item)

    def update(self, index: int, entry: int) -> None:
        self.drivers["update"].send(index << self.width | entry)

    def entry(self) -> int:
        return self.rng.getrandbits(self.width)

    async def sent(self, limit: int = CYCLE_LIMIT) -> None:
        """Wait until every queued operation was taken and answered."""
        await wait_until(
            self.dut.clk,
            lambda: all(driver.idle for driver in self.drivers.values()) and not self.board.outstanding(),
            limit=limit,
            what=f"{self.board.context}: operations wait for ever; last: {', '.join(self.recent)}",
        )

    async def settle(self) -> None:
        await self.sent()
        for _ in range(10):
            await RisingEdge(self.dut.clk)
        self.board.check()
