"""The row shaper on random matrices, with neighbours that stall and without."""

import random

import pytest

from rtl.accessor.row_shaper import RowShaper
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run

LANES = 4


def draw(rng: random.Random, rows: int) -> list[list[tuple[int, int]]]:
    """Rows of (column, value); most are empty or short."""
    lengths = [rng.choice((0, 0, 0, 1, 1, 2, 7)) for _ in range(rows)]
    return [[(c, rng.randint(1, 127)) for c in sorted(rng.sample(range(30), length))] for length in lengths]


def groups(rng: random.Random, matrix: list[list[tuple[int, int]]]) -> list[dict]:
    """The entries in groups of any size, empty ones among them, up to the one that ends the matrix."""
    entries = [(row, column, value) for row, cells in enumerate(matrix) for column, value in cells]
    found = []
    while entries or not found:
        size = rng.randint(0, LANES)
        found.append((entries[:size], False))
        entries = entries[size:]
    found[-1] = (found[-1][0], True)
    if rng.random() < 0.5:
        found = [*((part, False) for part, _ in found), ([], True)]
    return [
        {
            "rows": [*(row for row, _, _ in part), *[99] * (LANES - len(part))],
            "columns": [*(column for _, column, _ in part), *[0] * (LANES - len(part))],
            "values": [*(value for _, _, value in part), *[0] * (LANES - len(part))],
            "count": len(part),
            "last": int(last),
        }
        for part, last in found
    ]


def items(matrix: list[list[tuple[int, int]]], begin: int, rows: int, empty: bool) -> list[tuple[int, int, int, int]]:
    found = []
    for cells in matrix[begin : begin + rows]:
        inside = [] if empty else cells
        found += [(1, column, value, int(column == inside[-1][0])) for column, value in inside] or [(0, 0, 0, 1)]
    return found


def seen(port: str, payload) -> tuple[int, int, int, int]:
    present = int(payload.present)
    return present, present * int(payload.index), present * int(payload.weight), int(payload.last)


@pytest.mark.parametrize("behaviour", [("never", "never", "never"), *BEHAVIOURS], ids="-".join)
def test_rows_of_tiles(behaviour: tuple[str, str, str]) -> None:
    """Tiles of all heights, those without an entry left out or empty; one item a cycle where nothing stalls."""
    for seed in range(8):
        rng = random.Random(f"{behaviour} {seed}")
        matrix = draw(rng, 40)
        tiles, wanted, begin = [], [], 0
        while begin < len(matrix):
            rows = min(rng.randint(1, 9), len(matrix) - begin)
            unused = not any(matrix[begin : begin + rows])
            if not (unused and rng.random() < 0.5):
                empty = int(unused and rng.random() < 0.5)
                tiles.append({"begin": begin, "rows": rows, "empty": empty})
                wanted += items(matrix, begin, rows, bool(empty))
            begin += rows
        ports = dict(zip(("tile", "cells", "selections"), (PAUSES[name] for name in behaviour), strict=True))
        dut, over = RowShaper(lanes=LANES, value="int8"), []
        found = run(
            dut,
            {"tile": tiles, "cells": groups(rng, matrix)},
            {"selections": len(wanted)},
            pause=ports,
            view=seen,
            seed=seed,
            after=lambda ctx, dut=dut, over=over: over.append((ctx.get(dut.over), ctx.get(dut.idle))),
        )
        assert found.items["selections"] == wanted
        assert over == [(1, 1)]
        if behaviour == ("never", "never", "never"):
            first, *_, last = found.cycles["selections"]
            assert last - first <= len(wanted) + 2 * len(tiles) + len(found.cycles["cells"])


def test_stray_entries() -> None:
    """An entry of a row before the tile's is told, with its number; nothing of the tile is handed out."""
    matrix = [[(1, 5)], [(2, 6), (3, 7)], [], [(4, 8)]]
    told = {}

    def after(ctx, dut) -> None:
        told.update(stray=ctx.get(dut.stray), number=ctx.get(dut.number), valid=ctx.get(dut.selections.valid))

    dut = RowShaper(lanes=LANES, value="int8")
    tiles = [{"begin": 0, "rows": 1, "empty": 0}, {"begin": 2, "rows": 2, "empty": 0}]
    one = groups(random.Random(1), matrix)
    run(dut, {"tile": tiles, "cells": one}, {"selections": 1}, view=seen, after=lambda ctx: after(ctx, dut))
    assert told == {"stray": 1, "number": 1, "valid": 0}


@pytest.mark.parametrize("sizes", [{"lanes": 3, "value": "int8"}, {"lanes": 4, "value": "int7"}])
def test_wrong_parameters(sizes: dict) -> None:
    with pytest.raises(ValueError):
        RowShaper(**sizes)
