"""Accessor of A against the operand itself, streamed and kept. Testplan: ``verif/testplans/accessor_a.toml``."""

from typing import Any

import cocotb

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.sparse import Operand, tiles_of
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

POINTERS, POSITIONS, ELEMENTS, MEMORY_BYTES = 0x1000, 0x2000, 0x4000, 0x10000
BASE, LINES = 6, 24
coverage = Coverage("accessor_a")


class AccessorABench(StreamBench):
    """Sends tiles as run control does; the operand says which selections each row gives."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        zero = ("buffering", "base", "lines", "pointers", "positions", "elements")
        super().__init__(
            dut,
            drive=["load", "tile"],
            receive=["selections"],
            idle=backpressure,
            backpressure=backpressure,
            zero=zero,
            seed=seed,
            limit=40_000,
        )
        lanes = self.lanes = int(self.block.parameters["lanes"])
        self.parts = bool(self.block.parameters["parts"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * lanes)
        for n in range(5):
            patterns = (self.pattern(backpressure, f"{what} {n}") for what in ("grant", "data"))
            self.memory.reader(f"read_request__{n}", f"read_data__{n}", *patterns)
        patterns = (self.pattern(backpressure, what) for what in ("write grant", "write data"))
        self.memory.writer("write_request", "write_data", *patterns)
        self.sram = SramAgent(dut, self.block, lanes)
        self.sram.reader("sram_request", "sram_response", self.pattern(backpressure, "sram"))
        for n in range(2):
            self.sram.writer(f"sram_write__{n}", self.pattern(backpressure, f"sram write {n}"))
        self.helpers = [self.memory, self.sram]
        self.row: list[tuple[int, int]] = []

    async def configure(self, operand: Operand, *, kept: bool = False) -> None:
        self.operand = operand
        self.kept = kept
        self.in_place: tuple[int, int] | None = None
        self.memory.store(POINTERS, operand.pointers)
        self.memory.store(POSITIONS, operand.pointers[:-1])
        self.memory.store(ELEMENTS, operand.nonzeros)
        values = {"buffering": int(kept), "base": BASE, "lines": LINES, "pointers": POINTERS, "positions": POSITIONS}
        for name, value in (values | {"elements": ELEMENTS}).items():
            getattr(self.dut, name).value = value
        await self.cycles(1)

    async def visit(self, tile: dict[str, int]) -> None:
        """Load the tile if it is kept and another one is resident; then all rows."""
        if self.kept and not tile.get("carry") and self.in_place != (tile["begin_i"], tile["begin_k"]):
            self.in_place = (tile["begin_i"], tile["begin_k"])
            self.send("load", tile)
            await self.wait(lambda: self.drivers["load"].idle, "a tile to load is not taken")
            await self.wait(lambda: bool(int(self.dut.idle.value)), "a tile is not loaded")
            self._check_load(tile)
        self.send("tile", tile)
        await self.settle()
        await self.wait(lambda: bool(int(self.dut.idle.value)), "the accessor does not come to rest")
        coverage.hit("kept" if self.kept else "streaming")
        coverage.hit("whole_rows" if tile["whole_k"] else "segments")
        coverage.hit("refused", self.monitors["selections"].stalled_cycles > 0)

    def _check_load(self, tile: dict[str, int]) -> None:
        rows = range(tile["begin_i"], tile["begin_i"] + tile["size_i"])
        lengths = [len(self.operand.segment(row, tile["begin_k"], tile["size_k"])) for row in rows]
        metadata = -(-len(rows) // self.lanes)
        resident = 0
        for length in lengths:
            if resident + length > self.lanes * (LINES - metadata):
                break
            resident += length
        bumped = int(self.dut.bumped_elements.value)
        assert bumped == sum(lengths) - resident, f"{bumped} elements are bumped of {sum(lengths)}"
        assert int(self.dut.occupied.value) == metadata + -(-resident // self.lanes)
        outside = [line for line in self.sram.lines if not BASE <= line < BASE + LINES]
        assert not outside, f"lines outside the partition were used: {outside}"
        coverage.hit("bumped", bumped > 0)

    def taken(self, port: str, item: Any) -> None:
        if port != "tile":
            return
        coverage.hit("carried", bool(item["carry"]))
        for row in range(item["begin_i"], item["begin_i"] + item["size_i"]):
            inside = [] if item["carry"] else self.operand.segment(row, item["begin_k"], item["size_k"])
            self.board.expect("rows", [(coordinate - item["begin_k"], value) for coordinate, value in inside])
            coverage.hit("empty_row", not inside and not item["carry"])
            coverage.hit("long_row", len(inside) > 8 * self.lanes)

    def came(self, port: str, item: Any) -> None:
        nonzeros = item["items"][: item["count"]] if self.parts else [item][: item["present"]]
        self.row += [(nonzero["index"], nonzero["weight"]) for nonzero in nonzeros]
        coverage.hit("several", not item["last"])
        if item["last"]:
            self.board.observe("rows", self.row)
            self.row = []

    async def start(self) -> None:
        self.row = []
        self.monitors["selections"].meaning = self.meaning
        await super().start()

    def meaning(self, bits: int) -> Any:
        """Of what is no nonzero only the end of the row has a meaning."""
        item = self.layouts["selections"].unpack(bits)
        if self.parts:
            return str((item["items"][: item["count"]], item["last"]))
        return bits if item["present"] else item["last"]


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, kept=[False, True], rows_outside=[False, True])
async def every_tile(dut: Any, backpressure: str, kept: bool, rows_outside: bool) -> None:
    """Every row of every tile: its nonzeros in order, relative to the tile, with ragged edges and empty rows."""
    bench = AccessorABench(dut, backpressure)
    await bench.start()
    for tile in ((7, 9), (10, 40)):
        operand = Operand.draw(bench.rng, 17, 40, 0.25)
        await bench.configure(operand, kept=kept)
        for place in tiles_of(operand, "a", tile, rows_outside=rows_outside):
            await bench.visit(place)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(kept=[False, True])
async def visits_again_skipped_and_carried(dut: Any, kept: bool) -> None:
    """Tiles that are visited twice, left out, or only carry partial rows, and rows longer than a burst."""
    bench = AccessorABench(dut, "fourth")
    await bench.start()
    operand = Operand.draw(bench.rng, 6, 120, 0.6)
    await bench.configure(operand, kept=kept)
    for n, tile in enumerate(tiles_of(operand, "a", (6, 30))):
        if n == 1:
            coverage.hit("skipped")
            continue
        if n == 2:
            await bench.visit(tile | {"carry": 1})
        if n == 3:
            # The first of two visits leaves the positions where they are, unless the tile is kept: those move at its load.
            await bench.visit(tile if kept else tile | {"advance_a": 0})
            coverage.hit("revisited")
        await bench.visit(tile)
    await bench.configure(operand, kept=kept)
    await bench.visit(tiles_of(operand, "a", (6, 120))[0])
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(kept=[False, True])
async def reset_in_the_middle(dut: Any, kept: bool) -> None:
    """A reset inside a tile, or inside its load; the next tiles are whole."""
    bench = AccessorABench(dut, "fourth")
    await bench.start()
    for wait in (15, 50):
        operand = Operand.draw(bench.rng, 12, 60, 0.5)
        await bench.configure(operand, kept=kept)
        tile = tiles_of(operand, "a", (12, 60))[0]
        dut.lines.value = 110  # more to load
        bench.send("load" if kept else "tile", tile)
        await bench.cycles(wait)
        assert not int(dut.idle.value)
        coverage.hit("reset")
        await bench.restart(3)
        bench.row = []
        bench.sram.lines.clear()  # the larger partition's
        operand = Operand.draw(bench.rng, 9, 30, 0.3)
        await bench.configure(operand, kept=kept)
        for place in tiles_of(operand, "a", (5, 11)):
            await bench.visit(place)
    coverage.save()
