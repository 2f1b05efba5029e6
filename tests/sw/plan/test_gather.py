"""Plans of lists: replayed on a partition of their own, every element of A finds its row, and rows stay while there is room."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.plan.gather import RowPlan, RowPlanError, gather, metadata_lines
from sw.stats.pattern import Pattern
from sw.timing.hardware import MOST_LINES
from tests.sw.plan.replayed import LANES, planned, replay, rows
from tests.sw.stats.matrices import banded, noise


def check(
    a: Pattern, T_i: int, pointers: NDArray[np.int64], lines: int, *, bypass: bool = False
) -> tuple[RowPlan, list[int]]:
    """The plan and the bumped places of each window, after all that must hold has been checked."""
    plan = planned(a, T_i, pointers, lines, bypass=bypass)
    of = plan.rows_of(np.arange(len(plan.lines)))
    lengths = np.diff(pointers)[of]
    listed = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    bumped = replay(plan, listed, lines)
    assert (of[plan.places] == a.coordinates).all(), "each element finds its row"
    for tile, (begin, end) in enumerate(plan.windows.tolist()):
        used = plan.places[a.pointers[tile * T_i] : a.pointers[min(a.rows, (tile + 1) * T_i)]]
        assert begin == end or (begin <= used.min() and used.max() < end), "in its window"
        fresh = of[begin + plan.kept[tile] : end]
        assert (np.diff(fresh) < 0).sum() <= bypass and len(np.unique(fresh)) == len(fresh), (
            "what is loaded rises in memory"
        )
        assert len(np.unique(of[used])) == len(np.unique(used)), "a row stands in one place for a tile"
        assert end - begin + LANES <= LANES * plan.metadata[tile] or begin == end
        seen = plan.tile(tile, pointers)
        assert set(of[used]) <= {*seen.resident, *seen.loaded, *seen.bumped}, (
            "a tile says where each row that it uses is"
        )
        assert len(seen.resident) + len(seen.loaded) + len(seen.bumped) == end - begin, "each place once"
    assert (np.diff(plan.windows[plan.windows[:, 1] > 0], axis=0) >= 0).all()
    return plan, bumped


@pytest.mark.parametrize("bypass", [False, True])
@pytest.mark.parametrize("longest", [0, 1, 6, 40])
@pytest.mark.parametrize("lines", [12, 40, 400])
@pytest.mark.parametrize("T_i", [1, 3, 10, 200])
def test_every_element_finds_its_row(T_i: int, lines: int, longest: int, bypass: bool) -> None:
    found = 0
    for seed, matrix in enumerate((banded(80, 3), noise(80, 80, 0.03), noise(200, 40, 0.01))):
        a = Pattern.of(matrix)
        try:
            check(a, T_i, rows(a.columns, longest, seed), lines, bypass=bypass)
            found += 1
        except RowPlanError:
            assert lines < 400
    assert found or T_i == 200


def test_with_room_for_all_each_row_is_listed_once() -> None:
    a = Pattern.of(noise(120, 90, 0.05))
    pointers = rows(90, 5, 1)
    plan, bumped = check(a, 7, pointers, 1000)
    assert sorted(plan.rows_of(np.arange(len(plan.lines)))) == np.unique(a.coordinates).tolist() and not any(bumped)


def test_rows_leave_in_the_order_in_which_they_came() -> None:
    """Four rows of three lines each fit: the fifth takes the first one's place, which must then come back."""
    columns = [0, 1, 2, 3, 0, 4, 1, 0, 5]
    a = Pattern(9, 6, np.arange(10), np.array(columns))
    pointers = np.arange(7) * 3 * LANES
    plan, bumped = check(a, 1, pointers, metadata_lines(9, LANES) + 12)
    assert not any(bumped)
    # 0 is still there at its second use; 4 takes its lines, and at its third use it takes those of 1.
    assert plan.rows_of(np.arange(len(plan.lines))).tolist() == [0, 1, 2, 3, 4, 0, 5]
    assert plan.kept.tolist() == [0, 1, 2, 3, 4, 3, 4, 3, 3]
    assert plan.line[[4, 5, 7, 8]].tolist() == [0, 0, 3, 6]


def test_rows_go_by_that_nobody_uses_in_time() -> None:
    """Rows of three lines, four of which fit. A row that its tile uses twice stays, whether another tile does or not; one that is
    used once stays if the next tiles use it; what goes by leaves those where they are.
    """
    uses = [[0], [0], [1, 2], [0, 3], [0, 4], [0], [5, 0], [0, 5]]
    tiles = [[*used, *(4,) * (4 in used)] for used in uses]  # row 4 has two users in its tile
    columns = [k for tile in tiles for k in tile]
    # A tile is two rows of A: its first use of each row of B, and whatever is used twice.
    pointers = np.cumsum(
        [0, *(n for used, tile in zip(uses, tiles, strict=True) for n in (len(used), len(tile) - len(used)))]
    )
    a = Pattern(2 * len(uses), 6, pointers, np.array(columns))
    of_b = np.arange(7) * 3 * LANES
    lines = metadata_lines(24, LANES) + 12
    plan, bumped = check(a, 2, of_b, lines, bypass=True)
    loaded = [plan.tile(n, of_b).loaded.tolist() for n in range(len(uses))]
    assert loaded == [[0], [], [], [], [4], [], [5], []]
    assert [plan.tile(n, of_b).bumped.tolist()[-2:] for n in (2, 3)] == [[1, 2], [2, 3]]
    listed, _ = check(a, 2, of_b, lines)
    assert sum(listed.placed) == 7 and sum(plan.placed) == 3


