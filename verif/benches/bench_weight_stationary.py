"""The weight-stationary array against its golden model, bit for bit. Fits any build of the array.

Testplan: ``verif/testplans/weight_stationary.toml``.
"""

from collections import deque
from typing import Any

import cocotb
import numpy as np

from sw.golden.arithmetic import in_slots
from sw.golden.weight_stationary import (
    A_FORMATS,
    BusCycle,
    StationaryColumn,
    array_rows,
    bumped_words,
    bus_cycles,
    partial_sums,
)
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("weight_stationary")
CORNERS = (0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF)


class ArrayBench(StreamBench):
    """Tile after tile: columns for all PEs, then one A or several; words go in again as they are asked for."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["weights", "bus"],
            receive=["rows", "refill"],
            idle=idle,
            backpressure=backpressure,
            seed=seed,
            limit=60_000,
        )
        names = ("pes", "words", "vector", "entries", "region")
        self.pes, self.words, self.vector, self.entries, self.region = (
            int(self.block.parameters[name]) for name in names
        )
        self.value = str(self.block.parameters["value"])
        self.columns: list[StationaryColumn] = []
        self.without_data: deque[bool] = deque()  # As whose end has not come

    def bits(self) -> int:
        rng = self.rng
        word = rng.choice(CORNERS) if rng.random() < 0.1 else rng.getrandbits(32)
        coverage.hit("corner_value", word in CORNERS)
        if word not in CORNERS and not self.value.startswith("int"):
            word = int(np.float32(rng.uniform(-4, 4)).view(np.uint32))
        return int(in_slots(np.array(word, np.uint32), self.value))

    def column(self, depth: int) -> StationaryColumn:
        dense, density = self.rng.random() < 0.5, self.rng.choice([0.0, 0.5, 1.0])
        coordinates = [k for k in range(depth) if dense or self.rng.random() < density]
        drawn = StationaryColumn(coordinates, [self.bits() for _ in coordinates], dense)
        coverage.hit("b_dense" if dense else "b_csc")
        coverage.hit("empty_column", not coordinates)
        coverage.hit("fits", 0 < drawn.entries < self.entries)
        coverage.hit("fills", drawn.entries == self.entries)
        coverage.hit("overbooked", drawn.entries > self.entries)
        return drawn

    def a(self, acf: str, depth: int) -> list[BusCycle]:
        """Rows of any density, in Dense with zeros as data, or as places without."""
        rng = self.rng
        data: list[tuple[int, int, int | None]] = []
        for row in range(rng.randint(0, 5)):
            density = rng.choice([0.0, 0.2, 0.6])
            for k in range(depth):
                present = rng.random() < density
                if present or acf == "dense":
                    data.append((3 * row, k, self.bits() if present else rng.choice([0, None])))
        lists: Any = zip(*data, strict=True) if data else ((), (), ())
        coverage.hit(f"a_{acf}")
        coverage.hit("nothing", not data)
        return bus_cycles(*lists, acf=acf, words=self.words, vector=self.vector)

    def load(self, depth: int) -> None:
        """Columns of a tile."""
        self.columns = [self.column(depth) for _ in range(self.pes)]
        overbooked = [column.entries > self.entries for column in self.columns]
        coverage.hit("side_by_side", any(overbooked) and not all(overbooked))
        for pe, column in enumerate(self.columns):
            header = {"header": 1, "length": column.entries, "payload": 100 + pe}
            self.send("weights", {"pe": pe, "word": header})
            self.words_of(pe, 0, min(self.entries, column.entries))

    def words_of(self, pe: int, index: int, count: int) -> None:
        for flag, payload in self.columns[pe].words[index : index + count]:
            self.send("weights", {"pe": pe, "word": {"metadata": int(flag), "payload": payload}})

    def stream(self, cycles: list[BusCycle]) -> None:
        """An A, and what it is to give."""
        bare = not cycles or self.rng.random() < 0.3
        coverage.hit("bare_end", bool(bare and cycles))
        sent = [cycle.words for cycle in cycles] + ([()] if bare else [])
        for n, words in enumerate(sent):
            items = [
                {"present": int(payload is not None), "metadata": int(flag), "payload": payload or 0}
                for flag, payload in words
            ]
            self.send("bus", {"last": int(n == len(sent) - 1), "words": items + [{}] * (self.words - len(words))})
        sums = partial_sums(self.value)
        rows = array_rows(cycles, self.columns, vector=self.vector, sums=sums, value=self.value)
        for row, of_pes in rows:
            coverage.hit("long_row", sum(cycle.row == row for cycle in cycles) > sums)
            coverage.hit("no_match", not all(one.met for one in of_pes))
            self.board.expect("rows", (row, [one.value if one.met else None for one in of_pes]))
        if not rows:
            self.board.expect("rows", (None, [None] * self.pes))
        self.board.expect("ends", 1)
        self.without_data.append(not rows)

    def expect_parts(self, streams: list[list[BusCycle]]) -> None:
        """Parts that come again; a row of another A is another row."""
        cycles = [cycle._replace(row=cycle.row + (n << 32)) for n, stream in enumerate(streams) for cycle in stream]
        for pe, column in enumerate(self.columns):
            parts = bumped_words(cycles, column, entries=self.entries, region=self.region)
            coverage.hit("part", bool(parts))
            coverage.hit("several_parts", len(parts) > len({cycle.row for cycle in cycles}))
            for count in parts:
                self.board.expect(f"parts of PE {pe}", count)

    async def tile(self, acf: str) -> None:
        depth = self.rng.choice([1, self.entries // 2, self.entries, self.rng.randint(1, 3 * self.entries)])
        self.load(depth)
        await self.wait(lambda: self.drivers["weights"].idle, "columns were not taken")
        streams = [self.a(acf, depth) for _ in range(self.rng.randint(1, 3))]
        self.expect_parts(streams)
        for cycles in streams:
            self.stream(cycles)
        coverage.hit("several", len(streams) > 1)
        await self.settle()

    def came(self, port: str, item: Any) -> None:
        if port == "refill":
            part = item["part"]
            self.board.observe(f"parts of PE {item['pe']}", part["count"])
            self.words_of(item["pe"], part["index"], part["count"])
            return
        if [one["column"] for one in item["sums"]] != [100 + pe for pe in range(self.pes)]:
            self.board.fail(f"columns {[one['column'] for one in item['sums']]}")
        values = [None if one["void"] else one["value"] for one in item["sums"]]
        # An A without data ends with a row whose number means nothing.
        self.board.observe("rows", (None if self.without_data and self.without_data[0] else item["row"], values))
        if item["last"]:
            self.board.observe("ends", 1)
            self.without_data.popleft()

    def every_cycle(self) -> None:
        coverage.hit("bus_waited", bool(self.dut.event_stall.value))
        if self.dut.error.value != 0:
            self.board.fail("an error was raised")


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(
    acf=tuple(A_FORMATS),
    conditions=[("none", "none"), ("random", "fourth"), ("fourth", "random")],
)
async def rows_are_golden(dut: Any, acf: str, conditions: tuple[str, str]) -> None:
    """Tiles of every kind, with any behaviour of all sides."""
    bench = ArrayBench(dut, *conditions)
    await bench.start()
    for _ in range(10):
        await bench.tile(acf)
    coverage.hit("stalled", bench.monitors["rows"].stalled_cycles > 0)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Columns, words on their way and sums of before are gone."""
    bench = ArrayBench(dut, "random", "random")
    await bench.start()
    for cycles in (5, 40, 90, 140, 200, 300):
        bench.load(2 * bench.entries)
        if cycles > 40:
            await bench.wait(lambda: bench.drivers["weights"].idle, "columns were not taken")
            for _ in range(4):
                bench.stream(bench.a("csr", 2 * bench.entries))
        await bench.cycles(cycles)
        coverage.hit("reset", bench.board.outstanding() > 0)
        await bench.restart()
        bench.without_data.clear()
        await bench.tile("coo")
    coverage.save()
