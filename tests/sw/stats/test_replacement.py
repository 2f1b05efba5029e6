"""Belady's replacement against every decision that a buffer could take, and by hand."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from sw.stats.pattern import Pattern
from sw.stats.replacement import least_nonzeros, least_whole_rows


def pattern(rows: list[list[int]], columns: int) -> Pattern:
    pointers = np.cumsum([0, *map(len, rows)])
    return Pattern(len(rows), columns, pointers, np.array([k for row in rows for k in row], np.int64))


def fewest(uses: list[int], lengths: list[int], capacity: int) -> int:
    """By trying what may stay after each use: any nonzeros of what was there and of the row in use."""

    @cache
    def left(now: int, held: tuple[int, ...]) -> int:
        if now == len(uses):
            return 0
        k = uses[now]
        whole = list(held)
        whole[k] = lengths[k]
        best = None
        for kept in np.ndindex(*(n + 1 for n in whole)):
            if sum(kept) <= capacity:
                after = left(now + 1, tuple(map(int, kept)))
                best = after if best is None else min(best, after)
        assert best is not None
        return lengths[k] - held[k] + best

    return left(0, (0,) * len(lengths))


@pytest.mark.parametrize("seed", range(12))
def test_no_buffer_reads_less(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, 4)
    rows = [sorted(rng.choice(4, int(rng.integers(0, 4)), replace=False).tolist()) for _ in range(5)]
    a = pattern(rows, 4)
    for capacity in (0, 1, 3, 5, 20):
        assert least_nonzeros(a, lengths, capacity) == fewest(a.coordinates.tolist(), lengths.tolist(), capacity)


def fewest_whole(rows: list[list[int]], capacity: int, jobs: int) -> int:
    """Rows of B of one size: by trying which of those that nobody uses leave, and which that come stay, at each row of A."""

    @cache
    def left(row: int, on_chip: frozenset[int], users: tuple[frozenset[int], ...]) -> int:
        if row == len(rows):
            return 0
        came = sorted(set(rows[row]) - on_chip)
        in_use = frozenset().union(*users[1:]) | (on_chip & set(rows[row]))
        free = sorted((on_chip - in_use) | set(came))
        best = None
        for chosen in range(1 << len(free)):
            kept = in_use | {k for n, k in enumerate(free) if chosen >> n & 1}
            if len(kept) <= max(capacity, len(in_use)):
                after = left(row + 1, kept, (*users[1:], kept & set(rows[row])))
                best = after if best is None else min(best, after)
        assert best is not None
        return len(came) + best

    return left(0, frozenset(), (frozenset(),) * jobs)


@pytest.mark.parametrize("seed", range(12))
def test_no_buffer_of_whole_rows_reads_less(seed):
    rng = np.random.default_rng(100 + seed)
    rows = [sorted(rng.choice(6, int(rng.integers(0, 4)), replace=False).tolist()) for _ in range(7)]
    a, ones = pattern(rows, 6), np.ones(6, np.int64)
    for capacity in (1, 2, 4, 6):
        for jobs in (1, 2):
            least = fewest_whole(rows, capacity, jobs)
            assert least <= least_whole_rows(a, ones, ones, capacity, jobs) <= least + 1


def test_by_hand():
    """Rows 0, 1, 2, then 0, 1: with room for two nonzeros row 2 passes; with room for one so does row 1."""
    a = pattern([[0], [1], [2], [0], [1]], 3)
    lengths = np.array([1, 1, 1])
    assert [least_nonzeros(a, lengths, capacity) for capacity in range(4)] == [5, 4, 3, 3]
    costs = np.array([10, 20, 40])
    assert least_whole_rows(a, lengths, costs, 3, 1) == 70
    # Row 2 is not used again: it goes by.
    assert least_whole_rows(a, lengths, costs, 2, 1) == 70
    # One row stays: row 0 is needed first, so row 1 goes by and comes again.
    assert least_whole_rows(a, lengths, costs, 1, 1) == 90
    # A row that is larger than all that there is costs at each use.
    assert least_whole_rows(a, np.array([9, 1, 1]), costs, 3, 1) == 80


def test_more_room_never_reads_more_and_all_of_it_reads_once():
    matrix = sp.random_array((60, 50), density=0.1, rng=np.random.default_rng(3), format="csr")
    a = Pattern.of(matrix)
    lengths = np.random.default_rng(4).integers(0, 9, 50)
    used = np.unique(a.coordinates)
    found = [least_nonzeros(a, lengths, capacity) for capacity in range(0, 300, 10)]
    assert found == sorted(found, reverse=True)
    assert found[0] == lengths[a.coordinates].sum() and found[-1] == lengths[used].sum()
    whole = [least_whole_rows(a, lengths, lengths, capacity, 1) for capacity in (10, 300)]
    assert whole[0] >= found[1] and whole[1] == found[-1]
