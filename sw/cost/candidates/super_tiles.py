"""Super-tiles along i: rows of A for as long as the rows of B that they use fit the buffer. Paper: HYTE, section 2.

k and j are whole, so that rows of C are finished when they leave; a super-tile loads the rows of B that it uses, no others.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.cost.protocol import Machine
from sw.cost.shaped import predict_used
from sw.jit import njit
from sw.scheme.scheme import Scheme
from sw.scheme.shares import partition_of
from sw.scheme.terms import LOAD_USED
from sw.stats.workload import Workload

from .explicit import scheme_of_tiles

__all__ = ["super_tiles"]


def super_tiles(
    policy: str, workload: Workload, design: Machine, parts: tuple[dict[str, int], dict[str, int]], pseudo: int
) -> Scheme:
    """Merges pseudo-tiles of ``pseudo`` rows of A; one that alone asks for more than fits overbooks.

    ``parts``: ``buffer_bytes`` and ``fifo_bytes`` of the scheme.
    """
    capacity = partition_of(design, parts, "B").resident(0) - (design.lanes - 1)
    ends, taken, asked = _merge(workload.a.pointers, workload.a.coordinates, workload.b.row_lengths, pseudo, capacity)
    tiles = [[int(i), int(end), 0, workload.J, 0, workload.K] for i, end in zip([0, *ends[:-1]], ends, strict=True)]
    scheme = scheme_of_tiles(policy, workload, design, parts, tiles, LOAD_USED)
    # A and C once, and what the super-tiles load: nonzeros, and of each row its pointers.
    load = int(taken) / design.lanes + 1.5 * int(asked)
    rest = (workload.a.nnz + workload.output.nnz + workload.I + 1) / design.lanes
    moved = round((load + rest) * design.line_bytes)
    return replace(scheme, predicted={"cycles": predict_used(workload, design, scheme), "dram_bytes": moved})


@njit(cache=True)
def _merge(
    pointers: NDArray[Any], coordinates: NDArray[Any], lengths: NDArray[Any], pseudo: int, capacity: int
) -> tuple[NDArray[np.int64], int, int]:
    """Rows at which super-tiles end, nonzeros of B and rows of B that they load together.

    A row of B takes its nonzeros and the space of one nonzero of metadata.
    """
    rows = len(pointers) - 1
    used = np.full(len(lengths), -1, np.int64)  # the super-tile that holds the row, or the pseudo-tile that asked last
    ends = np.empty((rows + pseudo - 1) // pseudo, np.int64)
    n = 0
    filled = 0
    begin = 0
    taken = 0
    loaded = 0
    for first in range(0, rows, pseudo):
        last = min(rows, first + pseudo)
        for _attempt in range(2):
            asked = 0
            fresh = 0
            for p in range(pointers[first], pointers[last]):
                k = coordinates[p]
                if used[k] < begin and lengths[k] > 0:
                    asked += lengths[k] + 1
                    fresh += 1
                    used[k] = first
            if filled == 0 or filled + asked <= capacity:
                filled += asked
                taken += asked - fresh
                loaded += fresh
                break
            # It does not fit: the super-tile ends, and this pseudo-tile begins the next with nothing in place.
            ends[n] = first
            n += 1
            begin = first
            filled = 0
            for p in range(pointers[first], pointers[last]):
                used[coordinates[p]] = -1
    ends[n] = rows
    return ends[: n + 1].copy(), taken, loaded
