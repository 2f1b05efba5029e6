"""The Tailors buffer against its golden model; testplan ``verif/testplans/tailors.toml``."""

import random
from collections import Counter

import pytest
from amaranth.sim import Simulator

from rtl.buffer.buffet import Buffet
from rtl.buffer.tailors import TailorsBuffer, TailorsControl, TailorsError
from sw.golden.tailors import TailorsBuffer as Golden
from tests.rtl.buffer.buffer_bench import HECTIC, MIXED, STALLED, STEADY, BufferBench
from tests.rtl.buffer.verilated import Verilated

ERRORS = {error.name: error.value for error in TailorsError}
ENTRIES = 16
RATES = {"steady": STEADY, "mixed": MIXED, "stalled": STALLED, "hectic": HECTIC}
# Regions of one, regions of everything, capacities of one and two, powers of two and not.
SIZES = [
    *[(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (5, 3), (7, 1), (7, 7), (8, 3), (8, 8)],
    *[(11, 4), (12, 5), (13, 13), (15, 14), (16, 1), (16, 8), (16, 15), (16, 16)],
]


@pytest.fixture(scope="module")
def compiled():
    dut = Verilated(TailorsControl(width=16, entries=ENTRIES, index_width=16, address_width=6, queue_depth=8))
    yield dut
    dut.close()


def tile_lengths(capacity, fifo):
    return sorted({0, capacity + 1, capacity + fifo, 2 * capacity + 1, 3 * capacity + 2, capacity})


def bench(dut, capacity, fifo, tile_length, *, seed, rates, illegal=0.0):
    dut.reset()
    model = Golden(capacity, fifo, tile_length)
    base = (seed * 7) % (64 - capacity + 1)
    return BufferBench(
        dut,
        model,
        seed=seed,
        errors=ERRORS,
        rates=rates,
        base=base,
        latency=1 + seed % 4,
        tailors=True,
        illegal=illegal,
    )


@pytest.mark.parametrize("capacity,fifo", SIZES)
def test_random_operations(compiled, capacity, fifo):
    """10 000 operations per size, over tile lengths, rates and memory latencies."""
    total = Counter()
    runs = [(length, name) for length in tile_lengths(capacity, fifo) for name in RATES]
    for number, (length, name) in enumerate(runs):
        rates = RATES[name]
        case = bench(compiled, capacity, fifo, length, seed=capacity * 1000 + fifo * 50 + number, rates=rates)
        total += case.run(10_000 // len(runs) + 1)
        case.drain()
    assert sum(total[port] for port in ("fill", "overwrite", "read", "update", "shrink")) >= 10_000
    assert total["overwrite"] > 500 and total["read"] > 500 and total["answer"] > 500 and total["update"] > 100
    # A shrink under a waiting read moves its index, at times past the end of the tile; nothing else here is illegal.
    assert not any(total[name] for name in ERRORS if name != "INDEX_BEYOND_TILE")


@pytest.mark.parametrize("capacity,fifo", [(2, 1), (4, 2), (5, 5), (16, 3)])
def test_illegal_operations_name_themselves_and_change_nothing(compiled, capacity, fifo):
    total = Counter()
    for number, length in enumerate(tile_lengths(capacity, fifo)):
        case = bench(compiled, capacity, fifo, length, seed=number + 77, rates=HECTIC, illegal=0.2)
        total += case.run(2000)
        case.drain()
    for name in ("FILL_WHILE_OVERBOOKED", "OVERWRITE_OF_FITTING_TILE", "SHRINK_BEYOND_OCCUPANCY", "INDEX_BEYOND_TILE"):
        assert total[name] > 0, name
    assert total["OVERWRITE_BEFORE_FULL"] > 0


def test_reset_in_the_middle(compiled):
    for seed in range(8):
        case = bench(compiled, 8, 3, 20, seed=seed, rates=STALLED if seed % 2 else HECTIC)
        case.run(150 + 37 * seed)  # the next one resets while operations, answers and stalls are under way


def drive(dut, operations, *, capacity, fifo=None, idle, take):
    """Send ``operations`` one after the other with pauses to a Tailors buffer or buffet; return the answers."""
    answers = []
    wanted = sum(kind == "read" for kind, _ in operations)

    async def source(ctx):
        ctx.set(dut.capacity, capacity)
        if fifo is not None:
            ctx.set(dut.fifo_entries, fifo)
        for number, (kind, argument) in enumerate(operations):
            port = getattr(dut, kind)
            ctx.set(port.payload, {"index": argument[0], "data": argument[1]} if kind == "update" else argument)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)
            for _ in range(idle(number)):
                await ctx.tick()

    async def sink(ctx):
        cycle = 0
        while len(answers) < wanted:
            ctx.set(dut.read_data.ready, take(cycle))
            _, _, valid, ready, payload, rests, held = await ctx.tick().sample(
                dut.read_data.valid, dut.read_data.ready, dut.read_data.payload, dut.idle, dut.occupancy
            )
            cycle += 1
            assert not (rests and held), f"idle with {held} entries"
            assert cycle < 10_000
            if valid and ready:
                answers.append(payload)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(source)
    simulator.add_testbench(sink)
    simulator.run()
    return answers


@pytest.mark.parametrize("capacity,fifo", [(1, 1), (5, 2), (8, 8), (7, 1)])
def test_is_a_buffet_while_nothing_overflows(capacity, fifo):
    rng = random.Random(capacity)
    operations, occupancy = [], 0
    for number in range(250):
        kind = rng.choice(["fill", "fill", "read", "read", "update", "shrink"])
        if kind == "fill" and occupancy < capacity:
            operations.append(("fill", number))
            occupancy += 1
        elif kind == "read" and occupancy:
            operations.append(("read", rng.randrange(occupancy)))
        elif kind == "update" and occupancy:
            operations.append(("update", (rng.randrange(occupancy), 0x100 + number)))
        elif kind == "shrink" and rng.random() < 0.5:
            operations.append(("shrink", rng.randrange(occupancy + 1)))
            occupancy -= operations[-1][1]
    pauses = {"idle": lambda n: n % 3 == 0, "take": lambda n: n % 4 != 0}
    plain = drive(Buffet(width=16, entries=8), operations, capacity=capacity, **pauses)
    tailors = drive(TailorsBuffer(width=16, entries=8), operations, capacity=capacity, fifo=fifo, **pauses)
    assert tailors == plain and len(plain) > 30


@pytest.mark.parametrize("capacity,fifo,tile", [(4, 2, 9), (8, 1, 20), (6, 6, 13), (5, 4, 6), (2, 2, 3)])
@pytest.mark.parametrize("slow", ["consumer", "parent", "neither"])
def test_released_region_is_never_outrun(capacity, fifo, tile, slow):
    """A parent that streams the bumped data as fast as it may, a consumer that reads the tile three times over."""
    dut = TailorsBuffer(width=16, entries=8, index_width=6, release=True)
    kept = capacity - fifo
    passes = 3
    answers = []

    async def parent(ctx):
        ctx.set(dut.capacity, capacity)
        ctx.set(dut.fifo_entries, fifo)
        ctx.set(dut.tile_length, tile)
        bumped = [kept + n for n in range(tile - kept)] * passes
        sends = [(dut.fill, index) for index in range(capacity)] + [(dut.overwrite, index) for index in bumped[fifo:]]
        for number, (port, index) in enumerate(sends):
            ctx.set(port.payload, 100 + index)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)
            if slow == "parent":
                await ctx.tick().repeat(number % 4 + 1)

    async def consumer(ctx):
        ctx.set(dut.read_data.ready, 1)
        for number in range(passes * tile):
            ctx.set(dut.read.payload, number % tile)
            ctx.set(dut.read.valid, 1)
            await ctx.tick().until(dut.read.ready)
            ctx.set(dut.read.valid, 0)
            answers.append((await ctx.tick().sample(dut.read_data.payload).until(dut.read_data.valid))[0])
            if number % tile >= kept:
                ctx.set(dut.entry_release, 1)
                await ctx.tick()
                ctx.set(dut.entry_release, 0)
            if slow == "consumer":
                await ctx.tick().repeat(5)
        assert ctx.get(dut.error) == TailorsError.NONE

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(parent)
    simulator.add_testbench(consumer)
    simulator.run_until(5e-3)
    assert answers == [100 + number % tile for number in range(passes * tile)]


