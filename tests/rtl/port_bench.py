"""A bench for blocks whose ports are streams: what goes in comes from lists, what comes out goes to lists."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from tests.rtl.accessor.clients import patient

__all__ = ["PortBench", "plain"]


def plain(value: Any) -> Any:
    """A payload as dictionaries, lists and integers."""
    if not isinstance(value, data.Const):
        return value
    layout = data.Layout.cast(value.shape())
    if isinstance(layout, data.ArrayLayout):
        return [plain(value[n]) for n in range(layout.length)]
    return {name: plain(value[name]) for name, _ in layout}


class PortBench:
    """Neighbours that are idle and stall by chance.

    Parameters
    ----------
    dut : the block.
    seed : int
    chance : float
        That a neighbour which may act in a cycle does so; may be changed between cycles.
    """

    def __init__(self, dut: Any, *, seed: int, chance: float = 0.6) -> None:
        self.dut = dut
        self.random = Random(seed)
        self.chance = chance
        self.cycle = 0
        self.moved: list[int] = []  # outputs that moved in the cycle before, by their numbers
        self._inputs: list[tuple[Any, deque[Any]]] = []
        self._outputs: list[tuple[Any, list[Any], bool, float | None]] = []
        self._domain = ClockDomain("sync")
        self._offers: dict[int, bool] = {}
        self._held: dict[int, Any] = {}

    def feed(self, port: Any, items: Any = ()) -> deque[Any]:
        """Items that go into ``port``, in order; more may follow. An item stays in the list until it has been taken."""
        waiting = deque(items)
        self._inputs.append((port, waiting))
        return waiting

    def collect(self, port: Any, *, steady: bool = True, chance: float | None = None) -> list[Any]:
        """What has come out of ``port``. ``steady``: what it offers must stay until it is taken; ``chance``: of this port."""
        found: list[Any] = []
        self._outputs.append((port, found, steady, chance))
        return found

    def run(self, done: Callable[[], bool], *, limit: int = 20_000, each: Callable[[Any], None] | None = None) -> int:
        """Cycles until ``done``. ``each`` is called in every one, before what moves is looked at."""

        async def script(ctx: Any) -> None:
            await self.until(ctx, done, limit=limit, each=each)

        self.simulate(script)
        return self.cycle

    def simulate(self, script: Callable[[Any], Any]) -> None:
        """Runs a coroutine that waits by :meth:`until` and :meth:`clear`, one build for all of it."""
        # A block without registers has no clock of its own.
        clocked = Module()
        clocked.domains.sync = self._domain
        clocked.submodules.dut = self.dut
        clocked.d.sync += Signal().eq(0)
        simulator = Simulator(clocked)
        simulator.add_clock(1e-8)
        simulator.add_testbench(script)
        simulator.run()

    async def until(
        self, ctx: Any, done: Callable[[], bool], *, limit: int = 20_000, each: Callable[[Any], None] | None = None
    ) -> None:
        """As :meth:`run`, within :meth:`simulate`."""
        for _ in patient(limit):
            self._drive(ctx)
            if each is not None:
                each(ctx)
            self._look(ctx)
            await ctx.tick()
            self.cycle += 1
            if done():
                break

    async def clear(self, ctx: Any) -> None:
        """Resets the block, and empties the lists of what goes in and of what has come out."""
        for port, waiting in self._inputs:
            ctx.set(port.valid, 0)
            waiting.clear()
        for port, found, _, _ in self._outputs:
            ctx.set(port.ready, 0)
            found.clear()
        self._offers.clear()
        self._held.clear()
        ctx.set(self._domain.rst, 1)
        await ctx.tick()
        ctx.set(self._domain.rst, 0)

    def _drive(self, ctx: Any) -> None:
        for n, (port, waiting) in enumerate(self._inputs):
            if not self._offers.get(n) and waiting and self.random.random() < self.chance:
                self._offers[n] = True
                ctx.set(port.payload, waiting[0])
            ctx.set(port.valid, self._offers.get(n, False))
        for port, _, _, chance in self._outputs:
            ctx.set(port.ready, self.random.random() < (self.chance if chance is None else chance))

    def _look(self, ctx: Any) -> None:
        self.moved = []
        for n, (port, found, steady, _) in enumerate(self._outputs):
            valid, ready = ctx.get(port.valid), ctx.get(port.ready)
            payload = plain(ctx.get(port.payload)) if valid else None
            if n in self._held:
                assert valid and payload == self._held.pop(n), f"output {n} takes back what it offered"
            if valid and ready:
                found.append(payload)
                self.moved.append(n)
            elif valid and steady:
                self._held[n] = payload
        for n, (port, waiting) in enumerate(self._inputs):
            if self._offers.get(n) and ctx.get(port.ready):
                self._offers[n] = False
                waiting.popleft()
