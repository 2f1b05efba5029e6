"""How the rows of a tile pass a weight-stationary engine: A comes from memory, the bus takes it, rows of C leave.

Each row is followed through the queues of the hardware, so that what waits for what comes out by itself: the columns for the
first nonzero of A, lines of B for those of A that were asked for before, rows of C for the next row in which something meets.
Times are cycles from the tile's begin.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.timing.constants import (
    ARRAY_ROWS,
    CHUNK_ANSWER_CYCLES,
    COLUMN_REQUEST_CYCLES,
    COLUMN_WORD_CYCLES,
    FIRST_LINE_CYCLES,
    FIRST_NONZERO_CYCLES,
    FLYING_CYCLES,
    KEPT_COLUMN_CYCLES,
    LINES_BEHIND,
    LOOKUP_REQUEST_CYCLES,
    MEMORY_CYCLES,
    NEXT_CHUNK_CYCLES,
    PARTIAL_CYCLES,
    ROW_REQUEST_CYCLES,
    SCANNED_NONZERO_CYCLES,
)
from sw.timing.hardware import (
    FIRST_CHUNK_LINES,
    LATER_CHUNKS,
    NEXT_CHUNK_LINES,
    PEEKED_LINES,
    QUEUED_LINES,
    READ_FIBERS,
    SCANNED_ROWS,
    WHOLE_ROWS,
)

__all__ = ["Columns", "Memory", "Rows", "cut_rows", "whole_rows"]


class Memory(NamedTuple):
    """``lanes`` of a line, lines of a ``burst``, ``latency``, cycles of the bus for a line, bursts ``outstanding``."""

    lanes: int
    burst: int
    latency: int
    line: float
    outstanding: int


class Rows(NamedTuple):
    """The rows of a tile.

    Parameters
    ----------
    begin, end: positions in A of what the tile has of each row. met: something of it meets a column.
    waits: cycles of the bus for columns that overflow. leaving: cycles in which each row of C is joined and taken.
    back: a partial row comes from memory to it. opens: when the place of the first one is known.
    """

    begin: NDArray[Any]
    end: NDArray[Any]
    met: NDArray[Any]
    waits: NDArray[Any]
    leaving: NDArray[Any]
    back: NDArray[Any]
    opens: float


class Columns(NamedTuple):
    """``words`` that go to the PEs before the first nonzero of A, 0 where they are there; ``on_chip``: from B's partition.

    ``loaded``: the cycle from which B's partition can be used.
    """

    words: int
    on_chip: bool
    loaded: int


@njit(cache=True)
def _join(
    row: int,
    rows: Rows,
    came: float,
    latency: int,
    left: NDArray[np.float64],
    popped: NDArray[np.float64],
    state: NDArray[np.float64],
) -> float:
    """A row has passed the bus; returns when, since no more than a few wait in the array for the joiner.

    ``left``, ``popped``: when each row of C has left, and each row of the array. ``state``: when the last row of C left, rows of
    C that have left, rows of the array.
    """
    count = rows.end[row] - rows.begin[row]
    of_array = int(state[2])
    if count and of_array >= ARRAY_ROWS:
        came = max(came, popped[of_array - ARRAY_ROWS])
    if rows.met[row] or row == len(rows.begin) - 1:
        # Only now is it known what the array has for the rows before.
        for n in range(int(state[1]), row + 1):
            state[0] = max(state[0], came)
            if rows.back[n]:  # asked for when one of the rows before has left
                begun = left[n - READ_FIBERS] if n >= READ_FIBERS else rows.opens
                state[0] = max(state[0], begun + latency + PARTIAL_CYCLES)
            state[0] += rows.leaving[n]
            left[n] = state[0]
        state[1] = row + 1
    if count:
        before = popped[of_array - 1] if of_array else 0.0
        popped[of_array] = state[0] if rows.met[row] else max(came, before)
        state[2] += 1
    return came


@njit(cache=True)
def _last(rows: Rows, came: float, state: NDArray[np.float64]) -> float:
    """When the last row of C begins to leave."""
    return max(came, state[0] - rows.leaving[-1])


@njit(cache=True)
def whole_rows(rows: Rows, columns: Columns, comes: bool, memory: Memory) -> float:
    """When the last row of C begins to leave, k whole: A's lines are asked for as pointers come, a burst of them at a time.

    ``comes``: A comes from memory.
    """
    lanes, burst, latency, beat, _ = memory
    trip = latency + MEMORY_CYCLES
    begin, end = rows.begin, rows.end
    count = len(begin)
    done, left, popped = np.zeros(count, np.float64), np.zeros(count, np.float64), np.zeros(count, np.float64)
    state = np.array([rows.opens, 0.0, 0.0])
    arrives = np.zeros(count, np.float64)  # the last line of each row
    requests, answered = np.zeros(count + 1, np.float64), np.zeros(count + 1, np.float64)
    many = 0  # of them
    pointer = float(FIRST_LINE_CYCLES + latency - 1)  # when the last row's pointer came
    known = asked = 0  # rows whose pointers have come, and whose lines are asked for
    origin = begin[0] // lanes
    seen, lines = origin, 0
    ready = columns.words == 0
    came = 0.0
    for row in range(count):
        while comes and (asked <= row or (known < count and known - row < WHOLE_ROWS)):
            full = known - row >= WHOLE_ROWS or seen - max(origin, begin[row] // lanes) >= QUEUED_LINES
            if known < count and not full:
                pointer += 1
                if known >= WHOLE_ROWS:
                    pointer = max(pointer, done[known - WHOLE_ROWS])
                if row and seen - max(origin, begin[row - 1] // lanes) >= QUEUED_LINES:
                    pointer = max(pointer, came)
                stop = -(-end[known] // lanes)
                if end[known] > begin[known] and stop > seen:
                    lines += stop - max(seen, begin[known] // lanes)
                    seen = stop
                known += 1
                if known < count and lines < burst:
                    continue
            elif asked > row:
                break
            # Enough for a burst, or no further row is at hand.
            arrival = pointer + ROW_REQUEST_CYCLES
            if lines:
                requests[many] = arrival
                arrival = max(arrival + trip, answered[many - 1] if many else 0.0)
                answered[many] = arrival + lines * beat
                many += 1
            for n in range(asked, known):
                arrives[n] = arrival + lines * beat * (n - asked + 1) / (known - asked)
            asked, lines = known, 0
        some = end[row] - begin[row]
        start = came
        if comes:
            start = max(start, arrives[row] - (some // lanes if some else 0) * beat + FIRST_NONZERO_CYCLES)
        if some and not ready:
            ready = True
            start = max(start, columns.loaded)
            if columns.on_chip:
                start += KEPT_COLUMN_CYCLES
            else:
                # Where each column is, then its nonzeros: behind what of A was asked for before.
                for request in (LOOKUP_REQUEST_CYCLES, COLUMN_REQUEST_CYCLES):
                    at = start + request
                    start = at + trip
                    for n in range(many):
                        if requests[n] <= at:
                            start = max(start, answered[n])
                    start += COLUMN_WORD_CYCLES
            start += columns.words
        came = start + max(some, 1) + rows.waits[row]
        if some and comes:
            came = max(came, arrives[row] + FIRST_NONZERO_CYCLES)
        came = _join(row, rows, came, latency, left, popped, state)
        done[row] = came
    return _last(rows, came, state)


@njit(cache=True)
def cut_rows(
    rows: Rows,
    scanned: NDArray[Any],
    row_end: NDArray[Any],
    written: float,
    asked: float,
    columns: Columns,
    memory: Memory,
) -> float:
    """The same, k cut: a row is read in chunks, from the position where the tile before ended to the line that shows its end.

    ``scanned``: these positions. ``row_end``: where rows end.
    ``written``: cycles of the bus that are written for each row. ``asked``: when the first chunk can be asked for.
    """
    lanes, _, latency, beat, outstanding = memory
    trip = latency + CHUNK_ANSWER_CYCLES
    pace = (latency + FLYING_CYCLES) / outstanding  # of bursts, of which so many are under way
    begin, end = rows.begin, rows.end
    count = len(begin)
    done, left, popped = np.zeros(count, np.float64), np.zeros(count, np.float64), np.zeros(count, np.float64)
    state = np.array([rows.opens, 0.0, 0.0])
    later = np.zeros(count, np.float64)  # when rows with a second chunk have passed
    many = 0
    chunk, second, alone = asked - 1, asked, 0.0
    looked, taken = np.zeros(2, np.int64), np.zeros(2, np.int64)  # of first and second chunks: lines, rows before
    kept = np.zeros((2, count), np.int64)
    ports = np.zeros(3, np.float64)  # of first, second and later chunks: when lines of the next row can leave
    tokens = asked - outstanding * pace
    free = 0.0  # of the bus, for first chunks
    ready = columns.words == 0
    came, before = 0.0, 0
    for row in range(count):
        chunk += 1
        if row >= SCANNED_ROWS:
            chunk = max(chunk, done[row - SCANNED_ROWS])
        first = chunk
        bursts = int(rows.back[row])
        some = end[row] - begin[row]
        last = 0.0  # when the last nonzero is there
        chunks, dropped, empty = 0, 0, 0
        if scanned[row] < row_end[row]:
            chunk = max(chunk, tokens)
            stop = -(-row_end[row] // lanes)
            shows = end[row] // lanes if end[row] < row_end[row] else stop - 1  # the line that shows the segment's end
            line = scanned[row] // lanes
            to = min((line // FIRST_CHUNK_LINES + 1) * FIRST_CHUNK_LINES, stop)
            first = max(chunk + trip, free)
            free = arrival = first + (to - line) * beat
            chunks = 1
            # Lines that have been looked at wait for their row, as many as there is a place for.
            looked[0] += min(to, shows + 1) - line
            kept[0, row] = looked[0]
            while kept[0, taken[0]] + PEEKED_LINES + LINES_BEHIND < looked[0]:
                taken[0] += 1
            if taken[0]:
                arrival = max(arrival, done[taken[0] - 1])
            while to <= shows:
                request = arrival + NEXT_CHUNK_CYCLES
                if chunks == 1:
                    request = max(request, second + 1)
                    if many >= LATER_CHUNKS:
                        request = max(request, later[many - LATER_CHUNKS])
                    second = request
                else:
                    request = max(request, alone)
                line, to = to, min((to // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES, stop)
                begun = max(request + trip + SCANNED_NONZERO_CYCLES, ports[min(chunks, 2)])
                arrival = request + trip + (to - line) * beat
                if chunks == 1:
                    looked[1] += min(to, shows + 1) - line
                    kept[1, many] = looked[1]
                    while kept[1, taken[1]] + PEEKED_LINES < looked[1]:
                        taken[1] += 1
                    if taken[1]:
                        more = looked[1] - PEEKED_LINES - kept[1, taken[1] - 1]
                        arrival = max(arrival, later[taken[1] - 1] + more * lanes)
                chunks += 1
                if chunks > 2 and to < stop:
                    alone = arrival  # none of another row is asked for until it is known whether this one goes on
                last = max(last, begun + max(0, end[row] - max(begin[row], line * lanes)))
            bursts += chunks
            dropped = to - shows - 1  # lines of the last chunk, one in a cycle
            empty = int(some > 0 and shows * lanes >= end[row])  # that line has nothing of the segment
        elif row:
            kept[0, row] = kept[0, row - 1]
        tokens = max(tokens, chunk - outstanding * pace) + bursts * pace + written
        start = max(came, first + SCANNED_NONZERO_CYCLES)
        if some:
            start = max(start, columns.loaded)
            if not ready:
                ready = True
                start += KEPT_COLUMN_CYCLES + columns.words
        # What tiles before have left is dropped, a line a cycle, while nonzeros of the row before go on the bus.
        start += max(0, (begin[row] - scanned[row]) // lanes - min(before, LINES_BEHIND * lanes))
        before = some
        came = max(start + max(some, 1) + empty + rows.waits[row], last)
        came = _join(row, rows, came, latency, left, popped, state)
        done[row] = came
        if chunks > 1:
            ports[min(chunks, 3) - 1] = came + dropped
            later[many] = came
            many += 1
    return _last(rows, came, state)
