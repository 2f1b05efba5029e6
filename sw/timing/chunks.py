"""Chunks in which rows of A come that are cut along k (:mod:`rtl.accessor.segment_scanner`), as the simulator of jobs asks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .bus import fetch
from .constants import ANSWER_CYCLES, CHUNK_CYCLES
from .hardware import FIRST_CHUNK_LINES, LATER_CHUNKS, LATER_LINES, NEXT_CHUNK_LINES, SCANNED_ROWS, SECOND_LINES

__all__ = ["NOT_SCANNED", "Chunks", "Scanned", "scan", "scan_cycles", "scan_ports", "scanned_lines"]

# Ports, one for each kind of chunk.
FIRST, SECOND, LATER = range(3)


class Scanned(NamedTuple):
    """What a scan asks for to see some nonzeros of a row: ``chunks`` behind the second one, ``lines`` of all.

    ``closing``: lines of the last of these chunks where it is the last of the row, else 0.
    """

    chunks: int = 0
    lines: int = 0
    closing: int = 0


# Rows that are read whole.
NOT_SCANNED = Scanned()


class Chunks(NamedTuple):
    """Chunks of rows: first and second ones, those behind them, and lines of the second ones."""

    first: int = 0
    second: int = 0
    later: int = 0
    second_lines: int = 0

    @property
    def bursts(self) -> int:
        """Each is one."""
        return self.first + self.second + self.later


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
def scanned_lines(begin: int, first: int, end: int, row_end: int, lanes: int) -> Scanned:
    """What a scan from nonzero ``begin`` on asks for to see nonzeros ``first`` to ``end``.

    Where ``end`` is that of the row, ``row_end``, the nonzero before it is the last.
    """
    last = min(end, row_end - 1)
    if last < begin:
        return Scanned(0, 0, 0)
    chunks, lines = _later_chunks(begin, last, lanes), _asked_lines(begin, last, row_end, lanes)
    closing = 0
    if chunks and begin // lanes + lines == -(-row_end // lanes):
        closing = (begin // lanes + lines - 1) % NEXT_CHUNK_LINES + 1
    if first > begin:
        chunks -= _later_chunks(begin, first, lanes)
        lines -= _asked_lines(begin, first, row_end, lanes)
    return Scanned(chunks, lines, closing if chunks else 0)


def scan_cycles(chunks: Chunks, latency: float, line: float) -> float:
    """Cycles in which a scan's chunks come at the soonest. ``latency``, ``line``: as :func:`scan`."""
    trip = latency + ANSWER_CYCLES + CHUNK_CYCLES
    of_first = chunks.first / SCANNED_ROWS
    of_second = max(chunks.second / LATER_CHUNKS, chunks.second_lines / SECOND_LINES) + (chunks.second > 0)
    return max(trip * max(of_first, of_second), chunks.later * (trip + NEXT_CHUNK_LINES * line))


@njit(cache=True)
def scan_ports(latency: float) -> NDArray[Any]:
    """Ports of a scan that begins: no second chunk is there before a first one has been looked at."""
    return np.array([0.0, latency + ANSWER_CYCLES + CHUNK_CYCLES, 0.0])


@njit(cache=True, counted=False)
def scan(
    bus: NDArray[Any],
    ports: NDArray[Any],
    present: float,
    begins: bool,
    nonzeros: int,
    chunks: int,
    lines: int,
    closing: int,
    latency: float,
    line: float,
) -> float:
    """When ``nonzeros`` of A have been looked at, in so many ``lines``, with ``chunks`` behind their row's second one.

    First and second chunks of some rows are under way at a time. Each of those behind them is asked for when the one before has
    been seen, and its lines wait for those before; after the last one of a row, of ``closing`` lines, only for want of space.

    Parameters
    ----------
    ports: when the next first chunk and the next second one can be there at the soonest, and the next later one asked for.
    present: when the nonzeros before these have been looked at. begins: the row does.
    latency, line: cycles of memory to a first line, and of the bus for each.
    """
    trip = latency + ANSWER_CYCLES + CHUNK_CYCLES
    if lines and begins:
        of_second = min(NEXT_CHUNK_LINES, lines - FIRST_CHUNK_LINES)
        for port, share in ((FIRST, 1 / SCANNED_ROWS), (SECOND, max(1 / LATER_CHUNKS, of_second / SECOND_LINES))):
            if port == FIRST or of_second > 0:
                ports[port] = max(ports[port], present - trip) + trip * share
                present = max(present, ports[port])
    each = nonzeros // (chunks + 1)
    present += nonzeros - chunks * each
    # The first of them is asked for in time where no other one is.
    ports[LATER] = max(ports[LATER], present - trip - NEXT_CHUNK_LINES * line)
    for chunk in range(chunks):
        asked, closes = ports[LATER], closing > 0 and chunk == chunks - 1
        first, end = fetch(bus, asked, closing if closes else NEXT_CHUNK_LINES, latency, line)
        ports[LATER] = max(end, present) + CHUNK_CYCLES
        if closes:
            ports[LATER] = asked + (ports[LATER] - asked) * closing / LATER_LINES
        present = max(present, first + CHUNK_CYCLES) + each
    return present
