"""A partition of the buffer: how much of a tile it holds beside the tile's metadata, with a FIFO-managed region and without."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sw.formats.memory_csr import ELEMENT_BYTES

__all__ = ["Capacity", "Partition", "tile_bytes"]


def tile_bytes(lengths: NDArray[np.int64]) -> int:
    """Of a tile with so many nonzeros in its rows: these, and as much as a nonzero for each row's metadata."""
    return ELEMENT_BYTES * (int(lengths.sum()) + len(lengths))


@dataclass(frozen=True)
class Capacity:
    """Nonzeros of a tile that stay on chip: all if they are ``limit`` at most, else ``regular`` (Tailors 3.3).

    With no FIFO-managed region both are HYTE's bufsize.
    """

    limit: int
    regular: int

    def resident(self, nonzeros: int) -> int:
        return nonzeros if nonzeros <= self.limit else self.regular


@dataclass(frozen=True, kw_only=True)
class Partition:
    """``lines`` of ``lanes`` nonzeros, ``fifo_lines`` of them the FIFO-managed region; each row of a tile takes 8 bytes, too.

    A's and C's have no such region: A's bumped rows pass through the reader's queue.
    """

    lines: int
    lanes: int
    fifo_lines: int = 0

    def data_lines(self, rows: int) -> int:
        """Lines for segments, less the FIFO-managed region and the metadata of so many rows; not positive where none is left."""
        return self.lines - self.fifo_lines - -(-rows // self.lanes)

    def resident(self, rows: int) -> int:
        """Nonzeros that these lines hold."""
        return self.lanes * self.data_lines(rows)

    def capacity(self, rows: int) -> Capacity:
        """What a tile with ``rows`` rows may hold."""
        regular = self.resident(rows)
        return Capacity(limit=regular + self.lanes * self.fifo_lines, regular=regular)

    @property
    def most_rows(self) -> int:
        """Rows of the highest tile whose metadata leave a line."""
        return self.lanes * (self.lines - self.fifo_lines - 1)

    @property
    def half_of_rows(self) -> int:
        """Rows of the highest tile whose metadata take at most half of what segments and metadata share."""
        return max(1, self.lanes * ((self.lines - self.fifo_lines) // 2))
