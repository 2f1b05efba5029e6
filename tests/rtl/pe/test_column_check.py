"""Columns of B against a plain comparison, part by part; planted faults."""

import random
from pathlib import Path
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.pe.column_check import ColumnCheck
from tests.rtl.planted import planted

PES, LOW, HIGH = 3, 10, 40

#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "equal_rows": ("column_check", "row <= last_row", "row < last_row"),
    "below_the_tile": ("column_check", "row < self.low", "row + 1 < self.low"),
    "beyond_the_tile": ("column_check", "row >= self.high", "row > self.high"),
    "a_column_follows_another": ("column_check", "(self.index != 0) & ", ""),
    "parts_begin_anew": ("column_check", "self.index == get.data.index", "self.index == get.data.index + 1"),
    "any_part_follows": ("column_check", "& (self.index == get.data.index)", ""),
    "rows_of_one_pe": ("column_check", "put.addr.eq(self.pe)", "put.addr.eq(0)"),
}


def steps(rng: random.Random) -> list[tuple[int, int, int, bool]]:
    """PE, index, row and whether it is wrong: columns and parts of three PEs by turns, some of which do not rise."""
    found = []
    last: dict[int, tuple[int, int]] = {}  # of each PE the index and the row of its last nonzero
    for _ in range(60):
        pe = rng.randrange(PES)
        follows = pe in last and rng.random() < 0.6
        index = last[pe][0] + 1 if follows else rng.choice((0, 0, 4, 9))
        if pe in last and index == last[pe][0] + 1 != 0:
            follows = True
        row = rng.randrange(LOW, HIGH - 6)
        for n in range(rng.randint(1, 4)):
            kind = rng.random()
            if follows:
                row = last[pe][1] + 1
            if kind < 0.06:
                row = rng.choice((LOW - 1, HIGH, (1 << 32) - 1))
            elif kind < 0.14 and follows:
                row = last[pe][1] - rng.choice((0, 0, 1))
            wrong = not LOW <= row < HIGH or (follows and row <= last[pe][1])
            found.append((pe, index + n, row, wrong))
            last[pe] = index + n, row
            follows = True
            if wrong:  # what comes after an error does not count
                last.pop(pe)
                break
        if found[-1][3]:
            # The PE begins with another column.
            row = rng.randrange(LOW, HIGH - 10)
            found.append((pe, 0, row, False))
            last[pe] = 0, row
    return found


def exercise(block: Any, seed: int) -> None:
    dut = block(pes=PES)
    # A tile may begin with row 0, and a PE with a column that begins there.
    low, first = (LOW, []) if seed % 2 else (0, [(0, 0, 0, False)])
    items, findings = [*first, *(one for one in steps(random.Random(seed)) if low or one[2] >= LOW)], []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.low, low)
        ctx.set(dut.high, HIGH)
        for number, (pe, index, row, _) in enumerate([*items, (0, 0, LOW, False)]):
            ctx.set(dut.moved, int(number < len(items)))
            for name, value in (("pe", pe), ("index", index), ("row", row)):
                ctx.set(getattr(dut, name), value)
            for moved in (0, 0):
                await ctx.tick()
                ctx.set(dut.moved, moved)
                if ctx.get(dut.wrong):
                    findings.append(ctx.get(dut.coordinate))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    wrong = [row for _, _, row, is_wrong in items if is_wrong]
    assert findings == wrong and wrong


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_rise_and_others(seed: int) -> None:
    exercise(ColumnCheck, seed)


@pytest.mark.plants
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = planted(tmp_path, monkeypatch, "pe", FAULTS[name], "column_check.ColumnCheck")
    with where as (block,), pytest.raises(AssertionError):
        for seed in range(4):
            exercise(block, seed)
