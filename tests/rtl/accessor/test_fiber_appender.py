"""How fibers are appended: a word a cycle, no slower before the end of the region is near, in bursts as long as may be."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.fiber_appender import FiberAppender

from .clients import ClientMemory, patient


@pytest.mark.parametrize("lanes", [2, 4])
def test_a_word_a_cycle_until_the_region_is_nearly_full(lanes: int) -> None:
    words, burst = 100, 8
    dut = FiberAppender(lanes=lanes, address_width=16, burst_beats=burst)
    memory = ClientMemory(0x2000, 8 * lanes, seed=lanes, hurry=1.0)
    cycles = []

    async def test(ctx: Any) -> None:
        ctx.set(dut.region, 0x400)
        ctx.set(dut.capacity, words * 8 * lanes)  # the last word ends where the region does
        ctx.set(dut.ends.ready, 1)
        for _ in range(4):
            await ctx.tick()
        ctx.set(dut.words.valid, 1)
        taken = 0
        for now in patient(4 * words):
            ctx.set(dut.words.payload.count, lanes)
            ctx.set(dut.words.payload.last, taken == words - 1)
            if (await ctx.tick().sample(dut.words.ready))[2]:
                taken += 1
                cycles.append(now)
            if taken == words:
                break
        ctx.set(dut.words.valid, 0)
        await ctx.tick()
        assert not ctx.get(dut.overflow)
        assert ctx.get(dut.position) == words * lanes

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(memory.writer(dut.write_request, dut.write_data, 0), background=True)
    sim.add_testbench(test)
    sim.run()
    # A cycle more for each burst, and for the last words, whose ends are compared with the region's before they are taken.
    assert cycles[-1] - cycles[0] <= words + words // burst + 4


@pytest.mark.parametrize("hurry", [1.0, 0.5, 0.2])
def test_lines_that_follow_one_another_are_written_in_whole_bursts(hurry: float) -> None:
    """However long the words keep the appender waiting, and the memory."""
    lanes, words, burst = 2, 90, 8
    dut = FiberAppender(lanes=lanes, address_width=16, burst_beats=burst)
    memory = ClientMemory(0x2000, 8 * lanes, seed=7, hurry=hurry)
    random = Random(f"bursts {hurry}")
    requests: list[int] = []

    async def watch(ctx: Any) -> None:
        port = dut.write_request
        while True:
            _, _, valid, ready, beats = await ctx.tick().sample(port.valid, port.ready, port.payload.beats)
            if valid and ready:
                requests.append(beats)

    async def test(ctx: Any) -> None:
        ctx.set(dut.region, 0x400)
        ctx.set(dut.capacity, 0x1000)
        ctx.set(dut.ends.ready, 1)
        for n in range(words):
            ctx.set(
                dut.words.payload, {"count": lanes, "last": n % 7 == 6, "line": [{"coordinate": n, "value": n}] * lanes}
            )
            ctx.set(dut.words.valid, 1)
            for _ in patient(500):
                if (await ctx.tick().sample(dut.words.ready))[2]:
                    break
            # What stands on a port without a word must not matter.
            ctx.set(dut.words.payload, {"count": 1, "last": 1, "line": [{"coordinate": 0, "value": 0}] * lanes})
            ctx.set(dut.words.valid, 0)
            while random.random() > hurry:
                await ctx.tick()
        ctx.set(dut.flush, 1)
        await ctx.tick()
        ctx.set(dut.flush, 0)
        for _ in patient(1000):
            if (await ctx.tick().sample(dut.idle))[2]:
                break

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(memory.writer(dut.write_request, dut.write_data, 0), background=True)
    sim.add_testbench(watch, background=True)
    sim.add_testbench(test)
    sim.run()
    assert requests == [burst] * (words // burst) + [words % burst]
