"""Runs begin from a machine that was reset for four cycles after its last bus transaction, and end when the bus is quiet."""

from collections.abc import Callable
from typing import Any

from amaranth.sim import Simulator

from rtl.reset_control import RESET_CYCLES, ResetControl

QUIET = {"halt": 1, "machine_reset": 0, "machine_start": 0, "busy": 0, "done": 0}
WAITS = QUIET | {"busy": 1}
RESETS = WAITS | {"machine_reset": 1}
STARTS = WAITS | {"machine_start": 1, "halt": 0}
RUNS = WAITS | {"halt": 0}


def play(test: Callable[[Any], Any]) -> None:
    """``test`` gets a function that sets inputs for one cycle and checks every output in it."""
    dut = ResetControl()
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def run(ctx: Any) -> None:
        async def cycle(expected: dict[str, int], **inputs: int) -> None:
            for name in ("start", "soft_reset", "bus_busy", "machine_done"):
                ctx.set(getattr(dut, name), inputs.get(name, 0))
            assert {name: ctx.get(getattr(dut, name)) for name in QUIET} == expected
            await ctx.tick()

        await test(cycle)

    sim.add_testbench(run)
    sim.run()


async def begin(cycle: Any) -> None:
    await cycle(QUIET, start=1)
    await cycle(WAITS, bus_busy=1)
    await cycle(WAITS, bus_busy=1)
    await cycle(WAITS)
    for _ in range(RESET_CYCLES + 1):
        await cycle(RESETS, bus_busy=1)
    await cycle(STARTS)


def test_a_run_from_start_to_end() -> None:
    async def test(cycle: Any) -> None:
        for _ in range(2):
            await cycle(QUIET)
            await begin(cycle)
            await cycle(RUNS, start=1)
            await cycle(RUNS, bus_busy=1)
            await cycle(RUNS | {"halt": 1}, machine_done=1, bus_busy=1)
            await cycle(RUNS | {"halt": 1, "done": 1}, machine_done=1)

    play(test)


def test_soft_reset_ends_a_run_without_done() -> None:
    async def test(cycle: Any) -> None:
        await begin(cycle)
        await cycle(RUNS)
        await cycle(RUNS | {"halt": 1}, machine_done=1, soft_reset=1)
        await cycle(WAITS, bus_busy=1)
        await cycle(WAITS)
        for _ in range(RESET_CYCLES + 1):
            await cycle(RESETS)
        await cycle(QUIET)
        await begin(cycle)

    play(test)


def test_soft_reset_of_an_idle_machine_starts_nothing() -> None:
    async def test(cycle: Any) -> None:
        await begin(cycle)
        await cycle(RUNS | {"halt": 1, "done": 1}, machine_done=1)
        await cycle(QUIET, soft_reset=1)
        await cycle(WAITS)
        for _ in range(RESET_CYCLES + 1):
            await cycle(RESETS)
        for _ in range(3):
            await cycle(QUIET)

    play(test)
