"""Buffet on its pins against the golden buffet. Fits any build of ``Buffet``. Testplan: ``verif/testplans/buffet.toml``."""

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from sw.golden.buffet import Buffet
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.buffer_bench import BufferBench
from verif.clocking import reset
from verif.coverage import Coverage

OPERATIONS = ("fill", "read", "update")
SHRINK_BEYOND_OCCUPANCY = 1
coverage = Coverage("buffet")


def bench_of(dut: Any, capacity: int, **conditions: str) -> BufferBench:
    return BufferBench(dut, Buffet(capacity), OPERATIONS, {"capacity": capacity}, **conditions)


def largest(dut: Any) -> int:
    """Entries of this build: the largest occupancy."""
    return int(2 ** (len(dut.read__payload)))


async def pieces(bench: BufferBench, capacity: int, count: int) -> None:
    """Fill a tile, use it, free it, ``count`` times, with reads and updates that come before their entry."""
    for _ in range(count):
        size = bench.rng.randint(1, capacity)
        for index in range(size):
            if bench.rng.random() < 0.3:
                bench.update(index, bench.entry())
            if bench.rng.random() < 0.7:
                bench.send("read", bench.rng.randint(0, index))
        bench.send("fill", *(bench.entry() for _ in range(size)))
        coverage.hit("read_waited", bool(bench.drivers["read"].queue))
        coverage.hit("update_waited", bool(bench.drivers["update"].queue))
        await bench.sent()
        bench.send("shrink", size)
        coverage.hit("whole_shrink", size == bench.model.occupancy)
        await bench.sent()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def tiles_come_and_go(dut: Any, idle: str, backpressure: str) -> None:
    """Fills, early reads and updates, shrinks: answers, occupancy and credit are the golden buffet's."""
    capacity = largest(dut) if idle == "none" else largest(dut) - 3
    bench = bench_of(dut, capacity, idle=idle, backpressure=backpressure)
    await bench.start()
    await pieces(bench, capacity, 12)
    await bench.settle()
    assert not bench.illegal and not int(dut.error.value)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def full_buffer_waits(dut: Any) -> None:
    """A fill without credit waits, and goes on after a shrink."""
    bench = bench_of(dut, 3)
    await bench.start()
    bench.send("fill", *range(1, 6))
    await ClockCycles(dut.clk, 20)
    assert len(bench.drivers["fill"].queue) == 2 and int(dut.credit.value) == 0
    coverage.hit("full")
    bench.send("shrink", 2)
    await bench.sent()
    bench.send("read", 0, 1, 2)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def illegal_shrink_is_named(dut: Any) -> None:
    """A shrink beyond the occupancy is dropped and leaves its error until that is cleared."""
    bench = bench_of(dut, 4)
    await bench.start()
    bench.send("fill", 7, 8)
    await bench.sent()
    bench.send("shrink", 3)
    await bench.sent()
    await ClockCycles(dut.clk, 3)
    assert bench.illegal == ["SHRINK_BEYOND_OCCUPANCY"] and int(dut.error.value) == SHRINK_BEYOND_OCCUPANCY
    coverage.hit("illegal")
    dut.clear_error.value = 1
    await RisingEdge(dut.clk)
    dut.clear_error.value = 0
    bench.send("read", 0, 1)
    await bench.settle()
    assert not int(dut.error.value)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset with entries inside and operations waiting leaves an empty buffer."""
    bench = bench_of(dut, 4)
    await bench.start()
    bench.send("fill", 1, 2, 3)
    bench.send("read", 0, 3)
    await ClockCycles(dut.clk, 8)
    for driver in bench.drivers.values():
        driver.stop()
    bench.model.entries.clear()
    await reset(dut)
    bench.board.forget()
    for driver in bench.drivers.values():
        driver.start()
    await pieces(bench, 4, 3)
    await bench.settle()
    coverage.save()
