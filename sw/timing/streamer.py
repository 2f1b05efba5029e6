"""When leaves that lie in memory are there: look-ups and the streamer before the dispatcher (``rtl.accessor.segment_stream``).

They go on while the dispatcher waits, so what they ask for comes before what PEs ask for later, for jobs before these.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .bus import fetch
from .chunks import scan, scan_ports
from .constants import PENDING_LEAVES, PLACED_CYCLES, PLACING_CYCLES
from .job import (
    CHUNKS,
    CLOSING,
    FETCHED,
    KIND,
    LOADED,
    MERGE_ON_THE_WAY,
    OWN,
    SCANNED,
    SCRATCH,
    SCRATCH_MERGE,
    SELECTIONS,
    STREAMED,
)
from .pace import Pace
from .record_beats import line_beats

__all__ = [
    "LEAF_LINES",
    "LEAF_READY",
    "LEAVES_STREAMED",
    "TAKEN",
    "Streamer",
    "begin_tile",
    "decided",
    "free_row",
    "look_up",
    "stream",
    "streamer",
    "take_leaves",
]

# What is known of them: the job that is looked up next, and whether its row has begun; the job behind the tile's last one, when
# the tile began and how many times as long as its jobs say its load takes; the job whose leaves are streamed, and which of these
# is next; leaves of all jobs, those streamed and those taken by the dispatcher; when the streamer decided on a leaf last, and
# when the dispatcher took one last; lines in use, of them those of the row at hand; the job that ends the oldest row that holds
# any; where in the region the next leaf's lines go; whether a leaf of the row at hand has found none; bursts so far.
_STATE = (
    "looked",
    "open",
    "stop",
    "begun",
    "slower",
    "job",
    "leaf",
    "all_leaves",
    "leaves_streamed",
    "leaves_taken",
    "decided",
    "taken",
    "used",
    "held",
    "oldest",
    "place",
    "starved",
    "bursts",
)
(
    LOOKED,
    OPEN,
    STOP,
    BEGUN,
    SLOWER,
    JOB,
    LEAF,
    ALL_LEAVES,
    LEAVES_STREAMED,
    LEAVES_TAKEN,
    DECIDED,
    TAKEN,
    USED,
    HELD,
    OLDEST,
    PLACE,
    STARVED,
    BURSTS,
) = range(len(_STATE))
# Of a leaf in the streamer: when it can be taken, lines that its PE reads itself, when it has been taken.
LEAF_READY, LEAF_LINES, LEAF_TAKEN = range(3)


class Streamer(NamedTuple):
    """What is known of the look-ups and of the streamer.

    Parameters
    ----------
    state: as above. ports: of :func:`.chunks.scan_ports`.
    looked_up: float64[jobs + 1], when A's nonzeros of the jobs before each have been looked up.
    row_lines, row_left: float64[jobs], lines of the region that hold the row that ends with each job, and when they are free.
    passed: float64[jobs], when the streamer had decided on the last leaf of each.
    leaves: float64[3, leaves in the streamer]. bursts: float64[outstanding], when the last ones have come.
    """

    state: NDArray[Any]
    ports: NDArray[Any]
    looked_up: NDArray[Any]
    row_lines: NDArray[Any]
    row_left: NDArray[Any]
    passed: NDArray[Any]
    leaves: NDArray[Any]
    bursts: NDArray[Any]


@njit(cache=True)
def streamer(jobs: NDArray[Any], stop: int, pace: Pace) -> Streamer:
    """Look-ups and streamer before the first of these jobs, whose tile ends before job ``stop``."""
    state = np.zeros(len(_STATE), np.float64)
    state[STOP], state[SLOWER] = stop, 1.0
    state[ALL_LEAVES] = jobs[:, FETCHED].sum()
    # Partial rows are asked for while the first nonzeros of A come.
    first = -float(pace.latency) if pace.partial_rows else 0.0
    state[DECIDED] = first
    return Streamer(
        state,
        scan_ports(pace.latency + pace.reader),
        np.zeros(len(jobs) + 1, np.float64),
        np.zeros(len(jobs), np.float64),
        np.full(len(jobs), np.inf, np.float64),
        np.zeros(len(jobs), np.float64),
        np.full((3, PENDING_LEAVES), first, np.float64),
        np.full(pace.outstanding, first, np.float64),
    )


@njit(cache=True)
def begin_tile(front: Streamer, job: int, stop: int, begun: float, slower: float) -> None:
    """The tile of the jobs from ``job`` to ``stop`` has ``begun``, and its load takes so many times as long as they say."""
    front.looked_up[job] = begun
    front.state[STOP], front.state[BEGUN], front.state[SLOWER] = stop, begun, slower


@njit(cache=True, counted=False)
def look_up(bus: NDArray[Any], front: Streamer, jobs: NDArray[Any], job: int, pace: Pace) -> float:
    """Looks up A's nonzeros of all jobs up to this one; returns when that has been done."""
    state = front.state
    latency, beat_a = pace.latency + pace.reader, pace.beat * line_beats(pace.pitch_a)
    while state[LOOKED] <= job:
        n = int(state[LOOKED])
        kind = jobs[n, KIND]
        present = front.looked_up[n]
        if kind != SCRATCH_MERGE:
            begins_row = kind == OWN or (kind == SCRATCH and state[OPEN] == 0)
            # A row without a nonzero is looked at, too.
            nonzeros = max(jobs[n, SELECTIONS], kind == OWN)
            of_scan = nonzeros, jobs[n, CHUNKS], jobs[n, SCANNED], jobs[n, CLOSING]
            present = scan(bus, front.ports, present, begins_row, *of_scan, latency, beat_a)
            present = max(present, state[BEGUN] + state[SLOWER] * jobs[n, LOADED])
        state[OPEN] = kind in (SCRATCH, MERGE_ON_THE_WAY)
        front.looked_up[n + 1] = present
        state[LOOKED] = n + 1
    return float(front.looked_up[job + 1])


