"""When the jobs of a tile end: dispatcher, PEs and collector, job by job (``docs/architecture.md``)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .bus import READ, WRITE, first_line, flow, idle_bus, take
from .constants import (
    EMPTY_CYCLES,
    FILL_LEAF_CYCLES,
    FILL_NONZERO_CYCLES,
    FIRST_CYCLES,
    LEAF_ANSWER_CYCLES,
    LEVEL_CYCLES,
    LINE_CYCLES,
    MANY_LEAVES,
    MERGE_CYCLES,
    MOST_OVERLAPPED,
    NEXT_TILE_CYCLES,
    PASSING_CYCLES,
    PENDING_LEAVES,
    PREFETCHED_LINES,
    QUEUED_CYCLES,
    SLOT_CYCLES,
    SPAN,
    TABLE_CYCLES,
    TAKES_CYCLES,
    UNPACKED_CYCLES,
    WRITE_CYCLES,
)
from .hardware import JOB_MARGIN, NEXT_CHUNK_LINES, QUEUED_NONZEROS, UNDER_WAY
from .job import (
    CHUNKS,
    FETCHED,
    KEPT,
    KIND,
    LEAVES,
    LENGTH,
    LOADED,
    LONGEST,
    MERGE_ON_THE_WAY,
    MERGED,
    ONE_TILE,
    QUEUED,
    SCANNED,
    SCRATCH,
    SCRATCH_MERGE,
    SELECTIONS,
    SPILLED,
    STEPS,
    WIDEST,
)
from .pace import Pace
from .record_beats import line_beats
from .scratch_fibers import ASKED, ASKED_KEPT, NEAR, READY, from_scratch, no_scratch, row_leaves, to_scratch, turn
from .streamer import TAKEN, Streamer, begin_tile, decided, free_row, look_up, stream, streamer, take_leaves

__all__ = ["jobs_end"]


class PeStates(NamedTuple):
    """What is known of the PEs; a value, or a row, for each.

    Parameters
    ----------
    accepts: when it takes another job. free: the same for a job of any row: one that waits for the last job of a long row
        takes that one first. ends: when its merge is free.
    given, collected, newest: words that it has given so far and when the last of them had been collected, in a ring, and
        where the newest stands.
    passed, turn: when the jobs that it took last had passed its merge, in a ring, and where the next one is noted.
    merges: of these begin and end of the merge, nonzeros merged and leaves.
    emptying: cycles in which the queues of its leaves empty behind the last job, while those of the next one fill.
    asks: when it asks for a job's first lines at the soonest: those of the job before have all been asked for.
    from_memory: int64[PEs, leaves of a job], whether the last lines of each line store came from memory.
    """

    accepts: NDArray[Any]
    free: NDArray[Any]
    ends: NDArray[Any]
    given: NDArray[Any]
    collected: NDArray[Any]
    newest: NDArray[Any]
    passed: NDArray[Any]
    turn: NDArray[Any]
    merges: NDArray[Any]
    emptying: NDArray[Any]
    asks: NDArray[Any]
    from_memory: NDArray[Any]


@njit(cache=True, counted=False)
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


@njit(cache=True, counted=False)
def _last_word(
    states: PeStates,
    pe: int,
    end: float,
    turn: float,
    words: float,
    drain: float,
    merge: float,
    fill: float,
    capacity: int,
) -> tuple[float, float]:
    """When a PE's merge is done with a job, and when the job's last word is out.

    Parameters
    ----------
    states, pe: of the PEs, and which of them it is.
    end: of the merge, if nothing holds it up. turn: when the fibers before this one have been collected.
    words, drain, merge: of the fiber, cycles in which they are collected, cycles of the merge.
    fill: cycles of the pipeline behind the merge. capacity: words that the queue behind it holds.
    """
    given, collected, newest = states.given[pe], states.collected[pe], states.newest[pe]
    # Fibers leave a PE in the order of its jobs: one for scratch memory waits behind one whose row has no turn yet.
    out = max(end + fill, collected[newest] + drain)
    before = given[newest] + words - capacity  # words that must have left
    if before > given[newest]:
        # Longer than the queue: it ends in its own turn, no sooner than what queue and pipeline did not hold is merged.
        rest = merge * (before - given[newest]) / words - fill
        if rest > 0:
            end = max(end, turn + rest)
            out = max(out, end + fill)
        out = max(out, turn + drain)
    elif before > 0:
        for back in range(len(given)):
            at = (newest - back) % len(given)
            if given[at] <= before:
                next_one = (at + 1) % len(given)
                # Of the fiber behind it some words have to leave, one in a cycle.
                end = max(end, collected[next_one] - (given[next_one] - before) if back else collected[at])
                out = max(out, end + fill)
                break
    return end, out


@njit(cache=True)
def _pe_states(pes: int, radix: int) -> PeStates:
    """PEs that have done nothing. The collection of so many fibers of each is remembered."""
    history = 64
    return PeStates(
        np.zeros(pes, np.float64),
        np.zeros(pes, np.float64),
        np.zeros(pes, np.float64),
        np.zeros((pes, history), np.float64),
        np.zeros((pes, history), np.float64),
        np.zeros(pes, np.int64),
        np.zeros((pes, UNDER_WAY), np.float64),
        np.zeros(pes, np.int64),
        np.zeros((pes, UNDER_WAY, 4), np.float64),
        np.zeros(pes, np.float64),
        np.zeros(pes, np.float64),
        np.zeros((pes, radix), np.int64),
    )


@njit(cache=True, inline="always")
def _queue_cycles(merged: float, leaves: float) -> float:
    """Cycles in which the queues of a job's leaves fill, behind the first nonzero of each."""
    return FILL_NONZERO_CYCLES * max(0.0, min(QUEUED_NONZEROS * leaves, merged - leaves))


