"""The parts of the tuning unit alone: which changes of the shape are legal, and the score of one shape."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.tiling.shape_changes import CANDIDATES, STAY, Change, LegalChanges
from rtl.tiling.shape_score import ShapeScore, score_bits

CODED = {0: Change.STAY, 1: Change.DOUBLE, -1: Change.HALVE}


def simulate(dut: Any, bench: Any) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_change_is_legal_where_each_side_may_change(lanes: int) -> None:
    rng = random.Random(lanes)
    dut = LegalChanges(lanes=lanes, line_address_width=6)
    seen = [0] * len(CANDIDATES)

    async def bench(ctx: Any) -> None:
        for _ in range(300):
            side = {name: rng.choice((1, 7, 20, 100, 2**31, 2**32 - 1)) for name in "kj"}
            extent = {name: max(side[name], rng.choice((7, 20, 39, 2**32 - 1))) for name in "kj"}
            movable, halvable = ({name: rng.random() < 0.8 for name in "kj"} for _ in range(2))
            lines, fifo = rng.randrange(8, 65), rng.randrange(7)
            for name in "kj":
                ctx.set(getattr(dut, f"side_{name}"), side[name])
                ctx.set(getattr(dut, f"extent_{name}"), extent[name])
            ctx.set(dut.movable, movable["j"] | movable["k"] << 1)
            ctx.set(dut.halvable, halvable["j"] | halvable["k"] << 1)
            ctx.set(dut.lines, lines)
            ctx.set(dut.fifo_lines, fifo)
            await ctx.tick().repeat(dut.latency)

            def may(name: str, change: int) -> bool:
                if change < 1:
                    return not change or (movable[name] and halvable[name])  # noqa: B023
                fits = name == "j" or min(2 * side["k"], extent["k"]) <= lanes * (lines - fifo - 1)  # noqa: B023
                return movable[name] and side[name] < min(extent[name], 2**31) and fits  # noqa: B023

            for n, (k, j) in enumerate(CANDIDATES):
                expected = may("k", k) and may("j", j)
                assert ctx.get(dut.legal) >> n & 1 == expected
                seen[n] += expected
        assert seen[STAY] == 300 and min(seen) > 5

    simulate(dut, bench)


@pytest.mark.parametrize(("lanes", "width"), [(1, 6), (4, 9)])
def test_a_score_counts_what_is_resident(lanes: int, width: int) -> None:
    """``4 / f * sum(resident(f * part))`` over the parts that halved sides leave, after ``latency`` cycles."""
    rng = random.Random(lanes)
    dut = ShapeScore(lanes=lanes, line_address_width=width)
    assert len(dut.score) == score_bits(lanes, width)

    async def bench(ctx: Any) -> None:
        for _ in range(40):
            extent = rng.choice((10, 30, 2**32 - 1))
            side = rng.randrange(1, min(extent, lanes << (width - 2)) // 2 + 1)
            lines, fifo = rng.randrange(1 << (width - 1), (1 << width) + 1), rng.randrange(4)
            counts = [rng.choice((0, rng.randrange(lanes << width), 2**32 - 1)) for _ in range(4)]
            if rng.random() < 0.3:  # what just fits
                counts = [0, 0, lanes * (lines + (-min(side, extent) // lanes)), 0]
            values = {"counts": counts, "side_k": side, "extent_k": extent, "lines": lines, "fifo_lines": fifo}
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            for k, j in CANDIDATES:
                ctx.set(dut.change, [CODED[j], CODED[k]])
                ctx.set(dut.start, 1)
                await ctx.tick()
                ctx.set(dut.start, 0)
                for _ in range(dut.latency - 1):
                    assert not ctx.get(dut.done)
                    await ctx.tick()
                rows = min({-1: side >> 1, 0: side, 1: 2 * side}[k], extent)
                held = lines + (-rows // lanes)
                c00, c01, c10, c11 = counts
                parts = {
                    (True, True): counts,
                    (True, False): [c00 + c01, c10 + c11],
                    (False, True): [c00 + c10, c01 + c11],
                }
                factor = 1 << ((k == 1) + (j == 1))
                score = 0
                for part in parts.get((k == -1, j == -1), [sum(counts)]):
                    score += factor * part if factor * part <= held * lanes else (held - fifo) * lanes
                assert ctx.get(dut.done) and ctx.get(dut.score) == 4 * score // factor
                await ctx.tick()
                assert not ctx.get(dut.done)

    simulate(dut, bench)


@pytest.mark.parametrize("block", [LegalChanges, ShapeScore])
def test_wrong_parameters(block: Any) -> None:
    with pytest.raises(ValueError, match="^Lanes must be a power of two from 1 to 64, not 3$"):
        block(lanes=3, line_address_width=9)
    with pytest.raises(ValueError, match="^Line address width must be an integer from 1 to 32, not 0$"):
        block(lanes=2, line_address_width=0)
