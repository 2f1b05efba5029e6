"""The weight-stationary array against its golden model, bit for bit, and figure 6 of MINT."""

import random
from typing import Any

import numpy as np
import pytest

from rtl.buffer.tailors import TailorsError
from rtl.pe.weight_stationary_array import WeightStationaryArray
from sw.golden.weight_stationary import BusCycle, StationaryColumn, bus_cycles
from tests.rtl.pe.weight_stationary_bench import ArrayBench, run
from tests.rtl.pe.weight_stationary_cases import Sizes, column, on_the_bus, streamed
from tests.rtl.port_bench import PortBench


def cases(
    sizes: Sizes, rng: random.Random, acf: str, dense: bool, count: int
) -> list[tuple[list[StationaryColumn], list[BusCycle]]]:
    """Columns that are empty, fit, fill the buffer, overflow it by little and by much; As of no row and of several."""
    found = []
    per = 1 if dense else 2
    for n in range(count):
        depth = max(1, [sizes.entries // per, rng.randint(1, 3 * sizes.entries), sizes.entries // per + 1][n % 3])
        density = rng.choice([0.3, 0.7, 1.0])
        stays = column(rng, depth, dense, density, sizes.value)
        found.append(([stays], streamed(rng, sizes, acf, rows=rng.randint(0, 4), depth=depth, density=density / 2)))
    far = column(rng, 3 * sizes.entries, dense, 1.0, sizes.value)
    return [*found, ([far], streamed(rng, sizes, acf, rows=3, depth=3 * sizes.entries, density=0.8))]


@pytest.mark.parametrize("acf", ["dense", "csr", "coo"])
@pytest.mark.parametrize("dense", [True, False], ids=["B dense", "B csc"])
@pytest.mark.parametrize(("value", "chance"), [("int32", 1.0), ("fp32", 0.5)])
def test_sums_of_one_pe_are_golden(value: str, dense: bool, acf: str, chance: float) -> None:
    """Every pair of formats; columns that fit and columns that are overbooked."""
    sizes = Sizes(value=value)
    rng = random.Random(f"{value} {dense} {acf} {chance}")
    array = run(1, sizes, cases(sizes, rng, acf, dense, 3), chance=chance)
    assert array.came_again


@pytest.mark.parametrize("acf", ["dense", "csr", "coo"])
@pytest.mark.parametrize(("value", "chance"), [("int16", 0.5), ("bf16", 0.9)])
def test_rows_are_golden(value: str, acf: str, chance: float) -> None:
    """Dense and CSC columns side by side, some overbooked, fewer than PEs at the ragged edge, empty ones, an A of no row."""
    sizes = Sizes(value=value)
    rng = random.Random(f"{value} {acf} {chance}")
    tiles = []
    for count in (3, 2):
        depth = rng.randint(1, 20)
        columns = [column(rng, depth, rng.random() < 0.5, rng.choice([0.0, 0.4, 1.0]), value) for _ in range(count)]
        streams = [
            streamed(rng, sizes, acf, rows=rows, depth=depth, density=0.4)
            for rows in rng.choice([(1, 3), (4,), (1, 0, 1)])
        ]
        tiles.append((columns, *streams))
    run(3, sizes, tiles, chance=chance)


#: Figure 6: A of 4 x 8 with A at (0, 0), B at (0, 2), C and H in rows of their own; B of 8 x 4. 8, 3 and 4 cycles.
FIGURE_A = {(0, 0): 3, (0, 2): 5, (1, 3): 7, (3, 7): 11}
FIGURE_CASES = [("dense", "dense", 8), ("csr", "csc", 3), ("coo", "dense", 4)]


@pytest.mark.parametrize(("acf_a", "acf_b", "cycles"), FIGURE_CASES)
def test_figure_6(acf_a: str, acf_b: str, cycles: int) -> None:
    """4 PEs, buffers of 8 entries, a bus of 5 words (section IV.B): the product, and the cycles that A takes on the bus."""
    rng = np.random.default_rng(6)
    a = np.zeros((4, 8), np.int64)
    for place, number in FIGURE_A.items():
        a[place] = number
    b = rng.integers(1, 9, (8, 4)) * (rng.random((8, 4)) < 0.4)
    columns = [
        StationaryColumn([k for k in range(8) if acf_b == "dense" or b[k, j]], [], acf_b == "dense") for j in range(4)
    ]
    columns = [stays._replace(values=[int(b[k, j]) for k in stays.coordinates]) for j, stays in enumerate(columns)]
    assert all(stays.entries <= 8 for stays in columns)
    places = [(row, k) for row in range(4) for k in range(8) if acf_a == "dense" or a[row, k]]
    sent = bus_cycles(
        [row for row, _ in places],
        [k for _, k in places],
        [int(a[place]) for place in places],
        acf=acf_a,
        words=5,
        vector=4,
    )
    assert len(sent) == cycles
    array = ArrayBench(4, Sizes(), chance=1.0)
    product = np.zeros((4, 4), np.int64)

    async def script(ctx):
        array.load(columns)
        await array.bench.until(ctx, lambda: not array.weights, each=array.each)
        await array.rest(ctx)
        array.bus.extend(on_the_bus(sent, 5))
        begin = array.bench.cycle
        await array.bench.until(ctx, lambda: not array.bus, each=array.each)
        assert array.bench.cycle - begin == cycles
        await array.bench.until(ctx, lambda: bool(array.rows) and array.rows[-1]["last"], each=array.each)
        for row in array.rows:
            product[row["row"]] = [0 if one["void"] else one["value"] for one in row["sums"]]
        wanted = np.ones(a.shape) if acf_a == "dense" else a != 0
        assert array.macs == (wanted @ (np.ones(b.shape) if acf_b == "dense" else b != 0)).sum()

    array.bench.simulate(script)
    assert np.array_equal(product, a @ b)


def test_a_reset_in_the_middle() -> None:
    """Columns, words that were asked for and sums of before are gone; what comes after is right."""
    sizes = Sizes()
    array = ArrayBench(2, sizes, chance=0.7)
    rng = random.Random(9)
    big = [column(rng, 20, dense, 1.0, "int32") for dense in (True, False)]
    small = [column(rng, 6, True, 1.0, "int32"), column(rng, 20, False, 0.9, "int32")]

    async def script(ctx):
        for moment in (3, 31, 80):
            array.load(big)
            array.parts = [[], []]
            if moment > 20:
                await array.bench.until(ctx, lambda: not array.weights, each=array.each)
            array.bus.extend(on_the_bus(streamed(rng, sizes, "csr", rows=9, depth=20, density=0.9), sizes.words))
            end = array.bench.cycle + moment
            await array.bench.until(ctx, lambda end=end: array.bench.cycle >= end, each=array.each)
            await array.bench.clear(ctx)
            await array.tile(ctx, small, streamed(rng, sizes, "coo", rows=3, depth=20, density=0.5))

    array.bench.simulate(script)


@pytest.mark.parametrize("pe", [0, 1])
def test_a_word_that_was_not_asked_for_is_an_error(pe: int) -> None:
    """Of whichever PE; a column that comes as it should is none."""
    dut = WeightStationaryArray(pes=2, words=5, vector=2, entries=4, value="int32")
    bench = PortBench(dut, seed=1, chance=1.0)
    weights = bench.feed(dut.weights)
    errors: list[bool] = []

    def word(number: int, *, header: int = 0) -> dict[str, Any]:
        return {"pe": number, "word": {"header": header, "length": 3, "metadata": 0, "payload": 7}}

    def each(ctx: Any) -> None:
        errors.append(ctx.get(dut.error) != TailorsError.NONE)

    async def script(ctx: Any) -> None:
        for one in range(2):
            weights.extend([word(one, header=1), *[word(one)] * 3])
        await bench.until(ctx, lambda: not weights and len(errors) > 60, limit=100, each=each)
        assert not any(errors)
        weights.append(word(pe))
        await bench.until(ctx, lambda: errors[-1], limit=20, each=each)

    bench.simulate(script)


def test_one_pe_of_one_mac_and_the_least_buffer() -> None:
    sizes = Sizes(words=3, vector=1, entries=4, region=2, index_width=6)
    rng = random.Random(4)
    tiles = [
        ([column(rng, depth, dense, 0.8, "int32")], streamed(rng, sizes, acf, rows=3, depth=depth, density=0.5))
        for depth in (1, 2, 4, 5, 9)
        for dense in (True, False)
        for acf in ("dense", "csr", "coo")
    ]
    run(1, sizes, tiles, chance=0.9)


@pytest.mark.parametrize(("words", "vector"), [(5, 2), (9, 8), (16, 4)])
def test_buses_of_other_widths(words: int, vector: int) -> None:
    """As many data in every format; fewer in CSR and COO than MACs; more words than the MACs take."""
    sizes = Sizes(words=words, vector=vector, entries=12, region=6)
    rng = random.Random(words)
    tiles = [
        ([column(rng, depth, dense, 0.8, "int32")], streamed(rng, sizes, acf, rows=3, depth=depth, density=0.7))
        for depth in (11, 25)
        for dense in (True, False)
        for acf in ("dense", "csr", "coo")
    ]
    run(1, sizes, tiles, chance=0.9)


def test_a_cycle_of_the_bus_a_cycle() -> None:
    """With columns that fit, no cycle of the bus waits."""
    sizes = Sizes(entries=16, value="fp32")
    rng = random.Random(3)
    columns = [column(rng, 16, True, 1.0, "fp32") for _ in range(2)]
    cycles = streamed(rng, sizes, "csr", rows=40, depth=16, density=0.3)
    array = ArrayBench(2, sizes, chance=1.0)

    async def script(ctx):
        array.load(columns)
        await array.bench.until(ctx, lambda: not array.weights, each=array.each)
        await array.rest(ctx)
        array.parts = [[], []]
        array.bus.extend(on_the_bus(cycles, sizes.words))
        begin = array.bench.cycle
        await array.bench.until(ctx, lambda: not array.bus, each=array.each)
        assert array.bench.cycle - begin == len(cycles)
        await array.bench.until(ctx, lambda: bool(array.rows) and array.rows[-1]["last"], each=array.each)
        assert array.stalls == 0
        # Lanes, matches, operands and the tree; the last row's partial sums go round and are added.
        assert array.bench.cycle - begin - len(cycles) <= array.dut.latency

    array.bench.simulate(script)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pes": 0}, r"^PEs must be an integer from 1 to 256, not 0$"),
        ({"words": 2}, r"^Bus words must be an integer from 3 to 64, not 2$"),
        ({"words": 4}, r"^Bus words must be more than the 4 MACs of a PE, not 4$"),
        ({"vector": 6}, r"^Vector must be a power of two from 1 to 32, not 6$"),
        ({"entries": 7}, r"^Buffer entries must be even, not 7$"),
        ({"entries": 2}, r"^Buffer entries must be an integer from 4 to 1024, not 2$"),
        ({"region": 3}, r"^Region entries must be an even integer from 2 to 8, not 3$"),
        ({"index_width": 3}, r"^Index width must be at least 4 for 8 entries, not 3$"),
        ({"value": "fp64"}, r"^Value type must be one of .*, not 'fp64'$"),
    ],
)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_refuses_impossible_parameters(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WeightStationaryArray(**{"pes": 2, **Sizes().keywords, **wrong})
