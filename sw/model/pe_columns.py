"""Columns of B in the PEs of a weight-stationary engine: what goes to them, and how long A waits for it."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.jit import njit
from sw.plan.gather import Index
from sw.plan.pe_buffer import nonzeros_of_buffer
from sw.timing.constants import BUFFERED_CYCLES, MEMORY_PART_CYCLES, PART_CYCLES
from sw.timing.pace import Pace
from sw.timing.record_beats import beats_of_lines

from .reads import Reads
from .tile_jobs import TOTALS
from .walk import Tile

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["OnBus", "PeColumns", "bumped_waits"]

BUMPED_ELEMENTS, MERGED = (TOTALS.index(name) for name in ("bumped_elements", "merged"))


class OnBus(NamedTuple):
    """Rows of A in a tile, on their way past the PEs.

    Parameters
    ----------
    begin, end: positions of each row's nonzeros in A. passes: cycles of the bus for each, where it does not wait.
    places: where not 0, so many places of each row are sent, with data or without. together: nonzeros that come in a cycle.
    data: places, or nonzeros, that a cycle of the bus carries.
    """

    begin: Index
    end: Index
    passes: Index
    places: int
    together: int
    data: int


class PeColumns:
    """What the PEs have from tile to tile.

    Parameters
    ----------
    columns: B by columns. a_coordinates: of A's nonzeros. reads, totals: added to.
    """

    def __init__(
        self,
        design: "Design",
        columns: Csr,
        a_coordinates: NDArray[Any],
        reads: Reads,
        pace: Pace,
        totals: NDArray[np.int64],
    ) -> None:
        self.design = design
        self.columns = columns
        self.a_coordinates = a_coordinates
        self.reads = reads
        self.pace = pace
        self.totals = totals
        self.sizes = nonzeros_of_buffer(design.pe.buffer_entries)
        self._place: tuple[int, ...] | None = None
        # Of the columns in the PEs: which overflow, whether in Dense, and how far the pass over what is bumped has come.
        self._wide: list[tuple[int, int, NDArray[np.int64]]] = []

    def feed(
        self, tile: Tile, on_bus: OnBus, segments: tuple[Index, Index], in_memory: NDArray[np.bool_], streaming: bool
    ) -> tuple[int, Index]:
        """Columns go to the PEs, unless they are there; what overflows comes once more in each row.

        ``segments``: where each column of the tile begins and ends in B; ``in_memory``: it is read from there; ``streaming``: all
        are. Returns the words that come before the first row, and the cycles for which the bus waits in each.
        """
        waits = np.zeros(tile.size_i, np.int64)
        if not (on_bus.end > on_bus.begin).any():
            return 0, waits
        starts, ends = segments
        lengths = ends - starts
        place = (tile.k, tile.size_k, tile.j, tile.size_j)
        loading = 0
        if self._place != place:
            self._place = place
            if streaming:
                words = 2 * self.reads.lanes
                straddles = int(np.count_nonzero(np.arange(tile.j, tile.j + tile.size_j) % words == words - 1))
                self.reads.beats["read_b_meta"] += self.reads.line_beats * (tile.size_j + straddles)
            dense = (lengths == tile.size_k).astype(np.int64)  # a nonzero in every row of the tile
            most = self.sizes[dense, 0]
            sent = np.minimum(lengths, most)
            self.totals[MERGED] += int(sent.sum())
            self._fetch(starts[in_memory], sent[in_memory])
            self._wide = [
                (int(n), int(dense[n]), self.sizes[dense[n], 1:].copy()) for n in np.flatnonzero(lengths > most)
            ]
            loading = int((sent * (2 - dense)).sum()) + self.design.pe.count
        if self._wide:
            self._bump(on_bus, tile.k, segments, in_memory, waits)
        return loading, waits

    def _bump(
        self, on_bus: OnBus, origin: int, segments: tuple[Index, Index], in_memory: NDArray[np.bool_], waits: Index
    ) -> None:
        """What overflows comes once more in each row."""
        wide = np.array([n for n, _, _ in self._wide])
        dense = np.array([one for _, one, _ in self._wide])
        state = np.array([one for _, _, one in self._wide])
        far = self.pace.latency + self.pace.reader + MEMORY_PART_CYCLES
        answers = PART_CYCLES + np.where(in_memory[wide], far, 0)
        parts = np.zeros((len(wide), 3), np.int64)
        own = [found[wide] for found in segments]
        sizes = np.column_stack([self.sizes[dense, 1:], 2 - dense])
        reads = self.reads
        coordinates = self.a_coordinates, self.columns.coordinates
        bumped_waits(
            on_bus, origin, *coordinates, *own, sizes, state, answers, reads.lanes, reads.pitches["b"], parts, waits
        )
        for (_, _, kept), moved in zip(self._wide, state, strict=True):
            kept[:] = moved
        self.totals[MERGED] += int(parts[:, 1].sum())
        from_memory = parts[in_memory[wide]].sum(axis=0)
        reads.beats["read_b_data"] += int(from_memory[2])
        self.totals[BUMPED_ELEMENTS] += int(from_memory[1])

    def _fetch(self, begin: Index, length: Index) -> None:
        """Columns are read from memory, each by itself."""
        some = length > 0
        self.reads.beats["read_b_data"] += self.reads.row_beats("b", begin[some], (begin + length)[some])
        self.totals[BUMPED_ELEMENTS] += int(length.sum())


@njit(cache=True)
def bumped_waits(
    rows: OnBus,
    origin: int,
    a_coordinates: NDArray[Any],
    b_coordinates: NDArray[Any],
    starts: NDArray[Any],
    ends: NDArray[Any],
    sizes: NDArray[Any],
    state: NDArray[Any],
    answers: NDArray[Any],
    lanes: int,
    pitch: int,
    found: NDArray[Any],
    waits: NDArray[Any],
) -> None:
    """Cycles for which the bus waits for columns that overflow the buffers of their PEs.

    What is asked for is said in ``golden.weight_stationary.bumped_words``. PEs ask for parts side by side; one reader sends
    them, one after the other. A cycle of the bus goes on when every PE is done.

    Parameters
    ----------
    origin: where the tile begins along k. starts, ends: in B, of each such column.
    sizes: of each column the nonzeros of its buffer's part that stays, of its region, and the words of a nonzero. state: of each
        column the nonzero that is used next, and how many are in the region; moved on. answers: cycles from the request of a
        part to its first word.
    pitch: of B's lines (:mod:`sw.timing.record_beats`). found: of each column parts, their nonzeros, beats that hold them;
        added to.
    waits: of each row.
    """
    begin, end, passes, places, together, vector = rows
    count = len(starts)
    now = np.zeros(count, np.int64)
    going, exhausted, passing = np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    reader, time = 0, 0
    supply, filling = 0, np.zeros(BUFFERED_CYCLES, np.int64)  # when A's next cycle is there, when the last ones went
    cycle = 0
    for row in range(len(begin)):
        row_begin = time
        stop = begin[row]
        for step in range(-(-(places if places else end[row] - begin[row]) // vector)):
            place = stop
            if places:
                farthest = origin + (step + 1) * vector - 1
                while stop < end[row] and a_coordinates[stop] <= farthest:
                    stop += 1
            else:
                stop = min(place + vector, end[row])
                farthest = a_coordinates[stop - 1]
            supply = max(supply, filling[cycle % BUFFERED_CYCLES]) + -(-(stop - place) // together)
            time = max(time, supply)
            under_way = 0
            for n in range(count):
                if step == 0:
                    exhausted[n] = False
                    passing[n] = state[n, 0] != sizes[n, 0]  # what the row before has left is passed over
                now[n] = time
                going[n] = not exhausted[n]
                under_way += going[n]
            while under_way:
                first = -1
                for n in range(count):
                    if going[n] and (first < 0 or now[n] < now[first]):
                        first = n
                n = first
                kept, region, words = sizes[n]
                following = state[n, 0]
                if state[n, 1] == 0:
                    size = min(region, ends[n] - starts[n] - following)
                    state[n, 1] = size
                    found[n, 0] += 1
                    found[n, 1] += size
                    begins = starts[n] + following
                    found[n, 2] += beats_of_lines(begins // lanes, -(-(begins + size) // lanes), pitch)
                    now[n] = max(now[n] + answers[n], reader)
                    reader = now[n] + words * size
                elif not passing[n] and b_coordinates[starts[n] + following] > farthest:
                    going[n] = False
                    under_way -= 1
                else:
                    now[n] += words
                    state[n, 1] -= 1
                    state[n, 0] += 1
                    if state[n, 0] == ends[n] - starts[n]:
                        state[n, 0] = kept
                        if not passing[n]:
                            exhausted[n] = True
                            going[n] = False
                            under_way -= 1
                        passing[n] = False
            gone = time
            for n in range(count):
                gone = max(gone, now[n])
            time = gone + 1 + (gone > time)  # where it waited the next entry has been looked at
            filling[cycle % BUFFERED_CYCLES] = time
            cycle += 1
        waits[row] = max(0, time - row_begin - passes[row])
