"""Chunks in which rows of A come that are cut along k (:mod:`rtl.accessor.segment_scanner`), as the simulator of jobs asks."""

from typing import Any

from numpy.typing import NDArray

from sw.jit import njit

from .bus import fetch
from .constants import CHUNK_CYCLES
from .hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES

__all__ = ["scan", "scanned_lines"]


@njit(cache=True, counted=False)
def _later_chunks(begin: int, position: int, lanes: int) -> int:
    """Chunks behind the second one that a scan from nonzero ``begin`` on has asked for when it sees the one at ``position``."""
    second = (begin // lanes // FIRST_CHUNK_LINES + 1) * FIRST_CHUNK_LINES
    later = (second // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES
    return max(0, (position // lanes - later) // NEXT_CHUNK_LINES + 1)


@njit(cache=True, counted=False)
def _asked_lines(begin: int, position: int, row_end: int, lanes: int) -> int:
    """Lines that such a scan has asked for then; the row ends before nonzero ``row_end``."""
    first, seen, stop = begin // lanes, position // lanes, -(-row_end // lanes)
    to = (first // FIRST_CHUNK_LINES + 1) * FIRST_CHUNK_LINES
    if to <= seen:
        to = (max(to, seen) // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES
    return min(to, stop) - first


@njit(cache=True, counted=False)
def scanned_lines(begin: int, first: int, end: int, row_end: int, lanes: int) -> tuple[int, int]:
    """Chunks behind the second one, and lines, that a scan from nonzero ``begin`` on asks for to see ``first`` to ``end``.

    Where ``end`` is that of the row, ``row_end``, the nonzero before it is the last.
    """
    last = min(end, row_end - 1)
    if last < begin:
        return 0, 0
    chunks, lines = _later_chunks(begin, last, lanes), _asked_lines(begin, last, row_end, lanes)
    if first > begin:
        chunks -= _later_chunks(begin, first, lanes)
        lines -= _asked_lines(begin, first, row_end, lanes)
    return chunks, lines


@njit(cache=True, counted=False)
def scan(
    bus: NDArray[Any], asked: float, present: float, nonzeros: int, chunks: int, latency: float, line: float
) -> tuple[float, float]:
    """When ``nonzeros`` of A have been looked at, the last of them in so many ``chunks`` behind the second one of their row.

    Each of these is asked for when the one before it has been seen, the first of them when ``asked``. Its lines wait for those
    before. ``present``: when the nonzeros before these have been looked at. ``latency``, ``line``: cycles of memory to a first
    line, and of the bus for each.

    Returns that time, and when the next chunk may be asked for.
    """
    each = nonzeros // (chunks + 1)
    present += nonzeros - chunks * each
    for _ in range(chunks):
        first, end = fetch(bus, asked, NEXT_CHUNK_LINES, latency, line)
        asked = max(end, present) + CHUNK_CYCLES
        present = max(present, first + CHUNK_CYCLES) + each
    return present, asked