@pytest.mark.parametrize("seed", range(4))
def test_what_goes_by_saves_reads(seed: int) -> None:
    """Hubs that all tiles use among rows that few do: with bypass hubs are loaded less often, and fewer nonzeros move in all."""
    rng = np.random.default_rng(seed)
    chance = np.minimum(1, 12 / (1 + np.arange(400)))
    dense = rng.random((400, 400)) < 0.15 * chance
    a = Pattern.of(sp.csr_array(dense))
    pointers, moved = rows(400, 12, seed), {}
    lengths = np.diff(pointers)
    for bypass in (False, True):
        plan, _ = check(a, 4, pointers, 120, bypass=bypass)
        fresh = [plan.rows_of(np.arange(plan.fresh[n], end)) for n, (_, end) in enumerate(plan.windows.tolist())]
        placed = sum(int(lengths[new[:count]].sum()) for new, count in zip(fresh, plan.placed.tolist(), strict=True))
        away = (plan.lines < 0)[plan.places]
        moved[bypass] = placed + int(lengths[a.coordinates[away]].sum())
    assert moved[True] < 0.95 * moved[False]


def test_a_bumped_row_is_loaded_again_by_the_next_tile_that_uses_it() -> None:
    """Two rows that only one at a time has room for, then one of them alone."""
    a = Pattern(3, 2, np.array([0, 2, 3, 4]), np.array([0, 1, 1, 1]))
    pointers = np.array([0, 8 * LANES, 16 * LANES])
    plan, bumped = check(a, 1, pointers, metadata_lines(4, LANES) + 9)
    assert bumped[0] == 1 and plan.placed.tolist() == [1, 1, 0]
    assert plan.rows_of(np.arange(len(plan.lines))).tolist() == [0, 1, 1] and plan.places.tolist() == [0, 1, 2, 2]


def test_tiles_without_elements_load_nothing() -> None:
    a = Pattern(12, 9, np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]), np.array([8, 8]))
    plan, _ = check(a, 3, rows(9, 4, 2), 40)
    assert plan.windows.tolist() == [[0, 1], [0, 0], [0, 0], [0, 1]] and plan.kept.tolist() == [0, 0, 0, 1]
    empty, _ = check(Pattern(5, 9, np.zeros(6, np.int64), np.zeros(0, np.int64)), 2, rows(9, 4, 2), 40)
    assert len(empty.lines) == 0 and not empty.windows.any()


def test_no_plan_names_a_line_that_the_table_cannot() -> None:
    """A partition may be larger than its entries count; tiles then use what they can name."""
    a = Pattern.of(banded(60, 3))
    plan = planned(a, 10, rows(60, 5, 3), 1 << 20)
    assert (plan.line + plan.free + plan.metadata <= MOST_LINES).all() and plan.free.max() > 60_000


def test_rows_that_come_in_order_need_no_list() -> None:
    """Rows of B that are used from the first one on, without a gap: places are rows."""
    whole, gap = banded(60, 3), banded(60, 3).tolil()
    gap[:, 17] = 0
    for matrix, counted in ((whole, True), (gap.tocsr(), False)):
        matrix.eliminate_zeros()
        plan, _ = check(Pattern.of(matrix), 10, rows(60, 5, 3), 1000)
        assert (plan.rows is None) is counted
        assert not counted or (plan.places == Pattern.of(matrix).coordinates).all()


def test_a_tile_may_have_any_number_of_rows() -> None:
    a = Pattern.of(noise(50, 40, 0.1))
    pointers = rows(40, 5, 3)
    begins = np.array([0, 1, 20, 20, 33, 50])
    plan = gather(a, begins, pointers, 1000, LANES)
    for tile, (first, end) in enumerate(pairwise(begins.tolist())):
        used = a.coordinates[a.pointers[first] : a.pointers[end]]
        seen = plan.tile(tile, pointers)
        assert set(used) <= {*seen.resident, *seen.loaded}


def test_too_many_rows_are_named() -> None:
    a = Pattern(2, 50, np.array([0, 1, 51]), np.concatenate([[3], np.arange(50)]))
    with pytest.raises(
        RowPlanError,
        match="T_i = 1: must be smaller: tile 1 along i uses 50 rows of B, B's partition has entries for 40",
    ):
        planned(a, 1, rows(50, 3, 3), 12)
