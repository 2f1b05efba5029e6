"""Plans of lists: replayed on a partition of their own, every element of A finds its row, and rows stay while there is room."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sw.stats.pattern import Pattern
from sw.tiling.lists import ListError, ListPlan, plan_list
from sw.tiling.ring import MOST_LINES, metadata_lines, plan_ring
from sw.tiling.windows import windows_of
from tests.sw.stats.matrices import banded, noise
from tests.sw.tiling.test_ring import LANES, replay, rows


def check(a: Pattern, T_i: int, pointers: NDArray[np.int64], lines: int) -> tuple[ListPlan, list[int]]:
    """The plan and the bumped places of each window, after all that must hold has been checked."""
    plan = plan_list(a, T_i, pointers, lines, LANES)
    lengths = np.diff(pointers)[plan.rows]
    listed = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    bumped = replay(plan.windows, plan.ring, listed, lines)
    assert (plan.rows[plan.places] == a.coordinates).all(), "each element finds its row"
    for tile, (begin, end) in enumerate(plan.windows.tolist()):
        used = plan.places[a.pointers[tile * T_i] : a.pointers[min(a.rows, (tile + 1) * T_i)]]
        assert begin == end or (begin <= used.min() and used.max() < end), "in its window"
        fresh = plan.rows[begin + plan.ring.kept[tile] : end]
        assert (np.diff(fresh) > 0).all(), "what is loaded rises in memory"
        assert len(np.unique(plan.rows[used])) == len(np.unique(used)), "a row stands in one place for a tile"
        assert end - begin + LANES <= LANES * plan.ring.metadata[tile] or begin == end
    assert (np.diff(plan.windows[plan.windows[:, 1] > 0], axis=0) >= 0).all()
    return plan, bumped


@pytest.mark.parametrize("longest", [0, 1, 6, 40])
@pytest.mark.parametrize("lines", [12, 40, 400])
@pytest.mark.parametrize("T_i", [1, 3, 10, 200])
def test_every_element_finds_its_row(T_i: int, lines: int, longest: int) -> None:
    found = 0
    for seed, matrix in enumerate((banded(80, 3), noise(80, 80, 0.03), noise(200, 40, 0.01))):
        a = Pattern.of(matrix)
        try:
            check(a, T_i, rows(a.columns, longest, seed), lines)
            found += 1
        except ListError:
            assert lines < 400
    assert found or T_i == 200


def test_with_room_for_all_each_row_is_listed_once() -> None:
    a = Pattern.of(noise(120, 90, 0.05))
    pointers = rows(90, 5, 1)
    plan, bumped = check(a, 7, pointers, 1000)
    assert sorted(plan.rows) == np.unique(a.coordinates).tolist() and not any(bumped)


def test_rows_leave_in_the_order_in_which_they_came() -> None:
    """Four rows of three lines each fit: the fifth takes the first one's place, which must then come back."""
    columns = [0, 1, 2, 3, 0, 4, 1, 0, 5]
    a = Pattern(9, 6, np.arange(10), np.array(columns))
    pointers = np.arange(7) * 3 * LANES
    plan, bumped = check(a, 1, pointers, metadata_lines(9, LANES) + 12)
    assert not any(bumped)
    # 0 is still there at its second use; 4 takes its lines, and at its third use it takes those of 1.
    assert plan.rows.tolist() == [0, 1, 2, 3, 4, 0, 5]
    assert plan.ring.kept.tolist() == [0, 1, 2, 3, 4, 3, 4, 3, 3]
    assert plan.ring.line[[4, 5, 7, 8]].tolist() == [0, 0, 3, 6]


def test_a_bumped_row_is_loaded_again_by_the_next_tile_that_uses_it() -> None:
    """Two rows that only one at a time has room for, then one of them alone."""
    a = Pattern(3, 2, np.array([0, 2, 3, 4]), np.array([0, 1, 1, 1]))
    pointers = np.array([0, 8 * LANES, 16 * LANES])
    plan, bumped = check(a, 1, pointers, metadata_lines(4, LANES) + 9)
    assert bumped[0] == 1 and plan.ring.held.tolist() == [1, 1, 0]
    assert plan.rows.tolist() == [0, 1, 1] and plan.places.tolist() == [0, 1, 2, 2]


def test_tiles_without_elements_load_nothing() -> None:
    a = Pattern(12, 9, np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]), np.array([8, 8]))
    plan, _ = check(a, 3, rows(9, 4, 2), 40)
    assert plan.windows.tolist() == [[0, 1], [0, 0], [0, 0], [0, 1]] and plan.ring.kept.tolist() == [0, 0, 0, 1]
    empty, _ = check(Pattern(5, 9, np.zeros(6, np.int64), np.zeros(0, np.int64)), 2, rows(9, 4, 2), 40)
    assert len(empty.rows) == 0 and not empty.windows.any()


def test_no_plan_names_a_line_that_the_table_cannot() -> None:
    """A partition may be larger than its entries count; both kinds of tiles then use what they can name."""
    a = Pattern.of(banded(60, 3))
    pointers = rows(60, 5, 3)
    windows = windows_of(a.pointers, a.coordinates, 10)
    for ring in (plan_list(a, 10, pointers, 1 << 20, LANES).ring, plan_ring(windows, a, 10, pointers, 1 << 20, LANES)):
        assert (ring.line + ring.lines + ring.metadata <= MOST_LINES).all() and ring.lines.max() > 60_000


def test_too_many_rows_are_named() -> None:
    a = Pattern(2, 50, np.array([0, 1, 51]), np.concatenate([[3], np.arange(50)]))
    with pytest.raises(
        ListError, match="T_i = 1: must be smaller: tile 1 along i uses 50 rows of B, B's partition has entries for 40"
    ):
        plan_list(a, 1, rows(50, 3, 3), 12, LANES)
