"""Accessor of B: what a tile's metadata say of each fiber segment, and what lies there.

Testplan: ``verif/testplans/accessor_b.toml``.
"""

from typing import Any

import cocotb

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.sparse import Operand, tiles_of
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

POINTERS, POSITIONS, ELEMENTS, MEMORY_BYTES = 0x1000, 0x2000, 0x4000, 0x10000
BASE, FIFO = 5, 4
coverage = Coverage("accessor_b")


class AccessorBBench(StreamBench):
    """Loads tiles and reads the partition as a lookup would."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        zero = ("base", "lines", "fifo_lines", "pointers", "positions", "elements")
        super().__init__(dut, drive=["tile"], idle=backpressure, backpressure=backpressure, zero=zero, seed=seed)
        lanes = self.lanes = int(self.block.parameters["lanes"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * lanes)
        for n in range(5):
            patterns = (self.pattern(backpressure, f"{what} {n}") for what in ("grant", "data"))
            self.memory.reader(f"read_request__{n}", f"read_data__{n}", *patterns)
        patterns = (self.pattern(backpressure, what) for what in ("write grant", "write data"))
        self.memory.writer("write_request", "write_data", *patterns)
        self.sram = SramAgent(dut, self.block, lanes)
        for n in range(2):
            self.sram.writer(f"sram_write__{n}", self.pattern(backpressure, f"sram write {n}"))
        self.helpers = [self.memory, self.sram]

    async def configure(self, operand: Operand, lines: int) -> None:
        self.operand = operand
        self.lines = lines
        self.memory.store(POINTERS, operand.pointers)
        self.memory.store(POSITIONS, operand.pointers[:-1])
        self.memory.store(ELEMENTS, operand.elements)
        values = {"base": BASE, "lines": lines, "fifo_lines": FIFO, "pointers": POINTERS, "positions": POSITIONS}
        for name, value in (values | {"elements": ELEMENTS}).items():
            getattr(self.dut, name).value = value
        await self.cycles(1)

    async def load(self, tile: dict[str, int]) -> None:
        self.sram.lines.clear()
        self.send("tile", tile)
        await self.settle()
        await self.wait(lambda: bool(int(self.dut.idle.value)), "a tile is not loaded")
        self.check(tile)
        coverage.hit("whole_rows" if tile["whole_j"] else "segments")

    def check(self, tile: dict[str, int]) -> None:
        rows = range(tile["begin_k"], tile["begin_k"] + tile["size_k"])
        segments = [self.operand.segment(row, tile["begin_j"], tile["size_j"]) for row in rows]
        lengths = [len(segment) for segment in segments]
        resident = self.resident(lengths)
        kept = 0
        for number, (row, segment) in enumerate(zip(rows, segments, strict=True)):
            line, lane = divmod(number, self.lanes)
            entry = self.sram.line(BASE + self.lines - 1 - line)[lane]
            position, length, bumped = entry & 0xFFFFFFFF, entry >> 32 & 0x7FFFFFFF, entry >> 63
            where = f"segment {number} of {tile}"
            assert length == len(segment), f"{where}: length {length}, expected {len(segment)}"
            coverage.hit("empty_segment", not segment)
            if not segment:
                continue
            fits = kept + length <= resident
            assert bool(bumped) == (not fits), f"{where}: bumped {bumped} after {kept} of {resident} resident elements"
            if bumped:
                assert position == self.operand.position(row, tile["begin_j"]), f"{where}: position in memory"
                continue
            kept += length
            found = [self.sram.element(position + n) for n in range(length)]
            assert found == [coordinate | value << 32 for coordinate, value in segment], f"{where}: elements"
        assert int(self.dut.nonzeros.value) == sum(lengths)
        assert int(self.dut.bumped_elements.value) == sum(lengths) - resident
        metadata = -(-len(rows) // self.lanes)
        assert int(self.dut.occupied.value) == metadata + -(-resident // self.lanes)
        outside = [line for line in self.sram.lines if not BASE <= line < BASE + self.lines]
        assert not outside, f"lines outside the partition were written: {outside}"
        coverage.hit("empty_tile", not sum(lengths))

    def resident(self, lengths: list[int]) -> int:
        """Elements that stay: all if they fit with the region's lines, else the segments before the region."""
        room = self.lanes * (self.lines - -(-len(lengths) // self.lanes))
        regular = room - self.lanes * FIFO
        total = sum(lengths)
        if total <= room:
            coverage.hit("fits" if total <= regular else "fits_with_region")
            return total
        coverage.hit("bumped")
        kept = 0
        for length in lengths:
            if kept + length > regular:
                break
            kept += length
        coverage.hit("nothing_fits", kept == 0)
        return kept


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, lines=[18, 30, 50])
async def every_tile(dut: Any, backpressure: str, lines: int) -> None:
    """Every segment is where its metadata say, in the partition or in memory; sizes and occupancy are told."""
    bench = AccessorBBench(dut, backpressure, seed=lines)
    await bench.start()
    for tile, density in (((12, 9), 0.3), ((12, 40), 0.15), ((20, 20), 0.02), ((20, 40), 0.0)):
        operand = Operand.draw(bench.rng, 20, 40, density)
        await bench.configure(operand, lines)
        for place in tiles_of(operand, "b", tile):
            await bench.load(place)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def partitions_around_the_tile(dut: Any) -> None:
    """Partitions from the smallest to one in which everything fits, a line at a time."""
    bench = AccessorBBench(dut)
    await bench.start()
    operand = Operand.draw(bench.rng, 8, 24, 0.4)
    metadata = -(-8 // bench.lanes)
    for lines in range(metadata + FIFO + 1, metadata + FIFO + 50):
        await bench.configure(operand, lines)
        await bench.load(tiles_of(operand, "b", (8, 24))[0])
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(wait=[15, 40, 80])
async def reset_in_the_middle(dut: Any, wait: int) -> None:
    """A reset during a load; the loads after it are right."""
    bench = AccessorBBench(dut, "fourth", seed=wait)
    await bench.start()
    operand = Operand.draw(bench.rng, 20, 40, 0.4)
    await bench.configure(operand, 110)
    bench.send("tile", tiles_of(operand, "b", (20, 40))[0])
    await bench.cycles(wait)
    assert not int(dut.idle.value)
    coverage.hit("reset")
    await bench.restart(3)
    operand = Operand.draw(bench.rng, 11, 30, 0.3)
    await bench.configure(operand, 30)
    for place in tiles_of(operand, "b", (6, 13)):
        await bench.load(place)
    coverage.save()
