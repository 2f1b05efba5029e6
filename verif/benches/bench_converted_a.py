"""A on its way in against the matrix itself, in every format. Testplan: ``verif/testplans/converted_a.toml``."""

from typing import Any

import cocotb
import numpy as np

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.converted_bench import (
    BAD_ENTRY,
    BAD_MASK,
    BAD_MODE,
    BAD_ORDER,
    BAD_RUN,
    RECORDS,
    SOURCES,
    ConvertedBench,
)
from verif.benches.sparse import Operand, tiles_of
from verif.coverage import Coverage

coverage = Coverage("converted_a")


class ConvertedABench(ConvertedBench):
    """Sends tiles as run control does; the matrix says which selections each row gives."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(dut, backpressure, seed, drive=["tile", "fetched"], receive=["selections", "fetched_tile"])
        self.converts = True

    async def configure(self, operand: Operand, kind: str, **changes: Any) -> int:
        """The matrix in memory, in a format; beats of a pass."""
        self.converts = True
        coverage.hit(kind)
        return await super().configure(operand, kind, **changes)

    async def visit(self, tile: dict[str, int]) -> None:
        self.send("tile", tile)
        await self.settle()
        await self.wait(lambda: not int(self.dut.busy.value), "it does not come to rest")
        assert not int(self.dut.error.value)
        coverage.hit("refused", self.monitors["selections"].stalled_cycles > 0)

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
        self.monitors["selections"].meaning = self.meaning
        await super().start()

    def meaning(self, bits: int) -> Any:
        """Without a nonzero only the end of the row has a meaning."""
        item = self.layouts["selections"].unpack(bits)
        return bits if item["present"] else item["last"]


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
    assert bench.stalled > 0
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


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def tiles_without_a_break(dut: Any, kind: str) -> None:
    """The next tile waits at the port, also while the last rows of a pass, which are empty, leave: none of them is lost."""
    bench = ConvertedABench(dut, "fourth")
    await bench.start()
    operand = bench.matrix(23, 30, 0.2)
    for row in range(12, 23):
        operand.rows[row].clear()
    beats = await bench.configure(operand, kind)
    tiles = [tile for height in (23, 5, 23) for tile in tiles_of(operand, "a", (height, 30))]
    bench.send("tile", *tiles)
    await bench.settle()
    await bench.wait(lambda: not int(dut.busy.value), "it does not come to rest")
    assert not int(dut.error.value)
    assert bench.read() == 3 * beats
    coverage.hit("without_a_break")
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
    assert not bench.read() and not bench.stalled and not int(dut.busy.value)
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
        await bench.configure(bench.matrix(9, 30, 0.3), kind)
        for tile in tiles_of(bench.operand, "a", (5, 30)):
            await bench.visit(tile)
    coverage.save()
