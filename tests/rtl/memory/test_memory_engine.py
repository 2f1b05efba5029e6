# amaranth: UnusedElaboratable=no
"""Data, order, splitting and bus rules of the memory engine."""

import random

import pytest

from rtl.memory.memory_engine import MemoryEngine
from tests.rtl.memory.axi_memory import DECERR, SLVERR
from tests.rtl.memory.engine_bench import EngineBench, sometimes

LINE = 8


def engine(readers=2, writers=2, outstanding=8, burst_beats=8, reader_depth=16, writer_depth=None, data_width=64):
    return MemoryEngine(
        data_width=data_width,
        address_width=32,
        readers=readers,
        writers=writers,
        outstanding=outstanding,
        burst_beats=burst_beats,
        reader_depth=reader_depth,
        writer_depth=writer_depth,
    )


def fill(bench, base, lines, seed=1):
    rng = random.Random(seed)
    for n in range(lines):
        bench.memory.load(base + n * bench.line_bytes, rng.getrandbits(8 * bench.line_bytes))


def random_beats(rng, count, strobes=False):
    return [(rng.getrandbits(64), rng.getrandbits(8) if strobes else 0xFF) for _ in range(count)]


def expected_writes(writes):
    """Bytes that the writes of one client leave in memory."""
    memory = {}
    for address, beats in writes:
        for n, (value, strobe) in enumerate(beats):
            for byte in range(LINE):
                if strobe >> byte & 1:
                    memory[address + n * LINE + byte] = value >> 8 * byte & 0xFF
    return memory


TRAFFIC = {
    "fast": {"latency": (1, 1), "stall": 0.0, "shuffle": False},
    "slow": {"latency": (20, 20), "stall": 0.0, "shuffle": False},
    "shuffled": {"latency": (1, 40), "stall": 0.0, "shuffle": True},
    "stalled": {"latency": (1, 20), "stall": 0.5, "shuffle": True},
}


@pytest.mark.parametrize("backpressure", [0.0, 0.25, 0.7])
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_random_reads_and_writes(traffic, backpressure):
    rng = random.Random(f"{traffic} {backpressure}")
    bench = EngineBench(engine(readers=3, writers=3, reader_depth=[1, 7, 32]), outstanding=8, **TRAFFIC[traffic])
    fill(bench, 0x1000, 1200)
    bench.request_pause = bench.write_pause = sometimes(backpressure)
    for n in range(3):
        bench.read_pause[n] = sometimes(backpressure)
        bench.reads[n] = [(0x1000 + rng.randrange(8000), rng.choice([1, 1, 2, 3, 4, 30])) for _ in range(14)]
        bench.writes[n] = []
        address = 0x10000 * (n + 1) + 0xF80  # near the end of a page
        for _ in range(14):
            beats = random_beats(rng, rng.choice([1, 1, 2, 3, 4, 30]), strobes=True)
            bench.writes[n].append((address, beats))
            address += LINE * (len(beats) + 1)  # one guard line between neighbours
    bench.run()

    expected = {}
    for n in range(3):
        assert bench.got[n] == bench.expect(n), f"reader {n}"
        assert bench.read_events[n] == len(bench.got[n])
        assert bench.write_events[n] == sum(len(beats) for _, beats in bench.writes[n])
        expected |= expected_writes(bench.writes[n])
    assert bench.memory.written == set(expected)
    assert {address: bench.memory.bytes[address] for address in expected} == expected


@pytest.mark.parametrize(
    ("address", "beats", "bursts"),
    [
        (0x1000, 1, [(0x1000, 1)]),
        (0x1003, 1, [(0x1000, 1)]),
        (0x1007, 2, [(0x1000, 2)]),
        (0x1000, 8, [(0x1000, 8)]),
        (0x1000, 9, [(0x1000, 8), (0x1040, 1)]),
        (0x1038, 2, [(0x1038, 1), (0x1040, 1)]),
        (0x1FF8, 2, [(0x1FF8, 1), (0x2000, 1)]),
        (0x1FF0, 10, [(0x1FF0, 2), (0x2000, 8)]),
        (0xFFFFFFF8, 1, [(0xFFFFFFF8, 1)]),
    ],
)
def test_read_splits_into_aligned_bursts(address, beats, bursts):
    bench = EngineBench(engine(readers=1, reader_depth=16))
    fill(bench, 0x1000, 600)
    bench.reads[0] = [(address, beats)]
    bench.run()
    assert [(entry[2], entry[3]) for entry in bench.memory.log] == bursts
    assert bench.got[0] == bench.expect(0)