def test_a_waiting_read_keeps_its_entry():
    """Nobody takes answers, so the read of the least recent entry waits at the port, and OWFill waits with it."""
    dut = TailorsBuffer(width=8, entries=4, index_width=4, queue_depth=2)

    async def bench(ctx):
        for port, value in ((dut.capacity, 4), (dut.fifo_entries, 2), (dut.tile_length, 9)):
            ctx.set(port, value)

        async def send(port, payload):
            ctx.set(port.payload, payload)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

        for index in range(4):
            await send(dut.fill, index)
        for index in (4, 5):
            await send(dut.overwrite, index)
        for index in (0, 1):
            await send(dut.read, index)  # the answer queue is full
        ctx.set(dut.read.payload, 4)
        ctx.set(dut.read.valid, 1)
        ctx.set(dut.overwrite.payload, 6)
        ctx.set(dut.overwrite.valid, 1)
        for _ in range(10):
            assert not ctx.get(dut.read.ready) and not ctx.get(dut.overwrite.ready)
            await ctx.tick()
        ctx.set(dut.read_data.ready, 1)
        await ctx.tick().until(dut.read.ready)
        ctx.set(dut.read.valid, 0)
        await ctx.tick().until(dut.overwrite.ready)
        ctx.set(dut.overwrite.valid, 0)
        seen = (await ctx.tick().sample(dut.read_data.payload).until(dut.read_data.valid))[0]
        while seen != 4:
            assert seen in (0, 1)
            seen = (await ctx.tick().sample(dut.read_data.payload).until(dut.read_data.valid))[0]
        assert ctx.get(dut.fifo_offset) == 3

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run_until(1e-3)


