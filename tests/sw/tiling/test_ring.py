"""Plans of windows that keep rows of B in place: replayed line by line and entry by entry on a partition of their own."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from sw.stats.pattern import Pattern
from sw.tiling.ring import RingPlan, metadata_lines, plan_ring
from sw.tiling.windows import SPARE_LINES, steady, windows_of
from tests.sw.stats.matrices import banded, noise

LANES = 4


@dataclass
class Partition:
    """What lies in each line and in each entry of the ring: the row of B."""

    pointers: NDArray[np.int64]
    lines: dict[int, set[int]] = field(default_factory=dict)
    entries: dict[int, int] = field(default_factory=dict)
    bumped: set[int] = field(default_factory=set)
    slot: int = 0
    begin: int = 0
    metadata: int = 0

    def visit(self, window: tuple[int, int], kept: int, line: int, lines: int, metadata: int, held: int) -> int:
        """Loads what is not there and checks that all of the window can be found; returns how many rows are bumped."""
        begin, end = window
        if kept == 0:
            self.lines, self.entries, self.bumped = {}, {}, set()
            self.slot, self.metadata = 0, metadata
        else:
            self.slot += begin - self.begin
        assert metadata == self.metadata, "the ring of entries stays as it is in a chain"
        self.begin = begin
        fresh = begin + kept
        live = set(range(begin, fresh))
        at = line * LANES
        for row in range(fresh, end):
            self.entries[(self.slot + row - begin) % (LANES * metadata)] = row
            elements = int(self.pointers[row + 1] - self.pointers[row])
            if row >= fresh + held:
                self.bumped.add(row)
                assert self.pointers[row + 1] - self.pointers[fresh] > LANES * lines, "there was room"
                continue
            for place in range(at // LANES, -(-(at + elements) // LANES)) if elements else ():
                assert line <= place < line + lines
                assert not self.lines.get(place, set()) & live, "rows that are wanted are overwritten"
                if at // LANES != place or place not in self.lines or self.lines[place].isdisjoint(range(fresh, row)):
                    self.lines[place] = set()
                self.lines[place].add(row)
            at += elements
        for row in range(begin, end):
            assert self.entries[(self.slot + row - begin) % (LANES * metadata)] == row
            if row not in self.bumped and self.pointers[row + 1] > self.pointers[row]:
                assert any(row in rows for rows in self.lines.values())
        newest, oldest = ((self.slot + n) % (LANES * metadata) // LANES for n in (end - begin - 1, 0))
        assert newest != oldest or end - begin <= LANES, "newest and oldest entries never share a line"
        return len(self.bumped & set(range(begin, end)))


def replay(windows: NDArray[np.int64], plan: RingPlan, pointers: NDArray[np.int64], room: int) -> list[int]:
    """Bumped rows in each window; checks the whole plan."""
    partition = Partition(pointers)
    bumped = []
    for n, (begin, end) in enumerate(windows.tolist()):
        place = tuple(int(part[n]) for part in (plan.kept, plan.line, plan.lines, plan.metadata, plan.held))
        if begin == end:
            assert place == (0, 0, 0, 0, 0)
            continue
        kept, line, lines, metadata, _ = place
        assert 0 <= kept <= end - begin and line >= 0 and lines >= 0
        assert line + lines + metadata <= room and metadata >= metadata_lines(end - begin, LANES)
        bumped.append(partition.visit((begin, end), *place))
    return bumped


def rows(count: int, longest: int, seed: int) -> NDArray[np.int64]:
    """Pointers of rows of B of random lengths, some empty."""
    lengths = np.random.default_rng(seed).integers(0, longest + 1, count)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


@pytest.mark.parametrize("longest", [0, 1, 6, 40])
@pytest.mark.parametrize("room", [8, 20, 60, 400])
@pytest.mark.parametrize("T_i", [1, 3, 10])
def test_no_row_that_is_wanted_is_lost(T_i: int, room: int, longest: int) -> None:
    found = []
    for seed, matrix in enumerate((banded(80, 3), noise(80, 80, 0.02), banded(90, 9))):
        a = Pattern.of(matrix)
        windows = windows_of(a.pointers, a.coordinates, T_i)
        longest_window = int((windows[:, 1] - windows[:, 0]).max())
        if metadata_lines(longest_window, LANES) >= room:
            continue
        pointers = rows(a.columns, longest, seed)
        for chosen in (windows, steady(windows, pointers, room, LANES)):
            assert (chosen[:, 0] <= windows[:, 0]).all() and (chosen[:, 1] == windows[:, 1]).all()
            fits = (chosen[:, 1] - chosen[:, 0]).max() <= longest_window
            plan = plan_ring(chosen, a, T_i, pointers, room, LANES) if fits or room > 60 else None
            if plan is not None:
                found.append(replay(chosen, plan, pointers, room))
    assert found or room == 8


def test_windows_that_move_on_load_each_row_once() -> None:
    a = Pattern.of(banded(600, 5))
    windows = windows_of(a.pointers, a.coordinates, 10)
    pointers = rows(600, 7, 1)
    plan = plan_ring(windows, a, 10, pointers, 60, LANES)
    assert not any(replay(windows, plan, pointers, 60))
    assert int((windows[:, 1] - windows[:, 0] - plan.kept).sum()) == 600
    assert (plan.kept[1:] == 10).all() and (np.diff(plan.line) < 0).sum() > 5, "data begin anew at the first line often"


def test_a_window_that_steps_back_begins_anew() -> None:
    a = Pattern.of(banded(40, 0))
    windows = np.array([[5, 15], [10, 20], [9, 19], [12, 12], [12, 22], [30, 40], [30, 40]])
    plan = plan_ring(windows, a, 6, rows(40, 3, 2), 50, LANES)
    assert plan.kept.tolist() == [0, 5, 0, 0, 7, 0, 10]


def test_a_window_may_end_before_what_is_there() -> None:
    """Rows behind its end stay for the next."""
    a = Pattern.of(banded(40, 0))
    windows = np.array([[0, 20], [2, 10], [4, 22]])
    plan = plan_ring(windows, a, 14, rows(40, 3, 3), 50, LANES)
    assert plan.kept.tolist() == [0, 8, 16]


def test_bumped_rows_that_cost_more_than_a_new_load_end_a_chain() -> None:
    """The second window uses only rows that found no room: loaded anew they are in place."""
    a = Pattern(80, 40, np.arange(0, 81), np.repeat([0, 20], 40))
    pointers = np.arange(0, 41 * 8, 8)
    windows = np.array([[0, 30], [20, 40]])
    room = metadata_lines(30, LANES) + 2 * 20
    plan = plan_ring(windows, a, 40, pointers, room, LANES)
    assert plan.kept.tolist() == [0, 0] and plan.held.tolist() == [20, 20]
    # Used once they are not worth a line more than what is kept for the next.
    seldom = Pattern(80, 40, np.minimum(np.arange(0, 81), 41), np.repeat([0, 20], [40, 1]))
    assert plan_ring(windows, seldom, 40, pointers, room, LANES).kept.tolist() == [0, 10]


def test_steady_windows_stop_where_they_would_not_fit() -> None:
    windows = np.array([[10, 20], [0, 0], [4, 24], [2, 30]])
    pointers = np.arange(0, 41 * LANES, LANES)  # a line each
    assert steady(windows, pointers, 100, LANES).tolist() == [[2, 20], [0, 0], [2, 24], [2, 30]]
    # Rows 2 to 24 take 22 lines and 6 for their metadata, rows 2 to 20 18 and 5, rows 4 to 20 16 and 5.
    needed = {rows: rows + -(-rows // LANES) + SPARE_LINES for rows in (22, 18, 16)}
    assert steady(windows, pointers, needed[22], LANES).tolist() == [[2, 20], [0, 0], [2, 24], [2, 30]]
    assert steady(windows, pointers, needed[22] - 2, LANES).tolist() == [[4, 20], [0, 0], [4, 24], [2, 30]]
    assert steady(windows, pointers, needed[16] - 2, LANES).tolist() == windows.tolist()