@njit(cache=True, counted=False)
def decided(front: Streamer, job: int) -> float:
    """When the streamer has decided on the last leaf of a job."""
    return float(front.passed[job] if job < front.state[JOB] else front.state[DECIDED])


@njit(cache=True, counted=False)
def _free_until(front: Streamer, time: float, needed: float) -> float:
    """Frees the lines of rows that have left by ``time``, as many as are ``needed``; returns when the last of these were free."""
    state = front.state
    since = 0.0
    while state[USED] > needed and state[OLDEST] < state[JOB]:
        at = int(state[OLDEST])
        if front.row_lines[at] > 0:
            if front.row_left[at] > time:
                break
            since = front.row_left[at]
            state[USED] -= front.row_lines[at]
        state[OLDEST] += 1
    return since


@njit(cache=True, counted=False)
def free_row(front: Streamer, job: int, time: float) -> None:
    """The lines of the row that ends with this job are free from this cycle on."""
    front.row_left[job] = time + PLACING_CYCLES


@njit(cache=True, counted=False)
def _next_job(front: Streamer, jobs: NDArray[Any]) -> None:
    """The streamer has passed a job's leaves."""
    state = front.state
    at = int(state[JOB])
    front.passed[at] = state[DECIDED]
    if jobs[at, KIND] in (OWN, SCRATCH_MERGE):
        front.row_lines[at] = state[HELD]
        state[HELD] = state[STARVED] = 0
    state[JOB] += 1
    state[LEAF] = 0


@njit(cache=True, counted=False)
def _place(front: Streamer, size: int, time: float, until: float, pace: Pace) -> tuple[float, bool]:
    """Finds lines in the region for a leaf, from ``time`` on; returns when that is decided, and whether it has any.

    It is inf where rows that leave by ``until`` do not decide it. With ``until`` inf the dispatcher has taken all leaves before.
    """
    state, region = front.state, pace.region
    # Lines that are left at the region's end are taken with those of a leaf that is longer.
    left = region - state[PLACE]
    wraps = size > left
    taken = size + left if wraps else size
    placed = size <= region and (state[HELD] == 0 or state[HELD] + taken <= region)
    if placed and state[USED] + taken > region:
        # It waits for rows before it while there are leaves to go on with. If one of its row found none, short ones do not.
        waits = not state[STARVED] or size > pace.short_lines
        latest = time
        if waits:
            goes_on = state[LEAVES_STREAMED] > state[LEAVES_TAKEN]
            latest = until if goes_on else min(until, max(time, state[TAKEN] + 1))
        time = max(time, _free_until(front, latest, max(0, region - taken)))
        if state[USED] == 0:
            wraps, taken, state[PLACE] = False, size, 0
        placed = state[USED] + taken <= region
        if not placed and waits and latest == until:
            return np.inf, False
        if not placed:
            time, state[STARVED] = latest, 1
    if placed:
        state[USED] += taken
        state[HELD] += taken
        state[PLACE] = size if wraps else state[PLACE] + size
    return time, placed