@njit(cache=True, counted=False)
def _note_job(
    states: PeStates,
    pe: int,
    leaves: int,
    fetched: int,
    queued: int,
    merged: float,
    words: float,
    begin: float,
    end: float,
    left: float,
    dispatched: float,
    radix: int,
) -> None:
    """A PE has merged a job from ``begin`` to ``end``, and its fiber of so many ``words`` has been collected at ``left``.

    ``fetched``: of its leaves those that came through the streamer; the lines of the others were on chip. ``queued``: see
    :data:`JOB_FIELDS`.
    It takes the next job when few nonzeros are left of those that it has, and fewer leaves than a job may have wait for queues.
    """
    entry = states.newest[pe]
    newest = (entry + 1) % states.given.shape[1]
    states.newest[pe] = newest
    states.given[pe, newest] = states.given[pe, entry] + words
    states.collected[pe, newest] = left
    states.ends[pe] = end
    turn = states.turn[pe]
    states.passed[pe, turn] = end + PASSING_CYCLES
    states.merges[pe, turn, 0], states.merges[pe, turn, 1] = begin, end
    states.merges[pe, turn, 2], states.merges[pe, turn, 3] = merged, leaves
    # Beside the last one's own queue, those of the others. Those of jobs before it empty as it is merged.
    empties = min(_queue_cycles(merged, 1) + QUEUED_CYCLES * queued, _queue_cycles(merged, leaves))
    states.emptying[pe] = empties + max(0.0, states.emptying[pe] - EMPTY_CYCLES * merged)
    accepts = dispatched
    few, waiting = 2.0 * radix + JOB_MARGIN, 0.0
    for age in range(UNDER_WAY):
        at = (turn - age) % UNDER_WAY
        first, last, of_job = states.merges[pe, at, 0], states.merges[pe, at, 1], states.merges[pe, at, 2]
        if few >= 0 and of_job > few:
            accepts = max(accepts, last - (last - first) * few / of_job)
        few -= of_job
        if age + 1 < UNDER_WAY and waiting < radix <= waiting + states.merges[pe, at, 3]:
            # These are taken when the queues have the last nonzeros of the job before them.
            first, last, of_job, leaves_of_job = states.merges[pe, (at - 1) % UNDER_WAY]
            share = min(1.0, QUEUED_NONZEROS * leaves_of_job / max(1.0, of_job))
            accepts = max(accepts, last - (last - first) * share - TAKES_CYCLES)
        waiting += states.merges[pe, at, 3]
    for leaf in range(fetched, leaves):
        states.from_memory[pe, leaf] = 0
    turn = (turn + 1) % UNDER_WAY
    states.turn[pe] = turn
    states.accepts[pe] = max(accepts, states.passed[pe, turn])


