"""B on its way in: which schemes read it in its order, whether its tiles find room, and how often it is read."""

from dataclasses import replace

import numpy as np
import pytest

from gen.design import load_design
from sw.formats.csr import Csr
from sw.plan.placement import placement
from sw.plan.plan import plan
from sw.plan.tiles_of_b import every_tile_fits, passes_made_over_b, passes_over
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import NATURAL, ONLY_B, ORDERS, ROW_ORDERS

TINY = load_design("tiny", ["memory.records=packed", "memory.converts_b=true"])


def matrix(rows, columns, lengths):
    """Rows with so many nonzeros, at their begin."""
    pointers = np.cumsum([0, *lengths])
    coordinates = np.concatenate([np.arange(n) for n in lengths]).astype(np.uint32)
    return Csr(
        rows=rows,
        columns=columns,
        pointers=pointers,
        coordinates=coordinates,
        bits=np.ones(len(coordinates), np.uint32),
        value="int32",
    )


def random(rows, columns, density, seed):
    rng = np.random.default_rng(seed)
    places = rng.random((rows, columns)) < density
    return replace(matrix(rows, columns, places.sum(axis=1)), coordinates=np.nonzero(places)[1].astype(np.uint32))


def scheme(tile, order="ijk", b="buffering", **more):
    parts, fifo = default_partition(TINY)
    sizes = dict(zip(("T_i", "T_j", "T_k"), tile, strict=True))
    mode = {"A": "streaming", "B": b, "C": "streaming"}
    return Scheme(policy="test", order=order, buffer_bytes=parts, fifo_bytes=fifo, mode=mode, **sizes, **more)


@pytest.mark.parametrize("order", ORDERS)
def test_which_schemes_read_b_in_its_order(order):
    extent = (40, 30, 50)
    again = 5 if order.index("i") < order.index("k") else 1
    assert scheme((8, 30, 10), order).passes_over_b(*extent) == again
    assert scheme((40, 30, 10), order).passes_over_b(*extent) == 1
    assert scheme((8, 99, 50), order).passes_over_b(*extent) == 1
    assert scheme((8, 29, 50), order).passes_over_b(*extent) == 0
    assert scheme((8, 30, 50), order, b="streaming").passes_over_b(*extent) == 0
    assert scheme((8, 30, 10), order, tuning=True).passes_over_b(*extent) == 0
    assert scheme((8, 30, 10), order, row_order="degree").passes_over_b(*extent) == again


def test_lists_and_shapes_read_b_in_another_way():
    lists = replace(scheme((8, 30, 50)), load="list", mode=ONLY_B)
    shaped = replace(scheme((40, 30, 50), "jki"), tiles=[[0, 40, 0, 30, 0, 20], [0, 40, 0, 30, 20, 50]], mode=ONLY_B)
    assert lists.passes_over_b(40, 30, 50) == shaped.passes_over_b(40, 30, 50) == 0


def fits(found, b):
    """Row by row, of each tile."""
    partition = found.partition("B", TINY)
    for begin in range(0, b.rows, found.T_k):
        lengths = np.diff(b.pointers)[begin : begin + found.T_k]
        if placement(lengths, partition.capacity(len(lengths))) != (len(lengths), len(lengths)):
            return False
    return True


def test_tiles_that_fit():
    """At the edge of the partition, in the FIFO-managed region, and where more rows are in it than are remembered."""
    tile_k = 20
    found = scheme((8, 2000, tile_k))
    capacity = found.partition("B", TINY).capacity(tile_k)
    behind = capacity.limit - capacity.regular
    assert capacity.regular > 0 < behind
    verdicts = []
    for last in (capacity.regular, capacity.regular + 1, capacity.limit, capacity.limit + 1):
        for number in (0, 2):  # the tile
            lengths = [1] * (tile_k * 3)
            lengths[number * tile_k] = last - tile_k + 1
            b = matrix(len(lengths), 2000, lengths)
            verdicts.append(every_tile_fits(found, b, TINY))
            assert verdicts[-1] == fits(found, b)
    assert verdicts == [True] * 6 + [False] * 2
    # Rows of one nonzero behind the regular part.
    for rows in (behind // 2, behind):
        lengths = [capacity.regular - rows // 2, *[1] * rows, *[0] * rows]
        high = replace(found, T_k=len(lengths))
        least = high.partition("B", TINY).capacity(len(lengths)).regular
        for first in (least - 1, least, least + 5):
            b = matrix(len(lengths), 2000, [first, *lengths[1:]])
            assert every_tile_fits(high, b, TINY) == fits(high, b)
    assert not every_tile_fits(high, b, TINY)


def test_a_tile_that_does_not_fit_is_read_in_another_way():
    b = matrix(40, 2000, [1] * 39 + [2000])
    found = scheme((8, 2000, 40))
    assert found.passes_over_b(30, 2000, 40) == 1
    assert passes_over("B", found, (30, 2000, 40), b, TINY) == 0
    assert passes_over("A", found, (30, 2000, 40), b, TINY) == found.passes_over_a(30, 2000, 40) == 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"T_j": 7},
        {"T_k": 9},
        {"T_j": 7, "T_k": 9},
        {"T_j": 7, "T_k": 9, "tuning": True},
        {"T_k": 9, "partial_rows": "joined"},
        {"load": "list", "mode": ONLY_B},
        {"load": "reuse", "mode": ONLY_B},
        {"load": "planned", "mode": ONLY_B},
    ],
    ids=str,
)
def test_c_is_written_once_in_its_order(changes, order):
    """Whatever is cut: rows that are pieces, or partial, leave for good once they are whole."""
    found = replace(scheme((8, 30, 50), order), **changes)
    b = matrix(50, 30, [3] * 50)
    assert passes_over("C", found, (40, 30, 50), b, TINY) == found.passes_over_c == 1
    assert passes_over("C", found, (40, 30, 50), matrix(50, 30, [30] * 50), TINY) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"strips": 3, "T_j": 7, "load": "list", "mode": ONLY_B},
        {"tiles": [[0, 40, 0, 30, 0, 20], [0, 40, 0, 30, 20, 50]], "mode": ONLY_B},
        *({"row_order": name} for name in ROW_ORDERS if name != NATURAL),
    ],
    ids=str,
)
def test_c_whose_rows_leave_in_pieces_or_another_order(changes):
    found = replace(scheme((40, 30, 50)), **changes)
    assert passes_over("C", found, (40, 30, 50), matrix(50, 30, [3] * 50), TINY) == found.passes_over_c == 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [0.0, 0.01, 0.03, 0.3])
def test_passes_that_are_made(order, density):
    """Step by step: tiles without work load nothing, and one that is there is not loaded again."""
    for seed in range(4):
        a, b = random(30, 40, density, seed), random(40, 20, 0.1, 9 + seed)
        planned = plan(scheme((7, 20, 9), order), a, b, TINY)
        tiles_i, tiles_k = 5, 5
        full = np.zeros((30, 40), bool)
        full[np.repeat(np.arange(30), np.diff(a.pointers)), a.coordinates] = True
        steps = [(i, k) for i in range(tiles_i) for k in range(tiles_k)]
        if order.index("k") < order.index("i"):
            steps.sort(key=lambda step: step[1])
        passes, before = 0, None
        for i, k in steps:
            if not full[7 * i : 7 * i + 7, 9 * k : 9 * k + 9].any() or not np.diff(b.pointers)[9 * k : 9 * k + 9].any():
                continue
            passes += before is None or k < before
            before = k
        assert passes_made_over_b(planned) == passes <= planned.scheme.passes_over_b(30, 20, 40)
