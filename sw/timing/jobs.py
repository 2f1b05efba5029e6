"""When the jobs of a tile end: dispatcher, PEs and collector, job by job (``docs/architecture.md``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .constants import (
    AHEAD_LINES,
    ANSWER_CYCLES,
    CHUNK_CYCLES,
    FILL_LEAF_CYCLES,
    FIRST_CYCLES,
    LEAF_ANSWER_CYCLES,
    LEAVES_AHEAD,
    LEVEL_CYCLES,
    MERGE_CYCLES,
    MOST_OVERLAPPED,
    NEXT_TILE_CYCLES,
    NEXT_TILE_LATENCIES,
    PASSING_CYCLES,
    RETURN_CYCLES,
    SLOT_CYCLES,
    UNPACKED_CYCLES,
)
from .hardware import JOB_MARGIN, UNDER_WAY
from .pace import Pace
from .streamer import BUS, TAKEN, fetch, free_row, stream_leaves, streamer

__all__ = [
    "JOB_FIELDS",
    "LOADED",
    "MERGE_ON_THE_WAY",
    "ONE_TILE",
    "OWN",
    "SCRATCH",
    "SCRATCH_MERGE",
    "jobs_end",
    "write_job",
]

# What is known of a job, in the order of a row of ``jobs``: kind, leaves, nonzeros merged, nonzeros of its fiber, cycles in
# which A's nonzeros were looked at for it, lines that its leaves read from memory (but for fibers from scratch), chunks of
# A's row that were asked for only when the one before had been seen, the cycle in which the last of its segments of B is in
# the partition, nonzeros of the longest leaf that comes from memory (an n-th of them where it has n times the usual line
# slots), cycles less one in which the dispatcher is at it: a leaf in each, but no more nonzeros of A than it gets; leaves that
# come through the streamer from memory, and their lines.
JOB_FIELDS = (
    "kind",
    "leaves",
    "merged",
    "length",
    "selections",
    "lines",
    "chunks",
    "loaded",
    "longest",
    "steps",
    "fetched",
    "streamed",
)
KIND, LEAVES, MERGED, LENGTH, SELECTIONS, LINES, CHUNKS, LOADED, LONGEST, STEPS, FETCHED, STREAMED = range(
    len(JOB_FIELDS)
)
# A row's only job; a group of a long row; the fibers of a long row, merged to make room; merged at last.
OWN, SCRATCH, MERGE_ON_THE_WAY, SCRATCH_MERGE = range(4)
ONE_TILE = np.zeros(0, np.int64)


@njit(cache=True)
def write_job(
    jobs: NDArray[Any],
    number: int,
    kind: int,
    leaves: int,
    merged: int,
    length: int,
    selections: int,
    lines: int,
    longest: int,
    chunks: int = 0,
    examined: int = 0,
    fetched: int = 0,
    streamed: int = 0,
) -> int:
    """Writes a job down, its segments of B loaded from the begin; returns the number of the next one.

    ``examined``: nonzeros of A of which ``leaves`` had something in B; the dispatcher waits for the others as well.
    ``fetched``, ``streamed``: leaves that come through the streamer from memory, and their lines.
    """
    jobs[number, KIND] = kind
    jobs[number, LEAVES] = leaves
    jobs[number, MERGED] = merged
    jobs[number, LENGTH] = length
    jobs[number, SELECTIONS] = selections
    jobs[number, LINES] = lines
    jobs[number, CHUNKS] = chunks
    jobs[number, LOADED] = 0
    jobs[number, LONGEST] = longest
    jobs[number, STEPS] = max(leaves, examined - 1)
    jobs[number, FETCHED] = fetched
    jobs[number, STREAMED] = streamed
    return number + 1


@njit(cache=True)
def _pick(accepts: NDArray[Any], chosen: int, now: float) -> int:
    """The first PE behind the one chosen last that takes a job now, or the one that takes one first (rtl.network.pe_picker)."""
    pick = (chosen + 1) % len(accepts)
    for step in range(2, len(accepts) + 1):
        other = (chosen + step) % len(accepts)
        if accepts[pick] <= now:
            break
        if accepts[other] < accepts[pick]:
            pick = other
    return pick


@njit(cache=True)
def _last_word(
    given: NDArray[Any],
    collected: NDArray[Any],
    newest: int,
    end: float,
    turn: float,
    length: float,
    drain: float,
    merge: float,
    fill: float,
    capacity: float,
) -> tuple[float, float]:
    """When a PE's merge is done with a job, and when the job's last word is out.

    Parameters
    ----------
    given, collected: nonzeros that the PE has given so far, and when they had been collected; the last at ``newest``, in a ring.
    end: of the merge, if nothing holds it up. turn: when the fibers before this one have been collected.
    length, drain, merge: nonzeros of the fiber, cycles in which they are collected, cycles of the merge.
    fill: cycles, and nonzeros, of the pipeline behind the merge. capacity: nonzeros that the queue behind it holds.
    """
    # Fibers leave a PE in the order of its jobs: one for scratch memory waits behind one whose row has no turn yet.
    out = max(end + fill, collected[newest] + drain)
    before = given[newest] + length - capacity  # nonzeros that must have left
    if before > given[newest]:
        # Longer than the queue: it ends in its own turn, no sooner than what queue and pipeline did not hold is merged.
        rest = merge * (before - given[newest]) / length - fill
        if rest > 0:
            end = max(end, turn + rest)
            out = max(out, end + fill)
        out = max(out, turn + drain)
    elif before > 0:
        for back in range(len(given)):
            at = (newest - back) % len(given)
            if given[at] <= before:
                end = max(end, collected[at])
                out = max(out, end + fill)
                break
    return end, out


@njit(cache=True)
def jobs_end(
    jobs: NDArray[Any],
    pace: Pace,
    load: int = 0,
    firsts: NDArray[Any] = ONE_TILE,
    loads: NDArray[Any] = ONE_TILE,
    a_beats: int = 0,
) -> float:
    """Cycles from the first leaf of a tile, or of windows that run into one another, to the last word of the last fiber.

    Parameters
    ----------
    jobs: int64[jobs, 12], in the order of dispatch (:data:`JOB_FIELDS`); their cycles count from their tile's begin.
    load: beats of a B tile that is loaded beside the jobs.
    firsts, loads: int64[tiles behind the first], the first job of each and the beats of B that it loads. A tile begins when the
        nonzeros of A of the one before have been looked up, and if it loads when the rows of C of the one before that are out.
    a_beats: beats of A that come beside the jobs. The first of them come before the first job.

    A job goes to the PE that can take one first. It begins when its leaves are there and the job before has been
    merged; at first the levels of the merge have to fill, about four cycles a leaf. Its fiber leaves in row order (fibers
    of long rows in theirs), and a PE whose output queue is full waits.
    """
    pes, radix, lanes = pace.pes, pace.radix, pace.lanes
    latency, beat, fill = pace.latency, pace.beat, pace.fill
    scratch_slots, burst = pace.scratch_slots, pace.burst
    margin = 2 * radix + JOB_MARGIN
    leaf_capacity = pace.leaf_lines * lanes
    capacity = pace.queue_lines * lanes
    accepts = np.zeros(pes, np.float64)  # when the PE takes another job
    ends = np.zeros(pes, np.float64)  # when its merge is free
    # What a PE has given: nonzeros so far, and when the last of them had been collected.
    history = 64
    given = np.zeros((pes, history), np.float64)
    collected = np.zeros((pes, history), np.float64)
    newest = np.zeros(pes, np.int64)
    # When the jobs that a PE took last had passed its merge.
    passed = np.zeros((pes, UNDER_WAY), np.float64)
    # When a PE takes a job of any row: one that waits for the last job of a long row takes that one first.
    free = np.zeros(pes, np.float64)
    turn_of = np.zeros(pes, np.int64)
    levels = 0
    while 1 << levels < radix:
        levels += 1
    depth = LEVEL_CYCLES * levels + FIRST_CYCLES
    # When the long rows under way leave their PEs: each has a slot of scratch memory till then.
    slot_free = np.zeros(scratch_slots, np.float64)
    next_slot = 0
    row_open = False
    dispatched = 0.0
    present = 0.0
    row_out = 0.0
    scratch_out = 0.0
    group_ready = 0.0
    group_pe = 0
    chosen = len(accepts) - 1
    # Lines that the fibers of a long row ask for at first, all of them and the last one.
    asked = last_asked = 0.0
    dispatched_now = 0.0
    # Cycles of the bus that the jobs do not wait for: lines that come before they are needed, rows that leave.
    others = 0.0
    leaving = 0.0  # of these, what rows of C take
    last = 0.0
    memory = 0.0
    begun = 0.0  # this tile
    a_left = max(0, a_beats - AHEAD_LINES)
    a_selection = a_left * beat / max(1, jobs[:, SELECTIONS].sum())  # cycles of memory for a nonzero of A
    stream, rows = streamer(pace.region)
    went = np.empty(len(jobs), np.float64)  # when each job was dispatched
    tile = 0
    out_before = 0.0  # rows of the tile before this one
    for n in range(len(jobs)):
        if tile < len(firsts) and n == firsts[tile]:
            # The last nonzeros of A are looked up when queue and streamer have room for their leaves.
            inside, back = 0, n
            while back > 0 and inside < 2 * radix + LEAVES_AHEAD:
                back -= 1
                inside += max(1, jobs[back, SELECTIONS])
            begun = max(present, went[back]) + NEXT_TILE_CYCLES
            if loads[tile]:
                begun = max(begun, out_before + NEXT_TILE_CYCLES)
            out_before = row_out
            begun += NEXT_TILE_LATENCIES * latency
            present = begun
            load += loads[tile]
            tile += 1
        kind, leaves, merged = jobs[n, KIND], jobs[n, LEAVES], float(jobs[n, MERGED])
        length = float(jobs[n, LENGTH])
        # Who waits for the bus shares it with these.
        crowd = beat / (1 - min(MOST_OVERLAPPED, others / max(1.0, dispatched)))
        if kind == SCRATCH_MERGE:
            pe = group_pe
            dispatched_now = max(group_ready + RETURN_CYCLES, accepts[pe]) + leaves
            asked_at = dispatched_now + LEAF_ANSWER_CYCLES
            came = max(stream[BUS], asked_at + latency + ANSWER_CYCLES)
            begin = max(came + (asked - last_asked + 1) * crowd + UNPACKED_CYCLES, ends[pe])
            stream[BUS] += merged / lanes * beat
        else:
            if kind == MERGE_ON_THE_WAY:
                dispatched = max(dispatched, group_ready + RETURN_CYCLES)
            pe = chosen = _pick(free, chosen, dispatched)
            begins_row = kind == SCRATCH and not row_open
            row_open = kind in (SCRATCH, MERGE_ON_THE_WAY)
            before = present
            present += jobs[n, SELECTIONS] + jobs[n, CHUNKS] * (latency + CHUNK_CYCLES)
            present = max(present, begun + float(jobs[n, LOADED]))
            came, waiting = 0.0, 0
            opened = max(dispatched, free[pe])
            usable = present
            if kind == MERGE_ON_THE_WAY:
                fetch(stream, opened + leaves + LEAF_ANSWER_CYCLES, asked - last_asked, latency, crowd)
                came = stream[BUS] + beat
                stream[BUS] += (merged / lanes - asked + last_asked) * beat
            elif jobs[n, FETCHED]:
                usable, came, waiting = stream_leaves(
                    stream,
                    rows,
                    pace.region,
                    jobs[n, STREAMED],
                    jobs[n, FETCHED],
                    before,
                    present,
                    opened,
                    latency,
                    beat,
                )
            dispatched = max(opened + max(jobs[n, STEPS] + 1.0, 2.0), usable)
            if begins_row:
                dispatched = max(dispatched, slot_free[next_slot])
            if waiting:
                came = fetch(stream, dispatched + LEAF_ANSWER_CYCLES, waiting, latency, beat)
            begin = max(ends[pe] + FILL_LEAF_CYCLES * leaves, dispatched + depth)
            if merged == 0:
                begin = max(ends[pe], dispatched + 1.0)  # nothing to fetch
            elif came:
                begin = max(begin, came + UNPACKED_CYCLES)
            stream[TAKEN] = dispatched
            asked_at = dispatched + LEAF_ANSWER_CYCLES
            if kind == SCRATCH and leaves == radix:
                group_pe = pe  # of the last full group: it is kept for the row's last job
        # What comes from memory comes no faster than a leaf's line slots allow, but for the first lines: two bursts, each half of
        # them. Rows of C that leave at the same time hold each of them up.
        factor = pace.slot_factors[max(0, min(leaves, radix) - 1)]
        crowded = beat / (1 - min(MOST_OVERLAPPED, leaving / max(1.0, dispatched)))
        shared = (crowded - beat) * (pace.leaf_lines * factor // 2)
        each = (latency + SLOT_CYCLES + shared + leaf_capacity * factor / 2) / leaf_capacity
        merge = max(merged * MERGE_CYCLES, (jobs[n, LONGEST] - leaf_capacity) * each)
        went[n] = dispatched
        # All PEs share the bus, with the words of C that leave and the nonzeros of A that come.
        words = float(-(-length // lanes))
        if a_selection and jobs[n, SELECTIONS]:
            memory = max(memory, dispatched - AHEAD_LINES * beat) + jobs[n, SELECTIONS] * a_selection
        if jobs[n, LINES]:
            # The load asks as often as the rows that come, or leave, do together with A.
            share = min(load, (jobs[n, LINES] + words) // 4)
            load -= share
            memory = max(memory, begin) + (jobs[n, LINES] + share) * beat
        end = max(begin + merge, memory)
        aside = kind in (SCRATCH, MERGE_ON_THE_WAY)
        turn = scratch_out if aside else row_out
        entry = newest[pe]
        end, out = _last_word(given[pe], collected[pe], entry, end, turn, length, words * beat, merge, fill, capacity)
        memory += words * beat
        stream[BUS] += words * beat
        leaving += words * beat
        others += (jobs[n, LINES] + (0.0 if aside else words)) * beat + jobs[n, SELECTIONS] * a_selection
        if aside:
            scratch_out = max(scratch_out + words * beat, out)
            left = scratch_out
            # Its last burst leaves when it is whole; the answer takes half a latency.
            group_ready = scratch_out + ((words - 1) % burst + 1) * crowd + latency / 2
            last_asked = min(words, burst)
            asked = last_asked + (asked if kind == SCRATCH else 0.0)
        else:
            row_out = max(row_out + max(words * beat, 1.0), out)
            left = row_out
            last = max(last, left)
            free_row(stream, rows, left)
        if kind == SCRATCH_MERGE:
            slot_free[next_slot] = left
            next_slot = (next_slot + 1) % scratch_slots
            row_open = False
            asked = last_asked = 0.0
        newest[pe] = (entry + 1) % history
        given[pe, newest[pe]] = given[pe, entry] + length
        collected[pe, newest[pe]] = left
        ends[pe] = end
        passed[pe, turn_of[pe]] = end + PASSING_CYCLES
        turn_of[pe] = (turn_of[pe] + 1) % UNDER_WAY
        accepts[pe] = max(max(end - margin, dispatched), passed[pe, turn_of[pe]])
        free[pe] = max(accepts[pe], dispatched_now if kind == SCRATCH_MERGE else 0.0)
    return last
