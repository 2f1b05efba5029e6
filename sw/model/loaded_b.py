"""The partition of B in buffering mode: what of each tile is resident or bumped, what its load reads, when rows can be used."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.tiling.lists import ListPlan
from sw.tiling.ring import RingPlan
from sw.tiling.scheme import Scheme, resident_lines

from .reads import Index, Reads
from .walk import Tile

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["REMEMBERED_SEGMENTS", "SETTLE_CYCLES", "Load", "LoadedB", "placement"]

# Segments that a B tile may have in the FIFO-managed region while it fits (``rtl.accessor.fiber_reader``).
REMEMBERED_SEGMENTS = 64
# From the beats of a segment of B to its use.
SETTLE_CYCLES = 10
# Of a listed row, which is a request of its own, in the memory engine.
REQUEST_CYCLES = 2


class Load(NamedTuple):
    """What came of a load.

    Parameters
    ----------
    bumped: bool[size_k], rows of the tile that stay in memory.
    beats: read by it.
    there: int64[size_k], the cycle of the load in which each row can be used.
    """

    bumped: NDArray[np.bool_]
    beats: int
    there: Index


def placement(lengths: Index, regular: int, room: int) -> tuple[int, int]:
    """Where accessor B stops with a tile whose segments have these lengths.

    Parameters
    ----------
    lengths: elements of each segment, in row order.
    regular, room: elements that the data lines hold before the FIFO-managed region, and with it.

    Returns
    -------
    The first segment that is bumped and the first that was found not to fit; both ``len(lengths)`` when all fit.
    """
    ends = np.cumsum(lengths)
    beyond = np.flatnonzero((ends > regular) & (lengths > 0))
    stop = int(np.searchsorted(ends, room, side="right"))
    if len(beyond) > REMEMBERED_SEGMENTS:
        stop = min(stop, int(beyond[REMEMBERED_SEGMENTS]))
    return (stop, stop) if stop == len(lengths) else (int(beyond[0]), stop)


class LoadedB:
    """One tile after the other.

    Parameters
    ----------
    design, scheme, b: of the run. reads: counts what loads read. beat_cycles: that memory takes for a line.
    ring: what windows keep and load; None where each tile begins anew. listed: the list that they are windows of, if of one.

    ``overbooked`` counts loads that bump elements, ``bumped_elements`` these, ``occupancy`` bytes of each tile with metadata.
    """

    def __init__(
        self,
        design: "Design",
        scheme: Scheme,
        b: Csr,
        reads: Reads,
        beat_cycles: float,
        ring: RingPlan | None = None,
        listed: ListPlan | None = None,
    ) -> None:
        self.b = b
        self.reads = reads
        self.beat_cycles = beat_cycles
        self.lanes = design.lanes
        self.lines = scheme.buffer_bytes["B"] // design.line_bytes
        self.fifo_lines = scheme.fifo_bytes["B"] // design.line_bytes
        self.ring = ring
        self.listed = listed
        self.overbooked = 0
        self.bumped_elements = 0
        self.occupancy: list[int] = []
        # Rows, or places of the list, that were bumped when they were loaded last.
        self._outside = np.zeros(b.rows if listed is None else len(listed.rows), np.bool_)

    def load(self, tile: Tile, whole: bool, place: Index, begin: Index, end: Index) -> Load:
        """Puts a tile in place.

        Where whole rows are read, those before the first one that did not fit were read, bumped afterwards or not.

        Parameters
        ----------
        whole: the tile spans its rows. place: begin position of each row, moved on. begin, end: of each row's segment.
        """
        if self.ring is not None:
            return self._window(self.ring, tile, begin, end)
        rows = (tile.k, tile.k + tile.size_k)
        regular, room = (
            self.lanes * resident_lines(lines=self.lines, fifo_lines=fifo, rows=tile.size_k, lanes=self.lanes)
            for fifo in (self.fifo_lines, 0)
        )
        lengths = end[rows[0] : rows[1]] - begin[rows[0] : rows[1]]
        held, stop = placement(lengths, regular, room)
        bumped = np.arange(tile.size_k) >= held
        self.count(lengths, bumped, lengths)
        scan_from = begin if whole else (self.b.pointers[:-1] if tile.from_pointers_b else place)
        resident = rows[0] + stop if whole else None
        beats = self.reads.rows(
            "b", self.b.pointers, rows, whole, tile.from_pointers_b, tile.advance_b, scan_from, end, resident
        )
        if not whole and tile.advance_b:
            place[rows[0] : rows[1]] = end[rows[0] : rows[1]]
        late = (np.cumsum(lengths) > regular) & (lengths > 0)  # in the FIFO-managed region, or bumped
        return Load(bumped, beats, self._usable(rows, beats, whole, begin, end, late))

    def count(self, lengths: Index, bumped: NDArray[np.bool_], tile: Index) -> None:
        """Counts a load: elements of its rows, which are bumped, elements of all rows of the tile."""
        elements = int(lengths[bumped].sum())
        self.overbooked += elements > 0
        self.bumped_elements += elements
        self.occupancy.append(8 * (int(tile.sum()) + len(tile)))

    def _window(self, ring: RingPlan, tile: Tile, begin: Index, end: Index) -> Load:
        """The same for a window, whose first rows may be there already (:mod:`sw.tiling.ring`)."""
        rows = (tile.k, tile.k + tile.size_k)
        fresh = (tile.k + int(ring.kept[tile.index_i]), rows[1])
        stop = fresh[0] + int(ring.held[tile.index_i])
        there = np.zeros(tile.size_k, np.int64)
        beats = 0
        if fresh[0] < fresh[1]:
            self._outside[fresh[0] : stop], self._outside[stop : fresh[1]] = False, True
            lengths = end[rows[0] : rows[1]] - begin[rows[0] : rows[1]]
            late = np.arange(*fresh) >= stop
            self.count(lengths[fresh[0] - rows[0] :], late, lengths)
            if self.listed is None:
                beats = self.reads.rows("b", self.b.pointers, fresh, True, True, False, begin, end, stop)
            else:
                beats = self.reads.listed_rows(fresh, begin[fresh[0] : stop], end[fresh[0] : stop])
            there[fresh[0] - rows[0] :] = self._usable(fresh, beats, True, begin, end, late)
        return Load(self._outside[rows[0] : rows[1]], beats, there)

    def _usable(
        self, rows: tuple[int, int], beats: int, whole: bool, begin: Index, end: Index, late: NDArray[np.bool_]
    ) -> Index:
        """The cycle of the load in which each row can be used: beats come evenly over elements and rows; ``late`` at its end."""
        first, last = begin[rows[0] : rows[1]], end[rows[0] : rows[1]]
        weight = np.cumsum(last - first) + np.arange(1, len(first) + 1) / (2.0 if whole else 0.5)
        # A row, or a line of one, is taken in a cycle: rows of less than a line come slower than their beats.
        words = (last + self.lanes - 1) // self.lanes - first // self.lanes
        least = 1 if self.listed is None else REQUEST_CYCLES
        pace = max(int(beats * self.beat_cycles), int(np.maximum(words, least).sum()))
        there: Index = (pace * weight / weight[-1]).astype(np.int64) + SETTLE_CYCLES
        there[late] = pace + SETTLE_CYCLES
        return there
