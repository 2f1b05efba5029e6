"""Coordinate check against the definition: sorted, with or without repetition, within the bounds."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.accessor.coordinate_check import CoordinateCheck

LOW, HIGH = 100, 160


def lines_of(fiber, lanes, head, surplus):
    """A fiber cut in lines, the first from lane ``head`` on: first lane, coordinates, whether the fiber ends.

    With ``surplus`` a full last line is followed by an empty one.
    """
    cuts = [0, *range(lanes - head, len(fiber), lanes), len(fiber)]
    pieces = [fiber[one:other] for one, other in zip(cuts, cuts[1:], strict=False)] if fiber else [[]]
    if surplus:
        pieces.append([])
    return [(0 if n else head, piece, n == len(pieces) - 1) for n, piece in enumerate(pieces)]


def spoil(rng, fiber):
    """The fiber with one defect, and any coordinate that may be blamed for it."""
    fiber = list(fiber)
    n = rng.randrange(len(fiber))
    kind = rng.choice(["repeat", "fall", "low", "high", "huge"])
    if kind == "repeat" and n:
        fiber[n] = fiber[n - 1]
    elif kind == "fall" and n:
        fiber[n - 1], fiber[n] = fiber[n], fiber[n - 1]
    elif kind == "low":
        fiber[0] = rng.randrange(LOW)
    elif kind == "high":
        fiber[-1] = HIGH
    else:
        fiber[-1] = rng.randrange(HIGH, 1 << 32)
    return fiber


def wrong(fiber, repeats):
    rises = all(a < b or (repeats and a == b) for a, b in zip(fiber, fiber[1:], strict=False))
    return bool(fiber) and not (rises and fiber[0] >= LOW and fiber[-1] < HIGH)


def put(ctx, dut, line, first, count, last):
    ctx.set(dut.line, [{"coordinate": c, "value": 0} for c in line])
    ctx.set(dut.mask, ((1 << count) - 1) << first)
    ctx.set(dut.last, last)


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_fibers_of_two_kinds(lanes, repeats, seed):
    rng = random.Random(f"{lanes} {seed}")
    dut = CoordinateCheck(lanes=lanes, repeats=repeats)
    queues, expected = ([], []), 0
    for n in range(120):
        length = rng.choice([0, 1, 2, 3, lanes, 2 * lanes, 9])
        fiber = sorted(rng.sample(range(LOW, HIGH), length))
        if fiber and rng.random() < 0.3:
            fiber = spoil(rng, fiber)
        kind = rng.randrange(2)
        lines = lines_of(fiber, lanes, rng.randrange(lanes), rng.random() < 0.5)
        queues[kind].extend((*line, n, wrong(fiber, repeats)) for line in lines)
        expected += wrong(fiber, repeats)
    assert expected > 5
    blamed, given = set(), []

    async def bench(ctx):
        ctx.set(dut.low, LOW)
        ctx.set(dut.high, HIGH)
        while any(queues) or len(given) < dut.latency or any(item is not None for item in given[-dut.latency :]):
            kind = rng.randrange(2)
            ctx.set(dut.moved, 0)
            item = None
            if queues[kind] and rng.random() < 0.8:
                first, piece, last, _number, _bad = item = queues[kind].pop(0)
                others = [rng.getrandbits(32) for _ in range(lanes)]
                put(ctx, dut, [*others[:first], *piece, *others[first + len(piece) :]], first, len(piece), last)
                ctx.set(dut.kind, kind)
                ctx.set(dut.moved, 1)
            given.append(item)
            await ctx.tick()
            if ctx.get(dut.wrong):
                culprit = given[-dut.latency]
                assert culprit is not None and culprit[4], "a good fiber was blamed"
                blamed.add(culprit[3])

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(blamed) == expected


def test_says_the_coordinate():
    dut = CoordinateCheck(lanes=2)
    seen = []

    async def bench(ctx):
        ctx.set(dut.low, LOW)
        ctx.set(dut.high, HIGH)
        ctx.set(dut.moved, 1)
        for line, last in (((120, 130), 0), ((131, 125), 1), ((99, 140), 1), ((140, 200), 1)):
            put(ctx, dut, line, 0, 2, last)
            await ctx.tick()
            seen.append((ctx.get(dut.wrong), ctx.get(dut.coordinate)))
        ctx.set(dut.moved, 0)
        await ctx.tick()
        seen.append((ctx.get(dut.wrong), ctx.get(dut.coordinate)))

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen[2:] == [(1, 125), (1, 99), (1, 200)]


@pytest.mark.parametrize("lanes", [0, -1])
def test_lanes_are_checked(lanes):
    with pytest.raises(ValueError, match=f"^Number of lanes must be a positive integer, not {lanes}$"):
        CoordinateCheck(lanes=lanes)