@njit(cache=True, counted=False)
def _next_tile(
    jobs: NDArray[Any], front: Streamer, went: NDArray[Any], n: int, begun: float, cleared: float, pace: Pace
) -> float:
    """When the tile of job ``n`` begins, ``went``: when each job before was dispatched; no sooner than B's tile is ``cleared``.

    ``begun``: when the tile before began, whose entry of the table was the last to be asked for.

    The last nonzeros of A are looked up when queue and streamer have room for their leaves: as many as the queue holds are left
    when the streamer decides on a leaf.
    """
    inside, back, looked_up = 0, n, front.looked_up[n]
    while back > 0 and inside < 2 * pace.radix + PENDING_LEAVES:
        back -= 1
        if inside < 2 * pace.radix <= inside + max(1, jobs[back, SELECTIONS]):
            looked_up = max(looked_up, decided(front, back))
        inside += max(1, jobs[back, SELECTIONS])
    return max(max(looked_up, went[back]) + NEXT_TILE_CYCLES, begun + pace.latency + TABLE_CYCLES, cleared)


@njit(cache=True)
def _all_asked(job: NDArray[Any], direct: float, begin: float, end: float, pace: Pace) -> float:
    """When the last lines of a job, merged from ``begin`` to ``end``, are asked for: as many are left as a leaf has slots.

    ``direct``: of the job's lines those that come from memory, for which leaves have more slots.
    """
    capacity = pace.leaf_lines * pace.lanes
    on_chip = min(float(job[WIDEST]), job[MERGED] - direct * pace.lanes)
    longest = max(on_chip, float(job[LONGEST]) if direct > 0 else 0.0)
    return end - (end - begin) * capacity / longest if longest > capacity else 0.0


@njit(cache=True)
def _levels(radix: int) -> int:
    """Levels of a merge tree."""
    levels = 0
    while 1 << levels < radix:
        levels += 1
    return levels


@njit(cache=True, counted=False)
def _begin(states: PeStates, pe: int, leaves: int, merged: float, dispatched: float, came: float, depth: int) -> float:
    """When a job's merge begins on a PE: its leaves fill the merge while those before empty; what is fetched ``came``, or 0."""
    free = states.ends[pe]
    if merged == 0:
        return max(free, dispatched + 1.0)  # nothing to fetch
    filling = FILL_LEAF_CYCLES * (leaves + 1) + _queue_cycles(merged, leaves) - states.emptying[pe]
    begin = max(free + max(0.0, filling), dispatched + depth)
    return max(begin, came + UNPACKED_CYCLES) if came else begin


@njit(cache=True)
def _memory_of_a(jobs: NDArray[Any], cycles: float, beat: float, beat_a: float) -> float:
    """Cycles of memory for a nonzero of A, of so many for all, but for lines that are scanned, each of which takes ``beat_a``."""
    scanned = jobs[:, SCANNED].sum() * beat_a
    return float(max(0.0, cycles - scanned - PREFETCHED_LINES * beat) / max(1, jobs[:, SELECTIONS].sum()))


