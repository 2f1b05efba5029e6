"""The segment shaper on random matrices, with neighbours that stall and without."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.accessor.segment_shaper import SegmentShaper
from tests.rtl.accessor.test_row_shaper import LANES, draw, groups
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run

Row = list[tuple[int, int]]


def seen(port: str, payload) -> tuple[Row, int]:
    """Entries of a word, and whether it ends its row."""
    word = payload.word
    first, count = int(word.first), int(word.count)
    entries = [(int(word.line[n].coordinate), int(word.line[n].value)) for n in range(first, first + count)]
    assert int(payload.begin) == int(payload.length) == int(payload.bumped) == int(payload.beyond) == 0
    return entries, int(word.last)


def rows(words: list[tuple[Row, int]]) -> list[Row]:
    """The entries up to each word that ends its row."""
    found: list[Row] = [[]]
    for entries, last in words:
        found[-1] += entries
        if last:
            found.append([])
    assert found.pop() == []
    return found


def words_of(matrix: list[Row], cells: list[dict], begin: int, end: int) -> int:
    """Words for rows ``begin`` to ``end``: one for each group that has some of a row, one for an empty row."""
    found = sum(not row for row in matrix[begin:end])
    return found + sum(len({row for row in cell["rows"][: cell["count"]] if begin <= row < end}) for cell in cells)


@pytest.mark.parametrize("lanes", [LANES, 2 * LANES])
@pytest.mark.parametrize("behaviour", [("never", "never", "never"), *BEHAVIOURS], ids="-".join)
def test_rows_of_tiles(behaviour: tuple[str, str, str], lanes: int) -> None:
    """Tiles of all heights, some of them left out; one word a cycle where nothing stalls. At last nothing is left."""
    for seed in range(8):
        rng = random.Random(f"{behaviour} {seed}")
        matrix = draw(rng, 40)
        cells = groups(rng, matrix)
        tiles, wanted, number, begin = [], [], 0, 0
        while begin < len(matrix):
            end = min(begin + rng.randint(1, 9), len(matrix))
            if end == len(matrix) or rng.random() < 0.7:
                tiles.append({"begin": begin, "rows": end - begin})
                wanted += matrix[begin:end]
                number += words_of(matrix, cells, begin, end)
            begin = end
        ports = dict(zip(("tile", "cells", "segments"), (PAUSES[name] for name in behaviour), strict=True))
        dut, over = SegmentShaper(group=LANES, lanes=lanes, value="int8"), []
        found = run(
            dut,
            {"tile": tiles, "cells": cells},
            {"segments": number},
            pause=ports,
            view=seen,
            seed=seed,
            after=lambda ctx, dut=dut, over=over: over.append((ctx.get(dut.over), ctx.get(dut.idle))),
        )
        assert rows(found.items["segments"]) == wanted
        assert over == [(1, 1)]
        if behaviour == ("never", "never", "never"):
            first, *_, last = found.cycles["segments"]
            assert last - first <= number + 2 * len(tiles) + 2 * len(found.cycles["cells"])


@pytest.mark.parametrize("drop", [0, 1])
def test_entries_that_no_tile_wants(drop: int) -> None:
    """With ``drop`` they leave, else they wait for a tile."""
    matrix = [[(1, 5)], [(2, 6), (3, 7)], [], [(4, 8)], [(0, 1), (9, 2)], [(1, 1)], [(2, 2)]]
    cells = groups(random.Random(1), matrix)
    dut, over = SegmentShaper(group=LANES, lanes=LANES, value="int8"), []
    given = {"cells": cells if drop else cells[:1]}
    run(dut, given, {}, steady={"drop": drop}, after=lambda ctx: over.append(ctx.get(dut.over)))
    assert over == [drop]


def test_nothing_is_taken_after_the_last_group() -> None:
    """It waits while the rows leave, and when they have left."""
    dut = SegmentShaper(group=LANES, lanes=LANES, value="int8")
    last = groups(random.Random(2), [[(1, 5)], [(3, 7)]])[-1]

    async def bench(ctx):
        ctx.set(dut.cells.payload, last)
        ctx.set(dut.cells.valid, 1)
        assert ctx.get(dut.cells.ready)
        await ctx.tick()
        ctx.set(dut.tile.payload, {"begin": 0, "rows": 4})
        ctx.set(dut.tile.valid, 1)
        ctx.set(dut.segments.ready, 1)
        for _ in range(10):
            assert not ctx.get(dut.cells.ready)
            await ctx.tick()
            ctx.set(dut.tile.valid, 0)
        assert ctx.get(dut.over) and ctx.get(dut.idle)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("sizes", [{"group": 3}, {"lanes": 2}, {"value": "int7"}])
def test_wrong_parameters(sizes: dict) -> None:
    with pytest.raises(ValueError):
        SegmentShaper(**({"group": 4, "lanes": 4, "value": "int8"} | sizes))
