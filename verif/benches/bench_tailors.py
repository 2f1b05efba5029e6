"""Tailors buffer on its pins against the golden model. Fits any build of ``TailorsBuffer`` without ``release``.

Testplan: ``verif/testplans/tailors.toml``.
"""

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from sw.golden.tailors import TailorsBuffer
from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.buffer_bench import BufferBench
from verif.clocking import reset
from verif.coverage import Coverage

OPERATIONS = ("fill", "overwrite", "read", "update")
coverage = Coverage("tailors")


class TailorsBench(BufferBench):
    """A parent that streams a tile as Tailors does, a consumer that reads it in order, again and again."""

    def __init__(self, dut: Any, capacity: int, fifo: int, tile: int, **conditions: str) -> None:
        self.tile = tile
        self.capacity = capacity
        self.fifo = fifo
        settings = {"capacity": capacity, "fifo_entries": fifo, "tile_length": tile}
        super().__init__(dut, TailorsBuffer(capacity, fifo, tile), OPERATIONS, settings, **conditions)
        self.entries = [self.entry() for _ in range(tile)]

    async def load(self) -> None:
        """Fill what fits."""
        self.send("fill", *self.entries[: self.capacity])
        await self.sent()

    async def rounds(self, count: int) -> None:
        """Read the whole tile ``count`` times; each bumped entry is sent when its read is due."""
        position = self.capacity  # the tile's next entry to be sent
        kept = self.capacity - self.fifo
        for number in range(count):
            for index in range(self.tile):
                fits = self.tile <= self.capacity
                present = fits or index < kept or (number == 0 and index < self.capacity)
                self.send("read", index)
                if not present:
                    if self.rng.randrange(2):
                        await ClockCycles(self.dut.clk, 5)
                        coverage.hit("read_waited", not self.drivers["read"].idle)
                    self.send("overwrite", self.entries[position % self.tile])
                    position += 1
                    if position == self.tile:
                        position = kept
                await self.sent()
        coverage.hit("several_rounds", count > 2 and self.tile > self.capacity)

    async def free_all(self) -> None:
        overbooked = self.model.overbooked
        self.send("shrink", self.model.occupancy)
        await self.sent()
        coverage.hit("tile_ended", overbooked)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(
    (("capacity", "fifo"), [(8, 3), (8, 1), (5, 5), (7, 2)]),
    (("idle", "backpressure"), [("none", "none"), ("fourth", "random"), ("random", "fourth"), ("random", "random")]),
    excess=[0, 1, 11],
)
async def tile_read_again_and_again(
    dut: Any, capacity: int, fifo: int, idle: str, backpressure: str, excess: int
) -> None:
    """A tile that fits, overflows by one, or by far, read pass after pass: every answer is the tile's entry."""
    bench = TailorsBench(dut, capacity, fifo, capacity + excess, idle=idle, backpressure=backpressure)
    await bench.start()
    await bench.load()
    await bench.rounds(3)
    await bench.free_all()
    await bench.settle()
    assert not bench.illegal and int(dut.error.value) == 0
    coverage.hit("fits", excess == 0)
    coverage.hit("one_over", excess == 1)
    coverage.hit("region_of_one", fifo == 1)
    coverage.hit("region_of_all", fifo == capacity)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(pause=PATTERN_NAMES, freed=[1, 2, 5])
async def shrink_while_overbooked(dut: Any, pause: str, freed: int) -> None:
    """The bumped data of the next pass fills freed space, until all of the tile is present."""
    capacity, fifo, tile = 8, 3, 12
    bench = TailorsBench(dut, capacity, fifo, tile, idle=pause, backpressure=pause)
    await bench.start()
    await bench.load()
    model, entries = bench.model, bench.entries
    position = capacity
    bench.send("overwrite", entries[position])
    await bench.sent()
    bench.send("shrink", freed)
    await bench.sent()
    coverage.hit("shrink_overbooked", model.overbooked)
    for _ in range(5 * tile):
        position = position + 1 if position + 1 < tile else freed + len(model.regular)
        bench.send("overwrite", entries[position])
        await bench.sent()
        coverage.hit("backfilled", model.backfilling)
        for index in bench.rng.sample(range(tile - freed), 3):
            if index < len(model.regular):
                bench.send("read", index)
                assert model.read(index) == entries[freed + index]
        await bench.sent()
        if not (model.overbooked or model.backfilling):
            break
    fits_now = tile - freed <= capacity
    assert fits_now != model.overbooked
    await bench.free_all()
    await bench.settle()
    assert not bench.illegal
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def illegal_operations_are_named(dut: Any) -> None:
    """An illegal operation is dropped, gives its named error until cleared, and changes nothing."""
    bench = TailorsBench(dut, 4, 2, 7)
    await bench.start()

    errors = described().enums["error"]

    async def named(error: str) -> None:
        await bench.sent()
        await ClockCycles(dut.clk, 3)
        assert bench.illegal.pop() == error and not bench.illegal
        assert int(dut.error.value) == errors[error]
        dut.clear_error.value = 1
        await RisingEdge(dut.clk)
        dut.clear_error.value = 0

    bench.send("fill", *bench.entries[:2])
    await bench.sent()
    bench.send("overwrite", 1)
    await named("OVERWRITE_BEFORE_FULL")
    bench.send("shrink", 3)
    await named("SHRINK_BEYOND_OCCUPANCY")
    bench.send("fill", *bench.entries[2:4])
    bench.send("overwrite", bench.entries[4])
    await bench.sent()
    bench.send("fill", 1)
    await named("FILL_WHILE_OVERBOOKED")
    bench.send("read", 7)
    await named("INDEX_BEYOND_TILE")
    bench.send("read", 0, 1, 4)
    await bench.settle()
    assert int(dut.error.value) == 0
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_while_overbooked(dut: Any) -> None:
    """A reset in the middle of an overbooked tile leaves an empty buffer."""
    bench = TailorsBench(dut, 4, 2, 9)
    await bench.start()
    await bench.load()
    bench.send("overwrite", *bench.entries[4:7])
    bench.send("read", 0, 8)
    await ClockCycles(dut.clk, 12)
    assert int(dut.overbooked.value)
    for driver in bench.drivers.values():
        driver.stop()
    bench.model.__init__(4, 2, 9)
    await reset(dut)
    bench.board.forget()
    for driver in bench.drivers.values():
        driver.start()
    await bench.load()
    await bench.rounds(2)
    await bench.settle()
    coverage.save()
