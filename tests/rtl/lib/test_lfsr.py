"""Shift registers that count: no value comes twice in a round."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from rtl.lib.lfsr import LFSR_TAPS, lfsr_next, lfsr_width


def after(value: int, width: int) -> int:
    """The next value, by its description."""
    parity = (value >> (width - 1)) & 1
    for tap in LFSR_TAPS[width]:
        parity ^= value >> tap & 1
    return (value << 1 | (1 - parity)) & ((1 << width) - 1)


@pytest.mark.parametrize("width", LFSR_TAPS)
def test_a_round_has_all_values_but_one(width: int) -> None:
    value, steps = after(0, width), 1
    while value:
        assert value != (1 << width) - 1
        value, steps = after(value, width), steps + 1
    assert steps == (1 << width) - 1


@pytest.mark.parametrize("width", [2, 3, 8, 12])
def test_the_expression_is_the_description(width: int) -> None:
    value, result = Signal(width), Signal(width)
    m = Module()
    m.d.comb += result.eq(lfsr_next(value))

    async def bench(ctx):
        for n in range(1 << width):
            ctx.set(value, n)
            await ctx.delay(1e-9)
            assert ctx.get(result) == after(n, width)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("steps", "width"), [(0, 2), (2, 2), (3, 3), (6, 3), (7, 4), (262142, 18)])
def test_widths(steps: int, width: int) -> None:
    """A round of ``width`` bits has more than ``steps`` steps, one of fewer bits has not."""
    assert lfsr_width(steps) == width
    assert steps < (1 << width) - 1 and (width == 2 or steps >= (1 << (width - 1)) - 1)


def test_too_many_steps() -> None:
    with pytest.raises(ValueError, match="must be an integer from 0 to 262142, not 262143"):
        lfsr_width(262143)
