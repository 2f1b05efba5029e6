"""Run control with windows: accessors A and C get all rows once, whatever the first window is, and a slow one is waited for."""

from typing import Any

import pytest

from rtl.tiling.run_control import RunControl
from tests.rtl.tiling.test_run_control_tuning import SCHEME, TUNE, begin, simulate

ROWS = 12
WINDOWS = SCHEME | {"extent": [ROWS, 10, 40], "tile": [4, 10, 8], "gathered": 1}
FIRST = {"begin_i": 0, "size_i": 4, "size_j": 10, "whole_j": 1, "whole_k": 1, "last_k": 1, "position_index": 0}


async def offered(ctx: Any, dut: RunControl, window: dict[str, Any]) -> None:
    """Until the window is taken."""
    ctx.set(dut.tiles.payload, window)
    ctx.set(dut.tiles.valid, 1)
    for _ in range(50):
        _, _, taken = await ctx.tick().sample(dut.tiles.ready)
        if taken:
            ctx.set(dut.tiles.valid, 0)
            return
    pytest.fail("the window is not taken")


async def started(ctx: Any, dut: RunControl, first: dict[str, Any]) -> None:
    await begin(ctx, dut, WINDOWS, TUNE | {"enable": 0})
    for name in ("load_idle", "load_a_idle", "selected"):
        ctx.set(getattr(dut, name), 1)
    ctx.set(dut.load.ready, 1)
    await offered(ctx, dut, first)


@pytest.mark.parametrize("fields", [{"begin_k": 7, "size_k": 8}, {"begin_k": 30, "size_k": 0, "carry": 1}])
def test_all_rows_at_once(fields: dict[str, int]) -> None:
    """Of A from the first coordinate on, with elements or without in the first window."""

    async def bench(ctx: Any, dut: RunControl) -> None:
        await started(ctx, dut, FIRST | fields)
        for _ in range(10):
            await ctx.tick()
        a, c = dut.compute_a, dut.compute_c
        assert ctx.get(a.valid) and ctx.get(c.valid)
        assert [ctx.get(a.payload[name]) for name in ("begin_i", "size_i", "begin_k", "carry")] == [0, ROWS, 0, 0]
        assert [ctx.get(c.payload[name]) for name in ("begin_i", "size_i", "position_index")] == [0, ROWS, 0]

    simulate(bench, tuning=False)


@pytest.mark.parametrize("slow", ["compute_a", "compute_c"])
def test_a_slow_accessor_is_waited_for(slow: str) -> None:
    """Nothing is taken back that was offered, and the next window does not come first."""

    async def bench(ctx: Any, dut: RunControl) -> None:
        await started(ctx, dut, FIRST | {"begin_k": 0, "size_k": 8})
        quick = {"compute_a": dut.compute_c, "compute_c": dut.compute_a}[slow]
        ctx.set(quick.ready, 1)
        port = getattr(dut, slow)
        ctx.set(dut.tiles.valid, 1)
        for _ in range(6):
            await ctx.tick()
        for _ in range(40):
            _, _, valid, taken = await ctx.tick().sample(port.valid, dut.tiles.ready)
            assert valid and not taken
        ctx.set(port.ready, 1)
        await offered(ctx, dut, FIRST | {"begin_i": 4, "begin_k": 8, "size_k": 8})
        for _ in range(20):
            _, _, again = await ctx.tick().sample(port.valid)
            assert not again, "all rows have been given"

    simulate(bench, tuning=False)
