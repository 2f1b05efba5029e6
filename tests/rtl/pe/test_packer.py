"""Elements become words of full lines; the last of a fiber and a void one end their word."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.pe.packer import FiberPacker


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("queue_lines", [1, 3])
def test_fibers_are_packed(lanes: int, queue_lines: int) -> None:
    dut = FiberPacker(lanes=lanes, queue_lines=queue_lines)
    rng = random.Random(lanes)
    fibers = [
        [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(rng.choice([0, 1, 2, 3, 9]))] for _ in range(60)
    ]
    found: list[list[tuple[int, int]]] = []

    async def give(ctx) -> None:
        for fiber in fibers:
            for n, (coordinate, value) in enumerate(fiber or [(7, 7)]):
                last = n >= len(fiber) - 1
                ctx.set(
                    dut.nonzero,
                    {"valid": 1, "coordinate": coordinate, "value": value, "last": last, "void": not fiber},
                )
                while not (await ctx.tick().sample(dut.advance))[2]:
                    pass
                ctx.set(dut.nonzero, {"valid": 0, "coordinate": 9, "value": 9, "last": 1, "void": 0})
                while rng.random() < 0.3:
                    await ctx.tick()

    async def take(ctx) -> None:
        current: list[tuple[int, int]] = []
        for _ in range(20 * sum(len(fiber) + 1 for fiber in fibers)):
            ctx.set(dut.fiber.ready, ready := rng.random() < 0.5)
            _, _, valid, word = await ctx.tick().sample(dut.fiber.valid, dut.fiber.payload)
            if valid and ready:
                assert word.last or word.count == lanes
                current += [(word.line[n].coordinate, word.line[n].value) for n in range(word.count)]
                if word.last:
                    found.append(current)
                    current = []
            if len(found) == len(fibers):
                return
        raise AssertionError(f"{len(found)} of {len(fibers)} fibers came out")

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(give)
    sim.add_testbench(take)
    sim.run()
    assert found == fibers
