"""Columns on their way to the PEs, and parts that PEs ask for: every word of every column; planted faults."""

import random
from pathlib import Path
from typing import Any

import pytest

from rtl.pe.column_feeder import ColumnFeeder
from tests.rtl.planted import planted
from tests.rtl.port_bench import PortBench

SIZES = {"pes": 3, "entries": 8, "region": 4, "address_width": 32}
MOST = SIZES["entries"] // 2
BEGIN_K, BEGIN_J, SIZE_K = 100, 40, 60

#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "coordinates_of_the_matrix": ("column_feeder", "nonzero.coordinate - self.begin_k", "nonzero.coordinate"),
    "rows_are_not_checked": ("column_feeder", "check.moved.eq(moves & named)", "check.moved.eq(0)"),
    "each_part_begins_a_column": ("column_feeder", "job.index.eq(part.part.index >> 1)", "job.index.eq(0)"),
    "nonzeros_are_not_counted": ("column_feeder", "number.eq(number + 1)", "number.eq(number)"),
    "bounds_without_the_begin": ("column_feeder", "check.high.eq(self.begin_k + self.size_k)", "check.high.eq(self.size_k)"),
    "whole_column": ("column_feeder", "count.eq(_least(found.leaf.length, most))", "count.eq(found.leaf.length)"),
    "part_from_the_begin": ("column_feeder", "get.data.position + (part.part.index >> 1)", "get.data.position"),
    "column_of_another_pe": ("column_feeder", "get.addr.eq(part.pe)", "get.addr.eq(0)"),
    "length_in_nonzeros": ("column_feeder", "found.leaf.length << 1", "found.leaf.length"),
    "pe_without_a_column_keeps_its_old_one": ("column_feeder", "loads.eq(come != self.pes)", "loads.eq(come < self.columns)"),
}  # fmt: skip


def exercise(block: Any, seed: int = 1, chance: float = 0.7) -> None:
    dut = block(**SIZES)
    rng, bench = random.Random(seed), PortBench(dut, seed=seed, chance=chance)
    leaves, nonzeros, refill = bench.feed(dut.leaves), bench.feed(dut.nonzeros), bench.feed(dut.refill)
    wanted, places, weights = bench.collect(dut.wanted), bench.collect(dut.places), bench.collect(dut.weights)

    def word(pe: int, metadata: int, payload: int) -> dict[str, Any]:
        return {"pe": pe, "word": {"header": 0, "length": None, "metadata": metadata, "payload": payload}}

    def served(ctx: Any) -> None:
        """Plays the lookup, and the reader of what is asked for."""
        while len(asked) < len(wanted):
            number = wanted[len(asked)]["index"]
            asked.append(number)
            column = columns[number]
            leaf = {
                "in_memory": number % 2,
                "unit": 0,
                "last": 0,
                "position": 1000 * number,
                "length": len(column),
                "weight": 0,
            }
            leaves.append({"present": int(bool(column)), "leaf": leaf})
        while len(read) < len(places):
            place = places[len(read)]
            number, first = divmod(place["position"], 1000)
            read.append(place)
            assert place["in_memory"] == number % 2 and place["length"] > 0
            part = columns[number][first : first + place["length"]]
            assert len(part) == place["length"]
            nonzeros.extend(
                {"coordinate": BEGIN_K + k, "value": v, "present": 1, "last": int(n == len(part) - 1), "closes": 0}
                for n, (k, v) in enumerate(part)
            )

    async def settle(ctx: Any, expected: list[dict[str, Any]]) -> None:
        idle: list[int] = []

        def each(ctx: Any) -> None:
            served(ctx)
            if ctx.get(dut.wrong):
                findings.append(ctx.get(dut.coordinate))
            idle.append(1) if ctx.get(dut.idle) and not refill else idle.clear()

        await bench.until(ctx, lambda: len(idle) > 3, limit=3000, each=each)
        found = [dict(one, word=dict(one["word"])) for one in weights]
        for one in found:
            if not one["word"]["header"]:
                one["word"]["length"] = None
            else:
                one["word"]["metadata"] = None
        assert found == expected
        weights.clear()

    async def script(ctx: Any) -> None:
        nonlocal columns
        for count in (3, 1, 2, 3):
            columns = [
                [(k, rng.getrandbits(32)) for k in sorted(rng.sample(range(SIZE_K), rng.choice([0, 1, MOST, 11])))]
                for _ in range(count)
            ]
            spoiled = []
            if count == 2 and len(columns[0]) > MOST:
                # In the last part: a row outside the tile at its end, or that of the part before at its begin.
                at, row = rng.choice([(-2, SIZE_K), (-3, columns[0][-4][0])])
                columns[0][at] = row, columns[0][at][1]
                spoiled = [BEGIN_K + row]
            wanted.clear(), places.clear(), asked.clear(), read.clear()
            tile = {"columns": count, "begin_j": BEGIN_J, "begin_k": BEGIN_K, "size_k": SIZE_K}
            for name, value in (*tile.items(), ("start", 1)):
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            ctx.set(dut.start, 0)
            expected = []
            for pe in range(SIZES["pes"]):
                column = columns[pe] if pe < count else []
                header = {"header": 1, "length": 2 * len(column), "metadata": None, "payload": BEGIN_J + pe}
                expected += [{"pe": pe, "word": header}]
                expected += [one for k, v in column[:MOST] for one in (word(pe, 1, k), word(pe, 0, v))]
            await settle(ctx, expected)
            expected = []
            for pe, column in enumerate(columns):
                for first in range(2, len(column) - 1, 2):
                    refill.append({"pe": pe, "part": {"index": 2 * first, "count": 4}})
                    expected += [one for k, v in column[first : first + 2] for one in (word(pe, 1, k), word(pe, 0, v))]
            await settle(ctx, expected)
            assert findings == spoiled
            findings.clear()

    findings: list[int] = []
    columns: list[list[tuple[int, int]]] = []
    asked: list[int] = []
    read: list[Any] = []
    bench.simulate(script)


@pytest.mark.parametrize("chance", [1.0, 0.6])
def test_columns_and_parts(chance: float) -> None:
    for seed in range(6):
        exercise(ColumnFeeder, seed, chance)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = planted(tmp_path, monkeypatch, "pe", FAULTS[name], "column_feeder.ColumnFeeder")
    with where as (block,), pytest.raises(AssertionError):
        for seed in range(6):
            exercise(block, seed)
