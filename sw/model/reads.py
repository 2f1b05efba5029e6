"""What a run reads and writes, in beats of the bus, and how many of them words, rows and listed rows take."""

import numpy as np
from numpy.typing import NDArray

from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES

from .kernels import fetched_lines, listed_lines, scan_rows

__all__ = ["Reads"]

Index = NDArray[np.int64]


class Reads:
    """Beats so far, by tensor and kind, as the counters of the hardware name them.

    Parameters
    ----------
    lanes: elements in a beat.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.beats = dict.fromkeys(
            (
                *(f"read_{t}_{kind}" for t in "abc" for kind in ("data", "meta")),
                *("write_a_meta", "write_b_meta", "write_c_data", "write_c_meta"),
            ),
            0,
        )

    def word_beats(self, first: int, count: int) -> int:
        """Beats that hold ``count`` 32-bit words from word ``first`` of a bus-aligned array on."""
        words = 2 * self.lanes
        return (first % words + count + words - 1) // words if count else 0

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
        if whole or from_pointers:
            meta = self.word_beats(first, count + 1)
        else:
            meta = self.word_beats(first, count) + self.word_beats(first + 1, count)
        if whole:
            stop = last if resident is None else resident
            data = int(fetched_lines(begin[first], end[stop - 1] - begin[first], self.lanes)) if stop > first else 0
        else:
            row_end = pointers[first + 1 : last + 1]
            data = int(
                scan_rows(begin[first:last], row_end, end[first:last], self.lanes, FIRST_CHUNK_LINES, NEXT_CHUNK_LINES)
            )
            if advance:
                self.beats[f"write_{tensor}_meta"] += self.word_beats(first, count)
        return self._count(tensor, meta, data)

    def listed_rows(self, places: tuple[int, int], begin: Index, end: Index) -> int:
        """Begins and ends at these places of the list of B's rows, and rows; returns the beats read."""
        count = places[1] - places[0]
        meta = self.word_beats(places[0], count) + self.word_beats(places[0] + 1, count)
        return self._count("b", meta, int(listed_lines(begin, end, self.lanes)))

    def _count(self, tensor: str, meta: int, data: int) -> int:
        self.beats[f"read_{tensor}_meta"] += meta
        self.beats[f"read_{tensor}_data"] += data
        return meta + data
