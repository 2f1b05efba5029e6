"""Kept lines: runs of a ring of the SRAM arrive in order, one behind another, and no line is asked for without space for it."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.network.kept_lines import LINES, RUNS, KeptLines

LANES, MOST = 2, 24
BASE = 5
# Cycles in which a test ends, or something hangs.
PATIENCE = 5000


def run(
    runs: list[tuple[int, int]],
    lines: int,
    *,
    hurry: float = 1.0,
    results: float = 1.0,
    latency: int = 2,
    lane: int = 1,
) -> int:
    """Reads runs, first line and count, of a ring of so many lines; returns the cycles from the first request to the last line.

    hurry : share of cycles in which the SRAM takes a request. results : share in which a line is taken. lane : has the address.
    """
    dut = KeptLines(lanes=LANES, line_address_width=6, most=MOST)
    wanted = [BASE + (first + n) % lines for first, count in runs for n in range(count)]
    random = Random(f"{runs} {lines} {hurry} {results}")
    state = {"cycles": 0, "asked": 0, "taken": 0}
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def ask(ctx: Any) -> None:
        ctx.set(dut.base, BASE)
        ctx.set(dut.lines, lines)
        await ctx.tick()
        for first, count in runs:
            ctx.set(dut.requests.payload, {"line": first, "count": count})
            ctx.set(dut.requests.valid, 1)
            await ctx.tick().until(dut.requests.ready)
        ctx.set(dut.requests.valid, 0)

    async def answer(ctx: Any) -> None:
        """The SRAM: lines have their address in one lane, and nonsense while they are not valid."""
        on_the_way: list[int | None] = [None] * latency
        while True:
            ready = random.random() < hurry
            ctx.set(dut.sram_request.ready, ready)
            *_, valid, address = await ctx.tick().sample(dut.sram_request.valid, dut.sram_request.payload)
            asked = address if valid and ready else None
            if asked is not None:
                assert asked == wanted[state["asked"]], f"line {state['asked']} of all runs"
                state["asked"] += 1
                assert state["asked"] - state["taken"] <= LINES
            on_the_way.append(asked)
            come = on_the_way.pop(0)
            elements = [{"coordinate": 99, "value": 99} for _ in range(LANES)]
            if come is not None:
                elements[lane] = {"coordinate": come, "value": state["asked"]}
            ctx.set(dut.sram_response, {"line": elements, "valid": come is not None})

    async def take(ctx: Any) -> None:
        for number, address in enumerate(wanted):
            for _ in range(PATIENCE):
                ready = random.random() < results
                ctx.set(dut.line.ready, ready)
                *_, valid, line = await ctx.tick().sample(dut.line.valid, dut.line.payload)
                state["cycles"] += 1
                if valid and ready:
                    break
            else:
                raise AssertionError(f"line {number} never came")
            assert line[lane].coordinate == address, f"line {number} of all runs"
            state["taken"] += 1
        ctx.set(dut.line.ready, 1)
        for _ in range(LINES):
            *_, valid = await ctx.tick().sample(dut.line.valid)
            assert not valid, "more lines than the runs have"

    sim.add_testbench(ask, background=True)
    sim.add_testbench(answer, background=True)
    sim.add_testbench(take)
    sim.run()
    return state["cycles"]


def drawn(lines: int, count: int) -> list[tuple[int, int]]:
    """Runs that begin anywhere, also behind the ring's end once; none longer than the ring."""
    random = Random(lines)
    most = min(MOST, lines)
    return [(random.randrange(2 * lines), random.choice([1, 2, most, random.randint(1, most)])) for _ in range(count)]


@pytest.mark.parametrize("lines", [1, 2, 7, 31, 32])
@pytest.mark.parametrize(("hurry", "results", "latency"), [(1.0, 1.0, 2), (0.3, 1.0, 2), (1.0, 0.3, 2), (0.6, 0.5, 9)])
def test_runs_arrive_in_order(lines: int, hurry: float, results: float, latency: int) -> None:
    run(drawn(lines, 25), lines, hurry=hurry, results=results, latency=latency)


@pytest.mark.parametrize("first", [0, 9, 10, 19])
@pytest.mark.parametrize("lane", range(LANES))
def test_behind_the_last_line_comes_the_first(first: int, lane: int) -> None:
    run([(first, 10), (first, 1)], 10, lane=lane)


def test_a_line_a_cycle_and_one_more_for_each_run() -> None:
    """Runs of one line take two cycles each."""
    for runs in ([(0, 20)] * 4, [(n, 1) for n in range(20)]):
        lines = sum(count for _, count in runs)
        assert run(runs, 32) <= lines + len(runs) + 7


@pytest.mark.parametrize("sizes", [{}, {"runs": 2, "pending": 4}, {"runs": 1, "pending": 7}], ids=str)
def test_as_many_lines_and_runs_as_have_space_wait(sizes: dict[str, int]) -> None:
    """While no line is taken."""
    runs, pending = sizes.get("runs", RUNS), sizes.get("pending", LINES)
    dut = KeptLines(lanes=LANES, line_address_width=6, most=MOST, **sizes)
    assert pending < MOST
    asked, came = 0, 0
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def drive(ctx: Any) -> None:
        nonlocal asked, came
        ctx.set(dut.lines, 32)
        ctx.set(dut.sram_request.ready, 1)
        ctx.set(dut.requests.payload, {"line": 0, "count": MOST})
        ctx.set(dut.requests.valid, 1)
        for _ in range(4 * MOST):
            *_, request, run = await ctx.tick().sample(dut.sram_request.valid, dut.requests.ready)
            ctx.set(dut.sram_response.valid, request)
            asked, came = asked + request, came + run

    sim.add_testbench(drive)
    sim.run()
    assert (asked, came) == (pending, runs + 1)


def test_parameters() -> None:
    for wrong in ({"lanes": 3}, {"line_address_width": 0}, {"most": 0}, {"runs": 0}, {"pending": 0}):
        with pytest.raises(ValueError, match="must be"):
            KeptLines(**{"lanes": LANES, "line_address_width": 6, "most": MOST} | wrong)
