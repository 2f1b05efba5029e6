"""The partition of B in buffering mode: what of each tile is resident or bumped, what its load reads, when rows can be used."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.golden.partition import tile_bytes
from sw.plan.gather import RowPlan
from sw.plan.placement import placement
from sw.plan.plan import Plan
from sw.tile_sizes import TileSizes
from sw.timing.chunks import Chunks, scan_cycles
from sw.timing.constants import SETTLE_CYCLES
from sw.timing.pace import Pace, flying_cycles, load_trips
from sw.timing.record_beats import line_beats

from .converted_tensor import ConvertedTensor
from .reads import Index, Reads
from .walk import Tile

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["Load", "LoadedB"]


class Load(NamedTuple):
    """What came of a load.

    Parameters
    ----------
    bumped: bool[size_k], rows of the tile that stay in memory.
    beats: read by it.
    usable: int64[size_k], the cycle of the load in which each row can be used. trips: of memory before that, for each row that
        comes with a tile that loads what it uses; 0 in others, whose A waits as long.
    """

    bumped: NDArray[np.bool_]
    beats: int
    usable: Index
    trips: Index | int = 0


class LoadedB:
    """One tile after the other.

    Parameters
    ----------
    design, planned: of the run. reads: counts what loads read. pace: of the machine.

    ``overbooked`` counts loads that bump nonzeros, ``bumped_elements`` these, ``sizes`` bytes of each tile with metadata.
    """

    def __init__(self, design: "Design", planned: Plan[Csr], reads: Reads, pace: Pace) -> None:
        self.trips = load_trips(pace.latency, pace.reader)
        self.b = planned.b
        self.reads = reads
        self.beat_cycles = pace.beat
        self._pace = pace
        self.converted = ConvertedTensor("read_b_data", planned.stored_b, design.bus_bytes, self.b.rows, reads.beats)
        self.partition = planned.scheme.partition("B", design)
        # Nonzeros of a row that come in a cycle: a line, or as many as a beat has room for on chip.
        of_beat = design.bus_bytes // ELEMENT_BYTES
        self._together = min(of_beat, design.lanes) if self.converted.enabled else design.lanes
        self.rows = planned.rows_of_b if planned.scheme.gathers else None
        self.by_list = self.rows is not None and self.rows.rows is not None
        self._row_cycles = 2 if self.rows is not None and self.rows.entries is not None else 1
        self.overbooked = 0
        self.bumped_elements = 0
        self.sizes = TileSizes(planned.scheme.buffer_bytes["B"])
        # Places of rows that were bumped when they were loaded last.
        places = self.b.rows if self.rows is None else len(self.rows.lines)
        self._outside = np.zeros(places, np.bool_)
        # Where tiles load what they use: 0 but for the places that the present one loads.
        self._usable_at, self._fresh = np.zeros(places, np.int64), (0, 0)

    def load(self, tile: Tile, whole: bool, place: Index, begin: Index, end: Index) -> Load:
        """Puts a tile in place.

        Where whole rows are read, those before the first one that did not fit were read, bumped afterwards or not. B that is
        converted comes without pointers, and all of it fits.

        Parameters
        ----------
        whole: the tile spans its rows. place: begin position of each row, moved on. begin, end: of each row's segment.
        """
        if self.rows is not None:
            self._usable_at[slice(*self._fresh)] = 0
            return self._gathered(self.rows, tile, begin, end)
        rows = (tile.k, tile.k + tile.size_k)
        capacity = self.partition.capacity(tile.size_k)
        lengths = end[rows[0] : rows[1]] - begin[rows[0] : rows[1]]
        placed, stop = placement(lengths, capacity)
        bumped = np.arange(tile.size_k) >= placed
        self.count(lengths, bumped, tile_bytes(lengths))
        scan_from = begin if whole else (self.b.pointers[:-1] if tile.from_pointers_b else place)
        resident = rows[0] + stop if whole else None
        if self.converted.enabled:
            beats = self.converted.stream(rows)
        else:
            beats = self.reads.rows(
                "b", self.b.pointers, rows, whole, tile.from_pointers_b, tile.advance_b, scan_from, end, resident
            )
        if not whole and tile.advance_b:
            place[rows[0] : rows[1]] = end[rows[0] : rows[1]]
        from_memory = (np.cumsum(lengths) > capacity.regular) & (lengths > 0)  # in the FIFO-managed region, or bumped
        read = stop if whole else tile.size_k
        return Load(bumped, beats, self._usable(rows, beats, whole, begin, end, from_memory, read))

    def count(self, lengths: Index, bumped: NDArray[np.bool_], size: int) -> None:
        """Counts a load: nonzeros of its rows, which are bumped, bytes of the tile."""
        nonzeros = int(lengths[bumped].sum())
        self.overbooked += nonzeros > 0
        self.bumped_elements += nonzeros
        self.sizes.add([size])

    def _gathered(self, plan: RowPlan, tile: Tile, begin: Index, end: Index) -> Load:
        """The same where the tile loads the rows that it uses, the first of which may be there already."""
        rows = (tile.k, tile.k + tile.size_k)
        fresh = (tile.k + int(plan.kept[tile.index_i]), rows[1])
        stop = fresh[0] + int(plan.placed[tile.index_i])
        usable = self._usable_at
        beats, self._fresh, bursts = 0, fresh, 0
        trips: Index | int = 0
        if fresh[0] < fresh[1]:
            self._outside[fresh[0] : stop], self._outside[stop : fresh[1]] = False, True
            shown = slice(*(rows if plan.entries is None else fresh))
            lengths = end[shown] - begin[shown]
            from_memory = np.arange(*fresh) >= stop
            size = tile_bytes(lengths)
            if plan.entries is not None:
                lines = self.partition.lines - self.partition.fifo_lines - int(plan.free[tile.index_i])
                size = ELEMENT_BYTES * self.partition.lanes * lines
            self.count(lengths[len(lengths) - len(from_memory) :], from_memory, size)
            if not self.by_list:
                beats = self.reads.rows("b", self.b.pointers, fresh, True, True, False, begin, end, stop)
            else:
                bursts = -self.reads.bursts
                beats = self.reads.listed_rows(fresh, begin[fresh[0] : stop], end[fresh[0] : stop], plan.list_words)
                bursts += self.reads.bursts
            usable[slice(*fresh)] = self._usable(fresh, beats, True, begin, end, from_memory, stop - fresh[0], bursts)
            trips = np.where(from_memory, *self.trips)
            if fresh[0] < stop < fresh[1]:
                seen = usable[stop - 1] + self.trips[1] - self.trips[0]
                usable[stop : fresh[1]] = np.maximum(usable[stop : fresh[1]], seen)
        return Load(self._outside[rows[0] : rows[1]], beats, usable[rows[0] : rows[1]], trips)

    def scan_cycles(self, chunks: Chunks) -> int:
        """Cycles of a scan of so many chunks, of which only some are under way at a time."""
        pace, latency = self._pace, self._pace.latency + self._pace.reader
        line = pace.beat * line_beats(pace.pitch_b)
        return int(
            max(scan_cycles(chunks, latency, line), flying_cycles(chunks.bursts, pace.latency, pace.outstanding))
        )

    def _usable(
        self,
        rows: tuple[int, int],
        beats: int,
        whole: bool,
        begin: Index,
        end: Index,
        from_memory: NDArray[np.bool_],
        read: int,
        bursts: int = 0,
    ) -> Index:
        """The cycle of the load in which each row can be used: beats come evenly over nonzeros and rows.

        Rows of ``from_memory`` can be used at its end. The first ``read`` rows come, of the others only their place is noted.
        """
        first, last = begin[rows[0] : rows[1]], end[rows[0] : rows[1]]
        lengths = last - first
        lengths[read:] = 0
        weight = np.cumsum(lengths) + np.arange(1, len(first) + 1) / (2.0 if whole else 0.5)
        # A row, or a line of one, is taken in a cycle, and so is the rest of a line of which the next row has nothing.
        lanes = self._together
        words = (last + lanes - 1) // lanes - first // lanes
        words[read:] = 0
        dropped = 0
        if self.by_list:
            filled = np.flatnonzero(last[:read] > first[:read])
            ends, begins = last[filled[:-1]], first[filled[1:]]
            dropped = int(np.count_nonzero((ends % lanes != 0) & (begins // lanes != ends // lanes)))
        pace = max(int(beats * self.beat_cycles), int(np.maximum(words, self._row_cycles).sum()) + dropped)
        if not whole:
            pace = max(pace, self.scan_cycles(self.reads.chunks))
        if bursts:
            pace = max(pace, int(flying_cycles(bursts, self._pace.latency, self._pace.outstanding)))
        usable: Index = (pace * weight / weight[-1]).astype(np.int64) + SETTLE_CYCLES
        usable[from_memory] = pace + SETTLE_CYCLES
        return usable
