"""A partition of B on which plans are replayed, line by line and entry by entry."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sw.plan.gather import Index, RowPlan, Rows, gather, metadata_lines

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

    def visit(self, window: tuple[int, int], kept: int, line: int, lines: int, metadata: int, placed: int) -> int:
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
            if row >= fresh + placed:
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


def planned(
    a: Rows, T_i: int, pointers: Index, lines: int, *, with_places: bool = True, bypass: bool = False
) -> RowPlan:
    """Tiles of ``T_i`` rows."""
    count = len(a.pointers) - 1
    begins = np.append(np.arange(0, count, T_i), count)
    return gather(a, begins, pointers, lines, LANES, with_places=with_places, bypass=bypass)


def replay(plan: RowPlan, pointers: Index, room: int) -> list[int]:
    """Bumped rows in each window; checks the whole plan."""
    partition = Partition(pointers)
    bumped = []
    for n, (begin, end) in enumerate(plan.windows.tolist()):
        place = tuple(int(part[n]) for part in (plan.kept, plan.line, plan.free, plan.metadata, plan.placed))
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
