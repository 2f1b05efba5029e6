"""Tiles of a run, however many, in a few numbers: against the list of all of them."""

import numpy as np
import pytest

from sw.tile_sizes import MOST_GROUPS, TileSizes


@pytest.mark.parametrize("count", [0, 1, 7, MOST_GROUPS, MOST_GROUPS + 1, 11 * MOST_GROUPS + 5])
def test_numbers_are_those_of_the_whole_list(count: int) -> None:
    rng = np.random.default_rng(count)
    sizes = rng.integers(0, 1000, count)
    found, begin = TileSizes(700), 0
    while begin < count:  # in parts of any length, single tiles too
        end = begin + int(rng.choice([1, 2, 100, 3 * MOST_GROUPS]))
        found.add(sizes[begin:end])
        begin = end
    assert (found.count, found.over) == (count, np.count_nonzero(sizes > 700))
    assert found.largest == sizes.max(initial=0)
    assert found.peak_bytes == np.minimum(sizes, 700).max(initial=0)
    assert found.mean_bytes == (pytest.approx(np.minimum(sizes, 700).mean()) if count else 0)
    assert len(found.peaks) <= MOST_GROUPS
    groups = [sizes[n : n + found.group].max() for n in range(0, count, found.group)]
    assert found.peaks == groups


def test_an_empty_part_changes_nothing() -> None:
    assert TileSizes(8).add([3, 9]).add([]) == TileSizes(8).add([3, 9])
