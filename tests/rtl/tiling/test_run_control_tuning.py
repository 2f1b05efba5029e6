"""Run control with tuned shapes: which settings of TUNING are refused, what is counted, when a tile is in place."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.regs.map import ERRORS, REGISTERS
from rtl.tiling.run_control import RunControl
from rtl.tiling.scheme_check import SchemeCheck

OFFSETS = {register.key: register.offset for register in REGISTERS}
CODES = {error.name: error.code for error in ERRORS}
SCHEME = {
    "extent": [10, 10, 10],
    "tile": [10, 6, 4],
    "order": 3,
    "buffering": {"a": 0, "b": 1, "c": 0},
    "a": {"base": 0, "lines": 16},
    "b": {"base": 16, "lines": 40},
    "c": {"base": 56, "lines": 0},
    "fifo_b": 4,
}
TUNE = {"enable": 1, "level": [1, 2]}


def simulate(bench: Any, *, tuning: bool) -> None:
    dut = RunControl(check=SchemeCheck(lanes=2, sram_lines=64, offsets=OFFSETS, tuning=tuning))
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def testbench(ctx: Any) -> None:
        await bench(ctx, dut)

    sim.add_testbench(testbench)
    sim.run()


async def begin(ctx: Any, dut: RunControl, scheme: dict[str, Any], tune: dict[str, Any]) -> None:
    """Starts, and returns when the walk begins or the run ends."""
    ctx.set(dut.scheme, scheme)
    ctx.set(dut.tune, tune)
    ctx.set(dut.quiet, 1)
    ctx.set(dut.start, 1)
    await ctx.tick()
    ctx.set(dut.start, 0)
    for _ in range(100):
        if ctx.get(dut.walk) or ctx.get(dut.done):
            return
        await ctx.tick()
    pytest.fail("neither begins nor ends")


@pytest.mark.parametrize(
    ("change", "tune", "tuning", "error", "detail"),
    [
        ({"tile": [10, 5, 4]}, TUNE, True, "bad_tile_shape", OFFSETS["tile_j"]),
        ({"tile": [10, 6, 6]}, TUNE, True, "bad_tile_shape", OFFSETS["tile_k"]),
        ({"tile": [10, 6, 2]}, TUNE, True, "bad_tile_shape", OFFSETS["tile_k"]),
        ({"tile": [10, 0, 4]}, TUNE, True, "bad_tile_shape", OFFSETS["tile_j"]),
        ({"tile": [10, 10, 4], "buffering": {"a": 0, "b": 0, "c": 0}}, TUNE, True, "bad_mode", 0),
        ({}, TUNE, False, "bad_mode", 2),
        ({"tile": [10, 5, 6]}, TUNE | {"enable": 0}, True, None, 0),
        ({}, TUNE, True, None, 0),
    ],
)
def test_settings(change: dict[str, Any], tune: dict[str, Any], tuning: bool, error: str | None, detail: int) -> None:
    async def bench(ctx: Any, dut: RunControl) -> None:
        await begin(ctx, dut, SCHEME | change, tune)
        assert bool(ctx.get(dut.done)) == (error is not None)
        if error is None:
            # Tiles of the smallest sides where shapes are tuned: 6 >> 1 and 4 >> 2, else of the scheme's.
            expected = [1, 4, 10] if tune["enable"] else [1, 2, 2]
            assert [ctx.get(dut.tiles_per_rank[r]) for r in range(3)] == expected
        else:
            assert (ctx.get(dut.error), ctx.get(dut.detail)) == (CODES[error], detail)

    simulate(bench, tuning=tuning)


def test_a_tile_that_begins_at_the_same_place_is_loaded_again_when_its_size_changed() -> None:
    async def bench(ctx: Any, dut: RunControl) -> None:
        await begin(ctx, dut, SCHEME, TUNE)
        for name in ("load_idle", "load_a_idle", "selected"):
            ctx.set(getattr(dut, name), 1)
        for port in (dut.load, dut.compute_a, dut.compute_c):
            ctx.set(port.ready, 1)
        loads = []
        for size_k, size_j in ((4, 6), (4, 6), (8, 6), (8, 6), (8, 3)):
            ctx.set(dut.tiles.payload, {"size_i": 10, "size_j": size_j, "size_k": size_k})
            ctx.set(dut.tiles.valid, 1)
            loaded = placed = 0
            for _ in range(40):
                _, _, taken, load, pulse, fresh = await ctx.tick().sample(
                    dut.tiles.ready, dut.load.valid, dut.placed, dut.event_loaded
                )
                if taken:
                    ctx.set(dut.tiles.valid, 0)
                loaded += load
                placed += pulse
                assert not fresh or pulse
            assert placed == 1
            loads.append(loaded)
        assert loads == [1, 0, 1, 0, 1]

    simulate(bench, tuning=True)
