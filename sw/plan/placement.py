"""Which rows of a tile of B stay in memory, where the tile is put in place as a whole and overbooks the partition."""

import numpy as np
from numpy.typing import NDArray

from sw.formats.distinct import distinct
from sw.golden.partition import Capacity, Partition
from sw.timing.hardware import REMEMBERED_SEGMENTS

from .gather import Index, RowPlan, Rows

__all__ = ["alone", "placement"]


def placement(lengths: Index, capacity: Capacity) -> tuple[int, int]:
    """Where accessor B stops with a tile whose segments have these lengths.

    Parameters
    ----------
    lengths: nonzeros of each segment, in row order.
    capacity: nonzeros that the data lines hold before the FIFO-managed region, and with it.

    Returns
    -------
    The first segment that is bumped and the first that was found not to fit; both ``len(lengths)`` when all fit.
    """
    ends = np.cumsum(lengths)
    beyond = np.flatnonzero((ends > capacity.regular) & (lengths > 0))
    stop = int(np.searchsorted(ends, capacity.limit, side="right"))
    if len(beyond) > REMEMBERED_SEGMENTS:
        stop = min(stop, int(beyond[REMEMBERED_SEGMENTS]))
    return (stop, stop) if stop == len(lengths) else (int(beyond[0]), stop)


def alone(a: Rows, begins: Index, pointers: NDArray[np.int64], partition: Partition) -> RowPlan:
    """Tiles that load the rows of B that they use and that have elements, and leave nothing for the tiles after them.

    Parameters as of :func:`.gather.gather`; ``partition``: B's.
    """
    lengths = np.diff(pointers)
    lists, fitting, read = [], [], []
    for low, high in zip(a.pointers[begins[:-1]], a.pointers[begins[1:]], strict=True):
        used = distinct(a.coordinates[low:high].astype(np.int64))
        lists.append(used[lengths[used] > 0])
        capacity = partition.capacity(len(lists[-1]))
        stays, stop = placement(lengths[lists[-1]], Capacity(max(0, capacity.limit), max(0, capacity.regular)))
        fitting.append(stays)
        read.append(stop)
    ends = np.cumsum([len(used) for used in lists], dtype=np.int64)
    nothing = np.zeros(len(lists), np.int64)
    resident = np.concatenate([np.arange(len(used)) < stays for used, stays in zip(lists, fitting, strict=True)])
    return RowPlan(
        rows=np.concatenate(lists),
        lines=np.where(resident, 0, -1),
        places=np.zeros(0, np.int64),
        windows=np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1),
        kept=nothing,
        line=nothing,
        free=nothing,
        metadata=nothing,
        placed=np.array(fitting, np.int64),
        read=np.array(read, np.int64),
        early=np.zeros(len(lists), np.bool_),
    )
