"""Clock, reset, and the order of events at the begin of every bench."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

__all__ = ["PERIOD_NS", "begin", "reset", "wait_until"]

PERIOD_NS = 10
RESET_CYCLES = 3


async def begin(dut: Any, *, zero: tuple[str, ...] = (), clock: str = "clk", reset_name: str = "rst") -> None:
    """Start the clock and reset a block; ends after an edge with the reset released.

    Parameters
    ----------
    zero: inputs that are driven to 0. A four-state simulator wants every input driven before the first edge.
    clock, reset_name: ports; the reset is active high unless its name ends in ``n``.
    """
    getattr(dut, clock).value = 0
    active = 0 if reset_name.endswith("n") else 1
    getattr(dut, reset_name).value = active
    for name in zero:
        getattr(dut, name).value = 0
    await Timer(1, unit="ns")
    cocotb.start_soon(Clock(getattr(dut, clock), PERIOD_NS, unit="ns").start())
    for _ in range(RESET_CYCLES):
        await RisingEdge(getattr(dut, clock))
    getattr(dut, reset_name).value = 1 - active
    await RisingEdge(getattr(dut, clock))


async def reset(dut: Any, cycles: int = 1, *, clock: str = "clk", reset_name: str = "rst") -> None:
    """Reset in the middle of anything."""
    active = 0 if reset_name.endswith("n") else 1
    getattr(dut, reset_name).value = active
    for _ in range(cycles):
        await RisingEdge(getattr(dut, clock))
    getattr(dut, reset_name).value = 1 - active


async def wait_until(clock: Any, condition: Any, *, limit: int, what: str) -> int:
    """Wait for ``condition()`` in settled cycles; returns the cycles waited. After ``limit`` the bench fails with ``what``."""
    for cycle in range(limit):
        await ReadOnly()
        holds = condition()
        await RisingEdge(clock)
        if holds:
            return cycle
    raise AssertionError(f"{what}: not within {limit} cycles")
