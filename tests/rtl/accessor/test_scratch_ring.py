"""Scratch ring: rows take the next free lines and give them back in turn; a full ring keeps new lines waiting, and no others."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.scratch_ring import MARGIN, ScratchRing

LANES, BASE = 2, 9
# Cycles in which a test ends, or something hangs.
PATIENCE = 4000


@dataclass
class Ring:
    """What the block should do: where rows begin, and how many lines each has.

    full, again: cycles in which a new line, and another part of one, met a full ring. cycles: in which there was a line.
    """

    lines: int
    begins: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    given_back: int = 0
    full: int = 0
    again: int = 0
    cycles: int = 0

    @property
    def used(self) -> int:
        return sum(self.taken[self.given_back :])

    def begin(self) -> None:
        behind = (self.begins[-1] + self.taken[-1]) % self.lines if self.begins else 0
        self.begins.append(behind if self.used else 0)
        self.taken.append(0)


def run(rows: list[list[int]], lines: int, *, slots: int, hurry: float, leaves: float) -> Ring:
    """Hands over the lines of each row, by their numbers in it; returns what became of the ring.

    hurry : share of cycles in which the SRAM takes a write. leaves : chance in a cycle that the oldest row gives its lines back.
    """
    dut = ScratchRing(lanes=LANES, line_address_width=7, scratch_slots=slots)
    random = Random(f"{rows} {lines} {slots} {hurry}")
    ring = Ring(lines)
    sent: list[tuple[int, int, int]] = []  # address, mask and a value of each line that was taken
    written: list[tuple[int, int, int]] = []
    complete = 0  # rows that have all their lines
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def cycle(ctx: Any, **driven: Any) -> bool:
        """One cycle with these inputs; returns whether the line at hand was taken."""
        for name in ("row_begins", "merged_out"):
            ctx.set(getattr(dut, name), driven.get(name, 0))
        ctx.set(dut.kept.valid, "line" in driven)
        if "line" in driven:
            index, mask, value = driven["line"]
            ctx.set(dut.kept.payload, {"index": index, "mask": mask, "data": value})
        ctx.set(dut.row, driven.get("row", 0))
        ctx.set(dut.sram_write.ready, random.random() < hurry)
        assert ctx.get(dut.idle) == (len(sent) == len(written)), "the SRAM has all that was taken"
        for number in range(ring.given_back, len(ring.begins)):
            if "row_begins" not in driven or number < len(ring.begins) - 1:
                assert ctx.get(dut.begins[number % slots]) == ring.begins[number], f"row {number}"
        if ctx.get(dut.sram_write.valid) and ctx.get(dut.sram_write.ready):
            write = ctx.get(dut.sram_write.payload)
            written.append((write.address, write.mask, write.line[0].coordinate))
            assert written[-1] == sent[len(written) - 1]
        taken = "line" in driven and bool(ctx.get(dut.kept.ready))
        used = ring.used
        await ctx.tick()
        assert ctx.get(dut.open) == (used + MARGIN <= lines or lines < MARGIN + 2)
        return taken

    def gives_back() -> dict[str, Any]:
        """Whether the oldest row does in this cycle; it has all its lines by then."""
        return {"merged_out": 1} if ring.given_back < complete and random.random() < leaves else {}

    async def drive(ctx: Any) -> None:
        nonlocal complete

        async def step(**driven: Any) -> bool:
            back = gives_back()
            taken = await cycle(ctx, **driven, **back)
            ring.given_back += len(back)
            return taken

        ctx.set(dut.base, BASE)
        ctx.set(dut.lines, lines)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.keep_lines) == max(0, lines - MARGIN) // 2
        for number, row in enumerate(rows):
            for _ in range(PATIENCE):
                if len(ring.begins) - ring.given_back < slots:
                    break
                await step()
            ring.begin()
            await step(row_begins=1, row=number % slots)
            for index in row:
                fresh = index >= ring.taken[-1]
                line = (index, random.randrange(1, 1 << LANES), len(sent) + 1)
                for _ in range(PATIENCE):
                    full = fresh and ring.used == lines
                    ring.full += full
                    ring.again += not fresh and ring.used == lines
                    taken = await step(line=line)
                    ring.cycles += 1
                    assert not (full and taken), "a new line has no place"
                    if taken:
                        break
                else:
                    raise AssertionError(f"line {index} of row {number} is not taken")
                ring.taken[-1] += fresh
                address = BASE + (ring.begins[-1] + index) % lines
                sent.append((address, line[1], line[2]))
            complete += 1
        for _ in range(PATIENCE):
            if len(written) == len(sent) and ring.given_back == len(rows):
                break
            await step()
        assert written == sent

    sim.add_testbench(drive)
    sim.run()
    return ring


def drawn(lines: int, count: int) -> list[list[int]]:
    """Rows of up to half a ring, some lines of which come in several parts."""
    random = Random(lines)
    found = []
    for _ in range(count):
        length = random.choice([0, 1, lines // 2, random.randint(0, lines // 2)])
        found.append([n for n in range(length) for _ in range(random.choice([1, 1, 2]))])
    return found


@pytest.mark.parametrize("lines", [MARGIN + 2, 13, 32, 64])
@pytest.mark.parametrize(("slots", "hurry", "leaves"), [(1, 1.0, 0.3), (4, 1.0, 0.02), (4, 0.4, 0.1), (8, 0.8, 0.5)])
def test_rows_take_and_give_back(lines: int, slots: int, hurry: float, leaves: float) -> None:
    ring = run(drawn(lines, 40), lines, slots=slots, hurry=hurry, leaves=leaves)
    assert len(ring.begins) == 40
    assert slots == 1 or len(set(ring.begins)) > 3


def test_a_full_ring_keeps_new_lines_waiting_alone() -> None:
    """Another part of a line that has its place goes through."""
    half = [0, 1, 2, 3, 4, 5, 5]
    ring = run([half, half, half, half], 12, slots=4, hurry=1.0, leaves=0.02)
    assert ring.full > 0 and ring.again > 0


def test_a_line_a_cycle() -> None:
    row = list(range(12))
    ring = run([row, row], 40, slots=2, hurry=1.0, leaves=0.5)
    assert ring.cycles == 2 * len(row) and ring.full == 0


def test_without_more_lines_than_the_margin_nothing_stays() -> None:
    ring = run([[], [], []], MARGIN + 1, slots=2, hurry=1.0, leaves=0.5)
    assert ring.used == 0


def test_slots_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        ScratchRing(lanes=2, line_address_width=8, scratch_slots=3)
