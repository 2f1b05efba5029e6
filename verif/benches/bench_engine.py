"""Any intra-tile engine at its signature: rows of a tile against the golden product. Testplan: ``verif/testplans/engine.toml``.

Which rank numbers B's fibers is said by ``FIBERLOOM_B_FIBERS``: ``k`` (rows) or ``j`` (columns).
"""

import os
from types import SimpleNamespace
from typing import Any

import cocotb
import numpy as np

from sw.formats.csr import Csr
from sw.golden.spgemm import multiply
from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

B_FIBERS = os.environ.get("FIBERLOOM_B_FIBERS", "k")
ROWS, COLUMNS, INNER = 9, 11, 13  # of C, and columns of A
POINTERS, NONZEROS, MEMORY_BYTES = 0x100, 0x800, 0x4000
DATA, METADATA_LINE, REGION, REGION_LINES = 0, 50, 52, 8  # lines of the SRAM
BUMPED = 1 << 63
VALUE = "int32"
coverage = Coverage("engine")


class EngineBench(StreamBench):
    """Selections of one tile in; a fiber for each of its rows out. ``drive``: input streams that the bench feeds."""

    def __init__(
        self,
        dut: Any,
        idle: str = "none",
        backpressure: str = "none",
        seed: int = 1,
        drive: tuple[str, ...] = ("selections",),
    ) -> None:
        zero: tuple[str, ...] = (
            "assembling",
            "partial_region",
            "scratch_places",
            "scratch_open",
            "c_region",
            "partials__valid",
            "partials__payload",
        )
        zero += ("scratch_results__valid", "scratch_results__payload", "tile", "fiber_table", "b_region")
        zero = tuple(name for name in zero if name.split("__")[0] not in drive)
        super().__init__(
            dut, drive=drive, receive=["fibers"], idle=idle, backpressure=backpressure, zero=zero, seed=seed
        )
        self.lanes = int(self.block.parameters["lanes"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * self.lanes)
        for n, request in enumerate(self.block.streams("read_request")):
            grant, data = self.pattern(backpressure, f"grant {n}"), self.pattern(backpressure, f"data {n}")
            self.memory.reader(request, f"read_data__{n}", grant, data)
        self.sram = SramAgent(dut, self.block, self.lanes)
        for n, request in enumerate(self.block.streams("sram_request")):
            self.sram.reader(request, f"sram_response__{n}", self.pattern(backpressure, f"sram {n}"))
        for port in self.block.streams("sram_write"):
            self.sram.writer(port, self.pattern(backpressure, port))
        self.helpers = [self.memory, self.sram]
        self.row: list[tuple[int, int]] = []
        self.macs = 0

    def operand(self, rows: int, columns: int, most: int) -> Csr:
        """Random rows of up to ``most`` nonzeros; some are empty."""
        rng = self.rng
        kept = [sorted(rng.sample(range(columns), rng.choice([0, 1, most // 2, most]))) for _ in range(rows)]
        counts = [len(row) for row in kept]
        return Csr(
            rows=rows,
            columns=columns,
            pointers=np.cumsum([0, *counts]).astype(np.int64),
            coordinates=np.array([column for row in kept for column in row], np.uint32),
            bits=np.array([rng.getrandbits(32) for _ in range(sum(counts))], np.uint32),
            value=VALUE,
        )

    def multiply(self, *, streaming: bool) -> None:
        """Puts B where the engine finds it, sends A's nonzeros and expects the rows of C."""
        a, b = self.operand(ROWS, INNER, 4), self.operand(INNER, COLUMNS, 6)
        self._place(b, streaming)
        self.set(
            "tile",
            {"size_i": ROWS, "size_j": COLUMNS, "size_k": INNER, "last_j": 1, "last_k": 1, "whole_j": 1, "whole_k": 1},
        )
        self.set("b_region", {"base": REGION, "lines": REGION_LINES})
        product = multiply(
            a, b, int(self.block.parameters["radix"]), VALUE, SimpleNamespace(T_j=COLUMNS, T_k=INNER, joins=False)
        )
        self.macs += product.macs
        for row in range(ROWS):
            kept = slice(int(product.structural.pointers[row]), int(product.structural.pointers[row + 1]))
            columns, bits = product.structural.coordinates[kept], product.structural.bits[kept]
            self.board.expect("fibers", [(int(c), int(v)) for c, v in zip(columns, bits, strict=True)])
            coverage.hit("empty_row", len(columns) == 0)
            kept = slice(int(a.pointers[row]), int(a.pointers[row + 1]))
            self.send_row(list(zip(a.coordinates[kept].tolist(), a.bits[kept].tolist(), strict=True)))
        coverage.hit("streaming" if streaming else "resident")

    def send_row(self, row: list[tuple[int, int]], most: int | None = None) -> None:
        """Index and weight of a row's nonzeros: one by one, or in parts of up to ``most``, by default as many as a line has."""
        parts = "items" in self.layouts["selections"].tree["fields"]
        left = [{"index": index, "weight": weight} for index, weight in row]
        coverage.hit("row_without_selections", not left)
        while True:
            count = self.rng.randint(1, most or self.lanes) if parts else 1
            part, left = left[:count], left[count:]
            nonzeros = {"count": len(part), "items": part} if parts else {"present": len(part)} | (part or [{}])[0]
            self.send("selections", nonzeros | {"last": int(not left)})
            self.parted(len(part), len(left))
            if not left:
                return

    def parted(self, count: int, left: int) -> None:
        """``count`` nonzeros of a row were sent together, and so many of it are left."""

    def _place(self, b: Csr, streaming: bool) -> None:
        """B by rows or by columns: in memory, and in the SRAM the first two thirds of its fibers with an entry for each."""
        dense = {
            (k, int(c)): int(v)
            for k in range(INNER)
            for c, v in zip(*(part[b.pointers[k] : b.pointers[k + 1]] for part in (b.coordinates, b.bits)), strict=True)
        }
        numbers = [
            sorted((j, v) for (k, j), v in dense.items() if k == n)
            if B_FIBERS == "k"
            else sorted((k, v) for (k, j), v in dense.items() if j == n)
            for n in range(INNER if B_FIBERS == "k" else COLUMNS)
        ]
        starts = np.cumsum([0, *(len(fiber) for fiber in numbers)])
        words = [coordinate | value << 32 for fiber in numbers for coordinate, value in fiber]
        self.memory.store(POINTERS, starts.astype(np.uint32))
        self.memory.store(NONZEROS, np.array([*words, 0], np.uint64))
        self.sram.lines.clear()
        for at, word in enumerate(words):
            self.sram.line(DATA + at // self.lanes)[at % self.lanes] = word
        for n, fiber in enumerate(numbers):
            bumped = n >= 2 * len(numbers) // 3
            entry = int(starts[n]) | len(fiber) << 32 | (BUMPED if bumped else 0)
            self.sram.line(METADATA_LINE - n // self.lanes)[n % self.lanes] = entry
            coverage.hit("bumped", bumped and len(fiber) > 0 and not streaming)
        table = {
            "streaming": int(streaming),
            "metadata_line": METADATA_LINE,
            "pointers": POINTERS,
            "elements": NONZEROS,
        }
        self.set("fiber_table", table)

    def came(self, port: str, item: Any) -> None:
        word = item["word"]
        if item["scratch"]:
            self.board.fail("a fiber for scratch memory, of a row with few selections")
        self.row += [(nonzero["coordinate"], nonzero["value"]) for nonzero in word["line"][: word["count"]]]
        if not word["last"] and word["count"] != self.lanes:
            self.board.fail(f"a word of {word['count']} nonzeros within a fiber")
        coverage.hit("long_row", not word["last"])
        if word["last"]:
            self.board.observe("fibers", self.row)
            self.row = []

    def every_cycle(self) -> None:
        counted = self.block.layout("counted").unpack(int(self.dut.counted.value))
        self.macs -= counted["macs"]

    async def finish(self) -> None:
        await self.settle()
        assert int(self.dut.looked_up.value) and not int(self.dut.active.value), "idle when all rows have come"
        assert self.macs == 0, "every multiplication was counted"


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, streaming=[False, True])
async def rows_are_the_golden_ones(dut: Any, backpressure: str, streaming: bool) -> None:
    """Tile after tile, B in the SRAM with some fibers bumped, or in memory; memory and SRAM answer when they like."""
    bench = EngineBench(dut, "random", backpressure)
    await bench.start()
    for _ in range(3):
        bench.multiply(streaming=streaming)
        await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops the tile under way; the next one is right."""
    bench = EngineBench(dut, "none", "random")
    await bench.start()
    bench.multiply(streaming=True)
    await bench.cycles(120)
    assert bench.board.outstanding() and int(dut.active.value)
    coverage.hit("reset")
    await bench.restart(4)
    bench.row, bench.macs = [], 0
    bench.multiply(streaming=False)
    await bench.finish()
    coverage.save()
