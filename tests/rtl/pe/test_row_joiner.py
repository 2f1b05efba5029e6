"""Rows of C out of the array's sums and partial rows, and out of pieces: against a dictionary of columns; planted faults."""

import random
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtl.pe.row_joiner import RowJoiner
from sw.golden.arithmetic import add
from tests.rtl.planted import planted
from tests.rtl.port_bench import PortBench

PES, LANES = 3, 2
Row = dict[int, int]

#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "row_without_data_is_lost": ("row_joiner", "mine.eq(self.rows.valid & (head.row == number))", "mine.eq(self.rows.valid)"),
    "columns_fall": ("row_joiner", "partial.coordinate <= column", "partial.coordinate >= column"),
    "void_sum_is_one": ("row_joiner", "met.eq(Cat(~one.void for one in head.sums))", "met.eq(~0)"),
    "partial_row_of_the_row_before": ("row_joiner", "[over.eq(0), used.eq(0), number", "[used.eq(0), number"),
    "end_of_row_is_lost": ("row_joiner", "m.d.sync += waits.last.eq(1)", "pass"),
    "empty_row_is_not_void": ("row_joiner", "waits.void.eq(~item.present)", "waits.void.eq(0)"),
}  # fmt: skip


def nonzeros(fiber: Row, closes: bool = False) -> list[dict[str, int]]:
    """A fiber as it is read."""
    if not fiber:
        return [{"coordinate": 0, "value": 0, "present": 0, "last": 1, "closes": int(closes)}]
    items = sorted(fiber.items())
    last = [n == len(items) - 1 for n in range(len(items))]
    return [
        {"coordinate": c, "value": v, "present": 1, "last": int(end), "closes": int(end and closes)}
        for (c, v), end in zip(items, last, strict=True)
    ]


def fibers(words: list[Any]) -> list[Row]:
    """Rows out of words of fibers, which are full but for the last one of each."""
    rows: list[Row] = [{}]
    for word in words:
        assert word["last"] or word["count"] == LANES
        part = [(one["coordinate"], one["value"]) for one in word["line"][: word["count"]]]
        assert [c for c, _ in part] == sorted({c for c, _ in part}) and not set(rows[-1]) & {c for c, _ in part}
        rows[-1] |= dict(part)
        if word["last"]:
            rows.append({})
    assert rows.pop() == {}, "the last fiber ends"
    return rows


def drawn(rng: random.Random, columns: range, density: float) -> Row:
    return {c: rng.getrandbits(32) for c in columns if rng.random() < density}


def summed(before: Row, here: Row) -> Row:
    return {
        c: before.get(c, here.get(c, 0))
        if c not in before or c not in here
        else int(add(np.array([before[c]], np.uint32), np.array([here[c]], np.uint32), value="int32")[0])
        for c in before.keys() | here.keys()
    }


def exercise(block: Any, seed: int = 1, chance: float = 0.7) -> None:
    """Tiles with and without partial rows, rows without data, an A without any; then pieces."""
    dut = block(pes=PES, lanes=LANES, value="int32")
    rng, bench = random.Random(seed), PortBench(dut, seed=seed, chance=chance)
    arriving, back, pieces = bench.feed(dut.rows), bench.feed(dut.partials), bench.feed(dut.pieces)
    words = bench.collect(dut.fiber)
    columns = range(10, 10 + PES)

    async def tile(ctx: Any, count: int, adds: bool, density: float) -> None:
        met = {row: found for row in range(count) if (found := drawn(rng, columns, density)) or rng.random() < 0.3}
        before = [drawn(rng, columns, 0.5) if adds else {} for _ in range(count)]
        rows = sorted(met) or [0]
        for row in rows:
            sums = [
                {"void": int(c not in met.get(row, {})), "column": c, "value": met.get(row, {}).get(c, 77)}
                for c in columns
            ]
            arriving.append({"last": int(row == rows[-1]), "row": row, "sums": sums})
        if adds:
            back.extend(one for fiber in before for one in nonzeros(fiber))
        first = len(fibers(words))
        for name, value in (("count", count), ("adds", int(adds)), ("start", 1)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
        idle: list[int] = []
        await bench.until(
            ctx,
            lambda: len(idle) > 4,
            limit=2000,
            each=lambda ctx: idle.append(1) if ctx.get(dut.idle) else idle.clear(),
        )
        assert not arriving and not back
        assert fibers(words)[first:] == [summed(before[row], met.get(row, {})) for row in range(count)]

    async def script(ctx: Any) -> None:
        for count, adds, density in ((5, False, 0.5), (4, True, 0.5), (1, True, 0.0), (3, False, 0.0), (6, True, 0.9)):
            await tile(ctx, count, adds, density)
        ctx.set(dut.assembling, 1)
        first, rows = len(fibers(words)), []
        for _ in range(6):
            parts = [drawn(rng, range(10 * n, 10 * n + 10), rng.choice([0, 0.3])) for n in range(3)]
            for n, part in enumerate(parts):
                pieces.extend(nonzeros(part, closes=n == 2))
            rows.append(parts[0] | parts[1] | parts[2])
        await bench.until(ctx, lambda: sum(word["last"] for word in words) == first + len(rows), limit=2000)
        assert fibers(words)[first:] == rows

    bench.simulate(script)


@pytest.mark.parametrize("chance", [1.0, 0.7, 0.3])
def test_rows_and_pieces(chance: float) -> None:
    for seed in range(3):
        exercise(RowJoiner, seed, chance)


@pytest.mark.plants
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = planted(tmp_path, monkeypatch, "pe", FAULTS[name], "row_joiner.RowJoiner")
    with where as (block,), pytest.raises(AssertionError):
        for seed in range(3):
            exercise(block, seed)


def test_a_queue_of_rows_is_never_overrun() -> None:
    """More rows than may be under way, none of which may leave: the block waits, and loses none."""
    dut = RowJoiner(pes=1, lanes=LANES, value="int8")
    bench = PortBench(dut, seed=1, chance=1.0)
    arriving = bench.feed(dut.rows)
    words = bench.collect(dut.fiber, chance=0.05)
    arriving.extend(
        {"last": int(row == 299), "row": row, "sums": [{"void": 0, "column": 0, "value": row % 100}]}
        for row in range(300)
    )

    async def script(ctx: Any) -> None:
        ctx.set(dut.count, 300)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        await bench.until(ctx, lambda: len(words) == 300, limit=20_000)

    bench.simulate(script)
    assert [row[0] for row in fibers(words)] == [row % 100 for row in range(300)]
    assert isinstance(arriving, deque) and not arriving
