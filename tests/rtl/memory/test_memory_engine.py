"""Data, order, splitting and bus rules of the memory engine."""

import random

import pytest

from tests.rtl.memory.engine_bench import EngineBench, engine, fill, random_beats, sometimes

LINE = 8


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


# Where a carry runs far, and where the address space of 40 bits ends.
FAR = [0x1_0000_0000, 0x2_0000_0000, 0x8_0000_0000, 0x80_0000_0000, 0xFF_FFFF_F000, 0x100_0000_0000]


@pytest.mark.parametrize("boundary", FAR, ids=hex)
def test_requests_across_far_addresses(boundary):
    """Reads and writes of 20 lines from 10 below; at the end of the address space, of the last 10."""
    bench = EngineBench(engine(readers=1, writers=1, address_width=40))
    begin, beats = boundary - 10 * LINE, 10 if boundary == 1 << 40 else 20
    fill(bench, begin, beats)
    bench.reads[0] = [(begin, beats), (begin + 3 * LINE, beats - 3)]
    bench.run()
    assert bench.got[0] == bench.expect(0)
    asked = [entry[2] + LINE * n for entry in bench.memory.log for n in range(entry[3])]
    assert asked == [begin + LINE * n for n in range(beats)] + [begin + LINE * n for n in range(3, beats)]
    again = EngineBench(engine(readers=1, writers=1, address_width=40))
    again.writes[0] = [(begin, random_beats(random.Random(4), beats))]
    again.run()
    assert again.memory.written == set(range(begin, begin + beats * LINE))
    assert {at: again.memory.bytes[at] for at in again.memory.written} == expected_writes(again.writes[0])
    assert [entry[2] + LINE * n for entry in again.memory.log for n in range(entry[3])] == asked[:beats]


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


@pytest.mark.parametrize(("depth", "longest"), [(1, 1), (2, 1), (7, 2), (16, 8), (128, 64)])
def test_read_burst_is_at_most_half_a_queue(depth, longest):
    bench = EngineBench(engine(readers=1, burst_beats=64, reader_depth=depth))
    fill(bench, 0x1000, 64)
    bench.reads[0] = [(0x1000, 64)]
    bench.run()
    assert {entry[3] for entry in bench.memory.log} == {longest}
    assert bench.got[0] == bench.expect(0)


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


def test_writer_is_not_idle_while_it_holds_data():
    bench = EngineBench(engine(writers=2))

    async def early(ctx):
        dut = bench.dut
        assert ctx.get(dut.write_idle[1])
        ctx.set(dut.write_data[1].payload, {"data": 5, "strobe": 0xFF})
        ctx.set(dut.write_data[1].valid, 1)
        await ctx.tick().until(dut.write_data[1].ready)
        ctx.set(dut.write_data[1].valid, 0)
        for _ in range(20):
            assert not ctx.get(dut.write_idle[1]) and ctx.get(dut.write_idle[0])
            await ctx.tick()
        ctx.set(dut.write_request[1].payload, {"address": 0x2000, "beats": 1})
        ctx.set(dut.write_request[1].valid, 1)
        await ctx.tick().until(dut.write_request[1].ready)
        ctx.set(dut.write_request[1].valid, 0)
        while not bench.memory.events["b"]:
            assert not ctx.get(dut.write_idle[1])
            await ctx.tick()
        await ctx.tick().repeat(2)
        assert ctx.get(dut.write_idle[1])

    bench.extra.append(early)
    bench.run()
    assert bench.memory.line(0x2000) == 5