@njit(cache=True)
def _merge_cycles(job: NDArray[Any], leaving: float, pace: Pace) -> float:
    """Cycles of the merge of a job, a row of ``jobs`` (:data:`JOB_FIELDS`).

    Nonzeros of one leaf come no faster than its line slots are filled again; leaves with the same columns take turns.
    What comes from memory comes no faster than a leaf's line slots allow, but for the first lines: two bursts, each half of them.
    Rows of C, which take a share of ``leaving`` of the bus, hold each of these up.
    """
    merged, length, leaves = float(job[MERGED]), float(job[LENGTH]), job[LEAVES]
    capacity = pace.leaf_lines * pace.lanes
    factor = pace.slot_factors[max(0, min(leaves, pace.radix) - 1)]
    line = pace.beat * pace.line_beats
    crowd = line / (1 - min(MOST_OVERLAPPED, leaving))
    shared = (crowd - line) * (pace.leaf_lines * factor // 2)
    each = (pace.latency + pace.reader + SLOT_CYCLES + shared + capacity * factor / 2) / capacity
    apart = (length * leaves - merged) / (merged * (leaves - 1)) if leaves > 1 and merged else 0.0
    uneven = max(apart, min(1.0, leaves / MANY_LEAVES))
    # The longest leaf is merged alone where it has more nonzeros than the others together.
    on_chip = merged + max(0.0, 2 * job[WIDEST] - merged) * max(0.0, LINE_CYCLES / capacity - 1)
    return max(on_chip, merged * (1 + (MERGE_CYCLES - 1) * uneven), (job[LONGEST] - capacity) * each)


@njit(cache=True, counted=False, inline="always")
def _cycles_of_words(words: float, spilled: int, aside: bool, pace: Pace) -> tuple[float, float]:
    """What words of C take of the bus, and of the units on their way there, which move one a cycle.

    ``aside``: they are for scratch memory, where so many are ``spilled``.
    """
    line = pace.beat * (pace.line_beats if aside else line_beats(pace.pitch_c))
    return (spilled if aside else words) * line, words * max(1.0, line)


@njit(cache=True)
def _slower_load(
    bus: NDArray[Any], begun: float, cycles: float, jobs: NDArray[Any], first: int, later: NDArray[Any]
) -> float:
    """How many times as long a load of so many ``cycles`` of the bus takes as its jobs say: rows of C that leave take turns.

    They are those from the ``first`` to the next tile's, of ``later``.
    """
    alone = jobs[first : later[0] if len(later) else len(jobs), LOADED].max()
    if cycles == 0 or alone < SPAN:
        return 1.0
    return max(1.0, (flow(bus, READ, begun, begun + alone, cycles) - SPAN / 2 - begun) / alone)


@njit(cache=True, counted=False)
def _fibers_return(
    bus: NDArray[Any],
    port: NDArray[Any],
    front: Streamer,
    jobs: NDArray[Any],
    scratch: NDArray[Any],
    time: float,
    merged: float,
    pace: Pace,
) -> tuple[float, float, float]:
    """The fibers of a long row, of so many nonzeros, come back; their PE has the last one's place at ``time``.

    Returns when the first lines of all of them have come, and how many lines follow, from memory and from the chip.
    """
    stream(bus, front, jobs, time + LEAF_ANSWER_CYCLES, pace)
    came = from_scratch(bus, port, scratch, time, pace)
    return came, merged / pace.lanes - scratch[NEAR] - scratch[ASKED], scratch[NEAR] - scratch[ASKED_KEPT]


@njit(cache=True, counted=False)
def _first_lines(
    bus: NDArray[Any],
    port: NDArray[Any],
    front: Streamer,
    jobs: NDArray[Any],
    dispatched: float,
    asked: tuple[int, int],
    pace: Pace,
) -> float:
    """When the first line of each leaf has come that a PE reads itself. ``asked``: lines of all at once, of the last one."""
    time, latency = dispatched + LEAF_ANSWER_CYCLES, pace.latency + pace.reader
    stream(bus, front, jobs, time, pace)
    came = first_line(bus, time, *asked, latency, pace.beat * line_beats(pace.pitch_b))
    return float(max(came, first_line(port, time, *asked, latency, 1.0)))


@njit(cache=True)
def jobs_end(
    jobs: NDArray[Any],
    pace: Pace,
    firsts: NDArray[Any] = ONE_TILE,
    loads: NDArray[Any] = ONE_TILE,
    a_beats: int = 0,
) -> float:
    """Cycles from the first leaf of a tile, or of windows that run into one another, to the last word of the last fiber.

    Parameters
    ----------
    jobs: int64[jobs, fields], in the order of dispatch (:data:`JOB_FIELDS`); their cycles count from their tile's begin.
    firsts, loads: int64[tiles behind the first], the first job of each and the beats of B that it loads. A tile begins when the
        nonzeros of A of the one before have been looked up, and if it loads when the rows of C of the one before that are out.
    a_beats: beats of A that come beside the jobs. The first of them come before the first job.

    A job goes to the PE that can take one first. It begins when its leaves are there and the job before has been merged, and
    fills the merge. Its fiber leaves in row order (fibers of long rows in theirs), and a PE whose output queue is full waits.
    """
    radix, lanes = pace.radix, pace.lanes
    beat, fill = pace.beat, pace.fill
    beat_a, beat_b = beat * line_beats(pace.pitch_a), beat * line_beats(pace.pitch_b)
    states = _pe_states(pace.pes, radix)
    accepts, free, ends = states.accepts, states.free, states.ends
    depth = LEVEL_CYCLES * _levels(radix) + FIRST_CYCLES
    slot_free = np.zeros(pace.scratch_slots, np.float64)  # when the row of each slot of scratch memory leaves
    next_slot, group_pe, chosen, row_open = 0, 0, pace.pes - 1, False
    scratch, ring = no_scratch(pace.scratch_slots)
    # `leaving`, `memory`: cycles of the bus that rows of C take, and till when all that was asked for has come.
    dispatched = dispatched_now = row_out = leaving = memory = 0.0
    a_selection = _memory_of_a(jobs, a_beats * beat, beat, beat_a)
    bus, port, collector = idle_bus(), idle_bus(), idle_bus()
    front = streamer(jobs, firsts[0] if len(firsts) else len(jobs), pace)
    went = np.empty(len(jobs), np.float64)  # when each job was dispatched
    # The tile at hand, when it began and when the rows of the one before it were out.
    tile, begun, out_before = 0, 0.0, 0.0
    for n in range(len(jobs)):
        if tile < len(firsts) and n == firsts[tile]:
            cleared = out_before + NEXT_TILE_CYCLES if loads[tile] else 0.0
            begun = _next_tile(jobs, front, went, n, begun, cleared, pace)
            out_before = row_out
            slower = _slower_load(bus, begun, loads[tile] * beat, jobs, n, firsts[tile + 1 :])
            tile += 1
            begin_tile(front, n, firsts[tile] if tile < len(firsts) else len(jobs), begun, slower)
        kind, leaves, merged, length = jobs[n, KIND], jobs[n, LEAVES], float(jobs[n, MERGED]), float(jobs[n, LENGTH])
        of_a = jobs[n, SELECTIONS] * a_selection + jobs[n, SCANNED] * beat_a
        aside = kind in (SCRATCH, MERGE_ON_THE_WAY)
        if kind == SCRATCH_MERGE:
            pe, asked = group_pe, 0
            dispatched_now = max(scratch[READY], accepts[pe]) + leaves - 1
            came, direct, near = _fibers_return(bus, port, front, jobs, scratch, dispatched_now, merged, pace)
            begin = max(came + UNPACKED_CYCLES, ends[pe])
        else:
            if kind == MERGE_ON_THE_WAY:
                dispatched = max(dispatched, scratch[READY])
            pe = chosen = _pick(free, chosen, dispatched)
            begins_row = kind == SCRATCH and not row_open
            row_open = aside
            usable = look_up(bus, front, jobs, n, pace)
            came, asked, direct, near, cleared, opened = 0.0, 0, 0.0, 0.0, 0.0, max(dispatched, free[pe])
            if of_a:
                take(bus, READ, dispatched, of_a - min(jobs[n, SCANNED], jobs[n, CHUNKS] * NEXT_CHUNK_LINES) * beat_a)
            if kind == MERGE_ON_THE_WAY:
                asked_at = opened + leaves - 1
                came, direct, near = _fibers_return(bus, port, front, jobs, scratch, asked_at, merged, pace)
            elif jobs[n, FETCHED]:
                stores = states.from_memory[pe], states.merges[pe, (states.turn[pe] - 1) % UNDER_WAY, 0]
                usable, of_pe, asked, last_asked, cleared = take_leaves(bus, front, jobs, n, opened, stores, pace)
                direct = float(of_pe - asked)
            steps = leaves - 1.0 if kind == MERGE_ON_THE_WAY else jobs[n, STEPS] + 1.0
            dispatched = max(opened + steps, usable)
            if begins_row:
                dispatched = max(dispatched, slot_free[next_slot])
            if asked:
                states.asks[pe] = max(dispatched, cleared, states.asks[pe])
                came = _first_lines(bus, port, front, jobs, states.asks[pe], (asked, last_asked), pace)
            begin = _begin(states, pe, leaves, merged, dispatched, came, depth)
            front.state[TAKEN] = dispatched
            if aside and jobs[n + 1, KIND] != SCRATCH_MERGE:
                group_pe = pe  # kept for the row's last job: of its last group but one, or of what was merged since
        merge = _merge_cycles(jobs[n], leaving / max(1.0, dispatched), pace)
        went[n] = dispatched
        # All PEs share the bus, with the words of C that leave and the nonzeros of A that come.
        words = float(-(-length // lanes))
        of_bus, of_units = _cycles_of_words(words, jobs[n, SPILLED], aside, pace)
        if of_a > 0:  # asked for as the job comes
            memory = max(memory, dispatched - PREFETCHED_LINES * beat) + of_a
        end = max(begin + merge, memory)
        memory += of_bus
        if direct > 0:
            end = max(end, flow(bus, READ, begin, begin + merge, direct * beat_b))
        if direct + near > 0:
            end = max(end, flow(port, READ, begin, begin + merge, direct + near))
        left = turn(scratch, ring, jobs[n, KEPT], pace) if aside else row_out
        given = max(1.0, words)  # an empty fiber is a word, too
        end, out = _last_word(states, pe, end, left, given, of_units, merge, fill, pace.queue_lines)
        leaving += of_bus
        first = max(left, begin + fill)  # the collector moves a word in a cycle, of both kinds of fibers in turn
        out = max(out, flow(collector, READ if aside else WRITE, first, max(out, first + words), words) - SPAN)
        if aside:
            left = to_scratch(
                bus, scratch, kind == SCRATCH, (words, jobs[n, KEPT], jobs[n, SPILLED]), begin + fill, out, pace
            )
        else:
            left = row_out = max(row_out + max(of_units, 1.0), out)
            # Two bursts of its words wait for the bus; those behind them stay in the PE.
            sent = flow(bus, WRITE, first + WRITE_CYCLES, left + WRITE_CYCLES, of_bus) - SPAN
            left = row_out = max(left, sent - WRITE_CYCLES - 2 * pace.burst)
            free_row(front, n, left)
        if kind == SCRATCH_MERGE:
            slot_free[next_slot] = left
            next_slot = (next_slot + 1) % pace.scratch_slots
            row_open = False
            row_leaves(scratch, ring, left)
        _note_job(
            states, pe, leaves, jobs[n, FETCHED], jobs[n, QUEUED], merged, given, begin, end, left, dispatched, radix
        )
        free[pe] = max(accepts[pe], dispatched_now if kind == SCRATCH_MERGE else 0.0)
        states.asks[pe] = max(states.asks[pe], _all_asked(jobs[n], asked + direct, begin, end, pace))
    return row_out
