"""Where the rows of B lie while windows of k move over them: rows that the next window has too stay in place.

B's partition is then a ring. Each window loads the rows behind those that are there already, from a line on that this
schedule says, into lines whose rows no tile wants any more until they are loaded again; one entry of metadata for each row
lies in a ring of its own. HYTE's static scheduler and its hardware divide the work alike: what follows from the operands
alone is decided here.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["MOST_LINES", "WINDOW_BYTES", "RingPlan", "free_lines", "metadata_lines", "plan_ring"]

# An entry of the table that the hardware reads: what a window spans, and where its rows go.
WINDOW_BYTES = 16
# Lines of B's partition that it can name; what lies beyond is not used.
MOST_LINES = 2**16 - 1
# A ring of metadata is made for the longest of so many windows, up to one twice as long as those before it.
LOOK_AHEAD = 256

Index = NDArray[np.int64]


class Rows(Protocol):
    """Where A's elements are: int[I + 1] begins of rows in int[nnz] columns."""

    @property
    def pointers(self) -> NDArray[Any]: ...
    @property
    def coordinates(self) -> NDArray[Any]: ...


@njit(cache=True)
def metadata_lines(rows: int, lanes: int) -> int:
    """Lines of a ring for windows of so many rows: one more than they take, so that newest and oldest never share one."""
    return -(-rows // lanes) + 1


@dataclass(frozen=True)
class RingPlan:
    """What each window finds and loads; int64[tiles] each.

    Parameters
    ----------
    kept: rows at the window's begin that are there already; 0 where a chain of windows begins anew.
    line, lines: first line, counted from the partition's, for the rows that follow, and how many they may take.
    metadata: lines of the ring of metadata, at the partition's end; the same for all windows of a chain.
    held: how many of the rows that follow find room; the others are bumped for as long as windows keep them.
    """

    kept: Index
    line: Index
    lines: Index
    metadata: Index
    held: Index


def plan_ring(windows: Index, a: Rows, T_i: int, pointers: NDArray[Any], lines: int, lanes: int) -> RingPlan:
    """Places the rows of each window, one after the other.

    A window begins anew if it begins before the one before it or behind all that is there, if it is longer than the ring of
    metadata allows, and if keeping rows would make it fetch more lines at the uses of bumped ones than it saves. New rows
    go behind the newest, or to the first line where they do not fit there and have more room.

    Parameters
    ----------
    windows: begin and end in k, int64[tiles, 2]; one without coordinates changes nothing.
    a, T_i: the operand A, and rows of a tile: a tile's elements lie in its window.
    pointers: int[K + 1], rising: where each row of B begins, and the end.
    lines: of B's partition without its FIFO-managed region; room for the longest window's metadata and a line at least.
    lanes: elements in a line.
    """
    table = _plan(windows, a.pointers, a.coordinates, T_i, pointers, min(lines, MOST_LINES), lanes)
    return RingPlan(*(table[:, n] for n in range(5)))


@njit(cache=True)
def _held(pointers: NDArray[Any], first: int, end: int, elements: int) -> int:
    """The row before ``end`` where ``elements`` are used up, from row ``first`` on."""
    stop = first
    while stop < end and pointers[stop + 1] - pointers[first] <= elements:
        stop += 1
    return stop


@njit(cache=True)
def _lines(pointers: NDArray[Any], first: int, end: int, lanes: int) -> int:
    """Bus lines that hold the rows ``first`` to ``end``."""
    begin, after = pointers[first], pointers[end]
    return (after - 1) // lanes - begin // lanes + 1 if after > begin else 0


@njit(cache=True)
def free_lines(head: int, turned: bool, tail: int, lines: int, wanted: int) -> tuple[int, int]:
    """First line and number of lines for new rows: behind the newest, or from line 0 on where they do not fit and have more room.

    ``head``: line of the oldest row in place. ``tail``: the line behind the newest rows; ``turned``: these lie before ``head``.
    """
    if turned:
        return tail, head - tail
    if lines - tail >= wanted or lines - tail >= head:
        return tail, lines - tail
    return 0, head


@njit(cache=True)
def _longest(windows: NDArray[Any], tile: int) -> int:
    """Rows that the ring of a chain that begins with this window should have room for."""
    longest = windows[tile, 1] - windows[tile, 0]
    for later in range(tile + 1, min(len(windows), tile + LOOK_AHEAD)):
        size = windows[later, 1] - windows[later, 0]
        if size > 2 * longest or (size > 0 and windows[later, 0] < windows[later - 1, 0]):
            break
        longest = max(longest, size)
    return longest


@njit(cache=True)
def _plan(
    windows: NDArray[Any],
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    T_i: int,
    pointers: NDArray[Any],
    room: int,
    lanes: int,
) -> Index:
    tiles, rows = len(windows), len(a_pointers) - 1
    table = np.zeros((tiles, 5), np.int64)
    # Runs of rows in place, oldest first: first row, end, line.
    runs = np.zeros((tiles, 3), np.int64)
    oldest, newest = 0, 0
    begin_before, end_before = 0, 0
    ring, data_lines = 0, 0
    bumped = np.zeros(len(pointers) - 1, np.bool_)
    some_bumped = 0  # end of the last bumped row that was met
    tail = 0  # line behind the newest run
    for tile in range(tiles):
        begin, end = windows[tile, 0], windows[tile, 1]
        if begin >= end:
            continue
        kept = 0
        if begin_before <= begin < end_before and metadata_lines(end - begin, lanes) <= ring:
            kept = min(end, end_before) - begin
        anew_ring = metadata_lines(_longest(windows, tile), lanes)
        anew_lines = room - anew_ring
        if anew_lines < 1:
            anew_ring = metadata_lines(end - begin, lanes)
            anew_lines = room - anew_ring
        anew = _held(pointers, begin, end, anew_lines * lanes)
        line, lines, stop = 0, 0, 0
        if kept > 0:
            line, lines = 0, data_lines
            while oldest < newest and runs[oldest, 1] <= begin:
                oldest += 1
            if oldest < newest:
                first, base = runs[oldest, 0], runs[oldest, 2]
                head = base + (pointers[max(begin, first)] - pointers[first]) // lanes
                turned = newest - oldest > 1 and runs[newest - 1, 2] < head
                wanted = -(-(pointers[end] - pointers[begin + kept]) // lanes)
                line, lines = free_lines(head, turned, tail, data_lines, wanted)
            stop = _held(pointers, begin + kept, end, lines * lanes)
            if stop < end or some_bumped > begin:
                keeping = _lines(pointers, begin + kept, stop, lanes)
                fetching = _lines(pointers, begin, anew, lanes)
                for position in range(a_pointers[tile * T_i], a_pointers[min(rows, (tile + 1) * T_i)]):
                    k = a_coordinates[position]
                    if k >= stop or (k < begin + kept and bumped[k]):
                        keeping += _lines(pointers, k, k + 1, lanes)
                    if k >= anew:
                        fetching += _lines(pointers, k, k + 1, lanes)
                if fetching < keeping:
                    kept = 0
        if kept == 0:
            oldest, newest, end_before, some_bumped = 0, 0, 0, 0
            ring, data_lines = anew_ring, anew_lines
            line, lines, stop = 0, data_lines, anew
        fresh = begin + kept
        table[tile, 0], table[tile, 1], table[tile, 2], table[tile, 3] = kept, line, lines, ring
        table[tile, 4] = stop - fresh
        if fresh < end:
            bumped[fresh:stop] = False
            bumped[stop:end] = True
            if stop < end:
                some_bumped = end
        if pointers[stop] > pointers[fresh]:
            runs[newest, 0], runs[newest, 1], runs[newest, 2] = fresh, stop, line
            newest += 1
            tail = line + -(-(pointers[stop] - pointers[fresh]) // lanes)
        begin_before, end_before = begin, max(end, end_before)
    return table
