"""What it costs to take fiber segments out of rows: bus lines of a scan, lines of a fetch, how many segments there are.

Rules of the machine (HYTE 6.2 over our bus): where a segment ends shows only when it has been read, so each row is
scanned from its begin position in chunks, first to the end of the aligned block of 2 lines, then of 16 lines, never
beyond the row; a row that has nothing left costs nothing, one that has costs a chunk even when its segment is empty.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .pattern import Index, Pattern

__all__ = [
    "FIRST_CHUNK_LINES",
    "NEXT_CHUNK_LINES",
    "Fetched",
    "Fetched",
    "Pace",
    "ScanProfile",
    "prefix_profile",
    "row_lines",
    "rows_by_length",
    "scan_profile",
    "window_profile",
]

FIRST_CHUNK_LINES = 2
NEXT_CHUNK_LINES = 16
# A row is walked once for each tile along it; this many steps are looked at before rows are sampled.
MOST_STEPS = 1 << 18


@dataclass(frozen=True, eq=False)
class ScanProfile:
    """A matrix whose rows are cut into tiles of ``T`` columns, scaled up from the rows looked at.

    Parameters
    ----------
    beats: bus lines scanned in each step along the rows, all rows together.
    segments: nonempty segments, all steps together.
    fetches: uses of nonempty segments, when each use of a row uses all its segments.
    fetch_lines: bus lines of these uses, each segment fetched alone.
    by_bits: nonempty segments by the bit length of their number of elements. elements_by_bits: their elements.
    """

    beats: NDArray[np.float64]
    segments: float
    fetches: float
    fetch_lines: float
    by_bits: NDArray[np.float64]
    elements_by_bits: NDArray[np.float64]


def row_lines(matrix: Pattern, lanes: int) -> Index:
    """Bus lines that each row touches."""
    begin, end = matrix.pointers[:-1], matrix.pointers[1:]
    return np.where(end > begin, (end - 1) // lanes - begin // lanes + 1, 0)


def rows_by_length(matrix: Pattern) -> Index:
    """Rows that are not empty, shortest first."""
    lengths = matrix.row_lengths
    filled = np.flatnonzero(lengths)
    return filled[np.argsort(lengths[filled], kind="stable")]


def scan_profile(matrix: Pattern, T: int, lanes: int, uses: Index, ordered: Index | None = None) -> ScanProfile:
    """Profile of tiles ``T`` columns wide; ``uses`` says how often each row is wanted.

    Rows are taken at regular distances from the list sorted by length (``ordered``, found when not given), so that few
    of them stand for all.
    """
    steps = -(-matrix.columns // T)
    filled = rows_by_length(matrix) if ordered is None else ordered
    wanted = max(256, MOST_STEPS // steps)
    if len(filled) > wanted:
        lengths = matrix.row_lengths
        picked = filled[np.linspace(0, len(filled) - 1, wanted).astype(np.int64)]
        # Each length class is represented; what remains of the error in the total is taken out here.
        scale = matrix.nnz / max(1, int(lengths[picked].sum()))
        scale_rows = len(filled) / wanted
        scale = min(max(scale, 0.5 * scale_rows), 2 * scale_rows)
    else:
        picked, scale = filled, 1.0
    beats, segments, fetches, lines, by_bits, elements_by_bits = _scan(
        matrix.pointers, matrix.coordinates, picked, uses, T, steps, lanes
    )
    return ScanProfile(
        beats * scale, segments * scale, fetches * scale, lines * scale, by_bits * scale, elements_by_bits * scale
    )


@njit(cache=True)
def _scan(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    rows: NDArray[Any],
    uses: NDArray[Any],
    T: int,
    steps: int,
    lanes: int,
) -> tuple[NDArray[Any], float, float, float, NDArray[Any], NDArray[Any]]:
    beats = np.zeros(steps, np.float64)
    segments = 0.0
    fetches = 0.0
    fetch_lines = 0.0
    by_bits = np.zeros(64, np.float64)
    elements_by_bits = np.zeros(64, np.float64)
    for row in rows:
        p, end = pointers[row], pointers[row + 1]
        stop = (end + lanes - 1) // lanes
        step = 0
        while p < end:
            high = (step + 1) * T
            q = p
            while q < end and coordinates[q] < high:
                q += 1
            seen = q // lanes if q < end else stop - 1
            line = p // lanes
            to = min(stop, (line // FIRST_CHUNK_LINES + 1) * FIRST_CHUNK_LINES)
            while seen >= to:
                to = min(stop, (to // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES)
            beats[step] += to - line
            if q > p:
                segments += 1
                bits = 0
                while (q - p) >> bits:
                    bits += 1
                by_bits[bits] += 1
                elements_by_bits[bits] += q - p
                fetches += uses[row]
                fetch_lines += uses[row] * ((q - 1) // lanes - line + 1)
            p = q
            step += 1
    return beats, segments, fetches, fetch_lines, by_bits, elements_by_bits


def prefix_profile(matrix: Pattern, T: int, capacity: Index, lanes: int, uses: Index) -> tuple[int, int, int, int]:
    """Whole rows in tiles of ``T`` rows, of which only the first ones up to ``capacity[tile]`` elements are kept.

    Returns bus lines that loading takes, lines fetched at the uses of bumped rows, MACs on bumped rows, and tiles
    that do not fit: all exact.
    """
    load, lines, macs, overbooked = _prefix(matrix.pointers, T, capacity, lanes, uses)
    return int(load), int(lines), int(macs), int(overbooked)


@njit(cache=True)
def _prefix(
    pointers: NDArray[Any], T: int, capacity: NDArray[Any], lanes: int, uses: NDArray[Any]
) -> tuple[int, int, int, int]:
    rows = len(pointers) - 1
    load = 0
    bumped_lines = 0
    bumped_macs = 0
    overbooked = 0
    for tile in range((rows + T - 1) // T):
        first, stop = tile * T, min(rows, (tile + 1) * T)
        begin = pointers[first]
        row = first
        while row < stop and pointers[row + 1] - begin <= capacity[tile]:
            row += 1
        if pointers[row] > begin:
            load += (pointers[row] - 1) // lanes - begin // lanes + 1
        if row < stop:
            overbooked += 1
        for r in range(row, stop):
            p, q = pointers[r], pointers[r + 1]
            if q > p:
                bumped_lines += uses[r] * ((q - 1) // lanes - p // lanes + 1)
                bumped_macs += uses[r] * (q - p)
    return load, bumped_lines, bumped_macs, overbooked


class Fetched(NamedTuple):
    """What windows of B move, and how long that takes.

    Parameters
    ----------
    lines, rows, loads: bus lines that loading takes, rows loaded, windows that load any.
    bumped_lines, bumped_macs: lines fetched at the uses of bumped rows, MACs on them. overbooked: loads that bump rows.
    cycles: of all tiles, each as long as the bus needs for it, or as its rows wait for theirs of B and then take.
    """

    lines: int
    rows: int
    loads: int
    bumped_lines: int
    bumped_macs: int
    overbooked: int
    cycles: float


class Pace(NamedTuple):
    """Cycles of a bus line; of an element of A that is looked up and merged; lines that move beside B's for each of these."""

    line: float
    element: float
    others: float


