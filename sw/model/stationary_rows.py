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
    BUFFERED_LINES,
    CHUNK_ANSWER_CYCLES,
    CHUNK_END_CYCLES,
    COLUMN_REQUEST_CYCLES,
    COLUMN_WORD_CYCLES,
    FIRST_LINE_CYCLES,
    FIRST_NONZERO_CYCLES,
    FLYING_CYCLES,
    KEPT_COLUMN_CYCLES,
    LOOKUP_REQUEST_CYCLES,
    MEMORY_CYCLES,
    NEXT_BURST_CYCLES,
    NEXT_CHUNK_CYCLES,
    PARTIAL_CYCLES,
    ROW_REQUEST_CYCLES,
    SCANNED_NONZERO_CYCLES,
)
from sw.timing.hardware import (
    FIRST_CHUNK_LINES,
    LATER_CHUNKS,
    LATER_LINES,
    NEXT_CHUNK_LINES,
    PEEKED_FIRST_LINES,
    PEEKED_LINES,
    QUEUED_LINES,
    READ_FIBERS,
    SCANNED_ROWS,
    WHOLE_ROWS,
)

__all__ = ["Columns", "Memory", "Rows", "bus_cycles", "cut_rows", "whole_rows"]


class Memory(NamedTuple):
    """A line has ``lanes`` nonzeros, a ``burst`` lines; ``outstanding`` bursts are under way.

    ``latency``: of memory, and beside it what nonzeros take in their ``reader``. ``line``: cycles of the bus for a line of A;
    ``passes``: those of the PEs' bus for its nonzeros.
    """

    lanes: int
    burst: int
    latency: int
    reader: int
    line: float
    outstanding: int
    passes: float


class Rows(NamedTuple):
    """The rows of a tile.

    Parameters
    ----------
    begin, end: positions in A of what the tile has of each row. sent: it passes the PEs. met: something of it meets a column.
    passes: cycles of the PEs' bus for its nonzeros. waits: those for columns that overflow.
    leaving: cycles in which each row of C is joined and taken.
    back: a partial row comes from memory to it. opens: when the place of the first one is known.
    """

    begin: NDArray[Any]
    end: NDArray[Any]
    sent: NDArray[Any]
    met: NDArray[Any]
    passes: NDArray[Any]
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