def test_write_splits_at_the_page():
    bench = EngineBench(engine(writers=1))
    bench.writes[0] = [(0x1FF0, random_beats(random.Random(2), 11))]
    bench.run()
    assert [(entry[2], entry[3]) for entry in bench.memory.log] == [(0x1FF0, 2), (0x2000, 8), (0x2040, 1)]
    assert bench.memory.written == set(range(0x1FF0, 0x1FF0 + 11 * LINE))


@pytest.mark.parametrize(("burst_beats", "longest"), [(1, 1), (2, 2), (64, 64), (256, 256)])
def test_longest_burst(burst_beats, longest):
    bench = EngineBench(engine(readers=1, writers=1, burst_beats=burst_beats, reader_depth=512))
    fill(bench, 0x1000, 512)
    bench.reads[0] = [(0x1000, 512)]
    bench.writes[0] = [(0x8000, random_beats(random.Random(3), 512))]
    bench.run()
    assert {entry[3] for entry in bench.memory.log} == {longest}
    assert bench.got[0] == bench.expect(0)
    assert bench.memory.written == set(range(0x8000, 0x8000 + 512 * LINE))


def test_wide_bus_burst_is_at_most_a_page():
    bench = EngineBench(engine(readers=1, writers=1, burst_beats=256, reader_depth=256, data_width=1024))
    fill(bench, 0x1000, 128)
    bench.reads[0] = [(0x1000, 128)]
    bench.run()
    assert {entry[3] for entry in bench.memory.log} == {32}
    assert bench.got[0] == bench.expect(0)


def test_zero_beats_is_taken_and_does_nothing():
    bench = EngineBench(engine(readers=1, writers=1))
    fill(bench, 0x1000, 8)
    bench.reads[0] = [(0x1000, 0), (0x1008, 1), (0x1010, 0), (0x1018, 2)]
    bench.writes[0] = [(0x2000, []), (0x2008, [(7, 0xFF)])]
    bench.run()
    assert sorted(entry[:1] + entry[2:] for entry in bench.memory.log) == [
        ("ar", 0x1008, 1),
        ("ar", 0x1018, 2),
        ("aw", 0x2008, 1),
    ]
    assert bench.got[0] == bench.expect(0)


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("beats", [1, 2, 3, 4, 64])
def test_reads_fill_the_bus(clients, beats):
    bench = EngineBench(engine(readers=clients, outstanding=32, reader_depth=64), latency=(12, 12))
    fill(bench, 0x1000, 64)
    count = 256 // (clients * beats)
    for n in range(clients):
        bench.reads[n] = [(0x1000, beats)] * count
    bench.run()
    cycles = bench.memory.events["r"]
    assert len(cycles) == clients * beats * count
    assert cycles[-1] - cycles[0] == len(cycles) - 1, "the R channel idled between beats"


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("beats", [1, 2, 3, 4, 64])
def test_writes_fill_the_bus(clients, beats):
    bench = EngineBench(engine(writers=clients, outstanding=32), latency=(12, 12))
    count = 256 // (clients * beats)
    for n in range(clients):
        bench.writes[n] = [(0x10000 * n, random_beats(random.Random(n), beats))] * count
    bench.run()
    cycles = bench.memory.events["w"]
    assert len(cycles) == clients * beats * count
    assert cycles[-1] - cycles[0] == len(cycles) - 1, "the W channel idled between beats"


def test_reader_that_does_not_read_blocks_nobody():
    bench = EngineBench(engine(readers=3), latency=(5, 5))
    fill(bench, 0x1000, 64)

    async def stuck(ctx):
        port = bench.dut.read_request[0]
        ctx.set(port.payload, {"address": 0x1000, "beats": 1000})
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    bench.extra.append(stuck)
    bench.reads = {1: [(0x1000, 64)] * 4, 2: [(0x1000, 1)] * 100}
    bench.run()
    assert bench.got[1] == bench.expect(1)
    assert bench.got[2] == bench.expect(2)
    assert bench.read_events[0] == 16, "the stuck reader was given beats that its queue has no room for"


