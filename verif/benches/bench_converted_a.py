"""A on its way in against the matrix itself, in every format. Testplan: ``verif/testplans/converted_a.toml``."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly

from sw.formats.csr import Csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import coordinate_bits, pack
from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.sparse import Operand, tiles_of
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

RECORDS, FRAME, MEMORY_BYTES = 0x1000, 0x8000, 0x10000
# Codes of FORMATS.source, and the regions of each format: records, frame.
SOURCES = {"dense": 0, "coo": 1, "rlc": 3, "zvc": 4}
REGIONS = {"dense": ("", "values"), "coo": ("entries", ""), "rlc": ("pairs", ""), "zvc": ("values", "mask")}
RUN_BITS = 4
BAD_MODE, BAD_ENTRY, BAD_ORDER, BAD_MASK, BAD_RUN = 9, 33, 34, 36, 37
coverage = Coverage("converted_a")


class ConvertedABench(StreamBench):
    """Sends tiles as run control does; the matrix says which selections each row gives."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["tile", "fetched"],
            receive=["selections", "fetched_tile"],
            idle=backpressure,
            backpressure=backpressure,
            zero=("enable", "allowed", "modes", "settings"),
            seed=seed,
            limit=40_000,
        )
        self.beat_bytes = int(self.block.parameters["beat_bits"]) // 8
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, self.beat_bytes)
        for n in range(2):
            patterns = (self.pattern(backpressure, f"{what} {n}") for what in ("grant", "data"))
            self.memory.reader(f"read_request__{n}", f"read_data__{n}", *patterns)
        self.helpers = [self.memory]
        self.row: list[tuple[int, int]] = []
        self.converts = True
        self.starved = 0

    def matrix(self, rows: int, columns: int, density: float) -> Operand:
        """Values that are not 0."""
        drawn = Operand.draw(self.rng, rows, columns, density)
        return Operand(columns, [[(c, value | 1) for c, value in row] for row in drawn.rows])

    async def configure(self, operand: Operand, kind: str, **changes: int) -> int:
        """The matrix in memory, in a format; beats of a pass."""
        self.operand, rows = operand, len(operand.rows)
        nonzeros = operand.nonzeros
        a = Csr(
            rows=rows,
            columns=operand.columns,
            pointers=operand.pointers.astype(np.int64),
            coordinates=nonzeros[:, 0].copy(),
            bits=nonzeros[:, 1].copy(),
            value="int32",
        )
        form = storage_format(kind, **({"run_bits": RUN_BITS} if kind == "rlc" else {}))
        tensor = SparseTensor.from_csr(a)
        layout = form.layout(tensor.shape, form.counts(tensor), "int32")
        packed = pack(layout, form.encode(tensor))
        for name, address in zip(REGIONS[kind], (RECORDS, FRAME), strict=True):
            if name:
                self.memory.store(address, packed[name])
        counts = [region.count for region in layout.regions if region.name == REGIONS[kind][0]]
        widths = {"row": coordinate_bits(rows), "column": coordinate_bits(operand.columns), "source_run": RUN_BITS}
        settings = {
            "formats": {"source": SOURCES[kind], "target": 2},
            "widths": widths,
            "rows": rows,
            "columns": operand.columns,
            "count": counts[0] if counts else 0,
            "source_records": RECORDS,
            "source_frame": FRAME,
        }
        self.set("settings", settings | changes)
        self.dut.enable.value, self.dut.allowed.value = 1, 1
        self.converts = True
        await self.cycles(1)
        coverage.hit(kind)
        return sum(-(-region.bytes // self.beat_bytes) for region in layout.regions)

    async def visit(self, tile: dict[str, int]) -> None:
        self.send("tile", tile)
        await self.settle()
        await self.wait(lambda: not int(self.dut.busy.value), "it does not come to rest")
        assert not int(self.dut.error.value)
        coverage.hit("refused", self.monitors["selections"].stalled_cycles > 0)

    async def fails(self, *tiles: dict[str, int]) -> tuple[int, int]:
        """Error and detail that these tiles end with."""
        self.send("tile", *tiles)
        await self.wait(lambda: bool(int(self.dut.error.value)), "no error is found")
        await ReadOnly()
        found = int(self.dut.error.value), int(self.dut.detail.value)
        await self.cycles(1)
        self.row = []
        await self.restart(3)
        return found

    def every_cycle(self) -> None:
        self.starved += int(self.dut.starved.value)

    def taken(self, port: str, item: Any) -> None:
        if port == "fetched":
            self.board.expect("rows", [(item["index"], item["weight"])])
        elif not self.converts:
            self.board.expect("fetched_tile", item["begin_i"])
        else:
            coverage.hit("carried", bool(item["carry"]))
            for row in range(item["begin_i"], item["begin_i"] + item["size_i"]):
                inside = [] if item["carry"] else self.operand.rows[row]
                self.board.expect("rows", [(column, value) for column, value in inside])
                coverage.hit("empty_row", not inside and not item["carry"])

    def came(self, port: str, item: Any) -> None:
        if port == "fetched_tile":
            self.board.observe(port, item["begin_i"])
            return
        if item["present"]:
            self.row.append((item["index"], item["weight"]))
        if item["last"]:
            self.board.observe("rows", self.row)
            self.row = []

    async def start(self) -> None:
        self.row = []
        self.monitors["selections"].meaning = self.meaning
        await super().start()

    def meaning(self, bits: int) -> Any:
        """Without a nonzero only the end of the row has a meaning."""
        item = self.layouts["selections"].unpack(bits)
        return bits if item["present"] else item["last"]

    def read(self) -> int:
        return sum(self.memory.beats.values())


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES), backpressure=PATTERN_NAMES)
async def every_pass(dut: Any, kind: str, backpressure: str) -> None:
    """Every row of every tile, three passes one after another: each reads all bytes of the format once."""
    bench = ConvertedABench(dut, backpressure)
    await bench.start()
    beats = await bench.configure(bench.matrix(17, 30, 0.2), kind)
    for n, height in enumerate((17, 5, 17)):
        for tile in tiles_of(bench.operand, "a", (height, 30)):
            await bench.visit(tile)
        assert bench.read() == (n + 1) * beats, f"{bench.read()} beats in {n + 1} passes of {beats}"
        coverage.hit("another_pass", n > 0)
        coverage.hit("cut", height < 17)
    assert bench.starved > 0
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def empty_tiles(dut: Any, kind: str) -> None:
    """Tiles without a nonzero are left out or carry partial rows only; the last ones, too."""
    bench = ConvertedABench(dut, "random")
    await bench.start()
    operand = bench.matrix(20, 30, 0.15)
    for row in (0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19):
        operand.rows[row].clear()
    beats = await bench.configure(operand, kind)
    tiles = tiles_of(operand, "a", (4, 30))
    for _ in range(2):
        await bench.visit(tiles[0] | {"carry": 1})
        await bench.visit(tiles[1])
        coverage.hit("left_out")  # the third
        await bench.visit(tiles[3])
        await bench.visit(tiles[4] | {"carry": 1})
    assert bench.read() == 2 * beats
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def not_converted(dut: Any) -> None:
    """Tiles go to accessor A, and its selections come from there; nothing is read."""
    bench = ConvertedABench(dut, "fourth")
    await bench.start()
    await bench.configure(bench.matrix(9, 10, 0.3), "zvc")
    dut.enable.value, bench.converts = 0, False
    bench.send("tile", *tiles_of(bench.operand, "a", (2, 5)))
    bench.send("fetched", *({"index": n, "weight": n * n, "present": 1, "last": 1} for n in range(20)))
    await bench.settle()
    assert not bench.read() and not bench.starved and not int(dut.busy.value)
    coverage.hit("fetched")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def faults(dut: Any) -> None:
    """What the source, the tiles and the scheme can have wrong, each with its detail; the next pass after a reset is whole."""
    bench = ConvertedABench(dut, "fourth")
    await bench.start()
    operand = bench.matrix(12, 30, 0.3)
    whole, parts = tiles_of(operand, "a", (12, 30)), tiles_of(operand, "a", (4, 30))
    nonzeros = int(operand.pointers[-1])

    async def good() -> None:
        await bench.configure(operand, "zvc")
        await bench.visit(whole[0])

    await bench.configure(operand, "zvc", count=nonzeros - 1)
    assert (await bench.fails(*whole))[0] == BAD_MASK
    coverage.hit("bad_mask")
    await good()
    await bench.configure(operand, "zvc")
    assert await bench.fails(parts[0], parts[2]) == (BAD_ENTRY, int(operand.pointers[4]))
    await bench.configure(operand, "zvc")
    assert await bench.fails(parts[0], parts[0]) == (BAD_ENTRY, int(operand.pointers[4]))
    coverage.hit("no_tile")
    await good()
    await bench.configure(operand, "coo", rows=11)
    assert await bench.fails(*whole) == (BAD_ENTRY, int(operand.pointers[11]))
    coverage.hit("outside")
    await bench.configure(operand, "coo")
    bench.memory.store(RECORDS, np.zeros(16, np.uint8))
    assert await bench.fails(*whole) == (BAD_ORDER, 1)
    coverage.hit("bad_order")
    await bench.configure(operand, "rlc")
    bench.memory.store(RECORDS, np.zeros(16, np.uint8))
    assert await bench.fails(*whole) == (BAD_RUN, 0)
    coverage.hit("bad_run")
    await good()
    dut.allowed.value, dut.modes.value = 0, 0xFC5  # as many bits as the register has
    assert await bench.fails() == (BAD_MODE, 0xFC5)
    coverage.hit("bad_mode")
    dut.allowed.value = 1
    await good()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def reset_in_the_middle(dut: Any, kind: str) -> None:
    """A reset between a launch and the end of a pass; the next tiles are whole."""
    bench = ConvertedABench(dut, "fourth")
    await bench.start()
    for wait in (6, 40, 110):
        await bench.configure(bench.matrix(12, 60, 0.5), kind)
        bench.send("tile", *tiles_of(bench.operand, "a", (12, 60)))
        await bench.cycles(wait)
        assert int(dut.busy.value)
        coverage.hit("reset")
        await bench.restart(3)
        bench.row = []
        await bench.configure(bench.matrix(9, 30, 0.3), kind)
        for tile in tiles_of(bench.operand, "a", (5, 30)):
            await bench.visit(tile)
    coverage.save()
