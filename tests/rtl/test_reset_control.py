"""Reset control: a start in every state, a soft reset in every cycle."""

import pytest
from amaranth.sim import Simulator

from rtl.reset_control import ResetControl

BUS_BUSY = 5  # cycles that the bus needs to come to rest after a halt


def run(when, *, starts=True, finishes=None):
    """Start in cycle 0, soft reset in cycle ``when``; returns what was seen in each cycle."""
    dut = ResetControl()
    seen = []

    async def bench(ctx):
        halted_for, running, started_at = BUS_BUSY, False, None
        for cycle in range(60):
            ctx.set(dut.start, starts and cycle == 0)
            ctx.set(dut.soft_reset, cycle == when)
            halted_for = halted_for + 1 if ctx.get(dut.halt) else 0
            ctx.set(dut.bus_busy, halted_for < BUS_BUSY)
            ctx.set(dut.machine_done, running and finishes is not None and cycle - started_at >= finishes)
            names = ("halt", "machine_reset", "machine_start", "busy", "done")
            seen.append({name: ctx.get(getattr(dut, name)) for name in names})
            if seen[-1]["machine_reset"]:
                running = False
            if seen[-1]["machine_start"]:
                running, started_at = True, cycle
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


def test_a_run_begins_with_a_reset_and_ends_with_done():
    seen = run(None, finishes=10)
    begun = [n for n, now in enumerate(seen) if now["machine_start"]]
    reset = [n for n, now in enumerate(seen) if now["machine_reset"]]
    assert len(begun) == 1 and reset == list(range(reset[0], begun[0])), "a reset, then at once the start"
    assert sum(now["done"] for now in seen) == 1 and not seen[-1]["busy"] and seen[-1]["halt"]


@pytest.mark.parametrize("when", range(1, 40))
def test_a_soft_reset_in_any_cycle_ends_the_run(when):
    """Also in the cycles between a start and the run: nothing may begin after it."""
    seen = run(when)
    assert not any(now["done"] for now in seen)
    assert not any(now["machine_start"] for now in seen[when + 1 :]), "the run began although it was reset"
    assert not seen[-1]["busy"] and seen[-1]["halt"]
    began = [n for n, now in enumerate(seen) if now["machine_start"]]
    if began:
        assert any(now["machine_reset"] for now in seen[began[0] + 1 :]), "a machine that was started was not reset"


@pytest.mark.parametrize("when", range(8, 30))
def test_a_soft_reset_at_the_end_of_a_run(when):
    """Done or reset, never both after the reset."""
    seen = run(when, finishes=6)
    assert sum(now["done"] for now in seen) <= 1 and not any(now["done"] for now in seen[when:])
    assert not seen[-1]["busy"]


def test_a_soft_reset_without_a_run():
    seen = run(3, starts=False)
    assert any(now["machine_reset"] for now in seen) and not any(now["machine_start"] for now in seen)
    assert not seen[-1]["busy"]
