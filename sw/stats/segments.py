"""The cost of reading fiber segments out of rows: lines and beats of a scan and of a fetch, number of segments.

A line is as many nonzeros as lie in a beat of the bus unpacked; a beat of packed records holds more of them.

Rules of the machine (HYTE 6.2 over our bus): the end of a segment is known only when it has been read. So each row is
scanned from its begin position in chunks, first to the end of the aligned block of 2 lines, then of 16 lines, never
beyond the row. A row with nothing left costs nothing; any other costs a chunk, even when its segment is empty.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES
from sw.timing.record_beats import beats_of_lines

from .pattern import Index, Pattern

__all__ = [
    "PrefixProfile",
    "ScanProfile",
    "prefix_profile",
    "row_beats",
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
    lines, beats: scanned in each step along the rows, all rows together.
    segments: nonempty segments, all steps together.
    fetches: uses of nonempty segments, when each use of a row uses all its segments.
    fetch_lines, fetch_beats: of these uses, each segment fetched alone.
    by_bits: nonempty segments by the bit length of their number of nonzeros. nonzeros_by_bits: their nonzeros.
    """

    lines: NDArray[np.float64]
    beats: NDArray[np.float64]
    segments: float
    fetches: float
    fetch_lines: float
    fetch_beats: float
    by_bits: NDArray[np.float64]
    nonzeros_by_bits: NDArray[np.float64]


def row_lines(matrix: Pattern, lanes: int) -> Index:
    """Bus lines that each row touches."""
    begin, end = matrix.pointers[:-1], matrix.pointers[1:]
    return np.where(end > begin, (end - 1) // lanes - begin // lanes + 1, 0)


def row_beats(matrix: Pattern, lanes: int, width: int) -> Index:
    """Beats that each row of records of ``width`` bits takes."""
    return np.asarray(_row_beats(matrix.pointers, lanes, width))


@njit(cache=True)
def _row_beats(pointers: NDArray[Any], lanes: int, width: int) -> NDArray[np.int64]:
    beats = np.zeros(len(pointers) - 1, np.int64)
    for row in range(len(beats)):
        begin, end = pointers[row], pointers[row + 1]
        if end > begin:
            beats[row] = beats_of_lines(begin // lanes, (end - 1) // lanes + 1, width)
    return beats


def rows_by_length(matrix: Pattern) -> Index:
    """Rows that are not empty, shortest first."""
    lengths = matrix.row_lengths
    filled = np.flatnonzero(lengths)
    return filled[np.argsort(lengths[filled], kind="stable")]


def scan_profile(
    matrix: Pattern, T: int, lanes: int, uses: Index, width: int, ordered: Index | None = None
) -> ScanProfile:
    """Profile of tiles ``T`` columns wide; ``uses`` is how often each row is used, ``width`` bits of a record.

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
    counted = _scan(matrix.pointers, matrix.coordinates, picked, uses, T, steps, lanes, width)
    return ScanProfile(*(found * scale for found in counted))


@njit(cache=True)
def _scan(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    rows: NDArray[Any],
    uses: NDArray[Any],
    T: int,
    steps: int,
    lanes: int,
    width: int,
) -> tuple[NDArray[Any], NDArray[Any], float, float, float, float, NDArray[Any], NDArray[Any]]:
    lines = np.zeros(steps, np.float64)
    beats = np.zeros(steps, np.float64)
    segments = 0.0
    fetches = 0.0
    fetch_lines = 0.0
    fetch_beats = 0.0
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
            chunk, to = line, min(stop, (line // FIRST_CHUNK_LINES + 1) * FIRST_CHUNK_LINES)
            beats[step] += beats_of_lines(chunk, to, width)
            while seen >= to:
                chunk, to = to, min(stop, (to // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES)
                beats[step] += beats_of_lines(chunk, to, width)
            lines[step] += to - line
            if q > p:
                segments += 1
                bits = 0
                while (q - p) >> bits:
                    bits += 1
                by_bits[bits] += 1
                nonzeros_by_bits[bits] += q - p
                fetches += uses[row]
                fetch_lines += uses[row] * ((q - 1) // lanes - line + 1)
                fetch_beats += uses[row] * beats_of_lines(line, (q - 1) // lanes + 1, width)
            p = q
            step += 1
    return lines, beats, segments, fetches, fetch_lines, fetch_beats, by_bits, nonzeros_by_bits


class PrefixProfile(NamedTuple):
    """Lines and beats that loading takes, uses of bumped rows, their lines, beats and MACs, and tiles that do not fit."""

    lines: int
    beats: int
    bumped_uses: int
    bumped_lines: int
    bumped_beats: int
    bumped_macs: int
    overbooked: int


def prefix_profile(matrix: Pattern, T: int, capacity: Index, lanes: int, uses: Index, width: int) -> PrefixProfile:
    """Whole rows in tiles of ``T`` rows, of which only the first ones up to ``capacity[tile]`` nonzeros are kept.

    ``width``: bits of a record. All is exact.
    """
    return PrefixProfile(*map(int, _prefix(matrix.pointers, T, capacity, lanes, uses, width)))


@njit(cache=True)
def _prefix(
    pointers: NDArray[Any], T: int, capacity: NDArray[Any], lanes: int, uses: NDArray[Any], width: int
) -> tuple[int, int, int, int, int, int, int]:
    rows = len(pointers) - 1
    load = load_beats = 0
    bumped_uses = bumped_lines = bumped_beats = bumped_macs = 0
    overbooked = 0
    for tile in range((rows + T - 1) // T):
        first, stop = tile * T, min(rows, (tile + 1) * T)
        begin = pointers[first]
        row = first
        while row < stop and pointers[row + 1] - begin <= capacity[tile]:
            row += 1
        if pointers[row] > begin:
            end_line = (pointers[row] - 1) // lanes + 1
            load += end_line - begin // lanes
            load_beats += beats_of_lines(begin // lanes, end_line, width)
        if row < stop:
            overbooked += 1
        for r in range(row, stop):
            p, q = pointers[r], pointers[r + 1]
            if q > p:
                end_line = (q - 1) // lanes + 1
                bumped_uses += uses[r]
                bumped_lines += uses[r] * (end_line - p // lanes)
                bumped_beats += uses[r] * beats_of_lines(p // lanes, end_line, width)
                bumped_macs += uses[r] * (q - p)
    return load, load_beats, bumped_uses, bumped_lines, bumped_beats, bumped_macs, overbooked
