"""The functions of MINT's building blocks, by hand and against Python's own."""

from itertools import accumulate

import numpy as np
import pytest

from sw.golden.mint import block_flags, equal_runs, prefix_sums, sorted_lanes, tree_nodes


def test_prefix_sums_by_hand():
    """Two arrays, the first of two vectors; the second begins where ``first`` says so."""
    values = np.array([[1, 2, 3, 4], [5, 0, 0, 1], [9, 9, 9, 9]], np.uint64)
    sums = prefix_sums(values, np.array([False, False, True]), 5)
    assert sums.tolist() == [[1, 3, 6, 10], [15, 15, 15, 16], [9, 18, 27, 36 - 32]]


@pytest.mark.parametrize("sum_width", [64, 70, 128])
def test_prefix_sums_are_python_s(sum_width):
    values = np.full((3, 8), (1 << 64) - 1, np.uint64)
    wanted = [sums % (1 << sum_width) for sums in accumulate([(1 << 64) - 1] * 24)]
    assert prefix_sums(values, np.zeros(3, bool), sum_width).reshape(-1).tolist() == wanted


def test_sorted_lanes_by_hand():
    keys = np.array([7, 3, 7, 0, 3, (1 << 64) - 1], np.uint64)
    present = np.array([1, 1, 1, 0, 1, 1], bool)
    assert sorted_lanes(keys, present).tolist() == [1, 4, 0, 2, 5, 3]


def test_equal_runs_by_hand():
    keys = np.array([4, 4, 4, 2, 4, 4, 4, 9], np.uint64)
    present = np.array([1, 1, 1, 1, 1, 0, 1, 0], bool)
    counts, last = equal_runs(keys, present)
    assert counts.tolist() == [1, 2, 3, 1, 1, 0, 1, 0]
    assert last.tolist() == [0, 0, 1, 1, 1, 0, 1, 0]


def test_block_flags_by_hand():
    """A row of blocks of two vectors, then one of one."""
    columns = np.array([[3, 3, 1], [1, 0, 3], [3, 2, 2]])
    present = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], bool)
    fresh, occupied = block_flags(columns, present, np.array([False, True, True]))
    assert fresh.tolist() == [[1, 0, 1], [0, 1, 0], [1, 1, 0]]
    assert occupied == [{1, 3}, {0, 1, 3}, {2, 3}]


def test_tree_nodes_by_hand():
    """Two fibers of one i, the same j below another i, a place twice, a fall."""
    entries = [(0, 1, 5), (0, 1, 6), (0, 2, 0), (3, 2, 0), (3, 2, 0), (3, 1, 9)]
    new_i, new_j, falls, fibers = tree_nodes(entries)
    assert new_i == [True, False, False, True, False, False]
    assert new_j == [True, False, True, True, False, True]
    assert falls == [False, False, False, False, True, True]
    assert fibers == [1, 1, 2, 3, 3, 4]