def first_overwrite(dut):
    """A full buffer, a full answer queue and a read of the last entry at the port; the first OWFill is offered."""

    async def prepare(ctx):
        for port, value in ((dut.capacity, 4), (dut.fifo_entries, 2), (dut.tile_length, 9)):
            ctx.set(port, value)
        for index in range(4):
            ctx.set(dut.fill.payload, index)
            ctx.set(dut.fill.valid, 1)
            await ctx.tick().until(dut.fill.ready)
        ctx.set(dut.fill.valid, 0)
        for index in (0, 1):
            ctx.set(dut.read.payload, index)
            ctx.set(dut.read.valid, 1)
            await ctx.tick().until(dut.read.ready)
        ctx.set(dut.read.payload, 3)
        ctx.set(dut.overwrite.payload, 4)
        ctx.set(dut.overwrite.valid, 1)
        for _ in range(20):
            assert not ctx.get(dut.read.ready) and not ctx.get(dut.overwrite.ready)
            await ctx.tick()
        assert ctx.get(dut.occupancy) == 4 and not ctx.get(dut.overbooked)

    return prepare


def test_the_first_overwrite_spares_what_a_read_asks_for():
    dut = TailorsBuffer(width=8, entries=4, index_width=4, queue_depth=2)

    async def bench(ctx):
        await first_overwrite(dut)(ctx)
        ctx.set(dut.read_data.ready, 1)
        await ctx.tick().until(dut.read.ready)
        ctx.set(dut.read.valid, 0)
        await ctx.tick().until(dut.overwrite.ready)
        ctx.set(dut.overwrite.valid, 0)
        seen = None
        while seen != 3:
            seen = (await ctx.tick().sample(dut.read_data.payload).until(dut.read_data.valid))[0]
            assert seen in (0, 1, 3)
        assert ctx.get(dut.fifo_offset) == 2 and ctx.get(dut.occupancy) == 3

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_shrink_is_not_held_up_by_a_read_that_holds_up_an_overwrite():
    """Nobody takes answers: the read of entry 3 waits for ever, the OWFill for the read, but not the Shrink for both."""
    dut = TailorsBuffer(width=8, entries=4, index_width=4, queue_depth=2)
    taken = []

    async def bench(ctx):
        await first_overwrite(dut)(ctx)
        ctx.set(dut.shrink.payload, 1)
        ctx.set(dut.shrink.valid, 1)
        for _ in range(20):
            if ctx.get(dut.overwrite.ready):
                taken.append("overwrite")
            if ctx.get(dut.shrink.ready):
                taken.append("shrink")
            await ctx.tick()
            if "overwrite" in taken:
                ctx.set(dut.overwrite.valid, 0)
            if "shrink" in taken:
                ctx.set(dut.shrink.valid, 0)
        assert ctx.get(dut.error) == TailorsError.NONE

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert sorted(taken) == ["overwrite", "shrink"]


