"""The weight-stationary engine at its signature: columns that stay, change and overflow, partial rows, pieces of rows of C.

Testplan: ``verif/testplans/stationary_engine.toml``.
"""

from typing import Any

import cocotb
import numpy as np
from cocotb.types import LogicArray

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.bench_engine import EngineBench
from verif.coverage import Coverage

ROWS = 5  # of a tile
INNER = (6, 13)  # rows of B in a tile: in Dense a full column of 6 fits a buffer of 8 entries
POINTERS, NONZEROS, PARTIALS = 0x100, 0x800, 0x2000
DATA, PARTIAL_LINE, METADATA_LINE = 0, 24, 60  # lines of the SRAM
MODULUS = 1 << 32
coverage = Coverage("stationary_engine")

Fiber = dict[int, int]


class StationaryBench(EngineBench):
    """Tile after tile; what a row must be is counted product by product."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(dut, idle, backpressure, seed, drive=("selections", "partials"))
        self.pes = int(self.block.parameters["pes"])
        self.entries = int(self.block.parameters["entries"])
        errors = self.block.layout("errors")
        self.found = errors.pack({name: {"found": 1} for name in errors.unpack(0)})
        self.columns: list[Fiber] = []
        self.begin_j, self.begin_k, self.inner = 0, 0, 0
        self.merged = 0
        self.streamed = False  # words came again, and the streamer said so

    def fiber(self, begin: int, size: int, densities: tuple[float, ...]) -> Fiber:
        density = self.rng.choice(densities)
        return {begin + n: self.rng.getrandbits(32) for n in range(size) if self.rng.random() < density}

    def store(self, fibers: list[Fiber], line: int | None, address: int) -> list[int]:
        """Nonzeros of the fibers one after the other, in memory and, from ``line`` on, in the SRAM; their begins and end."""
        words = [coordinate | value << 32 for fiber in fibers for coordinate, value in sorted(fiber.items())]
        self.memory.store(address, np.array([*words, 0], np.uint64))
        for at, word in enumerate(words):
            if line is not None:
                self.sram.line(line + at // self.lanes)[at % self.lanes] = word
        return [0, *np.cumsum([len(fiber) for fiber in fibers]).tolist()]

    def new_columns(self, *, streaming: bool, bumped: bool) -> None:
        """Another tile along j and k; its columns in the SRAM, those from the second on in memory if ``bumped``."""
        self.begin_j, self.begin_k = self.begin_j + self.pes, self.begin_k + self.inner
        self.inner = self.rng.choice(INNER)
        count = self.rng.randint(1, self.pes)
        self.columns = [self.fiber(self.begin_k, self.inner, (0.0, 0.2, 0.6, 1.0)) for _ in range(count)]
        self.sram.lines.clear()
        starts = self.store(self.columns, DATA, NONZEROS)
        self.memory.store(POINTERS, np.array(starts, np.uint32))
        for n, column in enumerate(self.columns):
            away = streaming or (bumped and n > 0)
            entry = starts[n] | len(column) << 32 | int(away) << 63
            self.sram.line(METADATA_LINE - n // self.lanes)[n % self.lanes] = entry
            wide, full = len(column) > self.capacity(column), len(column) == self.inner
            coverage.hit("fits", bool(column) and not wide)
            coverage.hit("fits_in_dense", full and self.entries // 2 < len(column) <= self.entries)
            coverage.hit("overflows", wide and not away)
            coverage.hit("overflows_in_memory", wide and away)
            coverage.hit("full_overflows", wide and full)
        coverage.hit("fewer_columns", count < self.pes)
        table = {
            "streaming": int(streaming), "metadata_line": METADATA_LINE, "pointers": POINTERS, "elements": NONZEROS
        }  # fmt: skip
        self.set("fiber_table", table)

    def partial_rows(self) -> list[Fiber]:
        """What earlier k steps left of each row, some of them in memory."""
        rows = [self.fiber(self.begin_j, len(self.columns), (0.0, 0.5, 1.0)) for _ in range(ROWS)]
        starts = self.store(rows, PARTIAL_LINE, PARTIALS)
        for start, row in zip(starts, rows, strict=False):
            away = self.rng.random() < 0.5
            position = start if away else PARTIAL_LINE * self.lanes + start
            self.send("partials", {"in_memory": int(away), "position": position, "length": len(row)})
            coverage.hit("partial_in_memory" if away else "partial_in_sram", bool(row))
            coverage.hit("partial_empty", not row)
        return rows

    def rows(self, *, partial: bool, densities: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0)) -> None:
        """A's rows, of any of these densities, pass the columns."""
        place = {"begin_j": self.begin_j, "begin_k": self.begin_k, "size_j": len(self.columns), "size_k": self.inner}
        self.set("tile", {"size_i": ROWS, **place, "partial_in": int(partial)})
        self.set("partial_region", PARTIALS // 8)
        left = self.partial_rows() if partial else [{} for _ in range(ROWS)]
        for row in left:
            a = self.fiber(0, self.inner, densities)
            sums: Fiber = {}
            for n, column in enumerate(self.columns):
                met = [k for k in a if self.begin_k + k in column]
                self.macs += len(met)
                if met:
                    sums[self.begin_j + n] = sum(a[k] * column[self.begin_k + k] for k in met)
            coverage.hit("void_row", bool(a) and not sums)
            coverage.hit("partial_alone", not a and bool(row))
            coverage.hit("joined", bool(sums.keys() & row.keys()))
            whole = {j: (sums.get(j, 0) + row.get(j, 0)) % MODULUS for j in sorted(sums | row)}
            self.board.expect("fibers", list(whole.items()))
            self.send_row(sorted(a.items()))

    def pieces(self) -> None:
        """Rows of C from their pieces, of which each has the columns of a tile."""
        count, width = 3, 4
        rows = [[self.fiber(n * width, width, (0.0, 0.5, 1.0)) for n in range(count)] for _ in range(ROWS)]
        pieces = [piece for row in rows for piece in row]
        self.memory.store(POINTERS, np.array(self.store(pieces, None, NONZEROS), np.uint32))
        self.set("fiber_table", {"streaming": 1, "pointers": POINTERS, "elements": NONZEROS})
        for number, row in enumerate(rows):
            self.board.expect("fibers", [one for piece in row for one in sorted(piece.items())])
            self.send_row([(number * count + n, 0) for n in range(count)], most=1)
            coverage.hit("pieces", all(row))
            coverage.hit("empty_piece", any(row) and not all(row))

    def parted(self, count: int, left: int) -> None:
        coverage.hit("part", left > 0)
        coverage.hit("whole_line", count == self.lanes)

    def every_cycle(self) -> None:
        super().every_cycle()
        counted = self.block.layout("counted").unpack(int(self.dut.counted.value))
        self.merged += counted["merged"]
        if counted["pe_stall_input"]:  # all columns have been looked up, and words come again
            active = self.block.layout("active").unpack(int(self.dut.active.value))
            assert not active["b_lookup"], "the lookup is active while the bus waits"
            self.streamed |= bool(active["b_streamer"])
        errors = self.dut.errors.value
        # What an error names means nothing until it is found.
        found = errors & LogicArray(self.found, errors.range)
        assert not int(found), f"errors found at {found}"
        coverage.hit("bus_waited", bool(counted["pe_stall_input"]))
        coverage.hit("rows_waited", bool(counted["stall_collect"]))

    def capacity(self, column: Fiber) -> int:
        """Nonzeros of a column that its PE has a place for: a full one has no coordinates there."""
        return self.entries if len(column) == self.inner else self.entries // 2

    def kept(self) -> int:
        """Nonzeros that go to the PEs before A does."""
        return sum(min(len(column), self.capacity(column)) for column in self.columns)

    async def finish(self) -> None:
        await super().finish()
        coverage.hit("sent_again", self.merged > self.kept())
        assert self.streamed or self.merged <= self.kept(), "words came again and no streamer was active"
        self.merged, self.streamed = 0, False


@cocotb.test(timeout_time=6, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, where=["sram", "bumped", "memory"])
async def rows_are_summed(dut: Any, backpressure: str, where: str) -> None:
    """Tiles with and without partial rows, on columns of their own and on those of the tile before."""
    bench = StationaryBench(dut, "random", backpressure)
    await bench.start()
    for _ in range(2):
        bench.new_columns(streaming=where == "memory", bumped=where == "bumped")
        bench.rows(partial=False)
        await bench.finish()
        bench.rows(partial=True)
        await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=6, timeout_unit="ms")
