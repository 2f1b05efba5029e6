"""Tuning unit against the golden decision; quadrant counters against the golden count."""

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accessor.quadrants import QuadrantCounters
from rtl.tiling import shape_changes, tuning
from rtl.tiling.shape_changes import Change
from rtl.tiling.tuning import TuningUnit
from sw.golden.partition import Partition
from sw.golden.tuning import CANDIDATES, STAY, decide, legal_candidates

CHANGES = {Change.STAY: 0, Change.DOUBLE: 1, Change.HALVE: -1}


def decided(lanes: int, width: int, cases: list[dict[str, Any]], late: bool = False) -> list[tuple[int, int]]:
    """What the unit says to each case, and how long it takes."""
    dut = TuningUnit(lanes=lanes, line_address_width=width)
    found: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        for case in cases:
            for name, value in case.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.start, 1)
            if late:
                ctx.set(dut.counts, [9] * 4)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for n in range(1, dut.longest + 1):
                if n == tuning.SETTLE_CYCLES:
                    ctx.set(dut.counts, case["counts"])
                if ctx.get(dut.done):
                    break
                await ctx.tick()
            assert ctx.get(dut.done), "takes too long"
            found.append((CHANGES[Change(ctx.get(dut.change[1]))], CHANGES[Change(ctx.get(dut.change[0]))]))
            await ctx.tick()
            assert not ctx.get(dut.done)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    return found


def wanted(lanes: int, case: dict[str, Any]) -> tuple[int, int]:
    partition = Partition(lines=case["lines"], fifo_lines=case["fifo_lines"], lanes=lanes)
    extent, side = case["extent_k"], case["side_k"]
    capacities = {k: partition.capacity(min(tall, extent)) for k, tall in ((-1, side >> 1), (0, side), (1, side << 1))}
    movable = {"j": case["movable"] & 1, "k": case["movable"] >> 1}
    # In `jki` both may change while both are cut, k alone while j is not; a grain as long as the side cannot be halved.
    grains = tuple(0 if case["halvable"] >> n & 1 else case[f"side_{'jk'[n]}"] for n in (1, 0))
    sides, extents = (side, case["side_j"]), (extent, case["extent_j"])
    legal = legal_candidates(
        "jki", False, not movable["j"], not movable["k"], sides, (grains[0], grains[1]), extents, partition.most_rows
    )
    if not movable["k"]:
        legal = frozenset(change for change in legal if change[0] == 0)
    c00, c01, c10, c11 = case["counts"]
    return decide((c00, c01, c10, c11), capacities, legal)