def bus_cycles(begin: NDArray[Any], end: NDArray[Any], together: int, data: int) -> NDArray[np.int64]:
    """Cycles in which each row of A goes on the PEs' bus, ``together`` nonzeros that lie in one line come, and ``data`` leave."""
    some = end - begin
    lines = -(-end // together) - begin // together
    cycles: NDArray[np.int64] = np.where(some > 0, np.maximum(lines, -(-some // data)), 1)
    return cycles


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
    sent = rows.sent[row]
    of_array = int(state[2])
    if sent and of_array >= ARRAY_ROWS:
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
    if sent:
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
    lanes, burst, latency, reader, beat, _, _ = memory
    trip = latency + reader + MEMORY_CYCLES
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
                for request, answer in ((LOOKUP_REQUEST_CYCLES, 0), (COLUMN_REQUEST_CYCLES, reader)):
                    at = start + request
                    start = at + latency + MEMORY_CYCLES + answer
                    for n in range(many):
                        if requests[n] <= at:
                            start = max(start, answered[n])
                    start += COLUMN_WORD_CYCLES
            start += columns.words
        came = start + rows.passes[row] + rows.waits[row]
        if some and comes:
            came = max(came, arrives[row] + FIRST_NONZERO_CYCLES)
        came = _join(row, rows, came, latency, left, popped, state)
        done[row] = came
    return _last(rows, came, state)


class _LaterPort(NamedTuple):
    """The port of third and later chunks. Their lines wait for their row, as many as there is a place for.

    Parameters
    ----------
    times: when the next chunk can be asked for; when the last line came.
    bursts: of those asked for last, in a ring, lines and when all of them have been looked at. asked: how many there were.
    lines: lines that have been looked at, also up to the end of each row before; of all rows with such chunks.
    passed: when these have passed. rows: how many; the first of them that may still have lines.
    """

    times: NDArray[np.float64]
    bursts: NDArray[np.float64]
    asked: NDArray[np.int64]
    lines: NDArray[np.int64]
    passed: NDArray[np.float64]
    rows: NDArray[np.int64]


@njit(cache=True)
def _later_port(rows: int) -> _LaterPort:
    return _LaterPort(
        np.zeros(2, np.float64), np.zeros((LATER_LINES, 2), np.float64), np.zeros(1, np.int64),
        np.zeros(rows + 1, np.int64), np.zeros(rows, np.float64), np.zeros(2, np.int64),
    )  # fmt: skip


@njit(cache=True, counted=False)
def _room(port: _LaterPort, lines: int) -> float:
    """When there is room for so many lines behind those that are asked for."""
    for back in range(1, LATER_LINES + 1):
        at = (port.asked[0] - back) % LATER_LINES
        lines += int(port.bursts[at, 0])
        if lines > LATER_LINES:
            # As each line is looked at there is room for another one.
            left = max(0.0, port.bursts[at, 0] - (lines - LATER_LINES))
            return float(port.bursts[at, 1] - left + NEXT_BURST_CYCLES)
    return 0.0


@njit(cache=True, counted=False)
def _later_chunk(
    port: _LaterPort,
    request: float,
    trip: int,
    line: int,
    to: int,
    shows: int,
    goes_on: bool,
    own: float,
    passes: float,
    beat: float,
) -> tuple[float, float]:
    """When a chunk of the lines from ``line`` to ``to`` is asked for, and when its last line has been looked at.

    ``shows``: the line that shows the end of the segment; those after it are dropped. ``goes_on``: the row has lines after
    ``to``: none of another row is asked for before it is known whether this one goes on. ``own``: when the row's line ``line``
    can be handed on.
    """
    many = port.rows[0]
    burst = LATER_LINES // 2
    own -= passes * (port.lines[many + 1] - port.lines[many])
    asked = time = max(request, port.times[0])
    came, looked, first = port.times[1], 0.0, True
    while line < to:
        end = min((line // burst + 1) * burst, to)
        time = max(time, _room(port, end - line))
        if first:
            asked, first = time, False
        came = max(time + trip, came) + (end - line) * beat
        looked = came
        if line <= shows:
            port.lines[many + 1] += min(end, shows + 1) - line
            handed = port.lines[many + 1] - PEEKED_LINES  # so many lines must have been
            while port.rows[1] < many and port.lines[port.rows[1] + 1] < handed:
                port.rows[1] += 1
            row = port.rows[1]
            if row < many and handed > 0:
                looked = max(looked, port.passed[row] - passes * (port.lines[row + 1] - handed))
            elif handed > 0:
                looked = max(looked, own + passes * (handed - port.lines[many]))
        at = port.asked[0] % LATER_LINES
        port.bursts[at, 0], port.bursts[at, 1] = end - line, looked
        port.asked[0] += 1
        time, line = time + 1, end
    port.times[0] = looked + NEXT_CHUNK_CYCLES if goes_on else asked + 1
    port.times[1] = came
    return asked, looked


@njit(cache=True, counted=False)
def _later_row(port: _LaterPort, time: float) -> None:
    """A row with such chunks has passed."""
    many = port.rows[0]
    port.passed[many] = time
    port.rows[0] = many + 1
    if many + 2 < len(port.lines):
        port.lines[many + 2] = port.lines[many + 1]


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
    lanes, _, latency, reader, beat, outstanding, passes = memory
    trip = latency + reader + CHUNK_ANSWER_CYCLES
    pace = (latency + reader + FLYING_CYCLES) / outstanding  # of bursts, of which so many are under way
    begin, end = rows.begin, rows.end
    count = len(begin)
    done, left, popped = np.zeros(count, np.float64), np.zeros(count, np.float64), np.zeros(count, np.float64)
    state = np.array([rows.opens, 0.0, 0.0])
    # Of rows with a second chunk: when its last line has been looked at, and handed on.
    seen, handed_on = np.zeros(count, np.float64), np.zeros(count, np.float64)
    many = 0
    port = _later_port(count)
    chunk, second = asked - 1, asked
    looked, taken = np.zeros(2, np.int64), np.zeros(2, np.int64)  # of first and second chunks: lines, rows before
    kept = np.zeros((2, count), np.int64)
    passed = np.zeros(count, np.float64)  # when lines of first chunks have been handed on
    ports = np.zeros(3, np.float64)  # of first, second and later chunks: when lines of the next row can leave
    tokens = asked - outstanding * pace
    free = 0.0  # of the bus, for first chunks
    ready = columns.words == 0
    came, before = 0.0, 0.0
    for row in range(count):
        chunk += 1
        if row >= SCANNED_ROWS:
            chunk = max(chunk, done[row - SCANNED_ROWS])
        first = chunk
        bursts = int(rows.back[row])
        some = end[row] - begin[row]
        last = 0.0  # when the last nonzero is there
        chunks, dropped, empty = 0, 0, 0
        own_first, own_second, begun_second = 0, 0, 0.0
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
            own_first = min(to, shows + 1) - line
            looked[0] += own_first
            kept[0, row] = looked[0]
            while kept[0, taken[0]] + PEEKED_FIRST_LINES + BUFFERED_LINES < looked[0]:
                taken[0] += 1
            if taken[0]:
                arrival = max(arrival, passed[taken[0] - 1])
            while to <= shows:
                request = arrival + NEXT_CHUNK_CYCLES
                if chunks == 1:
                    request = max(request, second + 1)
                    if many >= LATER_CHUNKS:
                        request = max(request, seen[many - LATER_CHUNKS])
                    second = request
                line, to = to, min((to // NEXT_CHUNK_LINES + 1) * NEXT_CHUNK_LINES, stop)
                if chunks > 1:
                    own = max(came, first + SCANNED_NONZERO_CYCLES) + (line - begin[row] // lanes) * passes
                    request, arrival = _later_chunk(port, request, trip, line, to, shows, to < stop, own, passes, beat)
                begun = max(request + trip + SCANNED_NONZERO_CYCLES, ports[min(chunks, 2)])
                if chunks == 1:
                    begun_second = begun
                    arrival = request + trip + (to - line) * beat
                    own_second = min(to, shows + 1) - line
                    looked[1] += own_second
                    kept[1, many] = looked[1]
                    # So many lines must have been handed on.
                    before_row = looked[1] - PEEKED_LINES
                    while kept[1, taken[1]] < before_row:
                        taken[1] += 1
                    if before_row > 0:
                        at = taken[1]
                        arrival = max(arrival, handed_on[at] - (kept[1, at] - before_row) * passes)
                    seen[many] = arrival
                chunks += 1
                rest = -(-end[row] // lanes) - max(begin[row] // lanes, line)
                last = max(last, begun + max(0, rest) * passes)
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
        start += max(0, (begin[row] - scanned[row]) // lanes - min(before, BUFFERED_LINES * passes))
        passed[row] = start + own_first * passes
        before = rows.passes[row] if some else 0
        came = max(start + rows.passes[row] + empty + rows.waits[row], last)
        came = _join(row, rows, came, latency, left, popped, state)
        done[row] = came
        if chunks > 1:
            ports[min(chunks, 3) - 1] = came + dropped + CHUNK_END_CYCLES
            handed_on[many] = max(passed[row], begun_second) + own_second * passes
            many += 1
        if chunks > 2:
            _later_row(port, came)
    return _last(rows, came, state)
