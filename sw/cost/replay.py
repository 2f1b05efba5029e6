"""What tiles cost that keep rows of B for the tiles after them (:mod:`sw.plan.gather`): a replay, row by row.

The jobs are those of the model tier, and :mod:`sw.timing.jobs` says when they end. One thing is guessed: how many nonzeros the
rows of C have, and what leaves a job for scratch memory. So no product is counted, and a replay costs a pass over A.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.plan.gather import RowPlan
from sw.stats.pattern import Index, Pattern
from sw.timing.chunks import NOT_SCANNED, scanned_lines
from sw.timing.constants import CHUNK_END_CYCLES, PREFETCHED_LINES, SETTLE_CYCLES
from sw.timing.job import (
    FETCHED,
    JOB_FIELDS,
    LOADED,
    MERGE_ON_THE_WAY,
    OWN,
    SCRATCH,
    SCRATCH_MERGE,
    STEPS,
    STREAMED,
    write_job,
)
from sw.timing.jobs import jobs_end
from sw.timing.pace import Pace, flying_cycles, kept_lines, load_trips, memory_cycles
from sw.timing.record_beats import beats_of_lines, line_beats, spilled_lines

from .sampling import rows_of

__all__ = ["NO_PARTIALS", "NO_SCANS", "Kept", "RowWork", "one_tile", "replay"]


NO_PARTIALS = np.zeros(0, np.int64)
NO_SCANS = np.zeros((0, 2), np.int64)


class RowWork(NamedTuple):
    """Rows of A; of each what it merges, nonzeros of C, and nonzeros of the results of its groups where it has more than one.

    ``partials``: nonzeros that earlier k steps left of each row, ``parts``: in how many fibers of one length; empty where there
    are no such steps. ``partials_kept``, ``results_kept``: the share of these, and of the rows' nonzeros, that stays on chip.
    ``scans``: int64[rows, 2], where each row stands in memory, begin and end of all its nonzeros that are left, of those that are
    cut along k; empty where none is.
    """

    a: Pattern
    macs: Index
    nonzeros: NDArray[np.float64]
    group_results: NDArray[np.float64]
    partials: Index = NO_PARTIALS
    parts: Index = NO_PARTIALS
    partials_kept: float = 0.0
    results_kept: float = 0.0
    scans: Index = NO_SCANS

    def of(self, rows: Index) -> "RowWork":
        """Some of them."""
        return RowWork(
            rows_of(self.a, rows),
            self.macs[rows],
            self.nonzeros[rows],
            self.group_results[rows],
            self.partials[rows] if len(self.partials) else NO_PARTIALS,
            self.parts[rows] if len(self.parts) else NO_PARTIALS,
            self.partials_kept,
            self.results_kept,
            self.scans[rows] if len(self.scans) else NO_SCANS,
        )


class Kept(NamedTuple):
    """What moves, and how long that takes.

    Parameters
    ----------
    lines, beats, rows, loads: lines and beats that loading takes, rows loaded, tiles that load any.
    bumped_beats, bumped_macs: beats fetched at the uses of bumped rows, MACs on them. overbooked: loads that bump rows.
    chains: of tiles that run into one another. cycles: of all, without what each chain costs by itself.
    scratch: lines of scratch memory, half of them read.
    """

    lines: int
    beats: int
    rows: int
    loads: int
    bumped_beats: int
    bumped_macs: int
    overbooked: int
    chains: int
    cycles: float
    scratch: float


def one_tile(rows: int, fitting: int) -> RowPlan:
    """A tile that loads the first ``rows`` rows of B, ``fitting`` of which have place; without any, all of B is on chip."""
    zero = np.zeros(1, np.int64)
    return RowPlan(
        rows=None, lines=zero, places=zero[:0], windows=np.array([[0, rows]]), kept=zero, line=zero, free=zero,
        metadata=zero, placed=zero + fitting, read=zero + fitting, early=zero.astype(np.bool_),
    )  # fmt: skip


def replay(
    rows: RowWork,
    begins: Index,
    b_pointers: Index,
    plan: RowPlan,
    pace: Pace,
    *,
    whole: bool = False,
    streaming: bool = False,
    memory_from: int | None = None,
    load_time: float | None = None,
    more: float = 0.0,
    idle: float = 0.0,
    pairs: bool = False,
) -> Kept:
    """Tiles of whole rows of B that load what those before have not.

    Parameters
    ----------
    rows, begins, b_pointers: rows of A, the first one of each tile and the end, and where rows of B begin and end.
    plan: what each tile finds and loads. pace: the machine.
    whole: all of B is one tile, cut out of it.
    streaming: nothing is kept: each use of a row of B looks its place up and fetches it.
    memory_from: rows of B from here on do not fit on chip.
    load_time: cycles of memory in which rows of B come beside those of A, where its rows themselves do not say so.
    more: beats that move beside the first tile, such as begin positions.
    idle: cycles of the dispatcher beside those of the last tiles' rows.
    pairs: rows of B, and their pointers, are read one by one, from no list.

    Lines, beats, rows, loads and what is bumped are exact.
    """
    trips = (0, 0) if whole else load_trips(pace.latency, pace.reader)
    list_rows = plan.rows if plan.rows is not None else np.empty(0, np.int64)
    a, bumped_from = rows.a, len(b_pointers) if memory_from is None else memory_from
    found = _replay(
        a.pointers, a.coordinates, list_rows, plan.list_words, streaming, bumped_from, rows.partials, rows.parts,
        rows.scans, -1.0 if load_time is None else load_time, more, idle, pairs, trips,
        b_pointers, begins, plan.windows, plan.fresh, plan.placed, plan.early, pace, rows.macs, rows.nonzeros,
        rows.group_results,
        (1 - rows.partials_kept, 1 - rows.results_kept),
    )  # fmt: skip
    return Kept(*found)


@njit(cache=True)
def _kept(place: int, nonzeros: int, lanes: int, most: int) -> int:
    """Lines of the ring that a scratch fiber takes which begins at this nonzero of its slot."""
    return max(0, min(-(-(place + nonzeros) // lanes), most) - min(-(-place // lanes), most))


@njit(cache=True, counted=False)
def _jobs_of_row(
    jobs: NDArray[Any],
    number: int,
    begin: int,
    end: int,
    a_coordinates: NDArray[Any],
    b_pointers: NDArray[Any],
    arrivals: NDArray[Any],
    tile: int,
    macs: int,
    nonzeros: float,
    group_results: float,
    partial: int,
    parts: int,
    in_memory: bool,
    scan: NDArray[Any],
    pace: Pace,
) -> tuple[int, int, int, float]:
    """Writes the jobs of a row down; returns the next one's number, beats and MACs of what is bumped, lines of scratch memory.

    ``begin``, ``end``: its nonzeros of A. ``nonzeros``, ``group_results``: of C's row, and of the results of its groups together.
    ``partial``: nonzeros that earlier k steps left of it in so many ``parts``, -1 without such steps, ``in_memory`` or on
    chip. ``scan``: its row of ``RowWork.scans``, or none.
    """
    radix, lanes = pace.radix, pace.lanes
    length = round(nonzeros)
    first_job = number
    wait, fetched, bumped_macs = 0, 0, 0
    # In scratch memory: fibers, nonzeros of all, of the one that takes longest to come back, and
    # of the longest one on chip; lines written and read.
    fibers, in_scratch, largest, stays, scratch = 0, 0, 0, 0, 0.0
    place, on_chip = 0, kept_lines(pace.scratch_lines)  # in the row's slot; its lines that stay
    position, back = begin, 0  # parts that came back so far
    while True:
        first = position
        leaves, merged, streamed, longest, widest, found = 0, 0, 0, 0, 0, 0
        while back < parts and leaves < radix:
            size = partial * (back + 1) // parts - partial * back // parts
            widest = max(widest, size)
            if in_memory:
                longest = max(longest, (size - 1) // pace.slot_factors[leaves] + 1)
                found, streamed = found + 1, streamed + (size + lanes - 2) // lanes + 1
            leaves, merged = leaves + 1, merged + size
            back += 1
        while position < end:
            k = a_coordinates[position]
            q, r = b_pointers[k], b_pointers[k + 1]
            if r > q and leaves == radix or back < parts:
                break
            state = arrivals[k]
            if state >> 32 == tile:
                wait = max(wait, (state & 0xFFFFFFFF) >> 1)
            if r > q:
                leaves += 1
                merged += r - q
                widest = max(widest, r - q)
                if state & 1:
                    stop = (r - 1) // lanes + 1
                    streamed += stop - q // lanes
                    fetched += beats_of_lines(q // lanes, stop, pace.pitch_b)
                    bumped_macs += r - q
                    found += 1
                    longest = max(longest, (r - q) // pace.slot_factors[leaves - 1])
            position += 1
        selections = position - first
        of_a = NOT_SCANNED
        if len(scan):
            place_of_a = scan[0, 0] - begin
            of_a = scanned_lines(scan[0, 0], first + place_of_a, position + place_of_a, scan[0, 1], lanes)
        if fibers == 0 and position == end and back == parts:
            number = write_job(
                jobs,
                number,
                OWN,
                leaves,
                merged,
                length,
                selections + CHUNK_END_CYCLES * len(scan),
                longest,
                of_a,
                selections,
                found,
                streamed,
                widest=widest,
            )
            break
        given = min(merged, round(group_results * merged / macs))
        number = write_job(
            jobs, number, SCRATCH, leaves, merged, given, selections, longest, of_a, selections, found,
            streamed,
            (spilled_lines(place, given, lanes, on_chip), _kept(place, given, lanes, on_chip)), widest,
        )  # fmt: skip
        spilled = min(given, max(0, place + given - on_chip * lanes))
        place += given
        largest = max(largest, spilled // pace.slot_factors[fibers])
        stays = max(stays, given - spilled)
        fibers += 1
        in_scratch += given
        scratch += 2 * spilled / lanes + (spilled > 0 or on_chip == 0)
        if position == end and back == parts:
            number = write_job(jobs, number, SCRATCH_MERGE, fibers, in_scratch, length, 0, largest, widest=stays)
            break
        if fibers == radix:
            # No more fit: these become one fiber.
            so_far = min(in_scratch, length)
            written = spilled_lines(place, so_far, lanes, on_chip), _kept(place, so_far, lanes, on_chip)
            number = write_job(
                jobs, number, MERGE_ON_THE_WAY, radix, in_scratch, so_far, 0, largest, written=written, widest=stays
            )
            spilled = min(so_far, max(0, place + so_far - on_chip * lanes))
            place += so_far
            scratch += 2 * spilled / lanes + (spilled > 0 or on_chip == 0)
            fibers, in_scratch, largest, stays = 1, so_far, spilled // pace.slot_factors[0], so_far - spilled
    jobs[first_job:number, LOADED] = wait
    # The dispatcher looks at what earlier steps left first.
    jobs[first_job, STEPS] += partial >= 0
    return number, fetched, bumped_macs, scratch


@njit(cache=True)
def _chain_end(
    jobs: NDArray[Any],
    pace: Pace,
    firsts: NDArray[Any],
    beats: NDArray[Any],
    of_a: float,
    moved: float,
    bursts: float,
    scratch: float,
    idle: float = 0.0,
) -> float:
    """Cycles of tiles that run into one another: the slowest of bus, bursts under way, the reader of records, and their jobs.

    Parameters
    ----------
    jobs, firsts, beats: of the tiles, the first job of each, and beats that it loads.
    of_a, moved: beats of A and its look-ups, and all. bursts: of look-ups and loads. scratch: twice the lines that come back of
        scratch memory.
    idle: cycles beside those of the jobs.
    """
    # Each leaf is a burst; one reader of records serves all PEs, a line in a cycle (:mod:`sw.model.clock`).
    flying = flying_cycles(bursts + jobs[:, FETCHED].sum(), pace.latency, pace.outstanding)
    memory = memory_cycles(moved * pace.beat, flying)
    computing = idle + jobs_end(jobs, pace, firsts[1:], beats[1:], int(of_a))
    return float(max(memory, computing, jobs[:, STREAMED].sum() + scratch / 2))


@njit(cache=True)
def _most_jobs(a_pointers: NDArray[Any], parts: NDArray[Any], radix: int) -> int:
    """Jobs that rows of A may need."""
    most = len(a_pointers) - 1
    for row in range(len(a_pointers) - 1):
        count = a_pointers[row + 1] - a_pointers[row] + (parts[row] if len(parts) else 0)
        if count > radix:
            most += 2 * (count // radix + 1)
    return most


@njit(cache=True, counted=False)
def _note_load(
    usable: NDArray[Any],
    list_rows: NDArray[Any],
    by_list: bool,
    b_pointers: NDArray[Any],
    places: tuple[int, int, int],
    tile: int,
    time: float,
    nonzeros: int,
    prefetched: float,
    trips: tuple[int, int],
) -> None:
    """Notes when each row of B that a tile loads can be used, and whether it is bumped.

    Those at ``places`` from the first to the second stay, those to the third do not.

    Lines of so many ``nonzeros`` come evenly over these and rows, in ``time`` cycles, beside so many of A's that are
    ``prefetched``. What is bumped is known in its turn.
    """
    first, stop, end = places
    each = time / (nonzeros + 0.5 * (end - first))
    so_far = before = 0.0
    for place in range(first, end):
        k = list_rows[place] if by_list else place
        so_far += (b_pointers[k + 1] - b_pointers[k]) * (place < stop) + 0.5
        came = (so_far * each if place < stop else time) + SETTLE_CYCLES
        came += min(came, prefetched) + (trips[1] if place < stop else trips[0])
        before = max(came, before)
        usable[k] = (tile << 32) | (np.int64(before) << 1) | (place >= stop)


@njit(cache=True)
def _replay(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    list_rows: NDArray[Any],
    list_words: int,
    streaming: bool,
    memory_from: int,
    partials: NDArray[Any],
    parts: NDArray[Any],
    scans: NDArray[Any],
    load_time: float,
    more: float,
    idle: float,
    pairs: bool,
    trips: tuple[int, int],
    b_pointers: NDArray[Any],
    begins: NDArray[Any],
    windows: NDArray[Any],
    fresh: NDArray[Any],
    placed: NDArray[Any],
    early: NDArray[Any],
    pace: Pace,
    macs: NDArray[Any],
    c_nonzeros: NDArray[Any],
    group_results: NDArray[Any],
    through_memory: tuple[float, float],
) -> tuple[int, int, int, int, int, int, int, int, float, float]:
    lanes, radix, beat, by_list = pace.lanes, pace.radix, pace.beat, list_words > 0
    row_cycles = 2 if list_words > 2 else 1  # a place and its row's begin come one after the other
    words = 2 * lanes / pace.line_beats  # of metadata in a beat
    load, load_beats, loaded_rows, loads, bumped_beats, bumped_macs, overbooked, chains = 0, 0, 0, 0, 0, 0, 0, 0
    cycles = in_memory = 0.0
    # Of each row of B: the tile that loaded it last, the cycle of that load in which it can be used, whether it is bumped.
    usable = np.full(len(b_pointers) - 1, -2, np.int64)
    usable[0 if streaming else memory_from :] = -1
    # Of the chain at hand: its jobs, the first one of each tile and the beats that it loads; lines that move.
    jobs = np.empty((_most_jobs(a_pointers, parts, radix), len(JOB_FIELDS)), np.int64)
    firsts, beats = np.empty_like(placed), np.zeros_like(placed)
    number, tiles, of_a, moved, bursts, aside = 0, 0, 0.0, 0.0, 0.0, 0.0
    for tile in range(len(windows)):
        end, first = windows[tile, 1], fresh[tile]
        first_row, end_row = begins[tile], begins[tile + 1]
        a_beats = (a_pointers[end_row] - a_pointers[first_row]) / lanes * line_beats(pace.pitch_a) + (
            end_row - first_row
        ) / words
        if not early[tile]:
            if tiles > 0:
                cycles += _chain_end(jobs[:number], pace, firsts[:tiles], beats[:tiles], of_a, moved, bursts, aside)
            chains += 1
            number, tiles, of_a, moved, bursts, aside = 0, 0, 0.0, 0.0, 0.0, 0.0
        firsts[tiles] = number
        beats[tiles] = 0
        of_a += a_beats
        moved += a_beats + (more if tile == 0 else 0.0)
        if first < end:
            stop = first + placed[tile]
            loads += 1
            loaded_rows += end - first
            overbooked += stop < end
            # Lines that follow one another are read as a run, from line ``run`` to ``run_end``.
            lines, run, run_end, loaded, least, total = 0, 0, 0, 0, 0, 0
            open_line = (
                False  # the last row ends within its line, which takes a cycle to drop where the next has nothing of it
            )
            for place in range(first, end):
                k = list_rows[place] if by_list else place
                q, r = b_pointers[k], b_pointers[k + 1]
                size = 0
                if r > q:
                    line, line_end = q // lanes, (r - 1) // lanes + 1
                    size = line_end - line
                    if place < stop:
                        total += r - q
                        lines += line_end - (line if pairs else max(line, run_end))
                        least += by_list and open_line and line >= run_end
                        open_line = r % lanes != 0
                        if pairs or line > run_end:
                            loaded += beats_of_lines(run, run_end, pace.pitch_b)
                            run = line
                            bursts += 1
                        run_end = line_end
                least += max(size, row_cycles) if place < stop else row_cycles
            loaded += beats_of_lines(run, run_end, pace.pitch_b)
            load += lines
            load_beats += loaded
            meta = (end - first) / words + pace.line_beats
            taken = loaded + max(1, list_words) * meta
            if pairs:
                taken = loaded + (end - first) * (pace.line_beats + 1 / words)
            if load_time >= 0:
                taken, least = load_time / beat, 0
            moved += taken
            beats[tiles] = np.int64(np.ceil(taken))
            time = max(taken * beat, float(least))
            # A's lines are there before a tile whose load begins early.
            prefetched = 0.0 if early[tile] else min(a_beats, float(PREFETCHED_LINES)) * beat
            _note_load(usable, list_rows, by_list, b_pointers, (first, stop, end), tile, time, total, prefetched, trips)
        tiles += 1
        for row in range(first_row, end_row):
            low, high = a_pointers[row], a_pointers[row + 1]
            back, of_row = 0.0, parts[row] if len(parts) else 0
            if of_row:
                back = (partials[row] + of_row * (lanes - 1)) / lanes * through_memory[0]
            number, fetched, from_memory, scratch = _jobs_of_row(
                jobs, number, low, high, a_coordinates, b_pointers, usable, tile, macs[row], c_nonzeros[row],
                group_results[row], partials[row] if len(partials) else -1, of_row, through_memory[0] > 0,
                scans[row : row + 1], pace,
            )  # fmt: skip
            bumped_beats, bumped_macs = bumped_beats + fetched, bumped_macs + from_memory
            moved += fetched + c_nonzeros[row] / lanes * line_beats(pace.pitch_c) * through_memory[1]
            moved += (scratch + back) * pace.line_beats
            aside += scratch
            in_memory += scratch
            if streaming:
                looked_up = (high - low) * (1 + 1 / (2 * lanes)) * pace.line_beats
                of_a, moved = of_a + looked_up, moved + looked_up
                bursts += high - low
    cycles += _chain_end(jobs[:number], pace, firsts[:tiles], beats[:tiles], of_a, moved, bursts, aside, idle)
    return load, load_beats, loaded_rows, loads, bumped_beats, bumped_macs, overbooked, chains, cycles, in_memory
