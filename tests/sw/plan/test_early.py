"""Loads beside the tile before: replayed with what lies in each line, whole and no more cautious than need be."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sw.plan.gather import RowPlan, RowPlanError, metadata_lines
from sw.stats.pattern import Pattern
from tests.sw.plan.replayed import LANES, planned, rows
from tests.sw.stats.matrices import banded, noise

PATTERNS = (banded(80, 3), noise(80, 80, 0.03), banded(90, 9), noise(200, 40, 0.01), banded(300, 2))


def check(a: Pattern, T_i: int, plan: RowPlan, lengths: NDArray[np.int64]) -> list[bool]:
    """What each window that keeps rows says, held against the places that lie in the lines it fills."""
    found, windows, places = plan.early, plan.windows, plan.places
    assert found.dtype == np.bool_ and found.shape == (len(windows),)
    lines: dict[int, set[int]] = {}  # what was written there last
    said = []
    for tile, (begin, end) in enumerate(windows.tolist()):
        before = set(places[a.pointers[max(0, tile - 1) * T_i] : a.pointers[tile * T_i]].tolist()) if tile else set()
        if begin >= end:
            assert not found[tile]
            continue
        if plan.kept[tile] == 0:
            lines = {}
        fresh = begin + int(plan.kept[tile])
        filled: dict[int, set[int]] = {}
        at = int(plan.line[tile]) * LANES
        for place in range(fresh, fresh + int(plan.placed[tile])):
            for element in range(at, at + int(lengths[place])):
                filled.setdefault(element // LANES, set()).add(place)
            at += int(lengths[place])
        clear = not any(lines.get(line, set()) & before for line in filled)
        assert found[tile] == (tile > 0 and plan.kept[tile] > 0 and clear), f"tile {tile}"
        # A place that is loaded again is found where it was loaded last.
        fresh_places = set(range(fresh, end))
        lines = {line: there - fresh_places for line, there in lines.items()} | filled
        if plan.kept[tile]:
            said.append(bool(found[tile]))
    return said


@pytest.mark.parametrize("longest", [1, 6, 40])
@pytest.mark.parametrize("room", [12, 20, 60, 400])
@pytest.mark.parametrize("T_i", [1, 2, 3, 5, 10, 30])
def test_lists(T_i: int, room: int, longest: int) -> None:
    for seed, matrix in enumerate(PATTERNS):
        a = Pattern.of(matrix)
        pointers = rows(a.columns, longest, seed)
        try:
            plan = planned(a, T_i, pointers, room)
        except RowPlanError:
            continue
        check(a, T_i, plan, np.diff(pointers)[plan.rows_of(np.arange(len(plan.lines)))])


def test_both_answers_come_where_room_is_short() -> None:
    a = Pattern.of(banded(300, 2))
    pointers = rows(a.columns, 12, 1)
    said: dict[int, list[bool]] = {}
    for room in (20, 40, 400):
        plan = planned(a, 4, pointers, room)
        said[room] = check(a, 4, plan, np.diff(pointers)[plan.rows_of(np.arange(len(plan.lines)))])
    assert any(said[20]) and not all(said[20])
    assert all(said[400]), "with room for all nothing is overwritten"


def test_a_row_that_is_used_keeps_its_line() -> None:
    """Rows of a line each, room for three: the fourth takes the line of the oldest, which the tile before may want."""
    pointers = np.arange(7) * LANES
    for columns, expected in (([[0], [1], [2], [3]], True), ([[0], [1], [2, 0], [3]], False)):
        flat = np.array([k for row in columns for k in row])
        a = Pattern(4, 6, np.cumsum([0, *map(len, columns)]), flat)
        plan = planned(a, 1, pointers, metadata_lines(4, LANES) + 3)
        assert plan.windows[3].tolist() == [1, 4] and plan.line[3] == 0
        assert plan.early.tolist() == [False, True, True, expected]
