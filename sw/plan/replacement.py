"""Replacement planned beforehand: at which lines each row of B lies, and which rows leave for it.

All uses of all rows are known before the run. So each row that a tile loads gets lines and an entry of metadata of its own
choice, and for it leave those rows that are worth the least: what reading them once more costs, over the tiles until they are
used again. Of rows of one length these are the ones that are used last, as in Belady's replacement (MIN: IBM Systems Journal
5(2), 1966). A row that is worth less than what would leave for it goes by, bumped. Rows are of unequal lengths, and a row lies
in one piece: it goes into the shortest run of free lines that takes it, or to where the cheapest rows lie side by side, which
often gives up a short row that is used soon, and finds place anywhere, for a long one.

What a tile uses stays until the tile after it has been loaded, wherever both find place, so that loads overlap (``early``).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.timing.hardware import MOST_LINES, MOST_LISTED_ENTRIES

from .free_lines import FreeLines, claim, free_lines_of, release, shortest_run
from .gather import Index, RowPlan, RowPlanError, Rows, Uses, mean_length, used_rows, uses_of
from .linked import link, unlink
from .thresholds import EARLY_SHARE, LOOKED_AT, MOST_PLANS, PLANNED_ENTRIES, UNUSED_ENTRIES, WORTH

__all__ = ["place_rows"]


def place_rows(
    a: Rows,
    begins: Index,
    pointers: NDArray[Any],
    lines: int,
    lanes: int,
    *,
    with_places: bool = True,
    side: str = "T_i",
) -> RowPlan:
    """Chooses lines and entries for the rows that each tile loads.

    The list has those rows alone: of each tile first the ones that find place, then those that go by, both in ascending order.
    Windows reach from the begin of the list to the last row that the tile loads. Of the rows without nonzeros the first that is
    used is loaded, once, and stands for all of them.

    Parameters as of :func:`.gather.gather`. Raises RowPlanError where a tile uses more rows than there are entries.
    """
    used: Index = used_rows(a.pointers, a.coordinates, begins, len(pointers) - 1)
    lines = min(lines, MOST_LINES)
    most = int(used.max(initial=0)) + 2  # one for the row without nonzeros, and one to spare
    mean = mean_length(a.coordinates, pointers)
    entries = max(most, int(min(PLANNED_ENTRIES * lines * lanes / (mean + 1), used.sum() + 2)))
    metadata = min(-(-min(entries, MOST_LISTED_ENTRIES) // lanes), lines - 1)
    if most > metadata * lanes:
        raise RowPlanError(
            side, int(begins[1] - begins[0]), int(np.argmax(used)), most - 2, max(0, metadata * lanes - 2)
        )
    uses = uses_of(a.pointers, a.coordinates, begins, len(pointers) - 1)
    places = np.empty(len(a.coordinates) if with_places else 0, np.int64)
    for plans in range(MOST_PLANS):
        partition = _partition(len(pointers) - 1, len(used), lines - metadata, metadata * lanes)
        rows, first, entry_of, table, early = _place(
            a.pointers, a.coordinates, begins, pointers, lanes, used, uses, partition, places
        )
        # As many entries are taken as are in use at a time, and the one to spare, without which no tile is early. Where rows that
        # stay are long the lines of the rest are for data.
        needed = -(-max(most, int(entry_of.max(initial=0)) + 2) // lanes)
        if needed >= (1 - UNUSED_ENTRIES) * metadata or plans == MOST_PLANS - 1:
            break
        metadata, uses.at[:] = needed, uses.begins[:-1]
    fresh, end, placed, free = table.T
    nothing = np.zeros(len(used), np.int64)
    return RowPlan(
        rows,
        first,
        places,
        np.stack([nothing, end], axis=1),
        kept=fresh,
        line=nothing,
        free=free,
        metadata=nothing + metadata,
        placed=placed,
        read=placed,
        early=early,
        entries=entry_of,
        most_loaded=int((end - fresh).max(initial=0)),
    )


class _Partition(NamedTuple):
    """Where rows of B lie, and in which order they may leave.

    Parameters
    ----------
    free: lines for data. line, lines, entry: int64[K], where each row lies; line is -1 where it does not.
    leaves: int64[K], the tile that uses it next, of rows that no present tile uses; -1 for others.
    first: int64[tiles], a row for each tile that uses it next. following, preceding: int64[K], of the same tile.
    spare: int64[entries], entries that are free, the first ``state[0]``. state: int64[3], how many these are; the last tile that
        may have a ``first``; the line where the last search ended.
    """

    free: FreeLines
    line: Index
    lines: Index
    entry: Index
    leaves: Index
    first: Index
    following: Index
    preceding: Index
    spare: Index
    state: Index


@njit(cache=True)
def _partition(rows: int, tiles: int, lines: int, entries: int) -> _Partition:
    none = np.full(rows, -1, np.int64)
    return _Partition(
        free_lines_of(lines),
        none.copy(),
        np.zeros(rows, np.int64),
        none.copy(),
        none.copy(),
        np.full(tiles, -1, np.int64),
        none.copy(),
        none.copy(),
        np.arange(entries - 1, -1, -1),
        np.array([entries, 0, 0]),
    )


@njit(cache=True, counted=False)
def _may_leave(at: _Partition, row: int, tile: int) -> None:
    """No present tile uses the row, which ``tile`` will use."""
    at.leaves[row] = tile
    link(at.first, at.following, at.preceding, tile, row)
    at.state[1] = max(at.state[1], tile)


@njit(cache=True, counted=False)
def _stays(at: _Partition, row: int) -> None:
    """A row that might have left."""
    unlink(at.first, at.following, at.preceding, at.leaves[row], row)
    at.leaves[row] = -1


@njit(cache=True, counted=False)
def _drop(at: _Partition, row: int) -> None:
    """A row leaves that no tile's turn is to use."""
    if at.leaves[row] >= 0:
        _stays(at, row)
    release(at.free, at.line[row], at.lines[row])
    at.spare[at.state[0]] = at.entry[row]
    at.state[0] += 1
    at.line[row] = -1


