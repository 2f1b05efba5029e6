"""Queues and register slices keep order, lose nothing and hold their payload under back-pressure."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from rtl.lib.arbiter import RoundRobinArbiter
from rtl.lib.deep_queue import DeepQueue
from rtl.lib.stream import StreamQueue, StreamRegister, StreamSkid

PAUSES = {"never": lambda rng: False, "every": lambda rng: rng.random() < 0.25, "often": lambda rng: rng.random() < 0.7}
BLOCKS = {
    "queue1": lambda: StreamQueue(shape=16, depth=1),
    "queue2": lambda: StreamQueue(shape=16, depth=2),
    "queue3": lambda: StreamQueue(shape=16, depth=3),
    "queue4": lambda: StreamQueue(shape=16, depth=4),
    "queue5": lambda: StreamQueue(shape=16, depth=5),
    "block3": lambda: StreamQueue(shape=16, depth=3, block_memory=True),
    "block8": lambda: StreamQueue(shape=16, depth=8, block_memory=True),
    "deep": lambda: DeepQueue(shape=16, depth=4, spilled=3),
    "deep16": lambda: DeepQueue(shape=16, depth=5, spilled=11),
    "skid": lambda: StreamSkid(shape=16),
    "register": lambda: StreamRegister(shape=16),
}


def pump(dut, items, idle, backpressure, seed=1):
    """Send ``items`` through; return what came out and the cycles it took."""
    rng = random.Random(seed)
    got = []
    cycles = 0

    async def source(ctx):
        for item in items:
            while idle(rng):
                await ctx.tick()
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    async def sink(ctx):
        nonlocal cycles
        held = None
        while len(got) < len(items):
            ctx.set(dut.o.ready, not backpressure(rng))
            _, _, valid, ready, payload = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload)
            cycles += 1
            assert cycles < 40 * len(items) + 100, "the stream is stuck"
            if held is not None:
                assert valid and payload == held, "payload changed before it was taken"
            held = payload if valid and not ready else None
            if valid and ready:
                got.append(payload)
        ctx.set(dut.o.ready, 1)
        for _ in range(8):
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            assert not valid, "an item came out twice"

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(source)
    simulator.add_testbench(sink)
    simulator.run()
    return got, cycles


@pytest.mark.parametrize("backpressure", PAUSES)
@pytest.mark.parametrize("idle", PAUSES)
@pytest.mark.parametrize("block", BLOCKS)
def test_stream_keeps_order(block, idle, backpressure):
    items = [(n * 40503 + 7) & 0xFFFF for n in range(60)]
    got, _ = pump(BLOCKS[block](), items, PAUSES[idle], PAUSES[backpressure])
    assert got == items


@pytest.mark.parametrize("block", [name for name in BLOCKS if name != "queue1"])
def test_stream_passes_one_item_a_cycle(block):
    dut = BLOCKS[block]()
    got, cycles = pump(dut, list(range(100)), PAUSES["never"], PAUSES["never"])
    assert got == list(range(100))
    assert cycles == 100 + dut.latency


@pytest.mark.parametrize("depth,block_memory", [(1, False), (2, False), (3, False), (7, False), (3, True), (6, True)])
def test_queue_fills_to_its_depth(depth, block_memory):
    dut = StreamQueue(shape=8, depth=depth, block_memory=block_memory)

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for n in range(depth):
            ctx.set(dut.i.payload, n)
            assert ctx.get(dut.level) == n
            assert ctx.get(dut.i.ready)
            await ctx.tick()
        assert ctx.get(dut.level) == depth
        for _ in range(3):
            assert not ctx.get(dut.i.ready), "a full queue must refuse"
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for n in range(depth):
            assert ctx.get(dut.o.valid) and ctx.get(dut.o.payload) == n
            await ctx.tick()
        assert ctx.get(dut.level) == 0 and not ctx.get(dut.o.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("depth,spilled", [(4, 3), (5, 9)])
def test_deep_queue_fills_both_of_its_parts(depth, spilled):
    dut = DeepQueue(shape=8, depth=depth, spilled=spilled)
    most = depth + spilled + 1  # one is on its way between them

    async def bench(ctx):
        for first in (0, 100):  # the second time it has been emptied
            ctx.set(dut.o.ready, 0)
            ctx.set(dut.i.valid, 1)
            for n in range(most):
                ctx.set(dut.i.payload, first + n)
                assert ctx.get(dut.i.ready)
                await ctx.tick()
            assert not ctx.get(dut.i.ready), "a full queue must refuse"
            ctx.set(dut.i.valid, 0)
            ctx.set(dut.o.ready, 1)
            for n in range(most):
                assert ctx.get(dut.o.valid) and ctx.get(dut.o.payload) == first + n
                await ctx.tick()
            assert not ctx.get(dut.o.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
def test_arbiter_is_fair(count):
    dut = RoundRobinArbiter(count=count)
    rng = random.Random(count)
    waiting = [0] * count

    async def bench(ctx):
        stubborn = rng.randrange(count)
        for _ in range(200):
            requests = rng.getrandbits(count) | 1 << stubborn
            advance = rng.random() < 0.8
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            grant = ctx.get(dut.grant)
            assert grant and grant & (grant - 1) == 0 and grant & requests == grant
            if advance:
                waiting[stubborn] = 0 if grant >> stubborn & 1 else waiting[stubborn] + 1
                assert waiting[stubborn] <= count - 1, "a requester starves"
            await ctx.tick()
        ctx.set(dut.requests, 0)
        assert ctx.get(dut.grant) == 0
        ctx.set(dut.requests, 2**count - 1)
        ctx.set(dut.advance, 1)
        served = []
        for _ in range(2 * count):
            served.append(ctx.get(dut.grant).bit_length() - 1)
            await ctx.tick()
        assert served[count:] == served[:count] and sorted(served[:count]) == list(range(count))

    top = Module()
    top.submodules.dut = dut
    top.d.sync += Signal().eq(1)  # an arbiter of one has no register, and a test needs a clock
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    "build,message",
    [
        (lambda: StreamQueue(shape=8, depth=0), "^Queue depth must be a positive integer, not 0$"),
        (
            lambda: StreamQueue(shape=8, depth=2, block_memory=True),
            "^A queue in block memory must be at least 3 deep, not 2$",
        ),
        (lambda: DeepQueue(shape=8, depth=3, spilled=8), "^Queue depth must be an integer from 4 to 65536, not 3$"),
        (lambda: RoundRobinArbiter(count=0), "^Arbiter count must be a positive integer, not 0$"),
    ],
)
def test_bad_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_module_names_tell_parameters_apart():
    assert StreamQueue(shape=8, depth=4).module_name == "stream_queue_shape8_depth4"
    assert StreamQueue(shape=8, depth=4, block_memory=True).module_name == "stream_queue_shape8_depth4_block_memory"
    assert StreamSkid(shape=8).module_name == "stream_skid_shape8"
