"""The cost of reading fiber segments out of rows: bus lines of a scan, lines of a fetch, number of segments.

Rules of the machine (HYTE 6.2 over our bus): the end of a segment is known only when it has been read. So each row is
scanned from its begin position in chunks, first to the end of the aligned block of 2 lines, then of 16 lines, never
beyond the row. A row with nothing left costs nothing; any other costs a chunk, even when its segment is empty.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES

from .pattern import Index, Pattern

__all__ = [
    "ScanProfile",
    "prefix_profile",
    "row_lines",
    "rows_by_length",
    "scan_profile",
]

# A row is walked once for each tile along it; above this many steps rows are sampled.
MOST_STEPS = 1 << 18


@dataclass(frozen=True, eq=False)
class ScanProfile:
    """A matrix whose rows are cut into tiles of ``T`` columns, scaled up from the sampled rows.

    Parameters
    ----------
    beats: bus lines scanned in each step along the rows, all rows together.
    segments: nonempty segments, all steps together.
    fetches: uses of nonempty segments, when each use of a row uses all its segments.
    fetch_lines: bus lines of these uses, each segment fetched alone.
    by_bits: nonempty segments by the bit length of their number of nonzeros. nonzeros_by_bits: their nonzeros.
    """

    beats: NDArray[np.float64]
    segments: float
    fetches: float
    fetch_lines: float
    by_bits: NDArray[np.float64]
    nonzeros_by_bits: NDArray[np.float64]


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
    """Profile of tiles ``T`` columns wide; ``uses`` is how often each row is used.

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
    beats, segments, fetches, lines, by_bits, nonzeros_by_bits = _scan(
        matrix.pointers, matrix.coordinates, picked, uses, T, steps, lanes
    )
    return ScanProfile(
        beats * scale, segments * scale, fetches * scale, lines * scale, by_bits * scale, nonzeros_by_bits * scale
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
    nonzeros_by_bits = np.zeros(64, np.float64)
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
                nonzeros_by_bits[bits] += q - p
                fetches += uses[row]
                fetch_lines += uses[row] * ((q - 1) // lanes - line + 1)
            p = q
            step += 1
    return beats, segments, fetches, fetch_lines, by_bits, nonzeros_by_bits


def prefix_profile(matrix: Pattern, T: int, capacity: Index, lanes: int, uses: Index) -> tuple[int, int, int, int]:
    """Whole rows in tiles of ``T`` rows, of which only the first ones up to ``capacity[tile]`` nonzeros are kept.

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
