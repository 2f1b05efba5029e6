"""Watchdog: when it expires, and what keeps it quiet."""

import pytest
from amaranth.sim import Simulator

from rtl.tiling.watchdog import Watchdog


def run(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("bits", [1, 3, 6])
def test_expires_after_its_patience(bits):
    dut = Watchdog(patience_bits=bits)

    async def bench(ctx):
        ctx.set(dut.running, 1)
        for _ in range(1 << bits):
            assert not ctx.get(dut.expired)
            await ctx.tick()
        for _ in range(3):
            assert ctx.get(dut.expired), "it stays"
            await ctx.tick()
        ctx.set(dut.moved, 1)
        await ctx.tick()
        assert not ctx.get(dut.expired)

    run(dut, bench)


@pytest.mark.parametrize("name", ["moved", "running"])
def test_movement_and_the_end_of_a_run_begin_it_anew(name):
    dut = Watchdog(patience_bits=3)

    async def bench(ctx):
        ctx.set(dut.running, 1)
        for _ in range(20):
            await ctx.tick().repeat(7)
            ctx.set(getattr(dut, name), name == "moved")
            await ctx.tick()
            ctx.set(getattr(dut, name), name != "moved")
            assert not ctx.get(dut.expired)

    run(dut, bench)


def test_is_quiet_without_a_run():
    dut = Watchdog(patience_bits=2)

    async def bench(ctx):
        for _ in range(40):
            await ctx.tick()
            assert not ctx.get(dut.expired)

    run(dut, bench)


def test_refuses_wrong_parameters():
    with pytest.raises(ValueError, match="^Patience must be from 1 to 32 bits of cycles, not 0$"):
        Watchdog(patience_bits=0)
