"""The weight-stationary array against its golden model, bit for bit, and figure 6 of MINT."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rtl.pe.common import operator_latencies
from rtl.pe.weight_stationary_array import WeightStationaryArray
from sw.golden.weight_stationary import BusCycle, StationaryColumn, array_rows, bumped_words, bus_cycles
from tests.rtl.pe.weight_stationary_cases import Sizes, again, column, loaded, on_the_bus, streamed
from tests.rtl.port_bench import PortBench


class Array:
    """Tiles, one after the other: columns for all PEs, then A. Words are sent again as they are asked for."""

    def __init__(self, pes: int, sizes: Sizes, *, seed: int = 1, chance: float = 0.6) -> None:
        self.sizes = sizes
        self.dut = WeightStationaryArray(pes=pes, **sizes.keywords)
        self.bench = PortBench(self.dut, seed=seed, chance=chance)
        self.weights, self.bus = self.bench.feed(self.dut.weights), self.bench.feed(self.dut.bus)
        self.rows, self.asked = self.bench.collect(self.dut.rows), self.bench.collect(self.dut.again)
        self.columns: Sequence[StationaryColumn] = []
        self.parts: list[list[int]] = []
        self.macs = self.bumped = self.stalls = 0

    def load(self, columns: Sequence[StationaryColumn]) -> None:
        """Columns one after the other; PEs beyond them get empty ones."""
        empty = [StationaryColumn([], [], True)] * (self.dut.pes - len(columns))
        self.columns = [*columns, *empty]
        for pe, held in enumerate(self.columns):
            self.weights.extend({"pe": pe, "word": word} for word in loaded(100 + pe, held, self.sizes.entries))

    def each(self, ctx) -> None:
        for ask in self.asked:
            pe, part = ask["pe"], ask["part"]
            words = again(self.columns[pe], part["index"], part["count"])
            self.weights.extend({"pe": pe, "word": word} for word in words)
            self.parts[pe].append(part["count"])
        self.asked.clear()
        self.macs += ctx.get(self.dut.event_macs)
        self.bumped += ctx.get(self.dut.event_bumped)
        self.stalls += ctx.get(self.dut.event_stall)
        assert ctx.get(self.dut.error).value == 0

    async def rest(self, ctx) -> None:
        """The last words that were taken come to their places."""
        end = self.bench.cycle + 10
        await self.bench.until(ctx, lambda: self.bench.cycle >= end, each=self.each)

    async def tile(self, ctx, columns: Sequence[StationaryColumn], cycles: list[BusCycle]) -> int:
        self.load(columns)
        await self.bench.until(ctx, lambda: not self.weights, each=self.each)
        self.parts = [[] for _ in self.columns]
        self.macs = self.bumped = self.stalls = 0
        begin = self.bench.cycle
        self.bus.extend(on_the_bus(cycles, self.sizes.words))
        await self.bench.until(ctx, lambda: bool(self.rows) and self.rows[-1]["last"], each=self.each)
        took = self.bench.cycle - begin
        self.check(cycles)
        return took

    def check(self, cycles: list[BusCycle]) -> None:
        latency, _ = operator_latencies(self.sizes.value)
        vector, value = self.sizes.vector, self.sizes.value
        wanted = array_rows(cycles, self.columns, vector=vector, sums=latency, value=value)
        came = [
            (row["row"], [(0 if one["void"] else one["value"], not one["void"]) for one in row["sums"]])
            for row in self.rows
        ]
        for row in self.rows:
            assert [one["column"] for one in row["sums"]] == [100 + pe for pe in range(self.dut.pes)]
        assert [row["last"] for row in self.rows] == [0] * (len(came) - 1) + [1]
        self.rows.clear()
        if not wanted:
            assert came == [(came[0][0], [(0, False)] * self.dut.pes)]
        else:
            assert came == [(row, [(one.value, one.met) for one in sums]) for row, sums in wanted]
        sizes = {"entries": self.sizes.entries, "region": self.sizes.region}
        assert self.parts == [bumped_words(cycles, held, **sizes) for held in self.columns]
        assert self.bumped == sum(map(sum, self.parts))


def run(pes: int, sizes: Sizes, tiles: list[Any], *, chance: float = 0.6) -> Array:
    array = Array(pes, sizes, chance=chance)

    async def script(ctx):
        for columns, cycles in tiles:
            await array.tile(ctx, columns, cycles)

    array.bench.simulate(script)
    return array


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize("acf", ["dense", "csr", "coo"])
@pytest.mark.parametrize("value", ["int16", "bf16"])
def test_rows_are_golden(value: str, acf: str, chance: float) -> None:
    """Dense and CSC columns side by side, some overbooked, fewer than PEs at the ragged edge, empty ones, an A of no row."""
    sizes = Sizes(value=value)
    rng = random.Random(f"{value} {acf} {chance}")
    tiles = []
    for count in (3, 2, 0, 3):
        depth = rng.randint(1, 20)
        columns = [column(rng, depth, rng.random() < 0.5, rng.choice([0.0, 0.4, 1.0]), value) for _ in range(count)]
        tiles.append((columns, streamed(rng, sizes, acf, rows=rng.choice([0, 1, 5]), depth=depth, density=0.4)))
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
    columns = [held._replace(values=[int(b[k, j]) for k in held.coordinates]) for j, held in enumerate(columns)]
    assert all(held.entries <= 8 for held in columns)
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
    array = Array(4, Sizes(), chance=1.0)
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
    array = Array(2, sizes, chance=0.7)
    rng = random.Random(9)
    big = [column(rng, 20, dense, 1.0, "int32") for dense in (True, False)]
    small = [column(rng, 6, True, 1.0, "int32"), column(rng, 20, False, 0.9, "int32")]

    async def script(ctx):
        for moment in (3, 20, 31, 60, 90, 140):
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


def test_a_cycle_of_the_bus_a_cycle() -> None:
    """With columns that fit, no cycle of the bus waits."""
    sizes = Sizes(entries=16, value="fp32")
    rng = random.Random(3)
    columns = [column(rng, 16, True, 1.0, "fp32") for _ in range(2)]
    cycles = streamed(rng, sizes, "csr", rows=40, depth=16, density=0.3)
    array = Array(2, sizes, chance=1.0)

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