async def columns_stay(dut: Any) -> None:
    """Columns that fit are sent once, whatever number of tiles they are for; what overflows comes with each."""
    bench = StationaryBench(dut, "none", "none")
    await bench.start()
    for seed in range(4):
        bench.new_columns(streaming=seed % 2 == 0, bumped=False)
        fit = all(len(column) <= bench.capacity(column) for column in bench.columns)
        for visit in range(2):
            bench.rows(partial=False)
            await bench.settle()
            sent, bench.merged = bench.merged, 0
            if visit:
                assert sent == 0 or not fit, "columns that fit came once more"
                coverage.hit("columns_stay", bench.kept() > 0)
            else:
                assert sent >= bench.kept()
    coverage.save()


@cocotb.test(timeout_time=6, timeout_unit="ms")
async def an_a_without_data_asks_for_nothing(dut: Any) -> None:
    """Its rows are the partial ones, and no column goes to a PE, also where those of another tile are there and overflow."""
    bench = StationaryBench(dut, "none", "random")
    await bench.start()
    overflowed = False
    for _ in range(8):
        for full in (True, False):
            bench.new_columns(streaming=False, bumped=False)
            if full:
                bench.rows(partial=False)
                overflowed |= any(len(column) > bench.capacity(column) for column in bench.columns)
                await bench.finish()
            else:
                bench.rows(partial=True, densities=(0.0,))
                await bench.settle()
                assert bench.merged == 0, f"{bench.merged} nonzeros of B went to the PEs"
    coverage.hit("a_without_data", overflowed)
    coverage.save()


@cocotb.test(timeout_time=6, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def pieces_are_joined(dut: Any, backpressure: str) -> None:
    """While C is assembled pieces pass unchanged; a tile after it is right."""
    bench = StationaryBench(dut, "random", backpressure)
    await bench.start()
    for _ in range(2):
        dut.assembling.value = 1
        bench.pieces()
        await bench.settle()
        dut.assembling.value = 0
        bench.merged = 0
        bench.new_columns(streaming=False, bumped=True)
        bench.rows(partial=True)
        await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=6, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset at any moment: nothing of the tile before appears, and no column of it stays."""
    bench = StationaryBench(dut, "none", "random")
    await bench.start()
    for cycles in (20, 60, 110, 170):
        bench.new_columns(streaming=cycles % 20 == 0, bumped=False)
        bench.rows(partial=True)
        await bench.cycles(cycles)
        coverage.hit("reset", bench.board.outstanding() > 0)
        await bench.restart(4)
        bench.row, bench.macs, bench.merged, bench.streamed = [], 0, 0, False
        bench.rows(partial=False)
        await bench.finish()
    coverage.save()
