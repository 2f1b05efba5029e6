"""Checks of the blocks that make a target of entries, against models in plain Python."""

import random

import numpy as np

from tests.rtl.mint.converter.harness import (
    BITS,
    LANES,
    PATTERNS,
    Held,
    beats_of,
    cells,
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