def window_profile(
    pointers: Index,
    places: Index,
    rows: tuple[Index, Index],
    T_i: int,
    windows: Index,
    fresh: Index,
    held: Index,
    lanes: int,
    pace: Pace,
) -> Fetched:
    """Tiles of whole rows of B, a window of places for each ``T_i`` rows of A, that load what the windows before have not.

    Parameters
    ----------
    pointers, places: rows of A, and where the row of B stands that each element uses.
    rows: begin and end of the row of B at each place; within a window they rise in memory.
    windows: int64[tiles, 2], begin and end.
    fresh, held: int64[tiles], the first place that each window loads, and how many of those up to its end find room.

    Returns what moves, exact, and an estimate of the time.
    """
    found = _windows(pointers, places, *rows, T_i, windows, fresh, held, lanes, *pace)
    return Fetched(*found)


@njit(cache=True)
def _windows(
    pointers: NDArray[Any],
    places: NDArray[Any],
    row_begin: NDArray[Any],
    row_end: NDArray[Any],
    T_i: int,
    windows: NDArray[Any],
    fresh: NDArray[Any],
    held: NDArray[Any],
    lanes: int,
    line_cycles: float,
    element_cycles: float,
    other_lines: float,
) -> tuple[int, int, int, int, int, int, float]:
    rows = len(pointers) - 1
    load, loaded_rows, loads, bumped_lines, bumped_macs, overbooked = 0, 0, 0, 0, 0, 0
    cycles = 0.0
    bumped = np.zeros(len(row_begin), np.bool_)
    there = np.zeros(len(row_begin), np.int64)  # lines of the load at hand until the row at a place has come
    for tile in range(len(windows)):
        end = windows[tile, 1]
        first = fresh[tile]
        lines = 0
        if first < end:
            stop = first + held[tile]
            loads += 1
            loaded_rows += end - first
            before = -1  # the last line read
            for place in range(first, end):
                q, r = row_begin[place], row_end[place]
                bumped[place] = place >= stop
                if r > q and place < stop:
                    last = (r - 1) // lanes
                    lines += last - max(q // lanes, before + 1) + 1
                    before = last
                there[place] = lines
            if stop < end:
                overbooked += 1
            load += lines
        low, high = pointers[tile * T_i], pointers[min(rows, (tile + 1) * T_i)]
        wait = 0.0
        fetched = 0
        for position in range(low, high):
            place = places[position]
            if bumped[place]:
                q, r = row_begin[place], row_end[place]
                if r > q:
                    fetched += (r - 1) // lanes - q // lanes + 1
                    bumped_macs += r - q
            if place >= first:
                came = there[place] if not bumped[place] else lines
                wait = max(wait, came * line_cycles - (position - low) * element_cycles)
        bumped_lines += fetched
        moved = (lines + fetched + (high - low) * other_lines) * line_cycles
        cycles += max(moved, wait + (high - low) * element_cycles)
    return load, loaded_rows, loads, bumped_lines, bumped_macs, overbooked, cycles
