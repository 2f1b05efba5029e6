"""Run monitor: the word WAITING, when all is quiet, when nothing moves any more."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from amaranth.hdl import Const, Module, Value
from amaranth.sim import Simulator

from rtl.lib.unit import Unit
from rtl.regs.map import PHASE_BITS, UNITS
from rtl.tiling.run_control import Phase
from rtl.tiling.run_monitor import RunMonitor


def simulate(task: Callable[[Any, RunMonitor], Awaitable[None]]) -> None:
    dut = RunMonitor(patience_bits=4)
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def testbench(ctx: Any) -> None:
        await task(ctx, dut)

    sim.add_testbench(testbench)
    sim.run()


def test_each_unit_has_its_bit() -> None:
    async def task(ctx: Any, dut: RunMonitor) -> None:
        assert ctx.get(dut.quiet) and ctx.get(dut.waiting) == 0
        for n, name in enumerate(UNITS):
            ctx.set(dut.active[name], 1)
            ctx.set(dut.phase, Phase.COMPUTE)
            assert not ctx.get(dut.quiet)
            assert ctx.get(dut.waiting) == 1 << (PHASE_BITS + n) | Phase.COMPUTE.value
            ctx.set(dut.active[name], 0)
        for phase in Phase:
            ctx.set(dut.phase, phase)
            assert ctx.get(dut.quiet) and ctx.get(dut.waiting) == phase.value

    simulate(task)


def test_a_run_in_which_nothing_moves_expires() -> None:
    async def task(ctx: Any, dut: RunMonitor) -> None:
        await ctx.tick().repeat(40)
        assert not ctx.get(dut.expired), "no run"
        ctx.set(dut.running, 1)
        for _ in range(5):
            ctx.set(dut.moved, 1)
            await ctx.tick()
            ctx.set(dut.moved, 0)
            await ctx.tick().repeat(12)
            assert not ctx.get(dut.expired)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.expired)

    simulate(task)


class Named(Unit):
    """A unit that says it is at work under some name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__({})

    def activity(self) -> Mapping[str, Value]:
        return {self.name: Const(1, 1)}


def test_only_names_of_the_register_map() -> None:
    with pytest.raises(ValueError, match="^WAITING has no field 'painter'$"):
        RunMonitor().watch(Module(), [Named("painter")])
