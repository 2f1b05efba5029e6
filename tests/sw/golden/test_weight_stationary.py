"""The golden model of the weight-stationary array: against NumPy, and by hand."""

import numpy as np
import pytest

from rtl.pe.common import operator_latencies
from sw.golden.arithmetic import VALUES
from sw.golden.weight_stationary import (
    StationaryColumn,
    array_rows,
    bumped_words,
    bus_cycles,
    data_per_cycle,
    partial_sums,
    row_sums,
)


def bits(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


def test_figure_6():
    """A of 4 x 8 with A at (0, 0), B at (0, 2), C and H in rows of their own, on a bus of 5 words (MINT, section IV.B)."""
    places = [(0, 0), (0, 2), (1, 3), (3, 7)]
    rows, columns = zip(*places, strict=True)
    sizes = {"words": 5, "vector": 4}
    csr = bus_cycles(rows, columns, range(1, 5), acf="csr", **sizes)
    assert [(cycle.row, cycle.columns) for cycle in csr] == [(0, (0, 2)), (1, (3,)), (3, (7,))]
    assert len(bus_cycles(rows, columns, range(1, 5), acf="coo", **sizes)) == 4
    every = [(row, k) for row in range(4) for k in range(8)]
    assert len(bus_cycles(*zip(*every, strict=True), [0] * 32, acf="dense", **sizes)) == 8


@pytest.mark.parametrize("acf", ["dense", "csr", "coo"])
def test_rows_are_those_of_numpy(acf):
    """Products of integers, whatever the formats and the bus."""
    rng = np.random.default_rng(3)
    a = rng.integers(-9, 9, (7, 11)) * (rng.random((7, 11)) < 0.5)
    b = rng.integers(-9, 9, (11, 5)) * (rng.random((11, 5)) < 0.5)
    places = [(i, k) for i in range(7) for k in range(11) if acf == "dense" or a[i, k]]
    values = [int(a[place]) & 0xFFFFFFFF for place in places]
    cycles = bus_cycles(*zip(*places, strict=True), values, acf=acf, words=8, vector=4)
    columns = []
    for j in range(5):
        dense = j % 2 == 0
        coordinates = [k for k in range(11) if dense or b[k, j]]
        columns.append(StationaryColumn(coordinates, [int(b[k, j]) & 0xFFFFFFFF for k in coordinates], dense))
    product = np.zeros((7, 5), np.int64)
    for row, sums in array_rows(cycles, columns, vector=4, sums=1, value="int32"):
        product[row] = [np.int32(np.uint32(one.value)) for one in sums]
    assert np.array_equal(product, a @ b)


def test_the_order_of_additions_by_hand():
    """Six cycles of one datum, four partial sums: 0 and 4, 1 and 5; then (2 + 3) + (04 + 15), where only 2 survives 1e8."""
    column = StationaryColumn(range(6), [bits(1)] * 6, True)
    numbers = [1e8, -1e8, 1, 2, 1, 1]
    cycles = bus_cycles([0] * 6, range(6), [bits(n) for n in numbers], acf="coo", words=3, vector=1)
    (total,) = row_sums(cycles, column, vector=1, sums=4, value="fp32")
    single = [np.float32(n) for n in numbers]
    by_hand = (single[2] + single[3]) + ((single[0] + single[4]) + (single[1] + single[5]))
    assert total == (0, bits(by_hand), True)
    assert by_hand != np.float32(sum(numbers))


def test_what_meets_nothing_is_told_from_zero():
    column = StationaryColumn([2], [0], False)
    cycles = bus_cycles([0, 1], [2, 3], [5, 5], acf="csr", words=5, vector=4)
    assert row_sums(cycles, column, vector=4, sums=1, value="int32") == [(0, 0, True), (1, 0, False)]


def test_parts_that_come_again_by_hand():
    """A dense column of 8 in a buffer of 6 with a region of 2: entries 4 and 5 came with it, 6 and 7 do not fit."""
    column = StationaryColumn(range(8), [0] * 8, True)

    def parts(*rows):
        places = [(n, k) for n, row in enumerate(rows) for k in row]
        cycles = bus_cycles(*zip(*places, strict=True), [0] * len(places), acf="csr", words=5, vector=4)
        return bumped_words(cycles, column, entries=6, region=2)

    assert parts([0, 3]) == []  # the next bumped entry, 4, is above 3
    assert parts([0, 5]) == [2]  # both are used; 6 is looked at
    assert parts([7]) == [2]
    assert parts([7], [0]) == [2, 2]  # the second row looks at 4 again
    assert parts([4], [0]) == [2, 2]  # 5, 6 and 7 are passed over
    assert bumped_words([], column, entries=8, region=2) == []


def test_partial_sums_are_the_adder_s_stages():
    assert [partial_sums(value) for value in VALUES] == [operator_latencies(value)[0] for value in VALUES]


@pytest.mark.parametrize(
    ("acf", "words", "message"),
    [
        ("csc", 5, r"^The compute format of A must be one of dense, csr, coo, not 'csc'$"),
        ("coo", 2, r"^A bus of 2 words cannot carry coo$"),
    ],
)
def test_what_cannot_be_is_refused(acf, words, message):
    with pytest.raises(ValueError, match=message):
        data_per_cycle(acf, words, 4)
    with pytest.raises(ValueError, match=r"^Value type must be one of .*, not 'fp64'$"):
        row_sums([], StationaryColumn([], [], True), vector=1, sums=1, value="fp64")
