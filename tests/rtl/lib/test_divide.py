"""Serial division: every quotient, in its time, and nothing that looks done before."""

import pytest
from amaranth.sim import Simulator

from rtl.lib.divide import CeilingDivider


@pytest.mark.parametrize("width", [1, 4])
def test_every_quotient_in_its_time(width):
    dut = CeilingDivider(width=width)

    async def bench(ctx):
        for dividend in range(1 << width):
            for divisor in range(1, 1 << width):
                ctx.set(dut.dividend, dividend)
                ctx.set(dut.divisor, divisor)
                ctx.set(dut.start, 1)
                await ctx.tick()
                ctx.set(dut.start, 0)
                ctx.set(dut.dividend, 0)
                for _ in range(width):
                    assert not ctx.get(dut.done), "the quotient of the division before is not this one's"
                    await ctx.tick()
                assert ctx.get(dut.done) and ctx.get(dut.quotient) == -(-dividend // divisor), (dividend, divisor)
                assert ctx.get(dut.rounded_down) == dividend // divisor, (dividend, divisor)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


def test_a_start_while_busy_begins_anew():
    dut = CeilingDivider(width=6)

    async def bench(ctx):
        for dividend, wait in ((60, 3), (40, 6)):
            ctx.set(dut.dividend, dividend)
            ctx.set(dut.divisor, 7)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await ctx.tick().repeat(wait)
        assert ctx.get(dut.done) and ctx.get(dut.quotient) == 6

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


def test_refuses_a_width_that_is_none():
    with pytest.raises(ValueError, match=r"^Divider width must be a positive integer, not 0$"):
        CeilingDivider(width=0)
