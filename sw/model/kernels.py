"""Numba kernels of the trace-driven model: what scans, reads and rows of C are made of, from the real nonzeros."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.timing.record_beats import beats_of_lines

__all__ = [
    "beats_of_runs",
    "boundaries",
    "fiber_counts",
    "kept_rows",
    "part_lengths",
    "scan_rows",
]


@njit(cache=True)
def boundaries(
    pointers: NDArray[Any], coordinates: NDArray[Any], begin: NDArray[Any], boundary: int
) -> NDArray[np.int64]:
    """For each row the position of its first nonzero at or beyond ``boundary``, searched from ``begin`` on."""
    rows = len(pointers) - 1
    found = np.empty(rows, np.int64)
    for row in range(rows):
        low, high = begin[row], pointers[row + 1]
        while low < high:
            middle = (low + high) // 2
            if coordinates[middle] < boundary:
                low = middle + 1
            else:
                high = middle
        found[row] = low
    return found


@njit(cache=True)
def scan_rows(
    begin: NDArray[Any],
    row_end: NDArray[Any],
    segment_end: NDArray[Any],
    lanes: int,
    pitch: int,
    first_chunk: int,
    next_chunk: int,
) -> tuple[int, int, int, int, int]:
    """What a scan reads (``rtl.accessor.segment_scanner``): chunks until the line that shows the segment's end.

    A beat that two chunks share is read for each of them. ``pitch``: of lines (:mod:`sw.timing.record_beats`).

    Returns beats, and what :class:`sw.timing.chunks.Chunks` says.
    """
    total = rows = seconds = later = second_lines = 0
    for row in range(len(begin)):
        if begin[row] == row_end[row]:
            continue
        line = begin[row] // lanes
        stop = -(-row_end[row] // lanes)
        shows = segment_end[row] // lanes if segment_end[row] < row_end[row] else stop - 1
        to = min((line // first_chunk + 1) * first_chunk, stop)
        total += beats_of_lines(line, to, pitch)
        rows += 1
        if to <= shows:
            seconds += 1
            later -= 1
            second_lines += min((to // next_chunk + 1) * next_chunk, stop) - to
        while to <= shows:
            line = to
            to = min((to // next_chunk + 1) * next_chunk, stop)
            total += beats_of_lines(line, to, pitch)
            later += 1
    return total, rows, seconds, later, second_lines


@njit(cache=True)
def beats_of_runs(begin: NDArray[Any], end: NDArray[Any], lanes: int, pitch: int) -> int:
    """Beats of runs of nonzeros that rise in memory, whose lines have this ``pitch``.

    A line that holds nonzeros of two runs is read once, and lines that follow one another are read as one run. Behind a gap a
    beat that was read is read anew.
    """
    beats, first, stop = 0, 0, 0
    for n in range(len(begin)):
        if begin[n] < end[n]:
            line = begin[n] // lanes
            if line > stop:
                beats += beats_of_lines(first, stop, pitch)
                first = line
            stop = (end[n] - 1) // lanes + 1
    return beats + beats_of_lines(first, stop, pitch)


@njit(cache=True)
def fiber_counts(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b_coordinates: NDArray[Any],
    columns: int,
    tile_k: int,
    tiles_k: int,
) -> NDArray[np.int32]:
    """int32[rows, tiles_k]: nonzeros of each row of C within one j tile after each k step."""
    rows = len(a_pointers) - 1
    counts = np.zeros((rows, tiles_k), np.int32)
    stamp = np.full(columns, -1, np.int64)
    for row in range(rows):
        count = 0
        kt = 0
        for position in range(a_pointers[row], a_pointers[row + 1]):
            k = a_coordinates[position]
            while k >= (kt + 1) * tile_k:
                counts[row, kt] = count
                kt += 1
            for at in range(b_begin[k], b_end[k]):
                j = b_coordinates[at]
                if stamp[j] != row:
                    stamp[j] = row
                    count += 1
        for rest in range(kt, tiles_k):
            counts[row, rest] = count
    return counts


@njit(cache=True)
def part_lengths(
    first_row: int,
    last_row: int,
    a_begin: NDArray[Any],
    a_end: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b_coordinates: NDArray[Any],
    columns: int,
) -> NDArray[np.int64]:
    """Nonzeros of the part that one tile makes of each of its rows of C."""
    lengths = np.zeros(last_row - first_row, np.int64)
    stamp = np.full(columns, -1, np.int64)
    for row in range(first_row, last_row):
        for position in range(a_begin[row], a_end[row]):
            k = a_coordinates[position]
            for at in range(b_begin[k], b_end[k]):
                if stamp[b_coordinates[at]] != row:
                    stamp[b_coordinates[at]] = row
                    lengths[row - first_row] += 1
    return lengths


@njit(cache=True)
def kept_rows(
    first_row: int,
    last_row: int,
    a_begin: NDArray[Any],
    a_end: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    carry: bool,
    partial: NDArray[Any],
    columns: int,
    lengths: NDArray[Any],
    capacity: int,
) -> NDArray[np.bool_]:
    """Which rows of a partial C tile stay on chip (``rtl.accessor.partial_store``): those whose most nonzeros still fit."""
    kept = np.zeros(last_row - first_row, np.bool_)
    position = 0
    for row in range(first_row, last_row):
        bound = partial[row - first_row]
        if not carry:
            for at in range(a_begin[row], a_end[row]):
                k = a_coordinates[at]
                bound += b_end[k] - b_begin[k]
        if position + min(bound, columns) <= capacity:
            kept[row - first_row] = True
            position += lengths[row - first_row]
    return kept
