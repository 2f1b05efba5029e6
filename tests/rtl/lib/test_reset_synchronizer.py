"""The reset synchronizer, and where the accelerator has one."""

import random
import re

import pytest
from amaranth.sim import Simulator

from gen.design import load_design
from gen.verilog import emit_design
from rtl.lib.reset_synchronizer import ResetSynchronizer


def test_a_reset_leaves_two_cycles_later_and_the_clock_begins_in_reset():
    dut = ResetSynchronizer()
    rng = random.Random(1)
    given = [0] * 5 + [rng.randrange(2) for _ in range(100)]
    seen = []

    async def bench(ctx):
        for value in given:
            ctx.set(dut.reset_in, value)
            seen.append(ctx.get(dut.reset_out))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [1, 1, *given[:-2]]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_accelerator_has_one_where_its_reset_is_asynchronous(asynchronous):
    verilog = emit_design(load_design("tiny", [f"clock.asynchronous_reset={str(asynchronous).lower()}"]))
    assert ("reset_synchronizer.sv" in verilog.files) is asynchronous
    body = verilog.files["accelerator.sv"].partition(");")[2]
    assert len(re.findall("aresetn", body)) == 1, "nothing but the synchronizer takes the pin"