@njit(cache=True, counted=False)
def _entry(at: _Partition) -> int:
    """An entry; where none is free, of the row that is used last."""
    while at.state[0] == 0:
        if at.first[at.state[1]] < 0:
            at.state[1] -= 1
        else:
            _drop(at, at.first[at.state[1]])
    at.state[0] -= 1
    return int(at.spare[at.state[0]])


@njit(cache=True, counted=False)
def _cheapest(at: _Partition, lines: int, worth: int, tile: int) -> tuple[int, int]:
    """Begin and end of so many lines or more whose rows are worth the least together, less than ``worth``; -1 for none.

    A search looks at some rows and free runs, and goes on where the last one ended.
    """
    free, most = at.free, len(at.free.owner)
    begin = at.state[2]
    while begin < most and free.owner[begin] < 0:
        begin += 1
    begin = at.line[free.owner[begin]] if begin < most else 0
    if begin > 0 and free.owner[begin - 1] < 0:
        begin -= free.length[begin - 1]
    left, right, cost, looked = begin, begin, 0, 0
    found, found_end = -1, -1
    while looked < LOOKED_AT:
        while right < most and right - left < lines:
            row = free.owner[right]
            if row < 0:
                right += free.length[right]
            elif at.leaves[row] < 0:
                right += at.lines[row]
                left, cost, looked = right, 0, looked + 1
            else:
                cost += at.lines[row] * WORTH // (at.leaves[row] - tile)
                right += at.lines[row]
        if right - left < lines:
            if begin == 0:
                break
            begin, left, right, cost = 0, 0, 0, 0
            continue
        if cost < worth:
            found, found_end, worth = left, right, cost
        row = free.owner[left]
        looked += 1
        if row < 0:
            left += free.length[left]
        else:
            cost -= at.lines[row] * WORTH // (at.leaves[row] - tile)
            left += at.lines[row]
    at.state[2] = left
    return found, found_end


