"""Errors, draining, reset and refused parameters of the memory engine."""

import random

import pytest

from tests.rtl.memory.axi_memory import DECERR, SLVERR
from tests.rtl.memory.engine_bench import EngineBench, engine, fill, random_beats


@pytest.mark.parametrize(("response", "write"), [(SLVERR, False), (DECERR, False), (SLVERR, True), (DECERR, True)])
def test_error_is_reported_and_work_goes_on(response, write):
    bench = EngineBench(engine(readers=3, writers=3), bad={0x1048: response}, latency=(1, 9), shuffle=True)
    fill(bench, 0x1000, 64)
    target = bench.writes if write else bench.reads
    for n in range(3):
        base = 0x1000 if n == 2 else 0x9000 + 0x1000 * n
        # In client 2 the third burst fails: 0x1000 x 8, 0x2000 x 2, 0x1040 x 8.
        plan = [(base, 8), (base + 0x1000, 2), (base + 0x40, 8), (base + 0x80, 8)]
        target[n] = [(a, random_beats(random.Random(n), b)) for a, b in plan] if write else plan
    seen = []

    async def watch(ctx):
        error = bench.dut.error
        await ctx.tick().until(error.valid)
        seen.append((ctx.get(error.write), ctx.get(error.client), ctx.get(error.response), ctx.get(error.address)))
        for _ in range(40):
            await ctx.tick()
            assert ctx.get(error.valid), "the error did not stay"
        ctx.set(bench.dut.clear, 1)
        await ctx.tick()
        ctx.set(bench.dut.clear, 0)
        await ctx.tick()
        assert not ctx.get(error.valid)

    bench.extra.append(watch)
    bench.run()
    assert seen == [(write, 2, response, 0x1040)]
    if not write:
        assert all(bench.got[n] == bench.expect(n) for n in range(3))
    assert len(bench.memory.log) == 12


def test_first_error_stays():
    bench = EngineBench(engine(readers=1), bad={0x1010: SLVERR, 0x1020: DECERR})
    bench.reads = {0: [(0x1000 + 8 * n, 1) for n in range(8)]}
    seen = []

    async def watch(ctx):
        await ctx.tick().repeat(60)
        seen.append((ctx.get(bench.dut.error.response), ctx.get(bench.dut.error.address)))

    bench.extra.append(watch)
    bench.run()
    assert seen == [(SLVERR, 0x1010)]


@pytest.mark.parametrize("direction", ["read", "write", "both"])
def test_halt_drains_and_reset_starts_anew(direction):
    bench = EngineBench(engine(readers=2, writers=2), latency=(10, 30), shuffle=True, stall=0.3)
    fill(bench, 0x1000, 64)
    dut = bench.dut

    async def interrupted(ctx):
        for n in range(2):
            ctx.set(dut.read_request[n].payload, {"address": 0x1000, "beats": 60})
            ctx.set(dut.read_request[n].valid, direction != "write")
            ctx.set(dut.read_data[n].ready, 1)
            ctx.set(dut.write_request[n].payload, {"address": 0x4000, "beats": 60})
            ctx.set(dut.write_request[n].valid, direction != "read")
            ctx.set(dut.write_data[n].payload, {"data": 1, "strobe": 0xFF})
            ctx.set(dut.write_data[n].valid, direction != "read")
        await ctx.tick().repeat(45)
        ctx.set(dut.halt, 1)
        await ctx.tick()
        issued = len(bench.memory.log)
        flying = len(bench.memory.reads) + len(bench.memory.writes)
        assert flying > 0, "nothing to drain"
        assert ctx.get(dut.busy)
        await ctx.tick().until(~dut.busy)
        assert len(bench.memory.log) <= issued + 4, "bursts kept coming after halt"
        assert not bench.memory.reads and not bench.memory.writes, "not busy, but the bus still has work"
        issued = len(bench.memory.log)
        await ctx.tick().repeat(50)
        assert len(bench.memory.log) == issued, "a burst was issued during halt"

    bench.extra.append(interrupted)
    bench.run()

    # What halt left behind in queues and splitters is gone after a reset: the same engine serves the next run.
    again = EngineBench(dut, latency=(1, 3))
    fill(again, 0x1000, 64)
    again.reads = {n: [(0x1000, 30)] for n in range(2)}
    again.run()
    assert all(again.got[n] == again.expect(n) for n in range(2))


def test_reset_in_the_middle_forgets_everything():
    bench = EngineBench(engine(), latency=(5, 5))
    fill(bench, 0x1000, 64)
    dut = bench.dut

    async def cut(ctx):
        for port, payload in (
            (dut.read_request[0], {"address": 0x1000, "beats": 500}),
            (dut.write_request[1], {"address": 0x4000, "beats": 500}),
        ):
            ctx.set(port.payload, payload)
            ctx.set(port.valid, 1)
        ctx.set(dut.write_data[1].valid, 1)
        await ctx.tick().repeat(30)
        for port in (dut.read_request[0], dut.write_request[1], dut.write_data[1]):
            ctx.set(port.valid, 0)
        assert ctx.get(dut.busy) and ctx.get(dut.read_data[0].valid) and not ctx.get(dut.write_idle[1])
        ctx.set(bench.reset, 1)
        await ctx.tick()
        ctx.set(bench.reset, 0)
        bench.memory.log.clear()
        for _ in range(60):
            await ctx.tick()
            assert not ctx.get(dut.busy) and not ctx.get(dut.read_data[0].valid) and ctx.get(dut.write_idle[1])
        assert not bench.memory.log
        # Room and turns are as after power-up: a whole queue of beats arrives.
        ctx.set(dut.read_request[0].payload, {"address": 0x1000, "beats": 16})
        ctx.set(dut.read_request[0].valid, 1)
        await ctx.tick()
        ctx.set(dut.read_request[0].valid, 0)
        await ctx.tick().repeat(60)
        ctx.set(dut.read_data[0].ready, 1)
        for beat in range(16):
            assert ctx.get(dut.read_data[0].valid), f"beat {beat}"
            assert ctx.get(dut.read_data[0].payload) == bench.memory.line(0x1000 + 8 * beat)
            await ctx.tick()

    bench.extra.append(cut)
    bench.run()


def test_refuses_wrong_parameters():
    with pytest.raises(ValueError, match="^Memory data width must be 64, 128, 256, 512 or 1024, not 32$"):
        engine(data_width=32)
    with pytest.raises(ValueError, match="^Readers must be a positive integer, not 0$"):
        engine(readers=0)
    with pytest.raises(ValueError, match="^Burst beats must be a power of two from 1 to 256, not 12$"):
        engine(burst_beats=12)
    with pytest.raises(ValueError, match="^Outstanding bursts must be a positive integer, not 0$"):
        engine(outstanding=0)
    with pytest.raises(ValueError, match=r"^Reader depth must list 2 integers of at least 1, not \(4,\)$"):
        engine(reader_depth=[4])
    with pytest.raises(ValueError, match=r"^Writer depth must list 2 integers of at least 2, not \(1, 4\)$"):
        engine(writer_depth=[1, 4])
