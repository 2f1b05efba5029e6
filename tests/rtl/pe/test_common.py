"""What the parts of the PE share."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from rtl.pe.common import at_most


@pytest.mark.parametrize("bound", [0, 1, 2, 4, 8])
def test_at_most_is_the_comparison(bound):
    number, found = Signal(4), Signal()
    m = Module()
    m.d.comb += found.eq(at_most(number, bound))
    seen = []

    async def every_number(context):
        for n in range(16):
            context.set(number, n)
            await context.delay(1e-6)
            seen.append(context.get(found))

    simulator = Simulator(m)
    simulator.add_testbench(every_number)
    simulator.run()
    assert seen == [n <= bound for n in range(16)]
