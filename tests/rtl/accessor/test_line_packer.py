"""Packed lines under back-pressure: no element lost, none twice, partial lines handed out by a flush and completed later."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.line_packer import LinePacker

from .clients import patient


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
def test_every_element_goes_out_once(lanes: int, hurry: float) -> None:
    dut = LinePacker(lanes=lanes)
    random = Random(lanes)
    given: list[int] = []
    memory: dict[int, int] = {}
    done = False

    async def source(ctx: Any) -> None:
        nonlocal done
        for n in range(120):
            count = random.randint(0, lanes)
            values = [random.getrandbits(64) for _ in range(count)]
            line = [{"coordinate": v & 0xFFFFFFFF, "value": v >> 32} for v in values] + [{}] * (lanes - count)
            ctx.set(dut.words.payload, {"line": line, "count": count, "last": 1})
            ctx.set(dut.words.valid, 1)
            for _ in patient(200):
                if (await ctx.tick().sample(dut.words.ready))[2]:
                    break
            ctx.set(dut.words.valid, 0)
            given.extend(values)
            assert ctx.get(dut.position) == len(given)
            if n % 7 == 6:
                ctx.set(dut.flush, 1)
                await ctx.tick()
                ctx.set(dut.flush, 0)
                assert not ctx.get(dut.idle)
                for _ in patient(200):
                    if (await ctx.tick().sample(dut.flushed))[2]:
                        break
                assert ctx.get(dut.idle) and sorted(memory) == list(range(len(given)))
            while random.random() > hurry:
                await ctx.tick()
        done = True

    async def sink(ctx: Any) -> None:
        out = dut.lines
        while True:
            ctx.set(out.ready, ready := random.random() < hurry)
            _, _, valid, payload = await ctx.tick().sample(out.valid, out.payload)
            if valid and ready:
                assert payload.mask, "a line without anything new"
                for lane in range(lanes):
                    if payload.mask >> lane & 1:
                        place = payload.index * lanes + lane
                        assert place not in memory, f"position {place} comes twice"
                        memory[place] = payload.data >> 64 * lane & (1 << 64) - 1

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(sink, background=True)
    sim.add_testbench(source)
    sim.run()
    assert done and [memory[n] for n in sorted(memory)] == given[: len(memory)]


def test_restart_forgets_what_is_held() -> None:
    dut = LinePacker(lanes=2)

    async def test(ctx: Any) -> None:
        async def give(value: int) -> None:
            ctx.set(dut.words.payload, {"line": [{"coordinate": value}, {}], "count": 1, "last": 1})
            ctx.set(dut.words.valid, 1)
            await ctx.tick()
            ctx.set(dut.words.valid, 0)

        ctx.set(dut.lines.ready, 1)
        await give(1)
        ctx.set(dut.flush, 1)
        await ctx.tick()
        ctx.set(dut.flush, 0)
        assert ctx.get(dut.lines.valid) and ctx.get(dut.lines.payload.mask) == 1
        await ctx.tick()
        ctx.set(dut.restart, 1)
        await ctx.tick()
        ctx.set(dut.restart, 0)
        assert ctx.get(dut.position) == 0
        await give(2)
        ctx.set(dut.words.payload, {"line": [{"coordinate": 3}, {}], "count": 1, "last": 1})
        ctx.set(dut.words.valid, 1)
        line = ctx.get(dut.lines.payload)
        assert ctx.get(dut.lines.valid) and (line.index, line.mask) == (0, 3)
        assert line.data == 2 | 3 << 64

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.run()
