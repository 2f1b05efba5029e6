"""Lines into bursts under back-pressure: each line is written once at its address, consecutive lines share bursts, none waits."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.line_writer import LineWriter

from .clients import patient

LANES = 2
LINE_BYTES = 8 * LANES
BURST_BEATS = 4


def line_writer() -> LineWriter:
    return LineWriter(lanes=LANES, address_width=16, burst_beats=BURST_BEATS)


def runs(lines: list[int]) -> list[tuple[int, int]]:
    """(first line, lines) of the bursts that lines make: consecutive ones, at most ``BURST_BEATS``."""
    found: list[tuple[int, int]] = []
    for line in lines:
        if found and found[-1][0] + found[-1][1] == line and found[-1][1] < BURST_BEATS:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((line, 1))
    return found


@pytest.mark.parametrize("hurry", [1.0, 0.6, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_lines_are_written_once_in_bursts(hurry: float, seed: int) -> None:
    dut, random = line_writer(), Random(seed)
    batches = []  # a flush ends each
    line = 0
    for _ in range(12):
        batch = []
        for _ in range(random.randint(1, 14)):
            line = line + 1 if random.random() < 0.8 else random.randrange(1 << 10)
            batch.append(line)
        batches.append(batch)
    requests: list[tuple[int, int]] = []
    beats: list[tuple[int, int]] = []

    async def source(ctx: Any) -> None:
        for batch in batches:
            for n in batch:
                while random.random() > hurry:
                    await ctx.tick()
                words = n % (1 << 2 * LANES)
                ctx.set(dut.lines.payload, {"address": n * LINE_BYTES, "data": n * 3 + 1, "words": words})
                ctx.set(dut.lines.valid, 1)
                for _ in patient(400):
                    if (await ctx.tick().sample(dut.lines.ready))[2]:
                        break
                ctx.set(dut.lines.valid, 0)
            ctx.set(dut.flush, 1)
            await ctx.tick()
            ctx.set(dut.flush, 0)
            for _ in patient(400):
                if (await ctx.tick().sample(dut.flushed))[2]:
                    break
        for _ in patient(400):
            if (await ctx.tick().sample(dut.idle))[2]:
                break

    async def sink(ctx: Any) -> None:
        while True:
            ctx.set(dut.write_request.ready, asks := random.random() < hurry)
            ctx.set(dut.write_data.ready, takes := random.random() < hurry)
            _, _, valid, request, comes, beat = await ctx.tick().sample(
                dut.write_request.valid, dut.write_request.payload, dut.write_data.valid, dut.write_data.payload
            )
            if valid and asks:
                requests.append((request.address // LINE_BYTES, request.beats))
            if comes and takes:
                beats.append((beat.data, beat.strobe))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(sink, background=True)
    sim.add_testbench(source)
    sim.run()
    every = [n for batch in batches for n in batch]
    strobes = [sum(0xF << 4 * w for w in range(2 * LANES) if n >> w & 1) for n in every]
    assert beats == [(n * 3 + 1, strobe) for n, strobe in zip(every, strobes, strict=True)]
    assert requests == [run for batch in batches for run in runs(batch)]


def test_full_bursts_follow_without_a_pause() -> None:
    dut = line_writer()
    lines = 10 * BURST_BEATS

    async def test(ctx: Any) -> None:
        ctx.set(dut.write_request.ready, 1)
        ctx.set(dut.write_data.ready, 1)
        ctx.set(dut.lines.valid, 1)
        left = 0
        for n in range(lines):
            ctx.set(dut.lines.payload.address, n * LINE_BYTES)
            assert ctx.get(dut.lines.ready), f"line {n} waits"
            left += ctx.get(dut.write_data.valid)
            await ctx.tick()
        assert left >= lines - 4

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.run()
