"""What a job's leaves hold in their queues at its end, beside a merge of them nonzero by nonzero."""

import numpy as np
import pytest

from sw.model.tile_jobs import queued
from sw.timing.hardware import QUEUED_NONZEROS


def merged_one_by_one(leaves: list[list[int]]) -> int:
    """Nonzeros in the queues of the other leaves when the last nonzero of all enters its queue.

    Queues are full as soon as they can be; at the soonest one nonzero has been merged of the leaf that is last.
    """
    left, merged = [list(leaf) for leaf in leaves], set[int]()
    while any(len(left[n]) > QUEUED_NONZEROS or n not in merged for n, leaf in enumerate(leaves) if leaf):
        column = min(leaf[0] for leaf in left if leaf)
        merged |= {n for n, leaf in enumerate(left) if leaf and leaf[0] == column}
        left = [leaf[1:] if leaf and leaf[0] == column else leaf for leaf in left]
    return max(0, sum(map(len, left)) - QUEUED_NONZEROS)


def of(leaves: list[list[int]]) -> int:
    end = np.cumsum([len(leaf) for leaf in leaves])
    columns = np.concatenate([np.array(leaf, np.int64) for leaf in leaves])
    rows = np.arange(len(leaves))
    return int(queued((0, len(leaves)), rows, end - [len(leaf) for leaf in leaves], end, columns))


@pytest.mark.parametrize("seed", range(20))
def test_queues_hold_what_a_merge_leaves_in_them(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 12, rng.integers(1, 12))
    leaves = [sorted(rng.choice(40, size, replace=False).tolist()) for size in sizes]
    if any(leaves):
        assert of(leaves) == merged_one_by_one(leaves)


def test_leaves_one_behind_the_other_leave_only_the_last_queue():
    assert of([list(range(10 * n, 10 * n + 8)) for n in range(6)]) == 0


def test_leaves_of_the_same_columns_leave_all_queues():
    assert of([list(range(8))] * 6) == QUEUED_NONZEROS * 5
