"""Requests for rows of elements: addresses of any position in any array, by plain arithmetic."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.run_requester import RunRequester
from tests.rtl.accessor.clients import patient

LANES, BURST = 2, 16
LINE = 8 * LANES
# Begin of the array, and a first position: bytes of the position, of the sum, and of both pass 2^32 or reach the last position.
PLACES = [
    (0x1000, 0),
    (0xFFFF_F000, 0x1F0),
    (0x2_FFFF_FFF0, 2),
    (0x10_0000, (1 << 29) - 8),
    (0xFFFF_FFF0, (1 << 29) - 8),
    (0x78_0000_0000, (1 << 32) - 4096),
    (0x7_FFFF_F010, (1 << 31) - 10),
    ((1 << 40) - (1 << 35), (1 << 32) - 600),
]


@pytest.mark.parametrize(("array", "first"), PLACES, ids=lambda value: hex(value))
def test_every_line_of_each_row_is_asked_for_at_its_address(array: int, first: int) -> None:
    lengths = [1, 3, 0, 40, 2, 2, 150, 1, 0, 7]
    gaps = [0, 0, 0, 4, 0, 20, 0, 0, 0, 2]
    rows, at = [], first
    for length, gap in zip(lengths, gaps, strict=True):
        rows.append((at + gap, at + gap + length))
        at += gap + length
    wanted = sorted({array // LINE + n for b, e in rows if e > b for n in range(b // LANES, -(-e // LANES))})
    dut = RunRequester(lanes=LANES, address_width=40, burst_beats=BURST)
    asked: list[int] = []

    async def drive(ctx: Any) -> None:
        ctx.set(dut.elements, array)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for begin, end in rows:
            ctx.set(dut.pairs.payload, {"begin": begin, "end": end})
            ctx.set(dut.pairs.valid, 1)
            await ctx.tick().until(dut.pairs.ready)
        ctx.set(dut.pairs.valid, 0)
        for _ in patient(200):
            await ctx.tick()
            if ctx.get(dut.idle):
                break

    async def take(ctx: Any) -> None:
        ctx.set(dut.read_request.ready, 1)
        async for _, _, valid, payload in ctx.tick().sample(dut.read_request.valid, dut.read_request.payload):
            if valid:
                assert payload.address % LINE == 0
                asked.extend(payload.address // LINE + n for n in range(payload.beats))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(drive)
    sim.add_testbench(take, background=True)
    sim.run()
    assert asked == wanted