@njit(cache=True, counted=False)
def _worth(times: int, following: int, tile: int, tiles: int) -> int:
    """Of a line of a row that a tile uses so many times, and the tile ``following`` next; of ``tiles`` there is none."""
    return (times - 1) * WORTH + (WORTH // (following - tile) if following < tiles else 0)


@njit(cache=True, counted=False)
def _lines_for(at: _Partition, row: int, lines: int, times: int, following: int, tile: int) -> bool:
    """Puts a row in its place, if it is worth what leaves for it. ``times``: that the tile uses it; ``following``: the next tile
    that does, beyond the last one for none.
    """
    line = shortest_run(at.free, lines)
    if line < 0:
        line, end = _cheapest(at, lines, lines * _worth(times, following, tile, len(at.first)), tile)
        if line < 0:
            return False
        position = line
        while position < end:
            other = at.free.owner[position]
            if other < 0:
                position += 1
            else:
                position += at.lines[other]
                _drop(at, other)
    claim(at.free, line, lines, row)
    at.line[row], at.lines[row] = line, lines
    return True


class _Tiles(NamedTuple):
    """What tiles use: the present one and the two before it take turns in three rows.

    Parameters
    ----------
    tile, times, following: int64[K], the last tile that has used each row; how many of its rows of A do; the next tile that will,
        or how many tiles there are.
    rows, bumped: int64[3, most], rows with nonzeros that a tile uses; entries of rows that went by.
    used, gone: int64[3], how many of these.
    """

    tile: Index
    times: Index
    following: Index
    rows: Index
    bumped: Index
    used: Index
    gone: Index


@njit(cache=True, counted=False)
def _uses_now(
    of: _Tiles,
    at: _Partition,
    uses: Uses,
    coordinates: NDArray[Any],
    pointers: NDArray[Any],
    tile: int,
    lanes: int,
    missing: Index,
) -> tuple[int, int, int]:
    """Takes note of what the tile uses: how many of its rows are missing, lines of all of them, a row without nonzeros or -1."""
    turn, count, missed, lines, hollow = tile % 3, 0, 0, 0, -1
    for k in coordinates:
        if of.tile[k] == tile:
            of.times[k] += 1
            continue
        of.tile[k], of.times[k] = tile, 1
        if pointers[k + 1] == pointers[k]:
            hollow = k if hollow < 0 else min(k, hollow)
            continue
        of.rows[turn, count] = k
        count += 1
        place = uses.at[k]
        while uses.tiles[place] >> 1 < tile:
            place += 1
        uses.at[k] = place
        more = place + 1 < uses.begins[k + 1] and uses.tiles[place + 1] >= 0
        of.following[k] = uses.tiles[place + 1] >> 1 if more else len(at.first)
        if at.leaves[k] >= 0:
            _stays(at, k)
        if at.line[k] < 0:
            missing[missed] = k
            missed += 1
        lines += -(-(pointers[k + 1] - pointers[k]) // lanes)
    of.used[turn] = count
    return missed, lines, hollow


@njit(cache=True, counted=False)
def _ended(of: _Tiles, at: _Partition, tile: int) -> None:
    """Rows of a tile may leave that no later one so far uses; those that none will use leave now."""
    turn = tile % 3
    for n in range(of.used[turn]):
        k = of.rows[turn, n]
        if of.tile[k] == tile and at.line[k] >= 0 and at.leaves[k] < 0:
            if of.following[k] == len(at.first):
                _drop(at, k)
            else:
                _may_leave(at, k, of.following[k])
    for n in range(of.gone[turn]):
        at.spare[at.state[0]] = of.bumped[turn, n]
        at.state[0] += 1
    of.used[turn] = of.gone[turn] = 0


@njit(cache=True, counted=False)
def _overlaps(of: _Tiles, at: _Partition, tile: int, lines: int) -> bool:
    """Whether what the tile before uses may stay while this one is loaded, which takes so many ``lines``."""
    before = (tile + 2) % 3
    entries = 1 + of.used[tile % 3] + of.gone[before]
    for n in range(of.used[before]):
        k = of.rows[before, n]
        if of.tile[k] != tile and at.line[k] >= 0:
            lines, entries = lines + at.lines[k], entries + 1
    return tile > 0 and entries <= len(at.spare) and lines <= EARLY_SHARE * len(at.free.owner)


@njit(cache=True)
def _place(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    begins: Index,
    pointers: NDArray[Any],
    lanes: int,
    used: Index,
    uses: Uses,
    at: _Partition,
    places: Index,
) -> tuple[Index, Index, Index, Index, NDArray[np.bool_]]:
    """Of each place of the list its row, line and entry; of each tile the first place that it loads, the end, how many of them
    find place and how many lines are free then; which tiles are early. ``places``: as long as A's nonzeros, and written; or none.
    """
    tiles, inner, most, longest = len(used), len(pointers) - 1, 0, 0
    for tile in range(tiles):
        most += used[tile]
        longest = max(longest, used[tile])
    list_rows, line_of, entry_of = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    table, early = np.zeros((tiles, 4), np.int64), np.zeros(tiles, np.bool_)
    place = np.full(inner, -1, np.int64)  # of each row, where it was loaded last
    of = _Tiles(
        np.full(inner, -1, np.int64), np.zeros(inner, np.int64), np.full(inner, tiles, np.int64),
        np.empty((3, longest), np.int64), np.empty((3, longest), np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip
    missing, new, keys = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    nothing_at, nothing_entry = -1, -1  # place and entry of the row that stands for all without nonzeros
    end, taken = 0, 0
    for tile in range(tiles):
        low, high = a_pointers[begins[tile]], a_pointers[begins[tile + 1]]
        first = end
        count, lines, hollow = _uses_now(of, at, uses, a_coordinates[low:high], pointers, tile, lanes, missing)
        if tile > 1:
            _ended(of, at, tile - 2)
        early[tile] = _overlaps(of, at, tile, lines)
        if tile > 0 and not early[tile]:
            _ended(of, at, tile - 1)
        # First rows of which a line is worth the most: those that would be read most often, then those that come again soonest.
        for n in range(count):
            k = missing[n]
            keys[n] = -_worth(of.times[k], of.following[k], tile, tiles)
        placed, last = 0, count
        for n in np.argsort(keys[:count]):
            k = missing[n]
            entry = _entry(at)
            taken = -(-(pointers[k + 1] - pointers[k]) // lanes)
            at.entry[k] = entry
            if _lines_for(at, k, taken, of.times[k], of.following[k], tile):
                new[placed] = k
                placed += 1
            else:
                last -= 1
                new[last] = k
                of.bumped[tile % 3, of.gone[tile % 3]] = entry
                of.gone[tile % 3] += 1
        if hollow >= 0 and nothing_at < 0:
            nothing_entry = _entry(at)
            new[count] = new[placed]  # the first of those that go by, if any
            new[placed] = hollow
            placed, count = placed + 1, count + 1
        new[:placed].sort()
        new[placed:count].sort()
        for n in range(count):
            k = new[n]
            list_rows[end + n], place[k] = k, end + n
            empty = pointers[k + 1] == pointers[k]
            if empty:
                nothing_at = end + n
            line_of[end + n] = at.line[k] if n < placed and not empty else -1
            entry_of[end + n] = nothing_entry if empty else at.entry[k]
        end += count
        for position in range(low, high if len(places) > 0 else low):
            k = a_coordinates[position]
            places[position] = place[k] if pointers[k + 1] > pointers[k] else nothing_at
        if low < high:
            table[tile, 0], table[tile, 1], table[tile, 2], table[tile, 3] = (
                first,
                end,
                placed,
                np.sum(at.free.owner < 0),
            )
    return list_rows[:end].copy(), line_of[:end].copy(), entry_of[:end].copy(), table, early
