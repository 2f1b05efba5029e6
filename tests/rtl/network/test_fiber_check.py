# amaranth: UnusedElaboratable=no
"""Fiber check against the definition: sorted, without repetition, within the bounds."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.network.fiber_check import FiberCheck

LOW, HIGH = 100, 160


def words_of(fiber, lanes, surplus):
    """A fiber cut in words; with ``surplus`` a full last word is followed by an empty one."""
    pieces = [fiber[n : n + lanes] for n in range(0, len(fiber), lanes)] or [[]]
    if surplus and len(pieces[-1]) == lanes:
        pieces.append([])
    return [(piece, n == len(pieces) - 1) for n, piece in enumerate(pieces)]


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


def wrong(fiber):
    rises = all(a < b for a, b in zip(fiber, fiber[1:], strict=False))
    return bool(fiber) and not (rises and fiber[0] >= LOW and fiber[-1] < HIGH)


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_fibers_of_two_kinds(lanes, seed):
    rng = random.Random(f"{lanes} {seed}")
    dut = FiberCheck(lanes=lanes)
    queues, expected = ([], []), 0
    for n in range(120):
        length = rng.choice([0, 1, 2, 3, lanes, 2 * lanes, 9])
        fiber = sorted(rng.sample(range(LOW, HIGH), length))
        if fiber and rng.random() < 0.3:
            fiber = spoil(rng, fiber)
        kind = rng.randrange(2)
        queues[kind].extend(
            (piece, last, n, wrong(fiber)) for piece, last in words_of(fiber, lanes, rng.random() < 0.5)
        )
        expected += wrong(fiber)
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
                piece, last, number, bad = item = queues[kind].pop(0)
                line = [{"coordinate": c, "value": 0} for c in piece + [rng.getrandbits(32)] * (lanes - len(piece))]
                ctx.set(dut.word, {"line": line, "count": len(piece), "last": last})
                ctx.set(dut.kind, kind)
                ctx.set(dut.moved, 1)
            given.append(item)
            await ctx.tick()
            if ctx.get(dut.wrong):
                culprit = given[-dut.latency]
                assert culprit is not None and culprit[3], "a good fiber was blamed"
                blamed.add(culprit[2])

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(blamed) == expected


def test_says_the_coordinate():
    dut = FiberCheck(lanes=2)
    seen = []

    async def bench(ctx):
        ctx.set(dut.low, LOW)
        ctx.set(dut.high, HIGH)
        ctx.set(dut.moved, 1)
        for line, last in (((120, 130), 0), ((131, 125), 1), ((99, 140), 1), ((140, 200), 1)):
            lanes = [{"coordinate": c, "value": 0} for c in line]
            ctx.set(dut.word, {"line": lanes, "count": 2, "last": last})
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
