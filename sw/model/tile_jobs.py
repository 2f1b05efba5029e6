"""The jobs of a tile's rows, from the real nonzeros: what each moves and merges. A Numba kernel."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.timing.chunks import NOT_SCANNED, Scanned, scanned_lines
from sw.timing.constants import CHUNK_END_CYCLES
from sw.timing.hardware import QUEUED_NONZEROS
from sw.timing.job import LOADED, MERGE_ON_THE_WAY, OWN, SCRATCH, SCRATCH_MERGE, write_job
from sw.timing.record_beats import beats_of_lines, fetched_lines, spilled_lines

__all__ = ["TOTALS", "gather_tile", "queued"]

# What gather_tile counts, in the order of its ``totals``.
TOTALS = (
    "selections",
    "lookups",
    "lookup_lines",
    "bumped_lines",
    "bumped_beats",
    "bumped_elements",
    "unit_lines",
    "scratch_read",
    "scratch_written",
    "jobs",
    "leaves",
    "products",
    "merged",
)
(
    SELECTIONS,
    LOOKUPS,
    LOOKUP_LINES,
    BUMPED_LINES,
    BUMPED_BEATS,
    BUMPED_ELEMENTS,
    UNIT_LINES,
    SCRATCH_READ,
    SCRATCH_WRITTEN,
    JOBS,
    LEAVES,
    PRODUCTS,
    MERGED,
) = range(len(TOTALS))


@njit(cache=True)
def _longest(lengths: NDArray[Any], slot_factors: NDArray[Any]) -> int:
    """Nonzeros of the leaf that takes longest to come from memory: leaf ``n`` has ``slot_factors[n]`` times the usual slots."""
    longest = 0
    for n in range(len(lengths)):
        longest = max(longest, -(-lengths[n] // slot_factors[n]))
    return longest


# What is known of the leaves of a group of a long row that come from memory, an int64[4]: see :data:`sw.timing.job.JOB_FIELDS`.
GROUP_LONGEST, GROUP_FETCHED, GROUP_STREAMED, GROUP_WIDEST = range(4)


@njit(cache=True, inline="always")
def _new_columns(
    group_stamp: NDArray[Any], row_stamp: NDArray[Any], group: int, row: int, columns: NDArray[Any]
) -> tuple[int, int]:
    """Columns of a fiber of B that the group, and that the row, has not met so far; they carry its number from now on."""
    of_group, of_row = 0, 0
    for j in columns:
        if group_stamp[j] != group:
            group_stamp[j] = group
            of_group += 1
        if row_stamp[j] != row:
            row_stamp[j] = row
            of_row += 1
    return of_group, of_row


@njit(cache=True)
def _written(begin: int, nonzeros: int, lanes: int, kept_lines: int) -> tuple[int, int]:
    """Lines of a scratch fiber that go to memory, and lines of the ring that none of its row had before."""
    spilled = spilled_lines(begin, nonzeros, lanes, kept_lines)
    before, after = -(-begin // lanes), -(-(begin + nonzeros) // lanes)
    return spilled, max(0, min(after, kept_lines) - min(before, kept_lines))


@njit(cache=True)
def queued(
    positions: tuple[int, int],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b_coordinates: NDArray[Any],
) -> int:
    """Nonzeros in the queues of a job's other leaves when the last one of all enters its queue (:mod:`sw.timing.job`).

    The leaves are the rows of B that A's nonzeros at ``positions`` name. The last one enters when one of its leaf leaves the
    full queue; all that have smaller columns than this have left, too.
    """
    if positions[1] - positions[0] < 2:
        return 0
    column = -1
    for position in range(positions[0], positions[1]):
        k = a_coordinates[position]
        if b_end[k] > b_begin[k]:
            column = max(column, b_coordinates[max(b_begin[k], b_end[k] - QUEUED_NONZEROS - 1)])
    found = 0
    for position in range(positions[0], positions[1]):
        k = a_coordinates[position]
        at = b_end[k] - 1
        while at >= max(b_begin[k], b_end[k] - QUEUED_NONZEROS) and b_coordinates[at] > column:
            found, at = found + 1, at - 1
    return max(0, found - QUEUED_NONZEROS)


@njit(cache=True)
def _group_job(
    jobs: NDArray[Any],
    number: int,
    leaves: int,
    group: NDArray[Any],
    merged: int,
    nonzeros: int,
    selections: int,
    examined: int,
    of_a: Scanned,
    written: tuple[int, int],
    queued: int,
    totals: NDArray[Any],
) -> int:
    """The job of a group, whose fiber of ``nonzeros`` goes to scratch memory; what is known of it is forgotten.

    ``of_a``: what :func:`sw.timing.chunks.scanned_lines` says. ``written``: what :func:`_written` does of the fiber.
    ``queued``: see :func:`queued`.
    """
    totals[JOBS] += 1
    totals[SCRATCH_WRITTEN] += written[0]
    number = write_job(
        jobs,
        number,
        SCRATCH,
        leaves,
        merged,
        nonzeros,
        selections,
        group[GROUP_LONGEST],
        of_a,
        examined,
        group[GROUP_FETCHED],
        group[GROUP_STREAMED],
        written,
        group[GROUP_WIDEST],
        queued,
    )
    group[:] = 0
    return number


@njit(cache=True)
def _merge_job(
    jobs: NDArray[Any],
    number: int,
    kind: int,
    fibers: NDArray[Any],
    length: int,
    totals: NDArray[Any],
    sizes: tuple[int, NDArray[Any], int],
    written: tuple[int, int] = (0, 0),
) -> int:
    """The job that merges fibers in scratch memory into one of ``length``; ``fibers``: begin and nonzeros of each.

    ``sizes``: lanes, slot factors, and lines of the row's slot that stay on chip. ``written``: what :func:`_written` says of the
    job's own fiber.
    """
    lanes, slot_factors, kept_lines = sizes
    totals[JOBS] += 1
    totals[SCRATCH_WRITTEN] += written[0]
    for n in range(len(fibers)):
        lines = spilled_lines(fibers[n, 0], fibers[n, 1], lanes, kept_lines)
        totals[UNIT_LINES] += lines
        totals[SCRATCH_READ] += lines
        totals[LEAVES] += fibers[n, 1] > 0
        totals[MERGED] += fibers[n, 1]
    in_memory = np.minimum(fibers[:, 1], np.maximum(0, fibers[:, 0] + fibers[:, 1] - kept_lines * lanes))
    longest = _longest(in_memory, slot_factors)
    widest = (fibers[:, 1] - in_memory).max()
    return write_job(
        jobs, number, kind, len(fibers), fibers[:, 1].sum(), length, 0, longest, written=written, widest=widest
    )


@njit(cache=True)
def _scratch_row(
    row: int,
    a_pointers: NDArray[Any],
    a_begin: NDArray[Any],
    a_end: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b_coordinates: NDArray[Any],
    back: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    of_back: tuple[int, int],
    radix: int,
    lanes: int,
    stamps: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    totals: NDArray[Any],
    jobs: NDArray[Any],
    number: int,
    slot_factors: NDArray[Any],
    streaming: bool,
    bumped: NDArray[Any],
    first_k: int,
    kept_lines: int,
    scanned: bool,
) -> int:
    """The jobs of a row with more leaves than one takes: groups of ``radix``, their fibers in scratch, merged at the end.

    ``back``: as :func:`gather_tile`; ``of_back``: which fibers are the row's.
    ``streaming``, ``bumped``, ``first_k``, ``kept_lines``, ``scanned``: as :func:`gather_tile`.
    """
    group_stamp, row_stamp, generation = stamps
    table = np.empty((radix, 2), np.int64)
    fibers_kept = 0
    scratch = 0
    in_job = 0
    group = np.zeros(4, np.int64)
    group_merged = 0
    group_nonzeros = 0
    group_first = a_begin[row]
    row_nonzeros = 0
    generation[0] += 1
    row_generation = generation[0]
    group_generation = generation[0]
    _, back_lengths, back_begins, back_first, back_last = back
    backs = of_back[1] - of_back[0]
    for leaf in range(-backs, a_end[row] - a_begin[row]):
        position = a_begin[row] + max(leaf, 0)
        fiber = of_back[1] + leaf if leaf < 0 else 0
        if leaf >= 0 and b_end[a_coordinates[position]] == b_begin[a_coordinates[position]]:
            continue
        if in_job == radix:
            written = _written(scratch, group_nonzeros, lanes, kept_lines)
            selections = position - group_first
            of_a = (
                scanned_lines(a_begin[row], group_first, position, a_pointers[row + 1], lanes)
                if scanned
                else NOT_SCANNED
            )
            in_queues = queued((group_first, position), a_coordinates, b_begin, b_end, b_coordinates)
            number = _group_job(
                jobs, number, radix, group, group_merged, group_nonzeros, selections, selections, of_a, written, in_queues,
                totals,
            )  # fmt: skip
            group_merged = 0
            group_first = position
            table[fibers_kept, 0], table[fibers_kept, 1] = scratch, group_nonzeros
            fibers_kept += 1
            scratch += group_nonzeros
            if fibers_kept == radix:
                written = _written(scratch, row_nonzeros, lanes, kept_lines)
                sizes = lanes, slot_factors, kept_lines
                number = _merge_job(jobs, number, MERGE_ON_THE_WAY, table, row_nonzeros, totals, sizes, written)
                table[0, 0], table[0, 1] = scratch, row_nonzeros
                scratch += row_nonzeros
                fibers_kept = 1
            in_job = 0
            group_nonzeros = 0
            generation[0] += 1
            group_generation = generation[0]
        in_job += 1
        if leaf < 0:
            size = back_lengths[fiber]
            group_merged += size
            group[GROUP_WIDEST] = max(group[GROUP_WIDEST], size)
            if back_begins[fiber] >= 0:
                lines = fetched_lines(back_begins[fiber], size, lanes)
                group[GROUP_LONGEST] = max(group[GROUP_LONGEST], -(-size // slot_factors[in_job - 1]))
                group[GROUP_FETCHED] += 1
                group[GROUP_STREAMED] += lines
            for made_of in range(back_first[fiber], back_last[fiber]):
                columns = b_coordinates[b_begin[a_coordinates[made_of]] : b_end[a_coordinates[made_of]]]
                new = _new_columns(group_stamp, row_stamp, group_generation, row_generation, columns)
                group_nonzeros += new[0]
                row_nonzeros += new[1]
            continue
        k = a_coordinates[position]
        size = b_end[k] - b_begin[k]
        group_merged += size
        group[GROUP_WIDEST] = max(group[GROUP_WIDEST], size)
        if streaming or bumped[k - first_k]:
            lines = fetched_lines(b_begin[k], size, lanes)
            group[GROUP_STREAMED] += lines
            group[GROUP_FETCHED] += 1
            group[GROUP_LONGEST] = max(group[GROUP_LONGEST], size // slot_factors[in_job - 1])
        columns = b_coordinates[b_begin[k] : b_end[k]]
        new = _new_columns(group_stamp, row_stamp, group_generation, row_generation, columns)
        group_nonzeros += new[0]
        row_nonzeros += new[1]
    written = _written(scratch, group_nonzeros, lanes, kept_lines)
    table[fibers_kept, 0], table[fibers_kept, 1] = scratch, group_nonzeros
    selections = a_end[row] - group_first
    of_a = scanned_lines(a_begin[row], group_first, a_end[row], a_pointers[row + 1], lanes) if scanned else NOT_SCANNED
    in_queues = queued((group_first, a_end[row]), a_coordinates, b_begin, b_end, b_coordinates)
    number = _group_job(
        jobs, number, in_job, group, group_merged, group_nonzeros, selections, 0, of_a, written, in_queues, totals
    )
    fibers = table[: fibers_kept + 1]
    return _merge_job(jobs, number, SCRATCH_MERGE, fibers, row_nonzeros, totals, (lanes, slot_factors, kept_lines))


@njit(cache=True)
def _fibers_that_return(
    lengths: NDArray[Any], begins: NDArray[Any], lanes: int, slot_factors: NDArray[Any]
) -> tuple[tuple[int, int, int, int], int]:
    """What is known of a row with its partial fibers alone (:func:`_fibers_of_row`), and their lines in memory."""
    fetched, longest, widest, lines_back = 0, 0, 0, 0
    for n in range(len(lengths)):
        widest = max(widest, lengths[n])
        if begins[n] >= 0:
            lines_back += fetched_lines(begins[n], lengths[n], lanes)
            longest = max(longest, -(-lengths[n] // slot_factors[min(n, len(slot_factors) - 1)]))
            fetched += 1
    return (len(lengths), fetched, longest, widest), lines_back


@njit(cache=True, inline="always")
def _fibers_of_row(
    positions: tuple[int, int],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    bumped: NDArray[Any],
    streaming: bool,
    first_k: int,
    known: tuple[int, int, int, int],
    lanes: int,
    pitch: int,
    totals: NDArray[Any],
    slot_factors: NDArray[Any],
) -> tuple[int, int, int, int]:
    """Looks up the fibers of B that the nonzeros of A at ``positions`` name, and counts them.

    Returns what is ``known`` of the row with them: leaves, those that come from memory, the longest of these, and the longest
    of all (:data:`sw.timing.job.JOB_FIELDS`).
    """
    leaves, fetched, longest, widest = known
    words = 2 * lanes
    for position in range(positions[0], positions[1]):
        k = a_coordinates[position]
        if streaming:
            totals[LOOKUPS] += 1
            totals[LOOKUP_LINES] += 2 if k % words == words - 1 else 1
        size = b_end[k] - b_begin[k]
        if size == 0:
            continue
        leaves += 1
        widest = max(widest, size)
        totals[PRODUCTS] += size
        totals[MERGED] += size
        if streaming or bumped[k - first_k]:
            first, stop = b_begin[k] // lanes, (b_end[k] - 1) // lanes + 1
            totals[BUMPED_LINES] += stop - first
            totals[BUMPED_BEATS] += beats_of_lines(first, stop, pitch)
            totals[BUMPED_ELEMENTS] += size
            fetched += 1
            longest = max(longest, size // slot_factors[min(leaves, len(slot_factors)) - 1])
    return leaves, fetched, longest, widest


@njit(cache=True)
def gather_tile(
    first_row: int,
    last_row: int,
    a_pointers: NDArray[Any],
    a_begin: NDArray[Any],
    a_end: NDArray[Any],
    a_coordinates: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b_coordinates: NDArray[Any],
    bumped: NDArray[Any],
    streaming: bool,
    back: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    lengths: NDArray[Any],
    radix: int,
    lanes: int,
    pitch_b: int,
    stamps: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    totals: NDArray[Any],
    jobs: NDArray[Any],
    scanned: bool,
    first_k: int,
    loaded: NDArray[Any],
    slot_factors: NDArray[Any],
    kept_lines: int,
) -> int:
    """Adds to ``totals`` what the rows of one tile look up, fetch, merge and leave in scratch.

    ``bumped``: bool[size_k], which rows of B from ``first_k`` on stay in memory (``streaming``: all). ``back``: the fibers
    that come back to each row (:class:`.rows_of_c.Back`), ``lengths`` how long each row then is. ``pitch_b``: of lines of B.
    ``stamps``: two arrays over B's columns and the last generation used in them. Indices into ``totals`` are the names above.
    ``jobs`` gets the jobs in order (:mod:`sw.timing.job`); returns how many. ``scanned``: A's rows come in chunks, to where they
    leave the tile. ``loaded``: the cycle in which each fiber from ``first_k`` on is in B's
    partition; empty where all are from the begin. ``slot_factors``: how many times the usual line slots each leaf of a job has.
    ``kept_lines``: of each long row's fibers in scratch memory that stay on chip.
    """
    number = 0
    back_rows, back_lengths, back_begins, _, _ = back
    for row in range(first_row, last_row):
        of_back = back_rows[row - first_row], back_rows[row - first_row + 1]
        partial = back_lengths[of_back[0] : of_back[1]].sum()
        (leaves, fetched, longest, widest), comes_back = _fibers_that_return(
            back_lengths[of_back[0] : of_back[1]],
            back_begins[of_back[0] : of_back[1]],
            lanes,
            slot_factors,
        )
        totals[MERGED] += partial
        totals[UNIT_LINES] += comes_back
        totals[SELECTIONS] += a_end[row] - a_begin[row]
        of_a = NOT_SCANNED
        if scanned:
            of_a = scanned_lines(a_begin[row], a_begin[row], a_end[row], a_pointers[row + 1], lanes)
        merged_before = totals[MERGED] - partial
        lines_before = totals[BUMPED_LINES]
        first_job = number
        leaves, fetched, longest, widest = _fibers_of_row(
            (a_begin[row], a_end[row]), a_coordinates, b_begin, b_end, bumped, streaming, first_k,
            (leaves, fetched, longest, widest), lanes, pitch_b, totals, slot_factors,
        )  # fmt: skip
        totals[LEAVES] += leaves
        if leaves <= radix:
            totals[JOBS] += 1
            merged = totals[MERGED] - merged_before
            streamed = comes_back + totals[BUMPED_LINES] - lines_before
            examined = a_end[row] - a_begin[row]
            if scanned:
                # A line a cycle.
                line = a_begin[row] // lanes
                examined = max(examined, (a_end[row] - 1) // lanes - line + 1 if examined else 0) + CHUNK_END_CYCLES
            length, of_row = lengths[row - first_row], a_end[row] - a_begin[row]
            number = write_job(
                jobs,
                number,
                OWN,
                leaves,
                merged,
                length,
                examined,
                longest,
                of_a,
                of_row,
                fetched,
                streamed,
                (0, 0),
                widest,
                queued((a_begin[row], a_end[row]), a_coordinates, b_begin, b_end, b_coordinates),
            )
        else:
            number = _scratch_row(
                row, a_pointers, a_begin, a_end, a_coordinates, b_begin, b_end, b_coordinates, back, of_back,
                radix, lanes, stamps, totals, jobs, number, slot_factors, streaming, bumped, first_k,
                kept_lines, scanned,
            )  # fmt: skip
        if len(loaded):
            needed = 0
            for position in range(a_begin[row], a_end[row]):
                needed = max(needed, loaded[a_coordinates[position] - first_k])
            jobs[first_job:number, LOADED] = needed
    return number
