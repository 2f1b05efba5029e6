"""Scratch writer: fibers follow each other without waiting for memory, and are told only when they are there."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.scratch_ring import MARGIN, ScratchRing
from rtl.accessor.scratch_writer import ScratchWriter

from .clients import ClientMemory, patient

REGION, SIZE = 0x1000, 0x9000
BASE = 11  # line of the SRAM


def given(rows: list[list[int]], lanes: int) -> list[tuple[dict[str, Any], bool, int]]:
    """Words of rows of fibers of these lengths, whether they are of a row's first fiber, and the row."""
    tag = iter(range(1, 1_000_000))
    words = []
    for row, lengths in enumerate(rows):
        for n, length in enumerate(lengths):
            for at in range(0, max(length, 1), lanes):
                count = min(lanes, length - at)
                line = [{"coordinate": next(tag), "value": row} for _ in range(lanes)]
                words.append(({"line": line, "count": count, "last": at + lanes >= length}, n == 0, row))
    return words


def run(
    rows: list[list[int]],
    *,
    lanes: int = 4,
    scratch_slots: int = 4,
    room: int = 0x8000,
    hurry: float = 0.7,
    latency: int = 40,
    results: float = 0.7,
    overflows: bool = False,
    lines: int = 0,
) -> tuple[int, Any]:
    """Writes the fibers and checks each when it is told; returns the cycles it took and the block's final state.

    ``lines``: of the SRAM, in which the first lines of rows stay.
    """
    random = Random(f"{rows} {lanes} {scratch_slots}")
    dut = ScratchWriter(lanes=lanes, address_width=32, line_address_width=8, burst_beats=4, scratch_slots=scratch_slots)
    kept = max(0, lines - MARGIN) // 2
    sram: dict[int, list[int]] = {}  # coordinates of each line
    memory = ClientMemory(SIZE, 8 * lanes, seed=len(rows), hurry=hurry)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    words = given(rows, lanes)
    slot_room = room // scratch_slots // (8 * lanes) * lanes  # elements
    fibers: list[tuple[int, int, list[int]]] = []  # slot, position, coordinates
    position = 0
    current: list[int] = []
    begun = True
    for word, first, row in words:
        slot = row % scratch_slots
        if first and begun:
            position = 0
        current += [lane["coordinate"] for lane in word["line"][: word["count"]]]
        begun = word["last"]
        if word["last"]:
            fibers.append((slot, position, current))
            position += len(current)
            current = []
    state: dict[str, Any] = {"cycles": 0, "told": 0, "told_at": [], "left": 0, "lines": 0}

    async def feed(ctx: Any) -> None:
        ctx.set(dut.region, REGION)
        ctx.set(dut.capacity, room)
        ctx.set(dut.base, BASE)
        ctx.set(dut.lines, lines)
        await ctx.tick().repeat(2)
        for word, first, row in words:
            # A slot is given to the next row when its fibers have been told, not before.
            for _ in patient(3000):
                free = state["left"] > row - scratch_slots
                if free and ctx.get(dut.open):
                    break
                await ctx.tick()
            ctx.set(dut.words.payload, word)
            ctx.set(dut.first, first)
            ctx.set(dut.slot, row % scratch_slots)
            ctx.set(dut.words.valid, 1)
            for _ in patient(3000):
                if ctx.get(dut.overflow):
                    return
                taken = (await ctx.tick().sample(dut.words.ready))[2]
                state["cycles"] += 1
                if taken:
                    break
            assert not ctx.get(dut.idle), "a word is inside"
            ctx.set(dut.words.valid, 0)

    async def take(ctx: Any) -> None:
        for slot, position, coordinates in fibers:
            for _ in patient(3000):
                if overflows and ctx.get(dut.overflow):
                    state["needed"] = ctx.get(dut.needed)
                    return
                ready = random.random() < results
                ctx.set(dut.results.ready, ready)
                _, _, valid, result = await ctx.tick().sample(dut.results.valid, dut.results.payload)
                if valid and ready:
                    break
            assert (result.slot, result.position, result.length) == (slot, position, len(coordinates))
            places = ctx.get(dut.places)
            assert (places.base, places.lines, places.kept) == (BASE, lines, kept)
            assert (places.region, places.slot_lines * lanes) == (REGION // 8, slot_room)
            found = []
            for element in range(position, position + len(coordinates)):
                line, lane = divmod(element, lanes)
                if line < kept:
                    found.append(sram[BASE + (places.begins[slot] + line) % lines][lane])
                else:
                    at = REGION + 8 * (slot * slot_room + element)
                    found.append(int(memory.words(at, 2)[0]))
            assert found == coordinates, f"fiber at {position} was told before it was there"
            state["told"] += 1
            state["told_at"].append(state["cycles"])
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.results.valid)

    async def leave(ctx: Any) -> None:
        """Rows are merged in their order, some time after their fibers have been told."""
        for row in range(len(rows)):
            for _ in patient(9000):
                if state["told"] >= sum(map(len, rows[: row + 1])) and random.random() < 0.3:
                    break
                await ctx.tick()
            ctx.set(dut.merged_out, 1)
            await ctx.tick()
            ctx.set(dut.merged_out, 0)
            state["left"] += 1

    async def keep(ctx: Any) -> None:
        """The SRAM: a line is granted now and then."""
        while True:
            ready = random.random() < hurry
            ctx.set(dut.sram_write.ready, ready)
            _, _, valid, write = await ctx.tick().sample(dut.sram_write.valid, dut.sram_write.payload)
            if valid and ready:
                line = sram.setdefault(write.address, [0] * lanes)
                state["lines"] += 1
                for n in range(lanes):
                    if write.mask >> n & 1:
                        line[n] = write.line[n].coordinate

    sim.add_testbench(feed)
    sim.add_testbench(leave, background=overflows)
    sim.add_testbench(keep, background=True)
    sim.add_testbench(take)
    sim.add_testbench(memory.writer(dut.write_request, dut.write_data, 0, dut.retired, latency), background=True)
    sim.run()
    state["beats"] = memory.beats_written.get(0, 0)
    state["memory"] = memory.bytes
    state["used"] = sorted(sram)
    return state["cycles"], state