def test_readers_take_turns():
    bench = EngineBench(engine(readers=4, reader_depth=32, outstanding=32), latency=(30, 30))
    fill(bench, 0x1000, 64)
    bench.reads = {n: [(0x1000, 4)] * 12 for n in range(4)}
    bench.run()
    order = [entry[1] for entry in bench.memory.log][4:24]
    assert all(set(order[k : k + 4]) == {0, 1, 2, 3} for k in range(0, 20, 4)), order


@pytest.mark.parametrize("outstanding", [1, 2, 3])
def test_outstanding_bound(outstanding):
    bench = EngineBench(
        engine(readers=2, writers=2, outstanding=outstanding), outstanding=outstanding, latency=(15, 15), shuffle=True
    )
    fill(bench, 0x1000, 64)
    bench.reads = {n: [(0x1000, 2)] * 10 for n in range(2)}
    bench.writes = {n: [(0x8000 + 0x1000 * n, random_beats(random.Random(n), 2))] * 10 for n in range(2)}
    bench.run()
    assert bench.got[0] == bench.expect(0)
    assert bench.got[1] == bench.expect(1)


def test_write_waits_for_the_whole_burst():
    bench = EngineBench(engine(writers=1))

    async def late(ctx):
        dut = bench.dut
        ctx.set(dut.write_request[0].payload, {"address": 0x1000, "beats": 8})
        ctx.set(dut.write_request[0].valid, 1)
        await ctx.tick().until(dut.write_request[0].ready)
        ctx.set(dut.write_request[0].valid, 0)
        assert not ctx.get(dut.write_idle[0])
        for beat in range(8):
            for _ in range(10):
                assert not ctx.get(dut.bus.awvalid), f"AW after {beat} of 8 beats"
                await ctx.tick()
            ctx.set(dut.write_data[0].payload, {"data": beat, "strobe": 0xFF})
            ctx.set(dut.write_data[0].valid, 1)
            await ctx.tick().until(dut.write_data[0].ready)
            ctx.set(dut.write_data[0].valid, 0)
        assert not ctx.get(dut.write_idle[0])
        await ctx.tick().until(dut.write_idle[0])
        assert len(bench.memory.written) == 64 and len(bench.memory.events["b"]) == 1

    bench.extra.append(late)
    bench.run()
    cycles = bench.memory.events["w"]
    assert cycles[-1] - cycles[0] == 7


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


def test_halt_drains_and_reset_starts_anew():
    bench = EngineBench(engine(readers=2, writers=2), latency=(10, 30), shuffle=True, stall=0.3)
    fill(bench, 0x1000, 64)
    dut = bench.dut

    async def interrupted(ctx):
        for n in range(2):
            ctx.set(dut.read_request[n].payload, {"address": 0x1000, "beats": 60})
            ctx.set(dut.read_request[n].valid, 1)
            ctx.set(dut.read_data[n].ready, 1)
            ctx.set(dut.write_request[n].payload, {"address": 0x4000, "beats": 60})
            ctx.set(dut.write_request[n].valid, 1)
            ctx.set(dut.write_data[n].payload, {"data": 1, "strobe": 0xFF})
            ctx.set(dut.write_data[n].valid, 1)
        await ctx.tick().repeat(45)
        assert ctx.get(dut.busy)
        ctx.set(dut.halt, 1)
        await ctx.tick()
        issued = len(bench.memory.log)
        await ctx.tick().until(~dut.busy)
        assert len(bench.memory.log) <= issued + 4, "bursts kept coming after halt"
        assert not bench.memory.reads and not bench.memory.writes, "not busy, but the bus still has work"

    bench.extra.append(interrupted)
    bench.run()

    # What halt left behind in queues and splitters is gone after a reset: the same engine serves the next run.
    again = EngineBench(dut, latency=(1, 3))
    fill(again, 0x1000, 64)
    again.reads = {n: [(0x1000, 30)] for n in range(2)}
    again.run()
    assert all(again.got[n] == again.expect(n) for n in range(2))
