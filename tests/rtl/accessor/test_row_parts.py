"""Parts of rows that several k steps left: found from the positions of each, a row after the other."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accessor.row_parts import RowParts
from rtl.types import MOST_PARTS

from .clients import ClientMemory, patient

POSITIONS = 0x400
Part = tuple[int, int]


def tile(random: Random, rows: int, steps: int, visited: float) -> list[list[int] | None]:
    """Of each step the positions of the rows and the end, from 1; None where it has not visited the tile."""
    found: list[list[int] | None] = []
    for _ in range(steps):
        words = [random.randrange(1, 1000)]
        for _ in range(rows):
            words.append(words[-1] + random.choice([0, 0, 0, 1, 5, 200]))
        found.append(words if random.random() < visited else None)
    return found


def parts_of(words: list[list[int] | None], rows: int) -> list[list[Part]]:
    """Of each row the position from 0 and the length of each part that is not empty, by rising steps."""
    return [
        [(step[row] - 1, step[row + 1] - step[row]) for step in words if step is not None and step[row + 1] > step[row]]
        for row in range(rows)
    ]


@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
def test_each_row_gets_its_parts_in_order(lanes: int, hurry: float) -> None:
    """Tiles in turn, from one row and one step to all; what steps left out leave in memory is no position."""
    dut = RowParts(lanes=lanes, address_width=20)
    random = Random(f"{lanes} {hurry}")
    memory = ClientMemory(0x20000, 8 * lanes, seed=lanes, hurry=hurry)
    memory.bytes[:] = [random.getrandbits(8) for _ in range(len(memory.bytes))]
    words = 2 * lanes
    stride = 40 * words
    seen: list[list[Part]] = []
    wanted: list[list[Part]] = []
    lines = 0

    async def test(ctx: Any) -> None:
        nonlocal lines
        cases = [(1, 1, 1.0), (1, 3, 0.0), (9, 2, 0.5), (5, MOST_PARTS, 0.6), (30, 7, 0.7), (17, 5, 0.0), (3, 4, 1.0)]
        for rows, steps, visited in cases:
            first = random.randrange(stride - rows - 1)
            found = tile(random, rows, steps, visited)
            blocks = -(-(first % words + rows + 1) // words)
            for step, positions in enumerate(found):
                place = POSITIONS + 4 * (step * stride + first)
                nothing = [0, *(random.getrandbits(32) for _ in range(rows))]
                memory.store(place, np.array(positions or nothing, np.uint32))
                lines += 1 if positions is None else blocks
            wanted.extend(parts_of(found, rows))
            assert ctx.get(dut.idle)
            values = {"first": first, "rows": rows, "steps": steps, "stride": stride, "positions": POSITIONS}
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            assert not ctx.get(dut.idle)
            for _ in patient(20000):
                await ctx.tick()
                if ctx.get(dut.idle):
                    break
            await ctx.tick()
            assert seen == wanted, f"{rows} rows, {steps} steps"
        assert memory.beats_read[0] == lines

    async def take(ctx: Any) -> None:
        row: list[Part] = []
        while True:
            ready = random.random() < hurry
            ctx.set(dut.partials.ready, ready)
            _, _, valid, fiber = await ctx.tick().sample(dut.partials.valid, dut.partials.payload)
            if valid and ready:
                assert fiber.in_memory
                if fiber.length:
                    row.append((fiber.position, fiber.length))
                else:
                    assert not row and not fiber.more, "an empty one stands for a row without parts"
                if not fiber.more:
                    seen.append(row)
                    row = []

    async def aligned(ctx: Any) -> None:
        """Lines are asked for by where they begin."""
        while True:
            _, _, valid, request = await ctx.tick().sample(dut.read_request.valid, dut.read_request.payload)
            assert not valid or request.address % (8 * lanes) == 0 and request.beats == 1

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.add_testbench(memory.reader(dut.read_request, dut.read_data, 0), background=True)
    sim.add_testbench(take, background=True)
    sim.add_testbench(aligned, background=True)
    sim.run()


def test_a_part_comes_in_every_cycle() -> None:
    """Once its lines are at hand, as long as nobody waits; they are read two cycles each, so that is what all takes."""
    lanes, steps = 4, 5
    dut = RowParts(lanes=lanes, address_width=20)
    memory = ClientMemory(0x4000, 8 * lanes, seed=1, hurry=1.0)
    rows, stride = 2 * lanes - 1, 4 * 2 * lanes
    for step in range(steps):
        memory.store(POSITIONS + 4 * step * stride, np.arange(1, rows + 2, dtype=np.uint32))
    valid = []

    async def test(ctx: Any) -> None:
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for name, value in {"rows": rows, "steps": steps, "stride": stride, "positions": POSITIONS}.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.partials.ready, 1)
        for _ in patient(200):
            *_, found = await ctx.tick().sample(dut.partials.valid)
            valid.append(bool(found))
            if ctx.get(dut.idle):
                break

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.add_testbench(memory.reader(dut.read_request, dut.read_data, 0), background=True)
    sim.run()
    first, last = valid.index(True), len(valid) - valid[::-1].index(True)
    assert sum(valid) == last - first == rows * steps
