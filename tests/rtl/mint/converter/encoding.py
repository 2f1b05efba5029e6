"""Checks of the blocks that make a target of entries, against models in plain Python."""

import random

import numpy as np
from amaranth.hdl import Mux

from tests.rtl.mint.converter.harness import (
    BITS,
    LANES,
    PATTERNS,
    Held,
    beats_of,
    cells,
    entries_of,
    filled,
    groups_of,
    matrix,
    pauses,
    plain,
    positions,
    run_until_last,
    runs_of,
    stopped,
)
from tests.rtl.mint.streams import run


def check_cell_finder(block):
    """Rows and columns of the last place of the largest matrix and of any other."""
    rng = random.Random("cells")
    for columns in (1, 3, 1 << 32, 97):
        found = [(p, 5) for p in sorted(rng.randrange((1 << 32) * columns) for _ in range(12))]
        found.append(((1 << 32) * columns - 1, 6))
        given = {"columns": [columns], "groups": positions(rng, found, 2, gaps=True)}
        out = run(
            block(lanes=2, value_bits=BITS),
            given,
            {"cells": len(given["groups"])},
            pause=pauses(rng.choice(PATTERNS), given, ["cells"]),
            view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
        )
        got = [
            (item["rows"][n], item["columns"][n], item["values"][n], item["positions"][n])
            for item in out.items["cells"]
            for n in range(item["count"])
        ]
        assert got == [(p // columns, p % columns, v, p) for p, v in found]


def check_block_finder(block):
    """Block and place of entries up to the largest coordinate, in blocks from one place to 2^24 values; or nothing."""
    rng = random.Random("blocks")
    last = (1 << 32) - 1
    for number, (high, wide, by_row) in enumerate(
        ((1, 1, 1), (3, 5, 1), (4, 4, 0), (1, 1 << 24, 1), (1 << 24, 1, 0), (1 << 12, 1 << 12, 1), (97, 1000, 1))
    ):
        entries = [(rng.getrandbits(32), rng.getrandbits(32), n) for n in range(9)]
        entries += [(0, 0, 10), (last, last, 11), (high - 1, wide - 1, 12), (last, 0, 13), (high, wide, 14)]
        lists = groups_of(rng, entries, 2)
        names = ("rows", "columns", "values") if by_row else ("columns", "rows", "values")
        groups = [
            {
                **{name: filled([entry[k] for entry in part], 2, rng) for k, name in enumerate(names)},
                "positions": [7, 8],
                "count": len(part),
                "last": end,
            }
            for part, end in lists
        ]
        given = {"sides": [{"rows": high, "columns": wide}], "cells": groups}
        out = run(
            Held(block(lanes=2, value_bits=BITS), by_block=1, by_row=by_row),
            given,
            {"blocks": len(groups)},
            pause=pauses(PATTERNS[number % 4], given, ["blocks"]),
            view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
        ).items["blocks"]
        assert [(item["count"], item["last"]) for item in out] == [(len(part), end) for part, end in lists]
        names = (*names, "block_rows", "block_columns", "inner_rows", "places", "positions")
        found = [[item[name][n] for name in names] for item in out for n in range(item["count"])]
        wanted = [[r, c, v, r // high, c // wide, r % high, r % high * wide + c % wide] for r, c, v in entries]
        assert [item[:7] for item in found] == wanted
        assert {item[7] for item in found} == {7, 8}
    given = {"cells": groups}
    out = run(
        Held(block(lanes=2, value_bits=BITS), by_block=0, by_row=1),
        given,
        {"blocks": len(groups)},
        view=lambda port, item: {name: plain(item[name]) for name in groups[0]},
    )
    assert out.items["blocks"] == groups and out.cycles["blocks"] == out.cycles["cells"]


def check_block_filler(block):
    """A head for each block, a place among the values of all blocks for each entry; a matrix behind another begins anew."""
    rng = random.Random("filler")
    for number, (size, grid, share) in enumerate(
        (
            (1, (4, 9), 0.5),
            (6, (3, 5), 0.4),
            (1 << 24, (5, 2), 0.6),
            (4, (6, 6), 1.0),
            (9, (20, 30), 0.02),
            (3, (1, 1), 0.0),
            (8, (1, 1), 1.0),
        )
    ):
        groups, heads, values = [], [], []
        for _ in range(2):
            at, count = 0, 0
            entries = [
                (r, c, place, rng.getrandbits(BITS))
                for r in range(grid[0])
                for c in range(grid[1])
                for place in sorted(rng.sample(range(size), min(size, rng.randint(1, 4))))
                if rng.random() < share
            ]
            for part, end in groups_of(rng, entries, LANES):
                if rng.random() < 0.2:
                    groups.append(_block_group(rng, [], 0))
                groups.append(_block_group(rng, part, end))
            for n, (r, c, place, value) in enumerate(entries):
                if not n or entries[n - 1][:2] != (r, c):
                    heads.append((r, c))
                    at, count = count * size, count + 1
                values.append((at + place, value))
        dut = Held(block(lanes=LANES, value_bits=BITS), size=size)
        out = run(
            dut,
            {"entries": groups},
            {"heads": len(groups), "values": len(groups)},
            pause=pauses(PATTERNS[number % 4], ["entries"], ["heads", "values"]),
            view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
            after=lambda ctx, dut=dut, total=count * size: _places(ctx, dut, total),
        )
        found = out.items["heads"]
        assert [(item["rows"][n], item["columns"][n]) for item in found for n in range(item["count"])] == heads
        assert entries_of(out.items["values"]) == values
        for name in ("heads", "values"):
            assert [item["last"] for item in out.items[name]] == [group["last"] for group in groups]
        if PATTERNS[number % 4] == ("never", "never"):
            assert out.cycles["values"] == [cycle + 2 for cycle in out.cycles["entries"]]


def _block_group(rng, part, end):
    names = ("block_rows", "block_columns", "places", "values")
    lanes = {name: filled([entry[k] for entry in part], LANES, rng) for k, name in enumerate(names)}
    return {**lanes, "count": len(part), "last": end}


def _places(ctx, dut, total):
    assert ctx.get(dut.places) == total


def check_row_pointers(block):
    """Pointers as NumPy counts them; more entries than a pointer counts are found."""
    rng = random.Random("pointers")
    for rows, density in ((1, 0.0), (1, 1.0), (9, 0.3), (50, 0.01), (3, 1.0), (23, 0.1), (8, 0.0)):
        columns = 6
        found = matrix(rng, rows * columns, density)
        wanted = np.searchsorted([p for p, _ in found], np.arange(rows + 1) * columns).tolist()
        for pattern in [rng.choice(PATTERNS)]:
            given = {"cells": cells(rng, found, columns, LANES, gaps=True)}
            out = run_until_last(
                Held(block(lanes=LANES, value_bits=BITS), rows=rows, pointer_bits=40),
                given,
                "pointers",
                pattern=pattern,
            )
            assert [item["records"][n] for item in out for n in range(item["count"])] == wanted
    for entries, spills in ((7, 0), (8, 1)):
        given = {"cells": cells(rng, [(n, 1) for n in range(entries)], 4, LANES)}
        dut = Held(block(lanes=LANES, value_bits=BITS), rows=4, pointer_bits=3)
        assert stopped(dut, given, ["pointers"], ["overflow"])["overflow"] == spills


def check_run_encoder(block):
    """Runs and fillers by the definition."""
    rng = random.Random("pairs")
    for places, density, bits in (
        (1, 1.0, 1),
        (300, 0.1, 2),
        (400, 0.02, 3),
        (64, 1.0, 3),
        (200, 0.3, 32),
        (50, 0.0, 4),
    ):
        found = matrix(rng, places, density)
        for pattern in [rng.choice(PATTERNS)]:
            given = {"groups": positions(rng, found, LANES, gaps=True)}
            out = run_until_last(
                Held(block(lanes=LANES, value_bits=BITS), run_bits=bits),
                given,
                "pairs",
                pattern=pattern,
            )
            got = [(i["first"][n], i["values"][n]) for i in out for n in range(i["count"])]
            assert got == runs_of(found, bits)


def check_beat_builder(block):
    """Beats of masks and dense matrices to the last byte."""
    rng = random.Random("builder")
    for places, density in (
        (1, 1.0),
        (1, 0.0),
        (128, 0.4),
        (129, 0.2),
        (700, 0.004),
        (260, 1.0),
        (400, 0.0),
        (77, 0.1),
    ):
        for dense in (0, 1):
            found = matrix(rng, places, density)
            given = {"groups": positions(rng, found, LANES, gaps=True)}
            out = run_until_last(
                Held(block(beat_bits=128, lanes=LANES, value_bits=BITS), dense=dense, places=places),
                given,
                "beats",
                pattern=rng.choice(PATTERNS),
            )
            beats = out
            assert [beat["data"] for beat in beats] == beats_of(found, places, 128, dense)
            size = -(-places * (BITS if dense else 1) // 8)
            sizes = [min(16, size - 16 * n) for n in range(len(beats))]
            assert [beat["bytes"] for beat in beats] == sizes
            assert [beat["strobe"] for beat in beats] == [(1 << s) - 1 for s in sizes]
    # The number of places is told with the last group alone; there may be none.
    found = matrix(rng, 90, 0.3)
    for items, places in ((found, 96), ([], 0)):
        given = {"groups": positions(rng, items, LANES)}
        beats = run_until_last(
            Late(block(beat_bits=128, lanes=LANES, value_bits=BITS), places), given, "beats", pattern=PATTERNS[3]
        )
        assert [beat["data"] for beat in beats if beat["bytes"]] == beats_of(items, places, 128, 1)
        assert sum(beat["bytes"] for beat in beats) == 2 * places


class Late(Held):
    """Dense values whose number is told when the last group comes."""

    def __init__(self, block, places):
        super().__init__(block, dense=1)
        self.places = places

    def elaborate(self, platform):
        m = super().elaborate(platform)
        groups = self.block.groups
        m.d.comb += self.block.places.eq(Mux(groups.valid & groups.payload.last, self.places, 1))
        return m
