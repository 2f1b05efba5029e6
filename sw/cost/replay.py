"""What tiles cost that keep rows of B for the tiles after them (:mod:`sw.plan.gather`): a replay, row by row.

The rules are those of the model tier (:mod:`sw.timing.jobs`) with one thing guessed: how many elements the rows of C have.
So no product is counted, and a replay costs a pass over A.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.plan.gather import RowPlan
from sw.stats.pattern import Index, Pattern
from sw.timing.constants import (
    AHEAD_LINES,
    FETCH_CYCLES,
    FILL_LEAF_CYCLES,
    JOB_MARGIN,
    NEXT_TILE_CYCLES,
    NEXT_TILE_LATENCIES,
    SCRATCH_CYCLES,
    SETTLE_CYCLES,
    WAY_FETCH_CYCLES,
)

from .sampling import rows_of

__all__ = ["Kept", "Pace", "RowWork", "replay"]


class Pace(NamedTuple):
    """The machine.

    Parameters
    ----------
    line, latency: cycles of a bus line, and until the first one comes.
    elements, radix: processing elements, and leaves that one takes in a job.
    room: elements of a leaf that it has slots for. queue: elements that wait at its way out.
    long_rows: rows of more leaves than that which may be under way.
    depth, fill: cycles from the last leaf of a job to its first merged element, from the last one of these to its last word.
    row: cycles that a row of B takes at least.
    """

    line: float
    latency: float
    elements: int
    radix: int
    room: int
    queue: int
    long_rows: int
    depth: float
    fill: float
    row: int


class RowWork(NamedTuple):
    """Rows of A; of each its products, elements of C, and elements of the results of its groups where it has more than one."""

    a: Pattern
    macs: Index
    elements: NDArray[np.float64]
    again: NDArray[np.float64]

    def of(self, rows: Index) -> "RowWork":
        """Some of them."""
        return RowWork(rows_of(self.a, rows), self.macs[rows], self.elements[rows], self.again[rows])


class Kept(NamedTuple):
    """What moves, and how long that takes.

    Parameters
    ----------
    lines, rows, loads: bus lines that loading takes, rows loaded, tiles that load any.
    bumped_lines, bumped_macs: lines fetched at the uses of bumped rows, MACs on them. overbooked: loads that bump rows.
    chains: of tiles that run into one another. cycles: of all, without what each chain costs by itself.
    """

    lines: int
    rows: int
    loads: int
    bumped_lines: int
    bumped_macs: int
    overbooked: int
    chains: int
    cycles: float


def replay(
    rows: RowWork, begins: Index, b_pointers: Index, plan: RowPlan, lanes: int, pace: Pace, *, streaming: bool = False
) -> Kept:
    """Tiles of whole rows of B that load what those before have not.

    Parameters
    ----------
    rows, begins, b_pointers: rows of A, the first one of each tile and the end, and where rows of B begin and end.
    plan: what each tile finds and loads. lanes: elements in a line.
    streaming: nothing is kept: each use of a row of B looks its place up and fetches it.

    Lines, rows, loads and what is bumped are exact.
    """
    by_list = plan.rows is not None
    listed = plan.rows if plan.rows is not None else np.empty(0, np.int64)
    a = rows.a
    found = _replay(
        a.pointers, a.coordinates, listed, by_list, streaming, b_pointers, begins, plan.windows, plan.fresh, plan.held,
        plan.early, lanes, *pace, rows.macs, rows.elements, rows.again,
    )  # fmt: skip
    return Kept(*found)


@njit(cache=True)
def _own_turn(length: float, queue: int, merging: float, lanes: int, fill: float) -> float:
    """Cycles that a fiber of more elements than its queue holds takes from when it may leave: what is left has to be merged, but
    for what the pipeline holds, and to go."""
    excess = length - queue
    return max(excess / lanes, merging * excess / length - fill)


@njit(cache=True)
def _replay(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    listed: NDArray[Any],
    by_list: bool,
    streaming: bool,
    b_pointers: NDArray[Any],
    begins: NDArray[Any],
    windows: NDArray[Any],
    fresh: NDArray[Any],
    held: NDArray[Any],
    early: NDArray[Any],
    lanes: int,
    line_cycles: float,
    latency: float,
    elements: int,
    radix: int,
    room: int,
    queue: int,
    long_rows: int,
    depth: float,
    fill: float,
    row_cycles: int,
    macs: NDArray[Any],
    c_elements: NDArray[Any],
    again: NDArray[Any],
) -> tuple[int, int, int, int, int, int, int, float]:
    words = 2 * lanes
    load, loaded_rows, loads, bumped_lines, bumped_macs, overbooked = 0, 0, 0, 0, 0, 0
    cycles = 0.0
    # Of each row of B: the tile that loaded it last, the cycle of that load in which it can be used, whether it is bumped.
    there = np.full(len(b_pointers) - 1, -1 if streaming else -2, np.int64)
    accepts = np.empty(elements, np.float64)
    ends = np.empty(elements, np.float64)
    slots = np.empty(long_rows, np.float64)
    # Of the chain at hand: lines, those of loads that come between bumped rows, and times.
    moved, beside = 0.0, 0.0
    present, dispatched, memory, row_out, scratch_out, out_before = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    turn, chains = 0, 0
    for tile in range(len(windows)):
        end, first = windows[tile, 1], fresh[tile]
        first_row, end_row = begins[tile], begins[tile + 1]
        low, high = a_pointers[first_row], a_pointers[end_row]
        lines = 0
        a_lines = (high - low) / lanes + (end_row - first_row) / words
        if early[tile]:
            begun = max(present, dispatched - 2 * radix - JOB_MARGIN) + NEXT_TILE_CYCLES
            if first < end:
                begun = max(begun, out_before + NEXT_TILE_CYCLES)
            out_before = row_out
            begun += NEXT_TILE_LATENCIES * latency
            present = begun
        else:
            if tile > 0:
                cycles += max(moved * line_cycles, row_out)
            chains += 1
            moved, beside, begun = 0.0, 0.0, 0.0
            accepts[:] = 0.0
            ends[:] = 0.0
            slots[:] = 0.0
            turn = 0
            present, dispatched, memory, row_out, scratch_out, out_before = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        moved += a_lines
        if first < end:
            stop = first + held[tile]
            loads += 1
            loaded_rows += end - first
            overbooked += stop < end
            before, least, total = -1, 0, 0
            for place in range(first, end):
                k = listed[place] if by_list else place
                q, r = b_pointers[k], b_pointers[k + 1]
                size = 0
                if r > q:
                    last = (r - 1) // lanes
                    size = last - q // lanes + 1
                    total += r - q
                    if place < stop:
                        lines += last - max(q // lanes, before + 1) + 1
                        before = last
                least += max(size, row_cycles)
            load += lines
            meta = (end - first) / words + 1.0
            taken = lines + (2 * meta if by_list else meta)
            moved += taken
            beside += taken
            time = max(taken * line_cycles, float(least))
            # Lines come evenly over elements and rows, beside those of A until as many of these wait as there is room for.
            ahead = min(a_lines, float(AHEAD_LINES)) * line_cycles
            each = time / (total + 0.5 * (end - first))
            so_far = 0.0
            for place in range(first, end):
                k = listed[place] if by_list else place
                so_far += b_pointers[k + 1] - b_pointers[k] + 0.5
                came = (so_far * each if place < stop else time) + SETTLE_CYCLES
                there[k] = (tile << 32) | (np.int64(came + min(came, ahead)) << 1) | (place >= stop)
        for row in range(first_row, end_row):
            count = a_pointers[row + 1] - a_pointers[row]
            wait, fetched, longest, empty = 0, 0, 0, 0
            for position in range(a_pointers[row], a_pointers[row + 1]):
                k = a_coordinates[position]
                state = there[k]
                empty += b_pointers[k] == b_pointers[k + 1]
                if state >> 32 == tile:
                    wait = max(wait, (state & 0xFFFFFFFF) >> 1)
                if state & 1:
                    q, r = b_pointers[k], b_pointers[k + 1]
                    if r > q:
                        fetched += (r - 1) // lanes - q // lanes + 1
                        bumped_macs += r - q
                        longest = max(longest, r - q)
            bumped_lines += fetched
            if streaming:
                moved += count * (1 + 1 / words)
            words_of_c = c_elements[row] / lanes
            moved += fetched + words_of_c
            groups = 1
            if count > radix:
                groups = -(-count // radix)
                moved += 2 * again[row] / lanes + groups
            leaves = count / groups
            merged = macs[row] / groups
            slow = max(merged, (longest - room) * (latency + FETCH_CYCLES) / room)
            ready = 0.0
            chosen = 0
            if groups > 1:
                dispatched = max(dispatched, slots[turn])
            # Fibers of the row in scratch; elements merged on the way, and of all fibers.
            table, merged_c, in_table = 0, 0.0, 0.0
            for group in range(groups):
                chosen = 0
                for other in range(1, elements):
                    if accepts[other] < accepts[chosen]:
                        chosen = other
                present = max(present + leaves, begun + wait)
                # Elements of A that find nothing in B take the lookup's time, not the dispatcher's.
                steps = max(leaves, leaves - empty / groups + 1.0)
                dispatched = max(max(dispatched, accepts[chosen]) + max(steps, 2.0), present)
                begin = max(ends[chosen] + FILL_LEAF_CYCLES * leaves, dispatched + depth)
                if merged == 0:
                    begin = max(ends[chosen], dispatched + 1.0)
                elif fetched > 0:
                    begin = max(begin, dispatched + latency + FETCH_CYCLES)
                    share = min(beside, (fetched / groups + words_of_c) / 4)
                    beside -= share
                    memory = max(memory, begin) + (fetched / groups + share) * line_cycles
                finish = max(begin + slow, memory)
                given = c_elements[row] if groups == 1 else again[row] / groups
                if given > queue:  # it ends in its own turn, when what the queue does not hold has been merged
                    out = row_out if groups == 1 else scratch_out
                    finish = max(finish, out + _own_turn(given, queue, slow, lanes, fill))
                ends[chosen] = finish
                accepts[chosen] = max(dispatched, finish - 2 * radix - JOB_MARGIN)
                ready = finish + fill
                if groups > 1:
                    memory += again[row] / groups / lanes * line_cycles
                    scratch_out = max(scratch_out + again[row] / groups / lanes * line_cycles, ready)
                    ready = scratch_out
                    table += 1
                    in_table += given
                    if table == radix and group + 1 < groups:
                        # No more fit: what there is becomes one fiber.
                        dispatched = max(dispatched, ready + latency) + radix + 1
                        begin = max(ends[chosen], dispatched + latency + WAY_FETCH_CYCLES)
                        merged_c = min(in_table, c_elements[row])
                        ends[chosen] = max(begin + in_table, memory)
                        if merged_c > queue:
                            own_turn = _own_turn(merged_c, queue, in_table, lanes, fill)
                            ends[chosen] = max(ends[chosen], scratch_out + own_turn)
                        accepts[chosen] = max(dispatched, ends[chosen] - 2 * radix - JOB_MARGIN)
                        memory += (in_table + merged_c) / lanes * line_cycles
                        moved += (in_table + merged_c) / lanes
                        scratch_out = max(scratch_out + merged_c / lanes * line_cycles, ends[chosen] + fill)
                        ready = scratch_out
                        table, in_table = 1, merged_c
            if groups > 1:
                begin = max(ready + latency + SCRATCH_CYCLES, ends[chosen])
                ends[chosen] = begin + in_table
                if c_elements[row] > queue:
                    own_turn = _own_turn(c_elements[row], queue, in_table, lanes, fill)
                    ends[chosen] = max(ends[chosen], row_out + own_turn)
                accepts[chosen] = max(dispatched, ends[chosen] - 2 * radix - JOB_MARGIN)
                ready = ends[chosen] + fill
            memory += words_of_c * line_cycles
            row_out = max(row_out + max(words_of_c * line_cycles, 1.0), ready)
            if groups > 1:
                slots[turn] = row_out
                turn = (turn + 1) % len(slots)
    cycles += max(moved * line_cycles, row_out)
    return load, loaded_rows, loads, bumped_lines, bumped_macs, overbooked, chains, cycles