@pytest.mark.parametrize("capacity,fifo,tile", [(13, 5, 30), (16, 2, 20), (8, 8, 9)])
def test_one_overwrite_and_one_read_a_cycle(capacity, fifo, tile):
    """The bumped data streams through the region and is read on its way, round after round without a gap."""
    dut = TailorsBuffer(width=16, entries=16, queue_depth=16)
    kept = capacity - fifo
    indices = [kept + n for n in range(tile - kept)] * 4
    indices = indices[fifo:]
    answers = []

    async def send(ctx, port, payloads):
        ctx.set(port.valid, 1)
        for payload in payloads:
            ctx.set(port.payload, payload)
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def parent(ctx):
        for port, value in ((dut.capacity, capacity), (dut.fifo_entries, fifo), (dut.tile_length, tile)):
            ctx.set(port, value)
        await send(ctx, dut.fill, range(100, 100 + capacity))
        await send(ctx, dut.overwrite, [100 + indices[0]])
        await send(ctx, dut.overwrite, [100 + index for index in indices[1:]])

    async def consumer(ctx):
        await ctx.tick().until(dut.overwrite.valid & dut.overwrite.ready)
        await send(ctx, dut.read, indices)

    async def watch(ctx):
        ctx.set(dut.read_data.ready, 1)
        cycle = 0
        while len(answers) < len(indices):
            _, _, valid, payload = await ctx.tick().sample(dut.read_data.valid, dut.read_data.payload)
            cycle += 1
            if valid:
                answers.append((cycle, payload))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for process in (parent, consumer, watch):
        simulator.add_testbench(process)
    simulator.run_until(1e-3)
    assert [payload for _, payload in answers] == [100 + index for index in indices]
    assert answers[-1][0] - answers[0][0] == len(indices) - 1


def test_release_beyond_the_region_is_an_error():
    dut = TailorsBuffer(width=8, entries=4, release=True)

    async def bench(ctx):
        ctx.set(dut.capacity, 3)
        ctx.set(dut.fifo_entries, 2)
        ctx.set(dut.entry_release, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.error) == TailorsError.NONE
        await ctx.tick()
        assert ctx.get(dut.error) == TailorsError.RELEASE_BEYOND_REGION

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_latency_with_its_own_memory():
    dut = TailorsBuffer(width=8, entries=4)
    seen = []

    async def bench(ctx):
        ctx.set(dut.capacity, 4)
        ctx.set(dut.fifo_entries, 1)
        ctx.set(dut.read_data.ready, 1)
        ctx.set(dut.fill.payload, 0x5A)
        ctx.set(dut.fill.valid, 1)
        await ctx.tick()
        ctx.set(dut.fill.valid, 0)
        ctx.set(dut.read.valid, 1)
        assert ctx.get(dut.read.ready)
        for cycle in range(12):
            if ctx.get(dut.read_data.valid):
                seen.append((cycle, ctx.get(dut.read_data.payload)))
            await ctx.tick()
            ctx.set(dut.read.valid, 0)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [(TailorsBuffer.latency, 0x5A)]


@pytest.mark.parametrize(
    "change,message",
    [
        ({"width": 0}, "^Entry width must be a positive integer, not 0$"),
        ({"entries": 1}, "^Buffer entries must be an integer of at least 2, not 1$"),
        ({"index_width": 4}, "^Index width must be at least 5 for 16 entries, not 4$"),
        ({"address_width": 3}, "^Address width must be at least 4 for 16 entries, not 3$"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TailorsControl(**({"width": 8, "entries": 16} | change))
