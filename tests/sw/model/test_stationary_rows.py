"""Rows of a tile on their way through a weight-stationary engine, by hand: lines of two nonzeros, a latency of 25 cycles."""

import numpy as np
import pytest

from sw.model.pe_columns import OnBus, bumped_waits
from sw.model.stationary import chunks_one_by_one
from sw.model.stationary_rows import Columns, Memory, Rows, bus_cycles, cut_rows, whole_rows
from sw.timing.constants import (
    COLUMN_REQUEST_CYCLES,
    COLUMN_WORD_CYCLES,
    FIRST_LINE_CYCLES,
    FIRST_NONZERO_CYCLES,
    LOOKUP_REQUEST_CYCLES,
    MEMORY_CYCLES,
    ROW_REQUEST_CYCLES,
)

LATENCY = 25
MEMORY = Memory(lanes=2, burst=16, latency=LATENCY, reader=0, line=1.0, outstanding=16, passes=2.0)
THERE = Columns(words=0, on_chip=True, loaded=0)


def rows(lengths, *, met=None, waits=0, leaving=1.0, back=False, together=1):
    """Rows of so many nonzeros, one after the other in A, of which so many that lie in one line go on the bus together."""
    end = np.cumsum(np.array(lengths, np.int64))
    begin = end - lengths
    met = end > begin if met is None else np.array(met, np.bool_)
    count = len(begin)
    return Rows(
        begin,
        end,
        end > begin,
        met,
        bus_cycles(begin, end, together, together),
        np.full(count, waits, np.int64),
        np.full(count, leaving, np.float64),
        np.full(count, back, np.bool_),
        0.0,
    )


def cut(own, *, row_end=None, columns=THERE):
    """The same rows, k cut: nothing of them is left of the tiles before."""
    return cut_rows(
        own, own.begin, own.end if row_end is None else np.array(row_end, np.int64), 0.0, 39.0, columns, MEMORY
    )


@pytest.mark.parametrize(
    ("begin", "end", "row_end", "trips"),
    [
        (0, 3, 200, 1),  # line 1 shows the end
        (0, 4, 200, 2),  # line 2 does, of the second chunk
        (0, 31, 200, 2),  # line 15, its last one
        (0, 32, 200, 3),  # line 16: a third chunk
        (0, 32, 40, 3),  # the row's last chunk
        (0, 64, 200, 4),  # line 32: a fourth one
        (30, 34, 200, 2),  # line 15 is the first chunk, line 17 in the second
        (4, 4, 4, 1),  # nothing is left of the row
        (0, 4, 4, 1),  # the row ends in the first chunk
    ],
)
def test_chunks(begin, end, row_end, trips):
    one = (np.array([each], np.int64) for each in (begin, end, row_end))
    assert chunks_one_by_one(*one, 2) == trips


def test_third_chunks_of_columns_come_one_after_the_other():
    begin, end, row_end = (np.array(each, np.int64) for each in ([0, 200], [32, 232], [200, 400]))
    assert chunks_one_by_one(begin, end, row_end, 2) == 4


def test_one_nonzero_takes_four_trips_before_its_row_leaves():
    """Pointers, the row, where the column is, the column; and the words of that."""
    trips = 2 * (LATENCY + MEMORY_CYCLES) + 2 * LATENCY
    own = FIRST_LINE_CYCLES + ROW_REQUEST_CYCLES + MEMORY_CYCLES + FIRST_NONZERO_CYCLES
    columns = LOOKUP_REQUEST_CYCLES + COLUMN_REQUEST_CYCLES + 2 * COLUMN_WORD_CYCLES + 10
    found = whole_rows(rows([1]), Columns(words=10, on_chip=False, loaded=0), True, MEMORY)
    assert found == pytest.approx(trips + own + columns + MEMORY_CYCLES, abs=2)


def test_columns_wait_for_lines_of_a_that_were_asked_for_before():
    few, many = (
        whole_rows(rows([2] * count), Columns(words=10, on_chip=False, loaded=0), True, MEMORY) for count in (8, 100)
    )
    # 100 lines take longer than the trip in which 8 have come; 92 rows of two nonzeros are more.
    assert many - few > 2 * 92 + 30


def test_the_first_lines_of_sparse_rows_wait_for_the_queue_of_rows():
    """No burst is full: the first request goes when 128 rows are known."""
    sparse = rows(([1] + [0] * 19) * 20, met=([1] + [0] * 19) * 20)
    assert whole_rows(sparse, THERE, True, MEMORY) - whole_rows(rows([1] * 20), THERE, True, MEMORY) > 380 + 100


