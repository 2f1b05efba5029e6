"""Shared by most benches: a driver for each input stream, a receiver for each output stream, monitors on all of them.

A bench derives from :class:`StreamBench`, passes each accepted item to its model in :meth:`StreamBench.taken`, and
compares the output through the scoreboard.
"""

import random
from collections.abc import Callable, Iterable
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from verif.agents.layouts import described
from verif.agents.pauses import pattern
from verif.agents.stream import StreamDriver, StreamMonitor, StreamReceiver
from verif.clocking import begin, reset, wait_until
from verif.scoreboard import Scoreboard

__all__ = ["StreamBench"]

QUIET_CYCLES = 12


class StreamBench:
    """Agents of a block's streams, by port name.

    Parameters
    ----------
    drive, receive: stream ports of the block that the bench feeds and drains.
    keep: receivers whose ``ready`` stays up until an item was taken.
    idle, backpressure: patterns of the drivers and of the receivers, by name.
    zero: further inputs that begin at 0.
    limit: cycles within which everything expected must have come.
    """

    def __init__(
        self,
        dut: Any,
        *,
        drive: Iterable[str] = (),
        receive: Iterable[str] = (),
        keep: Iterable[str] = (),
        idle: str = "none",
        backpressure: str = "none",
        zero: tuple[str, ...] = (),
        seed: int = 1,
        limit: int = 20_000,
    ) -> None:
        self.dut = dut
        self.block = described()
        self.rng = random.Random(f"{self.block.module} {idle} {backpressure} {seed}")
        self.idle = idle
        self.backpressure = backpressure
        self.zero = zero
        self.limit = limit
        context = f"{self.block.module}, seed {seed}, idle {idle}, backpressure {backpressure}"
        self.board = Scoreboard(context, lambda item: f"0x{item:x}" if isinstance(item, int) else repr(item))
        self.layouts = {name: self.block.layout(name) for name in (*drive, *receive)}
        self.drivers = {name: StreamDriver(dut, name, dut.clk, self.pattern(idle, name)) for name in drive}
        self.receivers = {
            name: StreamReceiver(dut, name, dut.clk, self.pattern(backpressure, name), keep=name in keep)
            for name in receive
        }
        self.monitors = {
            name: StreamMonitor(dut, name, dut.clk, self._observer(name), self.board.fail, dut.rst)
            for name in (*self.drivers, *self.receivers)
        }
        self.helpers: list[Any] = []  # other agents: start, stop, resume, breaches

    def pattern(self, name: str, salt: str) -> Any:
        return pattern(name, f"{self.block.module} {salt}")

    def _observer(self, name: str) -> Callable[[int], None]:
        layout = self.layouts[name]
        if name in self.drivers:
            return lambda bits: self.taken(name, layout.unpack(bits))
        return lambda bits: self.came(name, layout.unpack(bits))

    def taken(self, port: str, item: Any) -> None:
        """The block took ``item``: expect the results of it."""

    def came(self, port: str, item: Any) -> None:
        """``item`` came out."""
        self.board.observe(port, item)

    def every_cycle(self) -> None:
        """Called in each settled cycle outside reset: for pins that are not streams."""

    async def start(self) -> None:
        await begin(self.dut, zero=self.zero)
        for agent in (*self.monitors.values(), *self.drivers.values(), *self.receivers.values(), *self.helpers):
            agent.start()
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        while True:
            await ReadOnly()
            if not self.dut.rst.value:
                self.every_cycle()
            await RisingEdge(self.dut.clk)

    def send(self, port: str, *items: Any) -> None:
        for item in items:
            self.drivers[port].send(self.layouts[port].pack(item))

    def set(self, port: str, item: Any) -> None:
        """Drive an input that is not a stream."""
        getattr(self.dut, port).value = self.block.layout(port).pack(item)

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk)

    def settled(self) -> bool:
        """Everything was sent and everything expected came."""
        return all(driver.idle for driver in self.drivers.values()) and not self.board.outstanding()

    async def wait(self, condition: Callable[[], bool], what: str) -> int:
        return await wait_until(self.dut.clk, condition, limit=self.limit, what=f"{self.board.context}: {what}")

    async def settle(self) -> None:
        """Wait for everything, then some time for surplus items, then compare."""
        try:
            await self.wait(self.settled, "not everything came")
        except AssertionError:
            self.board.check()
            raise
        await self.cycles(QUIET_CYCLES)
        for helper in self.helpers:
            for breach in helper.breaches:
                self.board.fail(breach)
        self.board.check()

    async def restart(self, cycles: int = 2) -> None:
        """Reset in the middle: everything in flight is dropped, all agents begin anew."""
        for agent in (*self.drivers.values(), *self.receivers.values(), *self.helpers):
            agent.stop()
        await reset(self.dut, cycles)
        self.board.forget()
        for agent in (*self.drivers.values(), *self.receivers.values()):
            agent.start()
        for helper in self.helpers:
            helper.resume()