def random_case(rng: np.random.Generator, lanes: int, width: int) -> dict[str, Any]:
    lines = int(rng.integers(8, (1 << width) + 1))
    fifo = int(rng.integers(0, lines // 3))
    most = lanes * (lines - fifo - 1)
    side_k = int(rng.integers(1, max(2, most)))
    side_j = int(rng.integers(1, 1 << int(rng.integers(1, 33))))
    scale = lanes * lines * float(rng.choice([0.1, 0.3, 1, 3]))
    shape = rng.random(4) ** float(rng.choice([0.2, 1, 5]))
    return {
        "counts": [int(scale * share) for share in shape],
        "side_k": side_k,
        "side_j": side_j,
        "extent_k": int(rng.choice([side_k, side_k + 1, 2 * side_k, 10 * side_k])),
        "extent_j": int(rng.choice([side_j, min(side_j + 1, 2**32 - 1), 2**32 - 1])),
        "movable": int(rng.integers(0, 4)),
        "halvable": int(rng.integers(0, 4)),
        "lines": lines,
        "fifo_lines": fifo,
    }


@pytest.mark.parametrize(("lanes", "width"), [(2, 9), (2, 4), (8, 16), (1, 6)])
def test_random_counters(lanes: int, width: int) -> None:
    rng = np.random.default_rng(lanes * 100 + width)
    cases = [random_case(rng, lanes, width) for _ in range(300)]
    expected = [wanted(lanes, case) for case in cases]
    assert decided(lanes, width, cases) == expected
    assert len(set(expected)) >= 5


def test_every_change_is_decided() -> None:
    rng = np.random.default_rng(1)
    cases = [random_case(rng, 2, 9) | {"movable": 3, "halvable": 3} for _ in range(600)]
    expected = [wanted(2, case) for case in cases]
    # 2 T_k x T_j / 2 is tried but cannot win: it holds no more than the present tile, whose metadata take less.
    assert set(expected) == set(CANDIDATES) - {(1, -1)}
    assert decided(2, 9, cases) == expected


EXTREME = (0, 1, 2**31, 2**32 - 1)


def test_extreme_counters() -> None:
    """Nothing, one element, and counters that are full, in all quadrants: no sum wraps."""
    base = {"side_k": 16, "side_j": 16, "extent_k": 64, "extent_j": 64, "movable": 3, "halvable": 3}
    cases: list[dict[str, Any]] = [
        base | {"counts": [EXTREME[n >> 2 * q & 3] for q in range(4)], "lines": lines, "fifo_lines": fifo}
        for n in range(256)
        for lines, fifo in ((512, 4), (40, 4), (13, 4))
    ]
    assert decided(2, 9, cases) == [wanted(2, case) for case in cases]
    assert decided(2, 9, [base | {"counts": [0] * 4, "lines": 512, "fifo_lines": 4}]) == [STAY]


def test_just_five_percent() -> None:
    """The bound itself: 400 of 400 against 381 stays, against 380 moves."""
    base: dict[str, Any] = {
        "side_k": 2,
        "side_j": 2,
        "extent_k": 2,
        "extent_j": 8,
        "movable": 1,
        "halvable": 3,
        "fifo_lines": 0,
    }
    # Two lines of metadata, at one element a line.
    cases = [base | {"counts": [100] * 4, "lines": 2 + capacity} for capacity in (400, 381, 380)]
    assert decided(1, 9, cases) == [(0, 0), (0, 0), (0, -1)]


def test_counters_may_be_late() -> None:
    rng = np.random.default_rng(2)
    cases = [random_case(rng, 2, 9) for _ in range(40)]
    assert decided(2, 9, cases, late=True) == [wanted(2, case) for case in cases]


def test_both_sides_know_the_same_candidates() -> None:
    assert shape_changes.CANDIDATES == CANDIDATES


def test_the_unit_waits_for_the_counters() -> None:
    assert QuadrantCounters.latency < tuning.SETTLE_CYCLES


@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("whole", [False, True])
def test_quadrant_counters(lanes: int, whole: bool) -> None:
    rng = np.random.default_rng(lanes)
    dut = QuadrantCounters(lanes=lanes)

    async def bench(ctx: Any) -> None:
        for rows in (7, 1, 20):
            half, middle = int(rng.integers(0, rows + 1)), int(rng.integers(0, 40))
            expected = [0, 0, 0, 0]
            ctx.set(dut.start, 1)
            ctx.set(dut.whole, whole)
            ctx.set(dut.half_rows, half)
            ctx.set(dut.middle, middle)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.whole, not whole)
            for row in range(rows):
                length = 0
                while True:
                    first = int(rng.integers(0, lanes))
                    count = int(rng.integers(0, lanes - first + 1))
                    last = bool(rng.random() < 0.5)
                    coordinates = [int(c) for c in rng.integers(0, 40, lanes)]
                    length += count
                    lanes_held = [{"coordinate": c, "value": 7} for c in coordinates]
                    ctx.set(dut.word, {"line": lanes_held, "first": first, "count": count, "last": last})
                    ctx.set(dut.length, length)
                    for moved in (False, True):
                        ctx.set(dut.moved, moved)
                        await ctx.tick()
                    ctx.set(dut.moved, 0)
                    if not whole:
                        for c in coordinates[first : first + count]:
                            expected[2 * (row >= half) + (c >= middle)] += 1
                    if last:
                        break
                if whole:
                    expected[2 * (row >= half)] += (length + 1) // 2
                    expected[2 * (row >= half) + 1] += length // 2
            await ctx.tick().repeat(dut.latency)
            assert [ctx.get(dut.counts[n]) for n in range(4)] == expected

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
