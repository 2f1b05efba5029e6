"""AXI4-Lite manager for the register file in the Amaranth simulator."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from amaranth.sim import Simulator

from rtl.regs.axi_lite import DESIGN_PARAMETERS, RegisterFile

__all__ = ["OKAY", "PARAMETERS", "SLVERR", "Lite", "register_file", "simulate"]

OKAY, SLVERR = 0, 2
PARAMETERS = {name: 0x100 + n for n, name in enumerate(DESIGN_PARAMETERS)}


def register_file(address_width: int = 40) -> RegisterFile:
    return RegisterFile(address_width=address_width, parameters=PARAMETERS)


class Lite:
    """Reads and writes with optional stalls of every channel, and checks that responses stay while stalled."""

    def __init__(self, ctx: Any, bus: Any, *, stall: float = 0.0, seed: int = 0) -> None:
        self.ctx = ctx
        self.bus = bus
        self.stall = stall
        self.random = random.Random(seed)

    async def _pause(self) -> None:
        while self.random.random() < self.stall:
            await self.ctx.tick()

    async def _response(self, channel: str, *payload: Any) -> tuple[int, ...]:
        ctx, bus = self.ctx, self.bus
        valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
        for _ in range(20):
            if ctx.get(valid):
                break
            await ctx.tick()
        else:
            raise AssertionError(f"no {channel} response")
        before = tuple(ctx.get(item) for item in payload)
        while self.random.random() < self.stall:
            await ctx.tick()
            assert ctx.get(valid), f"{channel}valid fell before {channel}ready"
            assert tuple(ctx.get(item) for item in payload) == before, f"{channel} payload changed while stalled"
        ctx.set(ready, 1)
        await ctx.tick()
        ctx.set(ready, 0)
        return before

    async def read(self, offset: int) -> tuple[int, int]:
        """Value and response of the word at ``offset``."""
        ctx, bus = self.ctx, self.bus
        await self._pause()
        ctx.set(bus.araddr, offset)
        ctx.set(bus.arvalid, 1)
        await ctx.tick().until(bus.arready)
        ctx.set(bus.arvalid, 0)
        value, response = await self._response("r", bus.rdata, bus.rresp)
        return value, response

    async def write(self, offset: int, value: int, strobe: int = 0xF, data_first: bool = False) -> int:
        """Response to a write. Address and data go together, or the data well ahead of the address."""
        ctx, bus = self.ctx, self.bus
        await self._pause()
        ctx.set(bus.wdata, value)
        ctx.set(bus.wstrb, strobe)
        ctx.set(bus.awaddr, offset)
        ctx.set(bus.wvalid, 1)
        ctx.set(bus.awvalid, not data_first)
        waiting = {"w", "aw"}
        late = 4 if data_first else 0
        while waiting:
            taken = [
                name
                for name in sorted(waiting)
                if ctx.get(getattr(bus, f"{name}ready")) and ctx.get(getattr(bus, f"{name}valid"))
            ]
            await ctx.tick()
            for name in taken:
                waiting.discard(name)
                ctx.set(getattr(bus, f"{name}valid"), 0)
            late -= 1
            if late <= 0 and "aw" in waiting:
                ctx.set(bus.awvalid, 1)
        (response,) = await self._response("b", bus.bresp)
        return response


def simulate(dut: Any, task: Callable[[Any], Awaitable[None]], *others: Callable[[Any], Awaitable[None]]) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    for other in others:
        sim.add_testbench(other, background=True)
    sim.add_testbench(task)
    sim.run()
