"""Selection gate: which selection goes to the intra-tile engine in which cycle."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.tiling.selection_gate import SelectionGate

Task = Callable[[Any, SelectionGate], Awaitable[None]]


def simulate(task: Task, *, named: bool = True, lanes: int = 0) -> None:
    dut = SelectionGate(named=named, lanes=lanes)
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def testbench(ctx: Any) -> None:
        if not lanes:
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


# Bits of an entry: none, some, as many as may be.
BITS = [0, 1, 5, 15, 16]


async def plan(ctx: Any, dut: SelectionGate, bits: int) -> None:
    ctx.set(dut.planned, 1)
    ctx.set(dut.entry_bits, bits)
    ctx.set(dut.entries, 1 << bits)


@pytest.mark.parametrize("bits", BITS)
def test_a_planned_nonzero_is_an_entry_and_waits_for_its_load(bits: int) -> None:
    """The entry is looked up, the number above it is waited for, and other fields go through."""
    rng = random.Random(bits)
    seen = {True: 0, False: 0}

    async def task(ctx: Any, dut: SelectionGate) -> None:
        await plan(ctx, dut, bits)
        ctx.set(dut.loading, 1)
        for _ in range(120):
            settled = rng.choice([0, 1, 2, 9, rng.randrange(1 << (31 - bits))])
            number = rng.choice([0, max(0, settled - 1), settled, settled + 1, rng.randrange(1 << (31 - bits))])
            entry, present, last = rng.randrange(1 << bits), rng.random() < 0.9, rng.getrandbits(1)
            ctx.set(dut.selections.ready, 0)
            ctx.set(dut.settled, settled)
            await offer(ctx, dut, entry | number << bits, present=present, last=last)
            await ctx.tick()
            usable = not present or number < settled
            assert ctx.get(dut.selections.valid) == usable and ctx.get(dut.event_stall) == (not usable)
            out = ctx.get(dut.selections.payload)
            assert (out.index, out.present, out.last) == (entry, present, last)
            if not usable:
                ctx.set(dut.settled, number)
                await ctx.tick()
                await ctx.tick()
                assert not ctx.get(dut.selections.valid)
                ctx.set(dut.settled, number + 1)
                await ctx.tick()
                assert ctx.get(dut.selections.valid)
            seen[usable] += 1
            ctx.set(dut.selections.ready, 1)
            await ctx.tick()

    simulate(task)
    assert min(seen.values()) > 20


@pytest.mark.parametrize("bits", BITS)
def test_planned_nonzeros_follow_each_other(bits: int) -> None:
    """One a cycle, each when its own load has settled, whatever comes after it."""
    rng = random.Random(bits)
    items = [(rng.randrange(1 << bits), rng.randrange(4)) for _ in range(80)]
    found: list[int] = []
    in_a_row = 0

    async def task(ctx: Any, dut: SelectionGate) -> None:
        nonlocal in_a_row
        await plan(ctx, dut, bits)
        ctx.set(dut.loading, 1)
        ctx.set(dut.width, 4)
        sent, came, settled, before = 0, False, 0, False
        while len(found) < len(items):
            at_once = settled  # what counts in this cycle was told in the one before
            settled = rng.choice([0, 2, 3, 4, 4, 4])
            ctx.set(dut.settled, settled)
            ctx.set(dut.nonzeros.valid, sent < len(items))
            if sent < len(items):
                entry, number = items[sent]
                ctx.set(dut.nonzeros.payload, {"index": entry | number << bits, "present": 1, "last": 0})
            _, _, taken, valid, out = await ctx.tick().sample(
                dut.nonzeros.ready, dut.selections.valid, dut.selections.payload
            )
            assert valid == (came and items[len(found)][1] < at_once)
            if valid:
                found.append(out.index)
            in_a_row += valid and before
            before = bool(valid)
            came = (sent < len(items) and bool(taken)) or (came and not valid)
            sent += taken and sent < len(items)

    simulate(task)
    assert found == [entry for entry, _ in items] and in_a_row > 5


@pytest.mark.parametrize(
    ("bits", "entry", "number", "wrong"),
    [
        (5, 0, 0, False),
        (5, 19, 6, False),
        (5, 20, 6, True),
        (5, 31, 0, True),
        (5, 19, 7, True),
        (5, 0, 1 << 26, True),
        (16, 19, 6, False),
        (16, 20, 0, True),
        (16, 0xFFFF, 0, True),
        (16, 19, 7, True),
        (0, 0, 6, False),
        (0, 0, 7, True),
    ],
)
def test_a_planned_nonzero_outside_its_tile(bits: int, entry: int, number: int, wrong: bool) -> None:
    """Of 20 entries and of the loads 0 to 6; what is told is the entry."""

    async def task(ctx: Any, dut: SelectionGate) -> None:
        await plan(ctx, dut, bits)
        ctx.set(dut.entries, 20)
        ctx.set(dut.width, 7)
        await offer(ctx, dut, entry | number << bits)
        assert ctx.get(dut.selections.valid) and not ctx.get(dut.wrong)
        await ctx.tick()
        assert ctx.get(dut.wrong) == wrong and ctx.get(dut.coordinate) == entry
        await ctx.tick()
        assert not ctx.get(dut.wrong)
        # Without a plan the same nonzero is the number of a fiber, and entries do not count.
        ctx.set(dut.planned, 0)
        ctx.set(dut.width, (entry | number << bits) + 1)
        await offer(ctx, dut, entry | number << bits)
        await ctx.tick()
        assert not ctx.get(dut.wrong) and ctx.get(dut.coordinate) == entry | number << bits

    simulate(task)


def test_pieces_are_no_planned_entries() -> None:
    async def task(ctx: Any, dut: SelectionGate) -> None:
        await plan(ctx, dut, 3)
        ctx.set(dut.entries, 4)
        ctx.set(dut.assembling, 1)
        ctx.set(dut.pieces.payload, {"index": 44, "present": 1, "last": 1})
        ctx.set(dut.pieces.valid, 1)
        assert ctx.get(dut.selections.payload.index) == 44
        await ctx.tick()
        assert not ctx.get(dut.wrong)

    simulate(task)


def test_parts_of_rows_wait_for_the_load_and_pieces_become_parts() -> None:
    """Parts go through as they are; those with a nonzero wait while B is loaded; a piece is a part of one, or of none."""

    async def task(ctx: Any, dut: SelectionGate) -> None:
        items = [
            {"index": 3, "weight": 9},
            {"index": 8, "weight": 0},
            {"index": 11, "weight": 7},
            {"index": 0, "weight": 0},
        ]
        for loading in (0, 1):
            ctx.set(dut.loading, loading)
            for count, last in ((3, 0), (1, 1), (0, 1)):
                ctx.set(dut.nonzeros.payload, {"count": count, "last": last, "items": items})
                ctx.set(dut.nonzeros.valid, 1)
                await ctx.tick().until(dut.nonzeros.ready)
                ctx.set(dut.nonzeros.valid, 0)
                waits = bool(loading and count)
                assert ctx.get(dut.selections.valid) == (not waits) and ctx.get(dut.event_stall) == waits
                if waits:
                    ctx.set(dut.loading, 0)
                    assert ctx.get(dut.selections.valid)
                out = ctx.get(dut.selections.payload)
                assert (out.count, out.last) == (count, last)
                assert [(item.index, item.weight) for item in out["items"]] == [
                    (i["index"], i["weight"]) for i in items
                ]
                await ctx.tick()
                ctx.set(dut.loading, loading)
        ctx.set(dut.assembling, 1)
        for present, last in ((1, 0), (0, 1)):
            ctx.set(dut.pieces.payload, {"index": 44, "weight": 5, "present": present, "last": last})
            ctx.set(dut.pieces.valid, 1)
            out = ctx.get(dut.selections.payload)
            assert ctx.get(dut.selections.valid) and ctx.get(dut.pieces.ready)
            assert (out.count, out.last, out["items"][0].index, out["items"][0].weight) == (present, last, 44, 5)

    simulate(task, named=False, lanes=4)


def test_nonzeros_that_name_fibers_come_one_by_one() -> None:
    with pytest.raises(ValueError, match="come one by one, not 4 together"):
        SelectionGate(lanes=4)
    assert not hasattr(SelectionGate(named=False, lanes=4), "wrong"), "the engine finds what is wrong"
