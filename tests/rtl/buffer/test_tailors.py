# amaranth: UnusedElaboratable=no
"""The Tailors buffer against its golden model; testplan ``verif/testplans/tailors.toml``."""

from collections import Counter

import pytest

from rtl.buffer.tailors import TailorsControl, TailorsError
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
        dut, model, seed=seed, errors=ERRORS, rates=rates, base=base, latency=1 + seed % 4, tailors=True, illegal=illegal
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
        total += case.run(1500)
        case.drain()
    for name in ("FILL_WHILE_OVERBOOKED", "OVERWRITE_OF_FITTING_TILE", "SHRINK_BEYOND_OCCUPANCY", "INDEX_BEYOND_TILE"):
        assert total[name] > 0, name
    assert total["OVERWRITE_BEFORE_FULL"] > 0
