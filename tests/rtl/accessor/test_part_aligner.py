"""Parts of rows from segment words: every nonzero once, in order, from lane 0 on; planted faults."""

import random
from pathlib import Path
from typing import Any

import pytest

from rtl.accessor.part_aligner import PartAligner
from tests.rtl.planted import planted
from tests.rtl.port_bench import PortBench

BASE = 70

#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "from_lane_0": ("part_aligner", "word.line.as_value() >> Cat(Const(0, 6), word.first)", "word.line.as_value()"),
    "coordinates_of_the_matrix": ("part_aligner", "aligned[n].coordinate - self.base", "aligned[n].coordinate"),
    "empty_words_leave": ("part_aligner", "(word.count != 0) | word.last", "1"),
    "empty_ends_are_lost": ("part_aligner", "(word.count != 0) | word.last", "word.count != 0"),
    "empty_words_wait": ("part_aligner", "out.ready | ~tells", "out.ready & tells"),
    "dropped_where_nobody_takes": ("part_aligner", "out.ready | ~tells", "1"),
}


def exercise(block: Any, lanes: int, seed: int, chance: float) -> None:
    dut = block(lanes=lanes)
    rng, bench = random.Random(seed), PortBench(dut, seed=seed, chance=chance)
    words, parts = bench.feed(dut.words), bench.collect(dut.selections)
    expected = []
    for _ in range(60):
        line = [{"coordinate": rng.randrange(BASE, BASE + 1000), "value": rng.getrandbits(32)} for _ in range(lanes)]
        first = rng.randrange(lanes)
        count, last = rng.randint(0, lanes - first), rng.randint(0, 1)
        words.append({"line": line, "first": first, "count": count, "last": last})
        own = [(one["coordinate"] - BASE, one["value"]) for one in line[first : first + count]]
        if own or last:
            expected.append((own, last))

    async def script(ctx: Any) -> None:
        ctx.set(dut.base, BASE)
        quiet: list[int] = []

        def each(ctx: Any) -> None:
            quiet.append(1) if not words and len(parts) >= len(expected) else quiet.clear()

        await bench.until(ctx, lambda: len(quiet) > 3, limit=1000, each=each)
        found = [
            ([(one["index"], one["weight"]) for one in part["items"][: part["count"]]], part["last"]) for part in parts
        ]
        assert found == expected

    bench.simulate(script)


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("chance", [1.0, 0.6])
def test_parts(lanes: int, chance: float) -> None:
    exercise(PartAligner, lanes, seed=1, chance=chance)


@pytest.mark.plants
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = planted(tmp_path, monkeypatch, "accessor", FAULTS[name], "part_aligner.PartAligner")
    with where as (block,), pytest.raises(AssertionError):
        for seed in range(4):
            exercise(block, 2, seed, 0.6)
