"""Dynamic reflexive tiling: tiles grown from micro-tiles until the buffers are full. Paper: HYTE, section 2 and table 2.

The ranks that operands share have the same sides for both. Growth is greedy: along k, then i, then j, one micro-tile at a
time, for as long as what is added fits.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.cost.candidates.explicit import scheme_of_tiles
from sw.cost.protocol import Machine
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.jit import njit
from sw.plan.thresholds import DRT_SIDE, SHARES
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import partition_of, shared_buffer
from sw.stats.occupancy import TileList
from sw.stats.workload import Workload

__all__ = ["by_both", "drt", "grow"]


def drt(
    A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, micro: int | None = None, **options: Any
) -> Scheme:
    """Real shapes, tile by tile.

    Parameters
    ----------
    micro: side of a micro-tile; 32, or less where a dense one would not fit A's share, when not given.

    B's tile stays while i moves, then k moves, then j. A k range is chosen with the first i tile of its sweep and a j
    range with its first k range; both then stand until the sweep ends, as A's next tiles have to meet the same tile of B.
    """
    if options:
        raise TypeError(f"drt takes the option micro, not {', '.join(options)}")
    if micro is not None and (isinstance(micro, bool) or not isinstance(micro, int) or micro < 1):
        raise SchemeError("option micro", micro, "an integer of at least 1")
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    parts = shared_buffer(design, SHARES["drt"][0], SHARES["drt"][2])
    partition = partition_of(design, parts, "B")
    capacity_a = max(parts[0]["A"], int(SHARES["drt"][0] * design.buffer.bytes)) // ELEMENT_BYTES
    capacity_b = partition.resident(0)
    side = min(micro or _micro_side(min(capacity_a, capacity_b)), partition.most_rows)
    of_a, of_b = _grid(workload.tiles("A", side, side)), _grid(workload.tiles("B", side, side))
    extent = (of_a.shape[0], of_b.shape[1], of_a.shape[1])
    boxes: NDArray[np.int64] = grow(
        *by_both(of_a), *by_both(of_b), side, (capacity_a, capacity_b, partition.most_rows), extent
    )
    limits = np.array([workload.I, workload.I, workload.J, workload.J, workload.K, workload.K])
    tiles = np.minimum(boxes * side, limits).tolist()
    return scheme_of_tiles("drt", workload, design, parts, tiles)


def _micro_side(capacity: int) -> int:
    """The side of the paper, or the largest power of two of which a dense tile fits ``capacity`` elements with metadata."""
    side = DRT_SIDE
    while side > 1 and side * side + side > capacity:
        side //= 2
    return side


def _grid(tiles: TileList) -> sp.csr_array:
    """Occupancies of the micro-tiles."""
    shape = (tiles.rows_of_tiles, tiles.columns_of_tiles)
    grid = sp.csr_array((tiles.occupancy, tiles.columns, tiles.pointers), shape=shape)
    grid.sort_indices()
    return grid


def by_both(grid: sp.csr_array) -> tuple[Any, ...]:
    """Pointers, coordinates and occupancies before each micro-tile, row by row and column by column."""
    found: list[Any] = []
    for matrix in (grid, grid.tocsc()):
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(matrix.data)])
        found += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), before]
    return tuple(found)


@njit(cache=True)
def _between(
    pointers: NDArray[Any], coordinates: NDArray[Any], before: NDArray[Any], line: int, first: int, last: int
) -> int:
    """Elements of the micro-tiles ``first`` to ``last`` of one row (column) of them."""
    span = coordinates[pointers[line] : pointers[line + 1]]
    low = pointers[line] + np.searchsorted(span, first)
    high = pointers[line] + np.searchsorted(span, last)
    return before[high] - before[low]


@njit(cache=True)
def grow(
    a_row: NDArray[Any],
    a_row_at: NDArray[Any],
    a_row_sum: NDArray[Any],
    a_col: NDArray[Any],
    a_col_at: NDArray[Any],
    a_col_sum: NDArray[Any],
    b_row: NDArray[Any],
    b_row_at: NDArray[Any],
    b_row_sum: NDArray[Any],
    b_col: NDArray[Any],
    b_col_at: NDArray[Any],
    b_col_sum: NDArray[Any],
    side: int,
    capacities: tuple[int, int, int],
    extent: tuple[int, int, int],
) -> NDArray[np.int64]:
    """int64[tiles, 6]: begins and ends along i, j, k in micro-tiles."""
    capacity_a, capacity_b, most_rows = capacities
    tiles_i, tiles_j, tiles_k = extent
    boxes = np.empty((1024, 6), np.int64)
    n = 0
    j0 = np.int64(0)
    while j0 < tiles_j:
        j1 = np.int64(-1)
        k0 = np.int64(0)
        while k0 < tiles_k:
            k1 = np.int64(-1)
            i0 = np.int64(0)
            while i0 < tiles_i:
                grow_j, grow_k, grow_i = bool(j1 < 0), bool(k1 < 0), True
                if grow_j:
                    j1 = j0 + 1
                if grow_k:
                    k1 = k0 + 1
                i1 = i0 + 1
                held_a = np.int64(0)
                for k in range(k0, k1):
                    held_a += _between(a_col, a_col_at, a_col_sum, k, i0, i1)
                held_b = np.int64(0)
                for k in range(k0, k1) if grow_k or grow_j else range(0):
                    held_b += _between(b_row, b_row_at, b_row_sum, k, j0, j1)
                while grow_k or grow_i or grow_j:
                    if grow_k:
                        grow_k = False
                        if k1 < tiles_k and (k1 + 1 - k0) * side <= most_rows:
                            more_a = held_a + _between(a_col, a_col_at, a_col_sum, k1, i0, i1)
                            more_b = held_b + _between(b_row, b_row_at, b_row_sum, k1, j0, j1)
                            if more_a + (i1 - i0) * side <= capacity_a and more_b + (k1 + 1 - k0) * side <= capacity_b:
                                held_a, held_b, k1, grow_k = more_a, more_b, k1 + 1, True
                    if grow_i:
                        grow_i = False
                        if i1 < tiles_i:
                            more_a = held_a + _between(a_row, a_row_at, a_row_sum, i1, k0, k1)
                            if more_a + (i1 + 1 - i0) * side <= capacity_a:
                                held_a, i1, grow_i = more_a, i1 + 1, True
                    if grow_j:
                        grow_j = False
                        if j1 < tiles_j:
                            more_b = held_b + _between(b_col, b_col_at, b_col_sum, j1, k0, k1)
                            if more_b + (k1 - k0) * side <= capacity_b:
                                held_b, j1, grow_j = more_b, j1 + 1, True
                if n == len(boxes):
                    boxes = np.concatenate((boxes, np.empty((n, 6), np.int64)))
                boxes[n] = np.array([i0, i1, j0, j1, k0, k1])
                n += 1
                i0 = i1
            k0 = k1
        j0 = j1
    return boxes[:n].copy()