@njit(cache=True, counted=False)
def _stream_leaf(bus: NDArray[Any], front: Streamer, jobs: NDArray[Any], until: float, pace: Pace) -> bool:
    """Streams the next leaf, if that is decided by ``until`` (:func:`_place`); returns whether it is."""
    state = front.state
    job, n = int(state[JOB]), int(state[LEAF])
    leaves, lines = jobs[job, FETCHED], jobs[job, STREAMED]
    size = (lines * (n + 1)) // leaves - (lines * n) // leaves
    begin, end = front.looked_up[job], front.looked_up[job + 1]
    if pace.partial_rows:
        begin = end = -pace.latency
    at, burst = int(state[LEAVES_STREAMED]) % PENDING_LEAVES, int(state[BURSTS]) % pace.outstanding
    # The leaf that was so many before it has left its place, and its burst is one of those that may be under way.
    time = max(state[DECIDED] + 1, begin + (end - begin) * (n + 1) / leaves, front.leaves[LEAF_TAKEN, at])
    if max(time, front.bursts[burst]) > until:
        return False
    time, placed = _place(front, size, time, until, pace)
    if time == np.inf:
        return False
    state[DECIDED] = time
    if placed:
        beat = pace.beat * line_beats(pace.pitch_b)
        asked = max(time, front.bursts[burst])
        came = fetch(bus, max(0.0, asked), size, pace.latency + pace.reader + min(0.0, asked), beat)[1]
        front.bursts[burst] = came
        state[BURSTS] += 1
    front.leaves[LEAF_READY, at] = came + PLACED_CYCLES if placed else time + PLACING_CYCLES
    front.leaves[LEAF_LINES, at] = 0 if placed else size
    state[LEAVES_STREAMED] += 1
    state[LEAF] += 1
    return True


@njit(cache=True, counted=False)
def stream(bus: NDArray[Any], front: Streamer, jobs: NDArray[Any], until: float, pace: Pace) -> None:
    """Looks up and streams what can be by ``until``, of the tile at hand, before the dispatcher takes it."""
    state = front.state
    while state[LEAVES_STREAMED] < min(state[ALL_LEAVES], state[LEAVES_TAKEN] + PENDING_LEAVES):
        job = int(state[JOB])
        if job >= state[STOP]:
            return
        if state[LEAF] == jobs[job, FETCHED]:
            _next_job(front, jobs)
            continue
        if state[LOOKED] <= job and front.looked_up[job] > until and not pace.partial_rows:
            return
        look_up(bus, front, jobs, job, pace)
        if not _stream_leaf(bus, front, jobs, until, pace):
            return


@njit(cache=True, counted=False)
def take_leaves(
    bus: NDArray[Any],
    front: Streamer,
    jobs: NDArray[Any],
    job: int,
    opened: float,
    stores: tuple[NDArray[Any], float],
    pace: Pace,
) -> tuple[float, int, int, int, float]:
    """The leaves of a job that lie in memory go to the dispatcher.

    ``opened``: when the job's PE takes leaves; the first one waits for nobody. ``stores``: int64[leaves of a job], whether the
    last lines of each of this PE's line stores came from memory, which is kept up to date; when those of the newest job leave, as
    its merge begins.

    Returns
    -------
    When the dispatcher has the last one; of leaves that their PE is to read the lines, those that it asks for at once, and those
    of the last one among these; when the stores of these leaves are free of lines of the SRAM (:mod:`rtl.pe.leaf_feeder`), or 0.
    """
    state = front.state
    while state[JOB] < job:
        _next_job(front, jobs)
    direct = asked = last_asked = 0
    from_memory, left = stores
    cleared = 0.0
    for n in range(jobs[job, FETCHED]):
        if state[LEAVES_STREAMED] == state[LEAVES_TAKEN]:
            _stream_leaf(bus, front, jobs, np.inf, pace)
        at = int(state[LEAVES_TAKEN]) % PENDING_LEAVES
        state[TAKEN] = max(state[TAKEN] + 1, front.leaves[LEAF_READY, at])
        if n > 0:
            state[TAKEN] = max(state[TAKEN], opened)
        front.leaves[LEAF_TAKEN, at] = state[TAKEN]
        state[LEAVES_TAKEN] += 1
        size = int(front.leaves[LEAF_LINES, at])
        if size > 0:
            last_asked = min(size, pace.leaf_lines * pace.slot_factors[n] // 2)  # half of its slots
            asked += last_asked
            direct += size
            if not from_memory[n]:
                cleared = left
        from_memory[n] = size > 0
    return state[TAKEN], direct, asked, last_asked, cleared
