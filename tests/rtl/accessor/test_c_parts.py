"""The parts of accessor C alone: positions out, partial rows back, fibers to where they go."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accessor.c import AccessorC
from rtl.accessor.fiber_switch import FiberSwitch
from rtl.accessor.partial_rows import PartialRows
from rtl.accessor.tile_positions import TilePositions

from .clients import ClientMemory, patient

REGION = 0x200


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.5])
def test_positions_of_tiles_in_turn(lanes: int, hurry: float) -> None:
    """Tiles of any number of rows, silent ones between: every position lies in its place, and one flush ends each."""
    dut = TilePositions(lanes=lanes, address_width=16, burst_beats=4)
    random = Random(f"{lanes} {hurry}")
    memory = ClientMemory(0x1000, 8 * lanes, seed=lanes, hurry=hurry)
    expected = memory.bytes.copy()

    async def test(ctx: Any) -> None:
        first, position = 1, 0
        for rows, silent in [(3, 0), (0, 0), (2, 1), (0, 1), (1, 0), (9, 0), (5, 1), (1, 1), (6, 0)]:
            assert ctx.get(dut.settled)
            wait = random.choice([0, 7])
            ctx.set(dut.region, 0)
            ctx.set(dut.rows, rows)
            ctx.set(dut.silent, silent)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.region, REGION)
            ctx.set(dut.first_row, first)
            ctx.set(dut.base, position)
            ctx.set(dut.first_free, 0)
            assert ctx.get(dut.rows_left) == rows
            ends = []
            if not silent:
                for _ in range(20 + wait):
                    assert not ctx.get(dut.open) and not ctx.get(dut.settled), "the first word is still needed"
                    await ctx.tick()
                ctx.set(dut.first_free, 1)
                for _ in patient(200):
                    if ctx.get(dut.open):
                        break
                    await ctx.tick()
                ends = [position]
            flushes = 0
            for left in reversed(range(rows)):
                assert ctx.get(dut.open) and ctx.get(dut.rows_left) == left + 1
                if silent:
                    assert not ctx.get(dut.ends.ready)
                    ctx.set(dut.row_done, 1)
                    await ctx.tick()
                    ctx.set(dut.row_done, 0)
                else:
                    position += random.randrange(5)
                    ends.append(position)
                    ctx.set(dut.ends.payload, position)
                    ctx.set(dut.ends.valid, 1)
                    for _ in patient(200):
                        if (await ctx.tick().sample(dut.ends.ready))[2]:
                            break
                    ctx.set(dut.ends.valid, 0)
                flushes += ctx.get(dut.flush)
                assert ctx.get(dut.flush) == (left == 0)
                if random.random() < 0.3:
                    await ctx.tick()
            for _ in patient(5):
                if ctx.get(dut.settled):
                    break
                await ctx.tick()
            assert flushes == (rows != 0)
            at = REGION + 4 * first
            expected[at : at + 4 * len(ends)] = np.array(ends, np.uint32).view(np.uint8)
            first += len(ends) + random.randrange(3)
        for _ in patient(500):
            if ctx.get(dut.idle):
                break
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(memory.writer(dut.write_request, dut.write_data, 0), background=True)
    simulator.add_testbench(test)
    simulator.run()
    assert np.array_equal(memory.bytes, expected)


@pytest.mark.parametrize("hurry", [1.0, 0.4])
def test_partial_rows_come_back_in_order(hurry: float) -> None:
    dut = PartialRows(lanes=2, address_width=16)
    random = Random(f"{hurry}")
    memory = ClientMemory(0x1000, 16, seed=3, hurry=hurry)
    positions = np.cumsum([random.randrange(6) for _ in range(200)]).astype(np.uint32)
    memory.store(REGION, positions)

    async def test(ctx: Any) -> None:
        ctx.set(dut.positions, REGION)
        assert ctx.get(dut.idle) and ctx.get(dut.first_read)
        for row, rows in [(0, 1), (1, 40), (17, 3), (99, 100)]:
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.row, row)
            ctx.set(dut.rows, rows)
            assert not ctx.get(dut.idle) and not ctx.get(dut.first_read)
            for n in range(row, row + rows):
                ctx.set(dut.partials.ready, 1)
                for _ in patient(500):
                    _, _, valid, fiber = await ctx.tick().sample(dut.partials.valid, dut.partials.payload)
                    if valid:
                        break
                ctx.set(dut.partials.ready, 0)
                assert ctx.get(dut.first_read) and fiber.in_memory
                assert (fiber.position, fiber.length) == (positions[n], positions[n + 1] - positions[n])
                if random.random() > hurry:
                    await ctx.tick()
            assert ctx.get(dut.idle)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(memory.reader(dut.read_request, dut.read_data, 0), background=True)
    simulator.add_testbench(test)
    simulator.run()


@pytest.mark.parametrize("converts", [False, True])
def test_fibers_go_one_way_each(converts: bool) -> None:
    dut = FiberSwitch(lanes=2, converts=converts)
    random = Random(8)
    ways = ("to_scratch", "to_rows", "to_store", "to_partials", *(["to_conversion"] if converts else []))
    seen = set()
    assert dut.latency == 0
    assert ("to_conversion" in dut.signature.members) == ("converted" in dut.signature.members) == converts

    async def test(ctx: Any) -> None:
        for _ in range(400):
            names = ("scratch", "final_rows", "on_chip", "open", "store_open", *(["converted"] if converts else []))
            flags = {flag: random.random() < 0.5 for flag in names}
            ready = {way: random.random() < 0.5 for way in ways}
            offered, spilled = random.random() < 0.8, flags["on_chip"] and random.random() < 0.5
            for name, value in flags.items():
                ctx.set(getattr(dut, name), value)
            for way in ways:
                ctx.set(getattr(dut, way).ready, ready[way])
            ctx.set(dut.words.valid, offered)
            ctx.set(dut.words.payload.count, 1)
            ctx.set(dut.spilled.valid, spilled)
            ctx.set(dut.spilled.payload.count, 2)
            if flags["scratch"]:
                way, allowed = "to_scratch", True
            elif flags["final_rows"]:
                way, allowed = "to_conversion" if flags.get("converted") else "to_rows", flags["open"]
            elif flags["on_chip"]:
                way, allowed = "to_store", flags["store_open"]
            else:
                way, allowed = "to_partials", flags["open"]
            seen.add(way)
            valid = {name: name == way and offered and allowed for name in ways}
            counts = dict.fromkeys(ways, 1)
            if flags["on_chip"]:
                valid["to_partials"], counts["to_partials"] = spilled, 2
            assert ctx.get(dut.words.ready) == (ready[way] and allowed)
            assert ctx.get(dut.spilled.ready) == (flags["on_chip"] and ready["to_partials"])
            for name in ways:
                assert ctx.get(getattr(dut, name).valid) == valid[name], name
                assert not valid[name] or ctx.get(getattr(dut, name).payload.count) == counts[name]

    simulator = Simulator(dut)
    simulator.add_testbench(test)
    simulator.run()
    assert seen == set(ways)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda **sizes: TilePositions(**{"burst_beats": 4} | sizes),
            "Lanes must be a power of two from 1 to 64, not 3",
        ),
        (lambda **sizes: PartialRows(**sizes), "Lanes must be a power of two from 1 to 64, not 3"),
        (
            lambda **sizes: TilePositions(lanes=2, address_width=16, burst_beats=3),
            "Longest burst must be a power of two from 1 to 256, not 3",
        ),
        (lambda **sizes: PartialRows(lanes=2, address_width=7), "Address width must be an integer from 8 to 64, not 7"),
        (lambda **sizes: FiberSwitch(lanes=0), "Lanes must be a power of two from 1 to 64, not 0"),
        (
            lambda **sizes: AccessorC(lanes=2, address_width=16, line_address_width=0, burst_beats=4, scratch_slots=1),
            "Line address width must be an integer from 1 to 30, not 0",
        ),
        (
            lambda **sizes: AccessorC(lanes=2, address_width=16, line_address_width=4, burst_beats=4, scratch_slots=3),
            "Scratch slots must be a power of two from 1 to 32, not 3",
        ),
    ],
)
def test_bad_parameters_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        make(lanes=3, address_width=16)
