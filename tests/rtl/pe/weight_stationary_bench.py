"""Bench of the weight-stationary array: columns and A go in, words are sent again as they are asked for, rows are compared."""

from collections.abc import Sequence
from typing import Any

from rtl.pe.weight_stationary_array import WeightStationaryArray
from sw.golden.weight_stationary import BusCycle, StationaryColumn, array_rows, bumped_words, partial_sums
from tests.rtl.pe.weight_stationary_cases import Sizes, loaded, on_the_bus, part_of
from tests.rtl.port_bench import PortBench

__all__ = ["ArrayBench", "run"]

LIMIT = 1500  # cycles within which a tile's columns come, and its rows


class ArrayBench:
    """Tiles, one after the other: columns for all PEs, then A. Words are sent again as they are asked for."""

    def __init__(self, pes: int, sizes: Sizes, *, seed: int = 1, chance: float = 0.6, block: Any = None) -> None:
        self.sizes = sizes
        self.dut = (block or WeightStationaryArray)(pes=pes, **sizes.keywords)
        self.bench = PortBench(self.dut, seed=seed, chance=chance)
        self.weights, self.bus = self.bench.feed(self.dut.weights), self.bench.feed(self.dut.bus)
        self.rows, self.asked = self.bench.collect(self.dut.rows), self.bench.collect(self.dut.refill)
        self.columns: Sequence[StationaryColumn] = []
        self.parts: list[list[int]] = []
        self.macs = self.bumped = self.stalls = 0
        self.came_again = 0  # words of all tiles

    def load(self, columns: Sequence[StationaryColumn]) -> None:
        """Columns one after the other; PEs beyond them get empty ones."""
        empty = [StationaryColumn([], [], True)] * (self.dut.pes - len(columns))
        self.columns = [*columns, *empty]
        for pe, stays in enumerate(self.columns):
            self.weights.extend({"pe": pe, "word": word} for word in loaded(100 + pe, stays, self.sizes.entries))

    def each(self, ctx) -> None:
        for ask in self.asked:
            pe, part = ask["pe"], ask["part"]
            words = part_of(self.columns[pe], part["index"], part["count"])
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

    async def tile(self, ctx, columns: Sequence[StationaryColumn], *streams: list[BusCycle]) -> None:
        """Columns, and one A after the other without a pause."""
        self.load(columns)
        await self.bench.until(ctx, lambda: not self.weights, limit=LIMIT, each=self.each)
        self.parts = [[] for _ in self.columns]
        self.macs = self.bumped = self.stalls = 0
        for cycles in streams:
            self.bus.extend(on_the_bus(cycles, self.sizes.words, bare=self.bench.random.random() < 0.3))
        await self.bench.until(
            ctx, lambda: sum(row["last"] for row in self.rows) == len(streams), limit=LIMIT, each=self.each
        )
        self.check(streams)

    def check(self, streams: Sequence[list[BusCycle]]) -> None:
        for cycles in streams:
            end = next(n for n, row in enumerate(self.rows) if row["last"]) + 1
            came, self.rows[:end] = self.rows[:end], []
            self.check_rows(came, cycles)
        assert not self.rows
        # A row of another A is another row.
        cycles = [cycle._replace(row=cycle.row + (n << 32)) for n, stream in enumerate(streams) for cycle in stream]
        sizes = {"entries": self.sizes.entries, "region": self.sizes.region}
        assert self.parts == [bumped_words(cycles, stays, **sizes) for stays in self.columns]
        assert self.bumped == sum(map(sum, self.parts))
        self.came_again += self.bumped
        stationary = [set(stays.coordinates) for stays in self.columns]
        assert self.macs == sum(
            bits is not None and k in here
            for here in stationary
            for cycle in cycles
            for k, bits in zip(cycle.columns, cycle.values, strict=True)
        )

    def check_rows(self, came: list[Any], cycles: list[BusCycle]) -> None:
        vector, value = self.sizes.vector, self.sizes.value
        wanted = array_rows(cycles, self.columns, vector=vector, sums=partial_sums(value), value=value)
        found = [
            (row["row"], [(0 if one["void"] else one["value"], not one["void"]) for one in row["sums"]]) for row in came
        ]
        for row in came:
            assert [one["column"] for one in row["sums"]] == [100 + pe for pe in range(self.dut.pes)]
        if not wanted:
            assert [sums for _, sums in found] == [[(0, False)] * self.dut.pes]
        else:
            assert found == [(row, [(one.value, one.met) for one in sums]) for row, sums in wanted]


def run(pes: int, sizes: Sizes, tiles: list[Any], *, chance: float = 0.6, block: Any = None) -> ArrayBench:
    """Tiles: columns, and one A or several."""
    array = ArrayBench(pes, sizes, chance=chance, block=block)

    async def script(ctx):
        for columns, *streams in tiles:
            await array.tile(ctx, columns, *streams)

    array.bench.simulate(script)
    return array