def test_rows_without_products_wait_for_the_next_row_that_has_some():
    """Rows in which nothing meets leave with the last row, one a cycle; else they leave as they come."""
    assert whole_rows(rows([1] * 50, met=[0] * 50), THERE, True, MEMORY) > 45 + whole_rows(
        rows([1] * 50), THERE, True, MEMORY
    )


@pytest.mark.parametrize("flow", [lambda own: whole_rows(own, THERE, True, MEMORY), cut])
def test_the_slower_side_counts(flow):
    plain = flow(rows([2] * 60))
    assert flow(rows([2] * 60, leaving=5.0)) - plain == pytest.approx(3 * 60, rel=0.1)
    assert flow(rows([2] * 60, waits=7)) - plain == pytest.approx(7 * 60, rel=0.1)


@pytest.mark.parametrize(
    ("begin", "end", "together", "data", "cycles"),
    [
        (0, 0, 4, 4, 1),  # an empty row is told of
        (0, 8, 4, 4, 2),
        (2, 10, 4, 4, 3),  # it lies in three lines
        (3, 5, 4, 4, 2),
        (0, 8, 4, 2, 4),  # the bus has fewer words
        (0, 8, 1, 4, 8),  # a conversion gives one by one
    ],
)
def test_a_row_takes_the_bus_for_its_lines_or_its_words(begin, end, together, data, cycles):
    assert bus_cycles(np.array([begin]), np.array([end]), together, data).tolist() == [cycles]


@pytest.mark.parametrize("flow", [lambda own: whole_rows(own, THERE, True, MEMORY), cut])
def test_lines_pass_faster_than_nonzeros(flow):
    one, two = (flow(rows([4] * 100, together=count)) for count in (1, 2))
    assert one - two == pytest.approx(2 * 100, rel=0.1)


def test_the_first_nonzero_waits_for_the_load_of_b():
    late = cut(rows([2] * 5), columns=Columns(words=4, on_chip=True, loaded=500))
    assert 500 < late < 540 and cut(rows([2] * 5)) < 150


def test_third_chunks_show_their_trips_to_memory():
    """Each is asked for when the second one has been looked at, and no other row's until it has been looked at itself."""
    second, third = (cut(rows([size] * 12), row_end=np.cumsum([size] * 12) + 200) for size in (24, 40))
    assert third - second > 12 * (40 - 24) + 4 * LATENCY


def test_partial_rows_from_memory_come_sixteen_at_a_time():
    assert cut(rows([0] * 64, back=True, met=[1] * 64)) - cut(rows([0] * 64, met=[1] * 64)) > 2 * LATENCY


def waits_of(columns, *, region=2, answer=40, rows_of_a=3, words=2):
    """Cycles for which the bus waits in rows of eight nonzeros of A at 0 to 7, V of 2, beside columns of so many nonzeros.

    ``words``: of each.
    """
    a = np.tile(np.arange(8), rows_of_a)
    begin = np.arange(0, 8 * rows_of_a, 8)
    starts = np.append(0, np.cumsum(columns))
    b = np.concatenate([np.arange(size) for size in columns])
    state = np.tile(np.array([4 - region, region], np.int64), (len(columns), 1))
    sizes = np.column_stack([state, np.full(len(columns), words, np.int64)])
    waits, parts = np.zeros(rows_of_a, np.int64), np.zeros((len(columns), 3), np.int64)
    answers = np.full(len(columns), answer, np.int64)
    on_bus = OnBus(begin, begin + 8, np.full(rows_of_a, 8), 0, 1, 2)
    bumped_waits(on_bus, 0, a, b, starts[:-1], starts[1:], sizes, state, answers, 2, 64, parts, waits)
    return waits, parts


def test_parts_of_two_columns_share_one_reader():
    """Side by side they wait for the longer one and the words of the other, not for both."""
    one, parts = waits_of([8])
    both, of_each = waits_of([8, 8])
    assert parts[0, 0] == of_each[0, 0] == of_each[1, 0] and one.sum() < both.sum() < 1.3 * one.sum()


def test_parts_that_are_asked_for_in_other_cycles_of_the_bus_are_waited_for_each():
    """The second column's parts end elsewhere: its waits lie between those of the first one."""
    one, other = waits_of([8])[0].sum(), waits_of([7], region=3)[0].sum()
    assert one > 0 and other > 0
    assert waits_of([8, 6])[0].sum() >= one


def test_a_dense_column_sends_half_the_words():
    (pairs, parts), (values, of_dense) = (waits_of([8], words=words) for words in (2, 1))
    assert (parts == of_dense).all() and values.sum() < pairs.sum()
