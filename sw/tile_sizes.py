"""What the tiles of a run need on chip, in a few numbers however many tiles there are."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["TileSizes"]

# More than a picture is wide.
MOST_GROUPS = 1 << 12


@dataclass
class TileSizes:
    """Bytes of one loaded tile after the other.

    Parameters
    ----------
    capacity: bytes of the partition. count: tiles. over: those that need more. largest: bytes of the largest.
    kept: bytes of all of them on chip, of none more than the capacity.
    peaks: the largest of each ``group`` tiles, in the order of their loads; the last group may have fewer.
    """

    capacity: int
    count: int = 0
    over: int = 0
    largest: int = 0
    kept: int = 0
    group: int = 1
    peaks: list[int] = field(default_factory=list)

    def add(self, sizes: Iterable[int] | NDArray[np.int64]) -> "TileSizes":
        """Counts tiles of these bytes; returns itself."""
        found = np.asarray(sizes, np.int64)
        if not len(found):
            return self
        begun = -self.count % self.group  # tiles that the last group still takes
        if begun:
            self.peaks[-1] = max(self.peaks[-1], int(found[:begun].max()))
        rest = found[begun:]
        if len(rest):
            self.peaks += np.maximum.reduceat(rest, np.arange(0, len(rest), self.group)).tolist()
        self.count += len(found)
        self.over += int(np.count_nonzero(found > self.capacity))
        self.largest = max(self.largest, int(found.max()))
        self.kept += int(np.minimum(found, self.capacity).sum())
        while len(self.peaks) > MOST_GROUPS:
            self.peaks = [max(self.peaks[n : n + 2]) for n in range(0, len(self.peaks), 2)]
            self.group *= 2
        return self

    @property
    def peak_bytes(self) -> int:
        """Of the tile that takes most of the partition."""
        return min(self.largest, self.capacity)

    @property
    def mean_bytes(self) -> float:
        """On chip, over all loads; 0 without any."""
        return self.kept / self.count if self.count else 0.0
