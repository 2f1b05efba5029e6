"""The buffet against its golden model; testplan ``verif/testplans/buffet.toml``."""

from collections import Counter

import pytest
from amaranth.sim import Simulator

from rtl.buffer.buffet import Buffet, BuffetControl, BuffetError
from sw.golden.buffet import Buffet as Golden
from tests.rtl.buffer.buffer_bench import HECTIC, MIXED, STALLED, STEADY, BufferBench
from tests.rtl.buffer.verilated import Verilated

ERRORS = {error.name: error.value for error in BuffetError}
RATES = {"steady": STEADY, "mixed": MIXED, "stalled": STALLED, "hectic": HECTIC}


@pytest.fixture(scope="module")
def compiled():
    dut = Verilated(BuffetControl(width=16, entries=16, address_width=6, queue_depth=8))
    yield dut
    dut.close()


def bench(dut, capacity, *, seed, rates, illegal=0.0):
    dut.reset()
    base = (seed * 7) % (64 - capacity + 1)
    return BufferBench(
        *(dut, Golden(capacity)),
        seed=seed,
        errors=ERRORS,
        rates=rates,
        base=base,
        latency=1 + seed % 4,
        tailors=False,
        illegal=illegal,
    )


@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 7, 8, 13, 15, 16])
def test_random_operations(compiled, capacity):
    total = Counter()
    for number, name in enumerate(RATES):
        case = bench(compiled, capacity, seed=100 * capacity + number, rates=RATES[name])
        total += case.run(2500)
        case.drain()
    assert sum(total[port] for port in ("fill", "read", "update", "shrink")) >= 10_000
    assert total["read"] > 500 and total["answer"] > 500 and total["update"] > 100
    assert not total["SHRINK_BEYOND_OCCUPANCY"]


@pytest.mark.parametrize("capacity", [1, 5, 15])
def test_shrink_beyond_occupancy_names_itself_and_changes_nothing(compiled, capacity):
    case = bench(compiled, capacity, seed=capacity, rates=HECTIC, illegal=0.4)
    total = case.run(3000)
    case.drain()
    assert total["SHRINK_BEYOND_OCCUPANCY"] > 5


def test_reset_in_the_middle(compiled):
    case = bench(compiled, 7, seed=3, rates=STALLED)
    case.run(300)
    for seed in range(5):
        case = bench(compiled, 7, seed=seed, rates=MIXED)
        case.run(200)


def test_latency_with_its_own_memory():
    dut = Buffet(width=8, entries=4)
    seen = []

    async def bench(ctx):
        ctx.set(dut.capacity, 4)
        ctx.set(dut.read_data.ready, 1)
        ctx.set(dut.read.valid, 1)
        assert not ctx.get(dut.read.ready), "index 0 has not arrived"
        ctx.set(dut.fill.payload, 0x5A)
        ctx.set(dut.fill.valid, 1)
        await ctx.tick()
        ctx.set(dut.fill.valid, 0)
        assert ctx.get(dut.read.ready), "a filled entry can be read from the next cycle on"
        for cycle in range(10):
            if ctx.get(dut.read_data.valid):
                seen.append((cycle, ctx.get(dut.read_data.payload)))
            await ctx.tick()
            ctx.set(dut.read.valid, 0)
        assert ctx.get(dut.credit) == 3 and ctx.get(dut.occupancy) == 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [(Buffet.latency, 0x5A)]


@pytest.mark.parametrize(
    "change,message",
    [
        ({"width": 0}, "^Entry width must be a positive integer, not 0$"),
        ({"entries": 1}, "^Buffer entries must be an integer of at least 2, not 1$"),
        ({"address_width": 3}, "^Address width must be at least 4 for 16 entries, not 3$"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        BuffetControl(**({"width": 8, "entries": 16} | change))
