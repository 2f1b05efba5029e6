"""The counter bank adds, keeps maxima, clears, and counts only while enabled."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.regs.counter_list import COUNTERS
from rtl.regs.counters import CounterBank


def test_sums_and_maxima():
    widths = {"PE_BUSY": 4, "BUFFER_PEAK_A": 12, "BUFFER_PEAK_B": 3}
    dut = CounterBank(increments=widths)
    rng = random.Random(5)
    expected = {counter.name: 0 for counter in COUNTERS}

    async def task(ctx):
        for _ in range(100):
            enabled = rng.random() < 0.8
            ctx.set(dut.enable, enabled)
            for counter in COUNTERS:
                value = rng.getrandbits(widths.get(counter.name, 1))
                ctx.set(dut.events[counter.name.lower()], value)
                if enabled:
                    before = expected[counter.name]
                    expected[counter.name] = max(before, value) if counter.peak else before + value
            await ctx.tick()
        ctx.set(dut.enable, 0)
        await ctx.tick().repeat(dut.latency - 1)
        for name, value in expected.items():
            assert ctx.get(dut.counts[name.lower()]) == value, name
        # Events that come with the clear, and those of the cycle before, are lost.
        ctx.set(dut.enable, 1)
        await ctx.tick()
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        ctx.set(dut.enable, 0)
        await ctx.tick().repeat(dut.latency)
        for name in expected:
            assert ctx.get(dut.counts[name.lower()]) == 0, name

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(task)
    sim.run()


def test_carry_beyond_32_bits_and_wrap():
    dut = CounterBank(increments={"MACS": 36}, width=36)

    async def task(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.events.macs, (1 << 35) + 1)
        await ctx.tick()
        ctx.set(dut.enable, 0)
        await ctx.tick()
        assert ctx.get(dut.counts.macs) == (1 << 35) + 1
        ctx.set(dut.enable, 1)
        await ctx.tick()
        ctx.set(dut.enable, 0)
        await ctx.tick()
        assert ctx.get(dut.counts.macs) == 2

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(task)
    sim.run()


def test_refuses_wrong_parameters():
    with pytest.raises(ValueError, match="^There is no counter 'NOISE'$"):
        CounterBank(increments={"NOISE": 1})
    with pytest.raises(ValueError, match="^Increment of MACS must have 1 to 48 bits, not 49$"):
        CounterBank(increments={"MACS": 49})
    with pytest.raises(ValueError, match="^Counter width must be from 1 to 64, not 65$"):
        CounterBank(width=65)