@pytest.mark.parametrize("results", [1.0, 0.2])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
@pytest.mark.parametrize(("lanes", "scratch_slots"), [(2, 1), (2, 4), (4, 2), (8, 8)])
def test_fibers_are_told_when_in_memory(lanes: int, scratch_slots: int, hurry: float, results: float) -> None:
    random = Random(lanes)
    sizes = [0, 0, 1, lanes - 1, lanes, lanes + 1, 3 * lanes, 40]
    rows = [[random.choice(sizes) for _ in range(random.randrange(1, 6))] for _ in range(12)]
    _, state = run(rows, lanes=lanes, scratch_slots=scratch_slots, hurry=hurry, results=results)
    beats = 0
    for row in rows:
        at = 0
        for length in row:
            beats += (at + length + lanes - 1) // lanes - at // lanes if length else 0
            at += length
    assert state["beats"] == beats, "a fiber writes the lines that it covers, each once"


@pytest.mark.parametrize("lines", [MARGIN, MARGIN + 2, 23, 60])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
@pytest.mark.parametrize(("lanes", "scratch_slots"), [(2, 1), (2, 4), (4, 2)])
def test_first_lines_of_rows_stay_on_chip(lanes: int, scratch_slots: int, hurry: float, lines: int) -> None:
    """Half of the ring but for a margin, of every row, however many of them are under way; the rest goes to memory."""
    random = Random(lines)
    sizes = [0, 1, lanes, 3 * lanes + 1, 10 * lanes, 30 * lanes]
    rows = [[random.choice(sizes) for _ in range(random.randrange(1, 6))] for _ in range(14)]
    _, state = run(rows, lanes=lanes, scratch_slots=scratch_slots, hurry=hurry, lines=lines)
    kept, of_memory, of_sram = (lines - MARGIN) // 2, 0, 0
    for row in rows:
        at = 0
        for length in row:
            covered = range(at // lanes, (at + length + lanes - 1) // lanes) if length else range(0)
            of_sram += sum(line < kept for line in covered)
            of_memory += sum(line >= kept for line in covered)
            at += length
    assert (state["beats"], state["lines"]) == (of_memory, of_sram)
    assert set(state["used"]) <= set(range(BASE, BASE + lines))


def test_fibers_do_not_wait_for_memory() -> None:
    """Short fibers, a memory that takes its time: a word a cycle and a few cycles for each fiber, nothing more."""
    rows = [[8] * 6 for _ in range(4)]
    words = sum(2 * len(row) for row in rows)
    cycles, _ = run(rows, hurry=1.0, latency=2, results=1.0)
    assert cycles <= words + 2 * sum(map(len, rows)) + len(rows) + 12


@pytest.mark.parametrize("scratch_slots", [1, 4])
def test_a_slot_that_is_too_small_says_what_the_region_needs(scratch_slots: int) -> None:
    """10 elements in a slot of 8: 3 lines of 4 elements are needed in each."""
    _, state = run([[3, 2], [4, 6]], scratch_slots=scratch_slots, room=64 * scratch_slots, overflows=True)
    assert state["needed"] == 96 * scratch_slots
    beyond = state["memory"][REGION + 64 * scratch_slots :]
    assert (beyond == 0xAA).all(), "written beyond the region"
    slot = REGION + 64 * (1 % scratch_slots)
    assert scratch_slots == 1 or (state["memory"][slot + 64 : REGION + 64 * scratch_slots] == 0xAA).all(), (
        "written beyond the slot"
    )


def test_slots_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        ScratchWriter(lanes=2, address_width=32, line_address_width=8, burst_beats=4, scratch_slots=3)
    with pytest.raises(ValueError, match="power of two"):
        ScratchRing(lanes=2, line_address_width=8, scratch_slots=3)


def test_a_fiber_is_told_while_the_next_one_is_written() -> None:
    """Words of it come faster than the SRAM takes lines, so the ring is never empty."""
    _, state = run([[16, 200]], lanes=2, hurry=0.6, results=1.0, lines=220)
    first, last = state["told_at"]
    assert first < 50 < 140 < last
