"""What a run reads and writes, in beats of the bus, and how many of them words, rows and listed rows take."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sw.formats.memory_csr import ELEMENT_BYTES, MemoryCsr
from sw.timing.chunks import Chunks
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES
from sw.timing.record_beats import PITCH, beats_of_lines, record_beats

from .kernels import beats_of_runs, scan_rows

__all__ = ["Reads"]

Index = NDArray[np.int64]


class Reads:
    """Beats so far, by tensor and kind, as the counters of the hardware name them.

    Parameters
    ----------
    lanes: nonzeros in a line. line_beats: beats of a line. formats: how A, B and C lie in memory.

    ``pitches``: of lines of ``a`` and ``b`` in memory (:mod:`sw.timing.record_beats`). ``chunks``: of the scan that was
    last, none where rows were read whole. ``bursts``: chunks so far.
    """

    def __init__(self, lanes: int, line_beats: int, formats: Mapping[str, MemoryCsr]) -> None:
        self.lanes = lanes
        self.line_beats = line_beats
        self.pitches = {tensor: formats[tensor.upper()].record_bits * line_beats for tensor in "ab"}
        self._result_bits = formats["C"].record_bits
        self.chunks = Chunks()
        self.bursts = 0
        self.beats = dict.fromkeys(
            (
                *(f"read_{t}_{kind}" for t in "abc" for kind in ("data", "meta")),
                *("write_a_meta", "write_b_meta", "write_c_data", "write_c_meta"),
                *("read_scratch", "write_scratch"),
            ),
            0,
        )

    def word_beats(self, first: int, count: int) -> int:
        """Beats that hold ``count`` 32-bit words from word ``first`` of a bus-aligned array on."""
        words = 2 * self.lanes
        return self.line_beats * ((first % words + count + words - 1) // words) if count else 0

    def result_beats(self, begin: int, nonzeros: int) -> int:
        """Beats of the lines that hold so many nonzeros of the result, from ``begin`` on."""
        line_bits = 8 * ELEMENT_BYTES * self.lanes
        return self.line_beats * int(record_beats(begin, begin + nonzeros, self._result_bits, line_bits))

    def run_beats(self, tensor: str, begin: Index, end: Index) -> int:
        """Beats of runs of nonzeros that rise in memory (:func:`.kernels.beats_of_runs`)."""
        return int(beats_of_runs(begin, end, self.lanes, self.pitches[tensor]))

    def beats_through(self, tensor: str, position: int) -> int:
        """Beats of the lines from the array's begin up to a position."""
        return int(beats_of_lines(0, -(-position // self.lanes), self.pitches[tensor]))

    def row_beats(self, tensor: str, begin: Index, end: Index) -> int:
        """Beats of rows that are read one by one."""
        first, stop = begin // self.lanes, -(-end // self.lanes)
        pitch = self.pitches[tensor]
        return int((-(-stop * pitch // PITCH) - first * pitch // PITCH).sum())

    def rows(
        self,
        tensor: str,
        pointers: Index,
        rows: tuple[int, int],
        whole: bool,
        from_pointers: bool,
        advance: bool,
        begin: Index,
        end: Index,
        resident: int | None = None,
    ) -> int:
        """One visit of a fiber reader; returns the beats read. ``resident``: rows from there on are not read."""
        first, last = rows
        count = last - first
        self.chunks = Chunks()
        if whole or from_pointers:
            meta = self.word_beats(first, count + 1)
        else:
            meta = self.word_beats(first, count) + self.word_beats(first + 1, count)
        if whole:
            stop = last if resident is None else resident
            data = self.run_beats(tensor, begin[first : first + 1], end[stop - 1 : stop]) if stop > first else 0
        else:
            row_end = pointers[first + 1 : last + 1]
            chunks = FIRST_CHUNK_LINES, NEXT_CHUNK_LINES
            data, *found = map(
                int, scan_rows(begin[first:last], row_end, end[first:last], self.lanes, self.pitches[tensor], *chunks)
            )
            self.chunks = Chunks(*found)
            self.bursts += self.chunks.bursts
            if advance:
                self.beats[f"write_{tensor}_meta"] += self.word_beats(first, count)
        return self._count(tensor, meta, data)

    def go_on(self, access: str, rows: tuple[int, int], beats: int) -> None:
        """Gathered: all rows of A, or of C, are one tile for its accessor, of which these follow; ``beats`` of their nonzeros."""
        words = [self.word_beats(0, row + 1) if row else 0 for row in rows]
        self.beats[f"{access}_data"] += beats
        self.beats[f"{access}_meta"] += words[1] - words[0]

    def listed_rows(self, places: tuple[int, int], begin: Index, end: Index, words: int) -> int:
        """Begins and ends at these places of the list of B's rows, and rows; returns the beats read. With three ``words`` a place
        where they go stands behind each begin, and the list has one place more at its begin."""
        first, count = places[0], places[1] - places[0]
        if words > 2:
            meta = self.word_beats(2 * first + 2, 2 * count) + self.word_beats(first + 2, count)
        else:
            meta = self.word_beats(first, count) + self.word_beats(first + 1, count)
        filled = np.flatnonzero(end > begin)
        line, last_line = begin[filled] // self.lanes, (end[filled] - 1) // self.lanes
        # Rows whose lines follow one another are a run, which is asked for in one burst or a few long ones.
        self.bursts += int(np.count_nonzero(line[1:] > last_line[:-1] + 1)) + min(1, len(filled))
        return self._count("b", meta, self.run_beats("b", begin, end))

    def _count(self, tensor: str, meta: int, data: int) -> int:
        self.beats[f"read_{tensor}_meta"] += meta
        self.beats[f"read_{tensor}_data"] += data
        return meta + data
