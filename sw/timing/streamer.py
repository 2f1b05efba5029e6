"""When leaves that lie in memory are there: the streamer before the dispatcher (``rtl.accessor.segment_stream``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .bus import fetch
from .constants import PENDING_LEAVES, PLACED_CYCLES, PLACING_CYCLES
from .pace import Pace
from .record_beats import line_beats

__all__ = ["TAKEN", "free_row", "stream_leaves", "streamer"]

# What is known of it: when it decided on a leaf last, when the dispatcher took one last; lines in use, of them those of the row
# at hand; the oldest row that holds any, and the place of the next one; where in the region the next leaf's lines go; whether a
# leaf of the row at hand has found none; leaves so far, and behind that when the dispatcher took each of the last ones.
STREAMED, TAKEN, USED, HELD, OLDEST, NEXT, PLACE, STARVED, LEAVES, LAST = range(10)


@njit(cache=True)
def streamer(region: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """A streamer of so many lines: its state, and a ring of the rows that hold lines: how many, when these are free."""
    return np.zeros(LAST + PENDING_LEAVES, np.float64), np.zeros((2, region + 2), np.float64)


@njit(cache=True, counted=False)
def _free_until(state: NDArray[Any], rows: NDArray[Any], time: float, needed: float) -> float:
    """Frees the lines of rows that have left by ``time``, as many as are ``needed``; returns when the last of these were free."""
    since = 0.0
    size = rows.shape[1]
    while state[USED] > needed and state[OLDEST] < state[NEXT]:
        at = int(state[OLDEST]) % size
        if rows[1, at] > time:
            break
        since = rows[1, at]
        state[USED] -= rows[0, at]
        state[OLDEST] += 1
    return since


@njit(cache=True, counted=False)
def free_row(state: NDArray[Any], rows: NDArray[Any], time: float) -> None:
    """The lines of the row at hand are free from this cycle on."""
    state[STARVED] = 0
    if state[HELD] > 0:
        at = int(state[NEXT]) % rows.shape[1]
        rows[0, at], rows[1, at] = state[HELD], time + PLACING_CYCLES
        state[NEXT] += 1
        state[HELD] = 0


@njit(cache=True, counted=False)
def stream_leaves(
    bus: NDArray[Any],
    state: NDArray[Any],
    rows: NDArray[Any],
    lines: int,
    leaves: int,
    looked_up: tuple[float, float],
    opened: float,
    pace: Pace,
) -> tuple[float, int, int, int]:
    """The leaves of a job that lie in memory go to the dispatcher.

    Parameters
    ----------
    bus, state, rows: of :func:`.bus.idle_bus` and :func:`streamer`, changed.
    lines, leaves: of the job's leaves in memory. looked_up: cycles between which A's nonzeros of the job are looked up.
    opened: when the job's PE takes leaves; the first one waits for nobody.

    Returns
    -------
    When the dispatcher has the last one; of leaves that their PE is to read the lines, those that it asks for at once, and those
    of the last one among these.
    """
    region, (begin, end) = pace.region, looked_up
    latency, beat = pace.latency + pace.reader, pace.beat * line_beats(pace.pitch_b)
    direct = asked = last_asked = 0
    for n in range(leaves):
        size = (lines * (n + 1)) // leaves - (lines * n) // leaves
        time = max(state[STREAMED] + 1, begin + (end - begin) * (n + 1) / leaves)
        # The leaf that was so many before it has left its place.
        last = LAST + int(state[LEAVES]) % PENDING_LEAVES
        time = max(time, state[last])
        # Lines that are left at the region's end are taken with those of a leaf that is longer.
        left = region - state[PLACE]
        wraps = size > left
        taken = size + left if wraps else size
        placed = size <= region and (state[HELD] == 0 or state[HELD] + taken <= region)
        if placed and state[USED] + taken > region:
            # It waits for rows before it while there are leaves to go on with. If one of its row found none, short ones do not.
            waits = not state[STARVED] or size > pace.short_lines
            latest = max(time, state[TAKEN] + 1) if waits else time
            time = max(time, _free_until(state, rows, latest, max(0, region - taken)))
            if state[USED] == 0:
                wraps, taken, state[PLACE] = False, size, 0
            placed = state[USED] + taken <= region
            if not placed:
                time, state[STARVED] = latest, 1
        state[STREAMED] = time
        if placed:
            state[USED] += taken
            state[HELD] += taken
            state[PLACE] = size if wraps else state[PLACE] + size
            ready = fetch(bus, time, size, latency, beat)[1] + PLACED_CYCLES
        else:
            ready = time + PLACING_CYCLES
        state[TAKEN] = max(state[TAKEN] + 1, ready)
        if n > 0:
            state[TAKEN] = max(state[TAKEN], opened)
        state[last] = state[TAKEN]
        state[LEAVES] += 1
        if not placed:
            last_asked = min(size, pace.leaf_lines * pace.slot_factors[n] // 2)  # half of its slots
            asked += last_asked
            direct += size
    return state[TAKEN], direct, asked, last_asked
