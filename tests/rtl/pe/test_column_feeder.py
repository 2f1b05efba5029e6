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
KEPT = SIZES["entries"] - SIZES["region"]
BEGIN_K, BEGIN_J = 100, 40

#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "coordinates_of_the_matrix": ("column_feeder", "nonzero.coordinate - self.begin_k", "nonzero.coordinate"),
    "rows_are_not_checked": ("column_feeder", "check.moved.eq(moves & value)", "check.moved.eq(0)"),
    "each_part_begins_a_column": ("column_feeder", "check.index.eq(head.index + number)", "check.index.eq(number)"),
    "nonzeros_are_not_counted": ("column_feeder", "number.eq(number + 1)", "number.eq(number)"),
    "bounds_without_the_begin": ("column_feeder", "check.high.eq(self.begin_k + self.size_k)", "check.high.eq(self.size_k)"),
    "whole_column": ("column_feeder", "count.eq(_least(length, most))", "count.eq(length)"),
    "half_of_a_full_column": ("column_feeder", "most = Mux(full, self.entries, self.entries // 2)", "most = self.entries // 2"),
    "full_columns_in_csc": ("column_feeder", "full.eq(found.present & (length == self.size_k))", "full.eq(0)"),
    "a_row_less_is_full": ("column_feeder", "(length == self.size_k)", "(length + 1 >= self.size_k)"),
    "full_column_is_forgotten": ("column_feeder", "put.data.dense.eq(full)", "put.data.dense.eq(0)"),
    "part_of_a_full_column_counts_pairs": (
        "column_feeder", "count.eq(Mux(dense, words.count, words.count >> 1))", "count.eq(words.count >> 1)"
    ),
    "part_of_a_full_column_at_pairs": ("column_feeder", "Mux(dense, words.index, words.index >> 1)", "(words.index >> 1)"),
    "part_from_the_begin": ("column_feeder", "get.data.position + job.index", "get.data.position"),
    "column_of_another_pe": ("column_feeder", "get.addr.eq(part.pe)", "get.addr.eq(0)"),
    "length_in_nonzeros": ("column_feeder", "length << 1", "length"),
    "pe_without_a_column_keeps_its_old_one": ("column_feeder", "loads.eq(come != self.pes)", "loads.eq(come < self.columns)"),
}  # fmt: skip


def exercise(block: Any, seed: int = 1, chance: float = 0.7) -> None:
    dut = block(**SIZES)
    rng, bench = random.Random(seed), PortBench(dut, seed=seed, chance=chance)
    leaves, nonzeros, refill = bench.feed(dut.leaves), bench.feed(dut.nonzeros), bench.feed(dut.refill)
    wanted, places, weights = bench.collect(dut.wanted), bench.collect(dut.places), bench.collect(dut.weights)

    def words(pe: int, first: int, end: int) -> list[dict[str, Any]]:
        """Entries of a column: values of one with every row of the tile, else a row and a value for each nonzero."""
        size = 1 if len(columns[pe]) == size_k else 2
        entries = [word for k, v in columns[pe] for word in ((1, k), (0, v))[-size:]]
        for n in range(first, end):
            if not entries[n][0]:
                sees(pe, n // size)
        rest = {"header": 0, "length": None}
        return [{"pe": pe, "word": rest | {"metadata": flag, "payload": word}} for flag, word in entries[first:end]]

    def sees(pe: int, index: int) -> None:
        """The check sees a nonzero: of a column, and not the one that a PE got again, each row is above the one before."""
        row = columns[pe][index][0]
        falls = index and seen.get(pe, (0, 0))[0] == index and row <= seen[pe][1]
        if falls or row >= size_k:
            spoiled.append(BEGIN_K + row)
        seen[pe] = index + 1, row

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
        nonlocal columns, size_k
        for count in (3, 1, 2, 3):
            size_k = rng.choice([1, MOST, 2 * MOST, 11, 60])
            lengths = [min(size_k, rng.choice([0, 1, MOST, 11, size_k - 1, size_k, size_k])) for _ in range(count)]
            columns = [[(k, rng.getrandbits(32)) for k in sorted(rng.sample(range(size_k), n))] for n in lengths]
            if count == 2 and len(columns[0]) > MOST:
                # In the last part: a row outside the tile at its end, or that of the part before at its begin.
                at, row = rng.choice([(-2, size_k), (-3, columns[0][-4][0])])
                columns[0][at] = row, columns[0][at][1]
            wanted.clear(), places.clear(), asked.clear(), read.clear(), spoiled.clear(), seen.clear()
            tile = {"columns": count, "begin_j": BEGIN_J, "begin_k": BEGIN_K, "size_k": size_k}
            for name, value in (*tile.items(), ("start", 1)):
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            ctx.set(dut.start, 0)
            expected, entries = [], []
            for pe in range(SIZES["pes"]):
                length = len(columns[pe]) if pe < count else 0
                entries.append(length if length == size_k else 2 * length)
                header = {"header": 1, "length": entries[pe], "metadata": None, "payload": BEGIN_J + pe}
                expected += [{"pe": pe, "word": header}]
                expected += words(pe, 0, min(entries[pe], SIZES["entries"])) if length else []
            await settle(ctx, expected)
            expected = []
            for pe in range(count):
                if entries[pe] <= SIZES["entries"]:
                    continue
                for first in range(KEPT, entries[pe], SIZES["region"]):
                    end = min(first + SIZES["region"], entries[pe])
                    refill.append({"pe": pe, "part": {"index": first, "count": end - first}})
                    expected += words(pe, first, end)
            await settle(ctx, expected)
            assert findings == spoiled
            findings.clear()

    spoiled: list[int] = []
    # Of each PE the nonzero that would be its next one, and the row of the last one.
    seen: dict[int, tuple[int, int]] = {}
    size_k = 0
    findings: list[int] = []
    columns: list[list[tuple[int, int]]] = []
    asked: list[int] = []
    read: list[Any] = []
    bench.simulate(script)


@pytest.mark.parametrize("chance", [1.0, 0.6])
def test_columns_and_parts(chance: float) -> None:
    for seed in range(6):
        exercise(ColumnFeeder, seed, chance)


@pytest.mark.plants
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = planted(tmp_path, monkeypatch, "pe", FAULTS[name], "column_feeder.ColumnFeeder")
    with where as (block,), pytest.raises(AssertionError):
        for seed in range(6):
            exercise(block, seed)
