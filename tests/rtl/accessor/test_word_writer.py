"""Runs of 32-bit words reach memory at any address and length, and nothing beside them changes."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accessor.word_writer import WordWriter

from .clients import ClientMemory, patient


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.5])
def test_runs_lie_where_they_belong(lanes: int, hurry: float) -> None:
    dut = WordWriter(lanes=lanes, address_width=16, burst_beats=4)
    random = Random(f"{lanes} {hurry}")
    memory = ClientMemory(0x1000, 8 * lanes, seed=lanes, hurry=hurry)
    expected = memory.bytes.copy()

    async def test(ctx: Any) -> None:
        address = 4 * random.randint(0, 7)
        for _ in range(12):
            count = random.choice([1, 2, 3, 2 * lanes, 17])
            ctx.set(dut.run.payload, {"address": address, "count": count})
            ctx.set(dut.run.valid, 1)
            for _ in patient(500):
                if (await ctx.tick().sample(dut.run.ready))[2]:
                    break
            ctx.set(dut.run.valid, 0)
            for n in range(count):
                word = random.getrandbits(32)
                expected[address + 4 * n : address + 4 * n + 4] = np.array([word], np.uint32).view(np.uint8)
                ctx.set(dut.words.payload, word)
                ctx.set(dut.words.valid, 1)
                for _ in patient(500):
                    if (await ctx.tick().sample(dut.words.ready))[2]:
                        break
                if random.random() > hurry:
                    ctx.set(dut.words.valid, 0)
                    await ctx.tick()
            ctx.set(dut.words.valid, 0)
            address += 4 * (count + random.randint(0, 9))
        for _ in range(200):
            await ctx.tick()
        assert ctx.get(dut.idle)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(memory.writer(dut.write_request, dut.write_data, 0), background=True)
    sim.add_testbench(test)
    sim.run()
    assert np.array_equal(memory.bytes, expected)
