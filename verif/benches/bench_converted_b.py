"""B on its way in against the matrix itself, in every format. Testplan: ``verif/testplans/converted_b.toml``."""

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
    BAD_SETTING,
    BAD_VALUE,
    RECORDS,
    SOURCES,
    ConvertedBench,
)
from verif.benches.sparse import Operand
from verif.coverage import Coverage

# Of registers that an error names.
OFFSETS = {"CONVERSION_B": 0x138, "COUNT_B": 0x13C}
coverage = Coverage("converted_b")


def rows_from(begin: int, rows: int) -> dict[str, int]:
    return {"begin": begin, "rows": rows}


def tiles_of_height(height: int, rows: int) -> list[dict[str, int]]:
    """All rows, in tiles of this height."""
    return [rows_from(begin, min(height, rows - begin)) for begin in range(0, rows, height)]


class ConvertedBBench(ConvertedBench):
    """Sends tiles as accessor B does, and takes segments as its loader does; the matrix says which entries each row has."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(dut, backpressure, seed, drive=["tile"], receive=["segments"], zero=("finishing",))
        self.group = int(self.block.parameters["group"])
        self.passes, self.last_begin = 0, 0

    async def configure(self, operand: Operand, kind: str, **changes: Any) -> int:
        """The matrix in memory, in a format; beats of a pass."""
        coverage.hit(kind)
        return await super().configure(operand, kind, **changes)

    async def restart(self, cycles: int = 2) -> None:
        self.dut.finishing.value = 0
        self.passes = 0
        await super().restart(cycles)

    async def visit(self, *tiles: dict[str, int]) -> None:
        self.send("tile", *tiles)
        await self.settle()
        assert int(self.dut.idle.value), "no row is left, and the tile is still in progress"
        assert not int(self.dut.error.value)
        coverage.hit("refused", self.monitors["segments"].stalled_cycles > 0)

    async def finish(self) -> None:
        """No tile comes any more: what is left of the pass is read."""
        assert not int(self.dut.busy.value), "nothing is asked for"
        self.dut.finishing.value = 1
        await self.cycles(1)
        coverage.hit("rest", bool(int(self.dut.busy.value)))
        await self.wait(lambda: not int(self.dut.busy.value), "the last pass does not end")
        await self.settle()
        assert not int(self.dut.error.value)

    def every_cycle(self) -> None:
        dut = self.dut
        active = not int(dut.idle.value)
        wanted = active and int(dut.segments__ready.value) and not int(dut.segments__valid.value)
        if int(dut.stalled.value) != wanted:
            self.board.fail(f"stalled is {int(dut.stalled.value)} where it must be {int(wanted)}")
        if not int(dut.finishing.value) and int(dut.busy.value) != active:
            self.board.fail(f"busy is {int(dut.busy.value)} with a tile {'' if active else 'not '}in progress")
        super().every_cycle()

    def taken(self, port: str, item: Any) -> None:
        """Rows of the tile; a tile that does not lie behind the one before it begins a pass."""
        begin, end = item["begin"], item["begin"] + item["rows"]
        fresh = not self.passes or begin <= self.last_begin
        coverage.hit("another_pass", self.passes > 0 and fresh)
        coverage.hit("same_begin", self.passes > 0 and begin == self.last_begin)
        if fresh:
            self.passes += 1
        self.last_begin = begin
        for row in self.operand.rows[begin:end]:
            self.board.expect("rows", row)
            coverage.hit("empty_row", not row)

    def came(self, port: str, item: Any) -> None:
        """A word of a segment; beside the word all is 0."""
        word = item["word"]
        first, count = word["first"], word["count"]
        others = {name: item[name] for name in ("begin", "length", "bumped", "beyond")}
        if any(others.values()):
            self.board.fail(f"beside the word there is {others}")
        if count > self.group or first + count > int(self.block.parameters["lanes"]):
            self.board.fail(f"a word of {count} entries from lane {first} on")
        if not count and (self.row or not word["last"]):
            self.board.fail("a word without an entry, and not of an empty row")
        lanes = word["line"][first : first + count]
        self.row += [(lane["coordinate"], lane["value"]) for lane in lanes]
        coverage.hit("several", count > 1)
        coverage.hit("behind_others", first > 0)
        coverage.hit("several_words", bool(word["last"]) and len(self.row) > count)
        if word["last"]:
            self.board.observe("rows", self.row)
            self.row = []


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES), backpressure=PATTERN_NAMES)
async def every_pass(dut: Any, kind: str, backpressure: str) -> None:
    """Every row of every tile, four passes one after another: each reads all bytes of the format once."""
    bench = ConvertedBBench(dut, backpressure)
    await bench.start()
    operand = bench.matrix(17, 30, 0.2)
    beats = await bench.configure(operand, kind)
    for n, height in enumerate((17, 5, 1, 17)):
        await bench.visit(*tiles_of_height(height, 17))
        assert bench.passes == n + 1
        assert bench.read() == (n + 1) * beats, f"{bench.read()} beats in {n + 1} passes of {beats}"
        coverage.hit("cut", height < 17)
    await bench.finish()
    assert bench.read() == 4 * beats
    assert bench.stalled > 0
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES), backpressure=PATTERN_NAMES)
async def left_out(dut: Any, kind: str, backpressure: str) -> None:
    """Rows that no tile wants, before, between and behind those that some do; what the last tile leaves is read at the end."""
    bench = ConvertedBBench(dut, backpressure)
    await bench.start()
    operand = bench.matrix(40, 30, 0.3)
    for row in (0, 9, 10, 20, 39):
        operand.rows[row].clear()
    beats = await bench.configure(operand, kind)
    passes = (
        [(4, 4), (9, 3), (12, 1), (30, 2)],
        [(0, 4), (39, 1)],
        [(0, 1)],
        [(0, 1), (38, 2)],
        [(25, 3)],
        [(2, 5)],
    )
    for tiles in passes:
        ends = [begin + rows for begin, rows in tiles]
        coverage.hit("before", tiles[0][0] > 0)
        coverage.hit("between", any(begin > end for (begin, _), end in zip(tiles[1:], ends, strict=False)))
        coverage.hit("behind", ends[-1] < 40)
        for begin, rows in tiles:
            await bench.visit(rows_from(begin, rows))
    assert bench.passes == len(passes)
    assert (len(passes) - 1) * beats < bench.read() <= len(passes) * beats
    await bench.finish()
    assert bench.read() == len(passes) * beats
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def tiles_without_a_break(dut: Any, kind: str) -> None:
    """All tiles of some passes wait at the port, with rows left out by chance."""
    bench = ConvertedBBench(dut, "random")
    await bench.start()
    operand = bench.matrix(25, 20, 0.3)
    for row in range(21, 25):  # the next pass must not begin before they are handed out
        operand.rows[row].clear()
    beats = await bench.configure(operand, kind)
    tiles = [rows_from(0, 25), rows_from(0, 25)]
    for height in (1, 2, 3, 7, 25):
        first, *others = tiles_of_height(height, 25)
        tiles += [first, *(tile for tile in others if bench.rng.random() < 0.6)]
    await bench.visit(*tiles)
    await bench.finish()
    assert bench.read() == bench.passes * beats
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def nothing_stored(dut: Any, kind: str) -> None:
    """No row has an entry: each gives a word that says so."""
    bench = ConvertedBBench(dut, "random")
    await bench.start()
    await bench.configure(Operand(20, [[] for _ in range(9)]), kind)
    await bench.visit(*(tile for height in (9, 4, 1) for tile in tiles_of_height(height, 9)))
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def not_converted(dut: Any) -> None:
    """Without ``enable`` a tile is not taken and nothing is read; with it the same tile is."""
    bench = ConvertedBBench(dut, "fourth")
    await bench.start()
    beats = await bench.configure(bench.matrix(9, 10, 0.3), "zvc")
    dut.enable.value = 0
    for finishing in (0, 1):
        dut.finishing.value = finishing
        bench.send("tile", rows_from(0, 9))
        await bench.cycles(60)
        assert not bench.passes and not bench.read() and not bench.stalled
        assert int(dut.idle.value) and not int(dut.busy.value) and not int(dut.error.value)
        await bench.restart()
        dut.enable.value = 0
    bench.send("tile", rows_from(0, 9))
    await bench.cycles(20)
    dut.enable.value = 1
    await bench.visit()
    assert bench.read() == beats
    coverage.hit("not_enabled")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def faults(dut: Any) -> None:
    """What the source and the scheme can have wrong, each with its detail; the next run after a reset is whole."""
    bench = ConvertedBBench(dut, "fourth")
    await bench.start()
    operand = bench.matrix(12, 30, 0.3)
    whole, nonzeros = rows_from(0, 12), int(operand.pointers[-1])
    value_bits = int(bench.block.parameters["value_bits"])

    async def good(kind: str = "zvc") -> None:
        before, beats = bench.read(), await bench.configure(operand, kind)
        await bench.visit(whole)
        await bench.finish()
        assert bench.read() == before + beats
        await bench.restart()

    async def wrong_record(kind: str, at: int = 0) -> None:
        await bench.configure(operand, kind)
        bench.memory.store(RECORDS + at, np.zeros(16, np.uint8))

    await bench.configure(operand, "zvc", count=nonzeros - 1)
    assert (await bench.fails(whole))[0] == BAD_MASK
    coverage.hit("bad_mask")
    await good()
    await wrong_record("zvc", 32)
    assert await bench.fails(whole) == (BAD_VALUE, 32 * 8 // value_bits)
    coverage.hit("bad_value")
    await good()
    await bench.configure(operand, "coo", rows=11)
    assert await bench.fails(whole) == (BAD_ENTRY, int(operand.pointers[11]))
    coverage.hit("outside")
    await good("coo")
    await wrong_record("coo")
    assert await bench.fails(whole) == (BAD_ORDER, 1)
    coverage.hit("bad_order")
    await good("coo")
    await wrong_record("rlc")
    assert await bench.fails(whole) == (BAD_RUN, 0)
    coverage.hit("bad_run")
    await good("rlc")
    for changes, register in (
        ({"formats": {"source": 2, "target": 2}}, "CONVERSION_B"),
        ({"count": (1 << 40) - 1}, "COUNT_B"),
    ):
        await bench.configure(operand, "coo", **changes)
        assert await bench.fails(whole) == (BAD_SETTING, OFFSETS[register])
        await good("dense")
    coverage.hit("bad_setting")
    # What no tile wants is looked at, too, for another pass and at the end.
    for tiles in ((rows_from(0, 1),), ()):
        long = bench.matrix(60, 30, 0.4)
        await bench.configure(long, "zvc")
        bench.memory.store(RECORDS + 960, np.zeros(16, np.uint8))
        await bench.visit(rows_from(0, 1))
        dut.finishing.value = not tiles
        assert await bench.fails(*tiles) == (BAD_VALUE, 960 * 8 // value_bits)
        coverage.hit("bad_and_unwanted")
        await good()
    await bench.configure(operand, "zvc")
    dut.allowed.value, dut.modes.value = 0, 0xFC5  # as many bits as the register has
    assert await bench.fails() == (BAD_MODE, 0xFC5)
    coverage.hit("bad_mode")
    await good()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def reset_in_the_middle(dut: Any, kind: str) -> None:
    """A reset between a launch and the end of a pass, and while a pass is read to its end; the next tiles are whole."""
    bench = ConvertedBBench(dut, "fourth")
    await bench.start()

    async def whole() -> None:
        coverage.hit("reset")
        await bench.restart(3)
        before, beats = bench.read(), await bench.configure(bench.matrix(9, 30, 0.3), kind)
        await bench.visit(*tiles_of_height(5, 9))
        assert bench.read() == before + beats
        await bench.restart(3)

    for wait in (10, 40, 110):
        await bench.configure(bench.matrix(12, 60, 0.5), kind)
        bench.send("tile", rows_from(0, 12))
        await bench.cycles(wait)
        assert int(dut.busy.value)
        await whole()
    await bench.configure(bench.matrix(12, 60, 0.5), kind)
    await bench.visit(rows_from(0, 1))
    bench.send("tile", rows_from(0, 12))
    await bench.cycles(6)
    assert bench.passes == 1, "the rest of the pass before is read first"
    await whole()
    coverage.save()
