"""Segment placement against a plain count of what fits."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.segment_placement import SegmentPlacement


def expected(lengths: list[int], regular: int, limit: int, remembered: int) -> list[tuple[bool, bool]]:
    """Whether each segment is bumped, and whether it ends beyond the regular part."""
    found, total, beyond, closed = [], 0, 0, False
    for length in lengths:
        total += length
        ends_beyond = length != 0 and total > regular
        closed = closed or total > limit or (ends_beyond and beyond == remembered)
        beyond += ends_beyond and not closed
        found.append((closed, ends_beyond))
    return found


@pytest.mark.parametrize("whole", [True, False], ids=["a step a segment", "a step a line"])
@pytest.mark.parametrize("remembered", [0, 1, 5])
def test_the_first_that_does_not_fit_bumps_all_after_it(remembered: int, whole: bool) -> None:
    rng = random.Random(remembered)
    dut = SegmentPlacement(remembered=remembered)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    seen = {"fits": 0, "too long": 0, "too many": 0}

    async def bench(ctx: Any) -> None:
        for _ in range(25):
            lengths = [rng.choice((0, 0, 1, 2, 3, 9, 30)) for _ in range(25)]
            limit = rng.randrange(1, 200)
            regular = limit if remembered == 0 else rng.randrange(limit)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.limit, limit)
            ctx.set(dut.regular, regular)
            ctx.set(dut.load, 1)
            await ctx.tick()
            ctx.set(dut.load, 0)
            steps = [
                (min(4, length - done), done + 4 >= length)
                for length in lengths
                for done in range(0, max(1, length), 4)
            ]
            if whole:
                steps = [(length, True) for length in lengths]
            found = []
            while len(found) < len(steps):
                offered = bool(steps) and rng.random() < 0.8
                at = min(len(found) + ctx.get(dut.places.valid), len(steps) - 1)
                ctx.set(dut.steps.payload, {"nonzeros": steps[at][0], "some": steps[at][0] != 0, "last": steps[at][1]})
                ctx.set(dut.steps.valid, offered and len(found) + ctx.get(dut.places.valid) < len(steps))
                ctx.set(dut.places.ready, rng.random() < 0.7)
                _, _, valid, ready, place = await ctx.tick().sample(
                    dut.places.valid, dut.places.ready, dut.places.payload
                )
                if valid and ready:
                    found.append((bool(place.bumped), bool(place.beyond)))
            ctx.set(dut.steps.valid, 0)
            ends = [place for place, (_, last) in zip(found, steps, strict=True) if last]
            want = expected(lengths, regular, limit, remembered)
            assert [bumped for bumped, _ in ends] == [bumped for bumped, _ in want]
            assert [beyond for _, beyond in ends] == [beyond for _, beyond in want]
            over = sum(lengths) > limit
            seen["fits" if not ends[-1][0] else "too long" if over else "too many"] += 1

    sim.add_testbench(bench)
    sim.run()
    assert seen["fits"] and seen["too long"]
    assert bool(seen["too many"]) == (remembered in (1, 5))


@pytest.mark.parametrize("remembered", [-1, 1.5])
def test_wrong_parameters(remembered: Any) -> None:
    with pytest.raises(ValueError, match="^Remembered segments must be a number from 0 on, not "):
        SegmentPlacement(remembered=remembered)
