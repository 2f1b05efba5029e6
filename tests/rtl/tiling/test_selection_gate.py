"""Selection gate: which selection goes to the intra-tile engine in which cycle."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.tiling.selection_gate import SelectionGate

Task = Callable[[Any, SelectionGate], Awaitable[None]]


def simulate(task: Task, *, named: bool = True) -> None:
    dut = SelectionGate(named=named)
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.width, 1 << 31)
        ctx.set(dut.selections.ready, 1)
        await task(ctx, dut)

    sim.add_testbench(testbench)
    sim.run()


async def offer(ctx: Any, dut: SelectionGate, index: int, *, last: int = 0, present: int = 1) -> None:
    """Puts a nonzero into the register that it waits in."""
    ctx.set(dut.nonzeros.payload, {"index": index, "present": present, "last": last})
    ctx.set(dut.nonzeros.valid, 1)
    await ctx.tick().until(dut.nonzeros.ready)
    ctx.set(dut.nonzeros.valid, 0)


async def place(ctx: Any, dut: SelectionGate, rows: int) -> None:
    ctx.set(dut.rows, rows)
    ctx.set(dut.placed, 1)
    await ctx.tick()
    ctx.set(dut.placed, 0)


def test_rows_of_the_next_window_wait_for_it() -> None:
    async def task(ctx: Any, dut: SelectionGate) -> None:
        ctx.set(dut.back_to_back, 1)
        ctx.set(dut.looked_up, 1)
        await offer(ctx, dut, 0, last=1)
        for _ in range(3):
            assert not ctx.get(dut.selections.valid) and ctx.get(dut.selected) and not ctx.get(dut.event_stall)
            await ctx.tick()
        for window in range(3):
            await place(ctx, dut, 2)
            assert not ctx.get(dut.selected), "the first cycle of a tile has rows to come"
            for row in range(2):
                await ctx.tick().until(dut.selections.valid)
                assert ctx.get(dut.selections.payload.index) == 2 * window + row
                if window < 2 or row == 0:
                    ctx.set(dut.nonzeros.valid, 1)
                    ctx.set(dut.nonzeros.payload, {"index": 2 * window + row + 1, "present": 1, "last": 1})
                else:
                    ctx.set(dut.nonzeros.valid, 0)
            assert not ctx.get(dut.selections.valid), "the third row belongs to the next window"
            assert ctx.get(dut.selected)
            ctx.set(dut.looked_up, 0)
            assert not ctx.get(dut.selected)
            ctx.set(dut.looked_up, 1)

    simulate(task)


def test_without_windows_nonzeros_pass_but_in_the_first_cycle() -> None:
    async def task(ctx: Any, dut: SelectionGate) -> None:
        await offer(ctx, dut, 7)
        assert ctx.get(dut.selections.valid) and ctx.get(dut.holding)
        ctx.set(dut.selections.ready, 0)
        await place(ctx, dut, 1)
        assert not ctx.get(dut.selections.valid)
        await ctx.tick()
        assert ctx.get(dut.selections.valid)

    simulate(task)


@pytest.mark.parametrize("named", [True, False])
def test_while_b_is_loaded_a_nonzero_waits_for_its_fiber(named: bool) -> None:
    rng = random.Random(5)

    async def task(ctx: Any, dut: SelectionGate) -> None:
        ctx.set(dut.loading, 1)
        ctx.set(dut.origin, 10)
        for _ in range(60):
            index, settled, present = rng.randrange(10, 20), rng.randrange(10), rng.random() < 0.8
            ctx.set(dut.selections.ready, 0)
            ctx.set(dut.settled, settled)
            await offer(ctx, dut, index, present=present)
            await ctx.tick()
            usable = not present or (named and index < 10 + settled)
            assert ctx.get(dut.selections.valid) == usable and ctx.get(dut.event_stall) == (not usable)
            ctx.set(dut.loading, 0)
            assert ctx.get(dut.selections.valid) and not ctx.get(dut.event_stall)
            ctx.set(dut.selections.ready, 1)
            await ctx.tick()
            ctx.set(dut.loading, 1)

    simulate(task, named=named)


def test_pieces_instead_of_nonzeros_while_rows_are_assembled() -> None:
    async def task(ctx: Any, dut: SelectionGate) -> None:
        ctx.set(dut.assembling, 1)
        ctx.set(dut.width, 1)
        await offer(ctx, dut, 3)
        assert not ctx.get(dut.selections.valid) and not ctx.get(dut.event_stall)
        ctx.set(dut.pieces.payload, {"index": 44, "present": 1, "last": 1})
        ctx.set(dut.pieces.valid, 1)
        ctx.set(dut.selections.ready, 0)
        assert ctx.get(dut.selections.valid) and not ctx.get(dut.pieces.ready)
        assert ctx.get(dut.selections.payload.index) == 44 and ctx.get(dut.selections.payload.last)
        ctx.set(dut.selections.ready, 1)
        assert ctx.get(dut.pieces.ready)
        await ctx.tick()
        assert not ctx.get(dut.wrong), "pieces are not numbers of the tile"
        assert ctx.get(dut.holding), "the nonzero is still there"

    simulate(task)


@pytest.mark.parametrize(("index", "wrong"), [(10, False), (14, False), (15, True), (9, True), (0xFFFFFFFF, True)])
def test_a_nonzero_outside_its_tile_is_told_a_cycle_late(index: int, wrong: bool) -> None:
    async def task(ctx: Any, dut: SelectionGate) -> None:
        ctx.set(dut.origin, 10)
        ctx.set(dut.width, 5)
        await offer(ctx, dut, index)
        assert ctx.get(dut.selections.valid) and not ctx.get(dut.wrong)
        await ctx.tick()
        assert ctx.get(dut.wrong) == wrong and ctx.get(dut.coordinate) == index
        await ctx.tick()
        assert not ctx.get(dut.wrong)

    simulate(task)


def test_a_selection_of_nothing_is_not_outside() -> None:
    async def task(ctx: Any, dut: SelectionGate) -> None:
        ctx.set(dut.width, 1)
        await offer(ctx, dut, 99, present=0, last=1)
        await ctx.tick()
        assert not ctx.get(dut.wrong)

    simulate(task)
