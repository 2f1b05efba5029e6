"""Loads ahead of the tile before: replayed with what lies in each line, whole and no more cautious than need be."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sw.stats.pattern import Pattern
from sw.tiling.ahead import loads_ahead
from sw.tiling.lists import ListError, plan_list
from sw.tiling.ring import RingPlan, metadata_lines, plan_ring
from sw.tiling.windows import windows_of
from tests.sw.stats.matrices import banded, noise
from tests.sw.tiling.test_ring import LANES, rows

PATTERNS = (banded(80, 3), noise(80, 80, 0.03), banded(90, 9), noise(200, 40, 0.01), banded(300, 2))


def check(
    a: Pattern,
    T_i: int,
    windows: NDArray[np.int64],
    ring: RingPlan,
    places: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> list[bool]:
    """What each window that keeps rows says, held against the places that lie in the lines it fills."""
    found = loads_ahead(windows, ring, a.pointers, places, T_i, lengths, LANES)
    assert found.dtype == np.bool_ and found.shape == (len(windows),)
    lines: dict[int, set[int]] = {}  # what was written there last
    said = []
    for tile, (begin, end) in enumerate(windows.tolist()):
        before = set(places[a.pointers[max(0, tile - 1) * T_i] : a.pointers[tile * T_i]].tolist()) if tile else set()
        if begin >= end:
            assert not found[tile]
            continue
        if ring.kept[tile] == 0:
            lines = {}
        fresh = begin + int(ring.kept[tile])
        filled: dict[int, set[int]] = {}
        at = int(ring.line[tile]) * LANES
        for place in range(fresh, fresh + int(ring.held[tile])):
            for element in range(at, at + int(lengths[place])):
                filled.setdefault(element // LANES, set()).add(place)
            at += int(lengths[place])
        clear = not any(lines.get(line, set()) & before for line in filled)
        assert found[tile] == (tile > 0 and ring.kept[tile] > 0 and clear), f"tile {tile}"
        # A place that is loaded again is found where it was loaded last.
        fresh_places = set(range(fresh, end))
        lines = {line: there - fresh_places for line, there in lines.items()} | filled
        if ring.kept[tile]:
            said.append(bool(found[tile]))
    return said


@pytest.mark.parametrize("longest", [1, 6, 40])
@pytest.mark.parametrize("room", [12, 20, 60, 400])
@pytest.mark.parametrize("T_i", [1, 3, 10])
def test_windows(T_i: int, room: int, longest: int) -> None:
    for seed, matrix in enumerate(PATTERNS):
        a = Pattern.of(matrix)
        windows = windows_of(a.pointers, a.coordinates, T_i)
        if metadata_lines(int((windows[:, 1] - windows[:, 0]).max()), LANES) < room:
            pointers = rows(a.columns, longest, seed)
            ring = plan_ring(windows, a, T_i, pointers, room, LANES)
            check(a, T_i, windows, ring, a.coordinates, np.diff(pointers))


@pytest.mark.parametrize("longest", [1, 6, 40])
@pytest.mark.parametrize("room", [12, 20, 60, 400])
@pytest.mark.parametrize("T_i", [1, 3, 10])
def test_lists(T_i: int, room: int, longest: int) -> None:
    for seed, matrix in enumerate(PATTERNS):
        a = Pattern.of(matrix)
        pointers = rows(a.columns, longest, seed)
        try:
            plan = plan_list(a, T_i, pointers, room, LANES)
        except ListError:
            continue
        check(a, T_i, plan.windows, plan.ring, plan.places, np.diff(pointers)[plan.rows])


def test_both_answers_come_where_room_is_short() -> None:
    a = Pattern.of(banded(300, 2))
    pointers = rows(a.columns, 12, 1)
    said: dict[int, list[bool]] = {}
    for room in (20, 40, 400):
        plan = plan_list(a, 4, pointers, room, LANES)
        said[room] = check(a, 4, plan.windows, plan.ring, plan.places, np.diff(pointers)[plan.rows])
    assert any(said[20]) and not all(said[20])
    assert all(said[400]), "with room for all nothing is overwritten"


def test_a_row_that_is_used_keeps_its_line() -> None:
    """Rows of a line each, room for three: the fourth takes the line of the oldest, which the tile before may want."""
    pointers = np.arange(7) * LANES
    for columns, expected in (([[0, 1], [2], [2, 3]], True), ([[0, 1], [0, 2], [2, 3]], False)):
        flat = np.array([k for row in columns for k in row])
        a = Pattern(3, 6, np.cumsum([0, *map(len, columns)]), flat)
        ring = RingPlan(*np.array([[0, 1, 1], [0, 2, 0], [2, 1, 1], [3, 3, 3], [2, 1, 1]]))
        windows = np.array([[0, 2], [1, 3], [2, 4]]) if expected else np.array([[0, 2], [0, 3], [2, 4]])
        ring.kept[1] = 1 if expected else 2
        found = loads_ahead(windows, ring, a.pointers, a.coordinates, 1, np.diff(pointers), LANES)
        assert found.tolist() == [False, True, expected]
