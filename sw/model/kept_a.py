"""The partition of A in buffering mode: what of the tile in place is resident, and what its loads and visits move."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sw.golden.partition import Partition, tile_bytes
from sw.tile_sizes import TileSizes

from .reads import Reads

__all__ = ["KeptA"]

Positions = NDArray[np.int64]


@dataclass
class KeptA:
    """One tile at a time; rows from the first that does not fit stay in memory and are read from there at each visit.

    Parameters
    ----------
    partition: all of its lines hold metadata (8 bytes a row) and resident rows. reads: counts what moves.
    place: first row, first column and columns of the tile in place.
    first_bumped: rows of it from there on stay in memory.
    sizes: bytes of each whole tile with its metadata. lines: SRAM lines that each load takes.
    overbooked, bumped: loads that did not fit, and their nonzeros left in memory.
    hits, fetches: nonzeros used, from the partition and from memory.
    """

    partition: Partition
    reads: Reads
    sizes: TileSizes
    place: tuple[int, int, int] = (-1, -1, -1)
    first_bumped: int = 0
    lines: list[int] = field(default_factory=list)
    overbooked: int = 0
    bumped: int = 0
    hits: int = 0
    fetches: int = 0

    def load(self, place: tuple[int, int, int], rows: tuple[int, int], begin: Positions, end: Positions) -> None:
        """Puts a tile in place; ``begin`` and ``end`` of all rows' segments in it, of which it holds ``rows``."""
        count = rows[1] - rows[0]
        lengths = end[rows[0] : rows[1]] - begin[rows[0] : rows[1]]
        fitting = int(np.searchsorted(np.cumsum(lengths), self.partition.resident(count), side="right"))
        nonzeros, resident = int(lengths.sum()), int(lengths[:fitting].sum())
        self.place = place
        self.first_bumped = rows[0] + fitting
        self.sizes.add([tile_bytes(lengths)])
        self.lines.append(
            self.partition.lines - self.partition.data_lines(count) + -(-resident // self.partition.lanes)
        )
        self.overbooked += resident < nonzeros
        self.bumped += nonzeros - resident

    def visit(self, rows: tuple[int, int], begin: Positions, end: Positions) -> int:
        """The tile in place is used; returns the beats that its bumped rows take from memory."""
        cut = self.first_bumped
        self.hits += int((end[rows[0] : cut] - begin[rows[0] : cut]).sum())
        self.fetches += int((end[cut : rows[1]] - begin[cut : rows[1]]).sum())
        return self.reads.run_beats("a", begin[cut : rows[1]], end[cut : rows[1]])

    def result(self, line_bytes: int) -> dict[str, float]:
        """What the result record says of A's partition."""
        return {
            "peak_bytes": line_bytes * max(self.lines, default=0),
            "mean_bytes": line_bytes * float(np.mean(self.lines)) if self.lines else 0.0,
            "hits": self.hits,
            "bumped": self.fetches,
        }

    def counters(self) -> dict[str, int]:
        """Counters as the hardware's."""
        return {
            "loads_a": len(self.lines),
            "overbooked_a": self.overbooked,
            "bumped_elements_a": self.bumped,
            "hits_a": self.hits,
            "bumped_fetches_a": self.fetches,
        }
