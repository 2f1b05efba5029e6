"""Partial rows are handed out from their entries in the SRAM, in order, whatever the SRAM and the reader take their time for."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.kept_rows import KeptRows
from rtl.accessor.lookup import segment_entry
from rtl.accessor.partial_store import PartialStore

from .clients import patient


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
def test_rows_come_in_order_from_the_entries(lanes: int, hurry: float) -> None:
    dut = KeptRows(lanes=lanes, line_address_width=6)
    random = Random(f"{lanes} {hurry}")
    first = 50
    asked: list[int] = []
    entries = [(random.getrandbits(20), random.getrandbits(10), random.getrandbits(1)) for _ in range(64)]

    def packed(line: int) -> list[Any]:
        chosen = entries[(first - line) * lanes :][:lanes]
        values = [segment_entry().const({"position": p, "length": n, "bumped": b}).as_value() for p, n, b in chosen]
        bits = [value.value for value in values]
        return [{"coordinate": word & 0xFFFFFFFF, "value": word >> 32} for word in bits]

    async def answer(ctx: Any) -> None:
        while True:
            ctx.set(dut.sram_request.ready, ready := random.random() < hurry)
            _, _, valid, line = await ctx.tick().sample(dut.sram_request.valid, dut.sram_request.payload)
            taken = bool(valid and ready)
            ctx.set(dut.sram_response.valid, taken)
            if taken:
                asked.append(line)
                ctx.set(dut.sram_response.line, packed(line))

    async def test(ctx: Any) -> None:
        ctx.set(dut.first_line, first)
        for rows in (1, lanes, 3 * lanes + 1, 0, 2):
            asked.clear()
            assert ctx.get(dut.idle)
            ctx.set(dut.rows, rows)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for n in range(rows):
                ctx.set(dut.partials.ready, 1)
                for _ in patient(200):
                    _, _, valid, fiber = await ctx.tick().sample(dut.partials.valid, dut.partials.payload)
                    if valid:
                        break
                ctx.set(dut.partials.ready, 0)
                assert (fiber.position, fiber.length, fiber.in_memory) == entries[n]
                if random.random() > hurry:
                    await ctx.tick()
            assert asked == [first - line for line in range(-(-rows // lanes))]

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(answer, background=True)
    simulator.add_testbench(test)
    simulator.run()


@pytest.mark.parametrize("block", [KeptRows, PartialStore])
def test_bad_parameters_are_refused(block: Any) -> None:
    with pytest.raises(ValueError, match=r"^Lanes must be a power of two from 2 to 64, not 3$"):
        block(lanes=3, line_address_width=4)
    with pytest.raises(ValueError, match=r"^Line address width must be an integer from 1 to 30, not 31$"):
        block(lanes=2, line_address_width=31)
