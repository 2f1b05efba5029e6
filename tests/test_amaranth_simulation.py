"""The simulator that tests make quick does in each step what Amaranth's own does."""

import subprocess
import sys

import pytest

from tests.amaranth_simulation import shortened

#: Prints what a design of registers, chosen bits, a memory and an asynchronous reset shows, step by step.
TRACE = """
import random, sys
from amaranth.hdl import *
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator
if sys.argv[1] == "quick":
    from tests.amaranth_memory import remember
    remember()

m = Module()
m.domains.sync = ClockDomain(async_reset=True)
reset = Signal()
m.d.comb += ResetSignal().eq(reset)
m.submodules.memory = memory = Memory(shape=8, depth=4, init=[5, 6])
write, read, at_once = memory.write_port(granularity=4), memory.read_port(), memory.read_port(domain="comb")
step, choice, wide, sign, bit = Signal(4), Signal(2), Signal(12), Signal(signed(5)), Signal()
m.d.comb += [write.addr.eq(choice), write.data.eq(wide), write.en.eq(step), read.addr.eq(~choice), at_once.addr.eq(step)]
m.d.comb += bit.eq(sign < 0)
with m.If(step[0]):
    m.d.sync += wide.word_select(choice, 3).eq(step + at_once.data)
with m.Else():
    m.d.sync += [sign.eq(sign - step), wide[2:5].eq(read.data)]
async def drive(ctx):
    draw = random.Random(7)
    for _ in range(300):
        ctx.set(step, draw.randrange(-20, 40))
        ctx.set(choice, bool(draw.randrange(2)))
        ctx.set(reset, draw.random() < 0.1)
        print(ctx.get(at_once.data), ctx.get(bit), await ctx.tick().sample(wide, sign, read.data, wide[3:9]))
async def watch(ctx):
    async for value in ctx.changed(bit):
        print("bit", value)
simulator = Simulator(m)
simulator.add_clock(1e-6)
simulator.add_testbench(drive)
simulator.add_process(watch)
simulator.run()
simulator.reset()
simulator.run()
"""


def test_each_step_shows_what_amaranth_shows():
    plain, quick = (
        subprocess.run([sys.executable, "-c", TRACE, kind], capture_output=True, check=True, encoding="utf-8").stdout
        for kind in ("plain", "quick")
    )
    assert plain == quick
    assert plain.count("\n") > 600 and "bit" in plain


@pytest.mark.parametrize("text", ["x = slots[1].next\n", "value = 3\ndef run():\n    pass\n"])
def test_a_text_of_another_form_stays_as_it_is(text):
    assert shortened(text) == text


def test_a_signal_that_keeps_its_value_is_not_updated():
    text = "def run():\n    next_7 = slots[7].next\n    next_7 = slots[12].curr\n    slots[7].update(next_7, -1)\n"
    assert shortened(text) == (
        "def run(state_7=slots[7], state_12=slots[12]):\n"
        "    next_7 = state_7.next\n"
        "    next_7 = state_12.curr\n"
        "    if state_7.next != next_7: state_7.update(next_7, -1)\n"
    )
