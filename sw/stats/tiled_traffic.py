"""Exact traffic of a static tiling with CSF footprints, as D2T2 measures it. Paper: D2T2, sections 5.3 and 6.

A machine that multiplies a tile of A and one of B when both hold something: an operand's tile is read again whenever
something outside its own ranks, in the inter-tile order, has moved; each product of two tiles leaves as a CSF tile of its
own and is added up in memory. The product is never built: memory is that of the operands and one number a column.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .csf import WORD_BYTES, csf_words, tile_grid
from .pattern import Index, Pattern
from .symbolic import count_fibers, count_tiled, in_parallel

__all__ = [
    "PartialProducts",
    "TiledTraffic",
    "footprints",
    "partial_products",
    "reads_again",
    "tiled_traffic",
]


@dataclass(frozen=True)
class PartialProducts:
    """The products of all tile pairs together: ``nonzeros`` in ``fibers`` nonempty rows of ``tiles`` tiles."""

    nonzeros: int
    fibers: int
    tiles: int


@dataclass(frozen=True)
class TiledTraffic:
    """Bytes of A, B and C with all their metadata; ``visits``: pairs of tiles of which both hold something."""

    A: float
    B: float
    C: float
    visits: float

    @property
    def total(self) -> float:
        return self.A + self.B + self.C


def reads_again(order: str, counts: dict[str, int]) -> dict[str, bool]:
    """Whether tiles of A (of B) are read once for each j (each i) in an inter-tile order, outermost rank first.

    They are where that rank lies outside the innermost of their own; ranks with one tile do not move.
    """
    moving = [rank for rank in order if counts[rank] > 1]
    found = {}
    for tensor, own, other in (("A", "ik", "j"), ("B", "kj", "i")):
        inner = max((moving.index(rank) for rank in own if rank in moving), default=-1)
        found[tensor] = other in moving and moving.index(other) < inner
    return found


def tiled_traffic(A: Pattern, B: Pattern, shape: tuple[int, int, int], order: str) -> TiledTraffic:
    """Exact traffic of tiles ``shape`` = (T_i, T_j, T_k) in an inter-tile ``order`` such as ``ikj``."""
    T_i, T_j, T_k = shape
    a, b = tile_grid(A, T_i, T_k), tile_grid(B, T_k, T_j)
    a_uses = np.diff(b.pointers)[a.columns]  # tiles of B that each tile of A meets
    b_uses = np.bincount(a.columns, minlength=b.rows_of_tiles)[b.rows]
    counts = {"i": a.rows_of_tiles, "j": b.columns_of_tiles, "k": a.columns_of_tiles}
    rereads = reads_again(order, counts)
    words_a = int(a.words @ (a_uses if rereads["A"] else np.minimum(1, a_uses)))
    words_b = int(b.words @ (b_uses if rereads["B"] else np.minimum(1, b_uses)))
    products = partial_products(A, B, T_i, T_j, T_k)
    words_c = csf_words(products.nonzeros, products.fibers, products.tiles)
    return TiledTraffic(WORD_BYTES * words_a, WORD_BYTES * words_b, WORD_BYTES * words_c, int(a_uses.sum()))


def partial_products(A: Pattern, B: Pattern, T_i: int, T_j: int, T_k: int) -> PartialProducts:
    """Counts the partial products of all tile pairs; rows of tiles are divided among the cores."""
    rows = _distinct_tiles(B.pointers, B.coordinates, T_j)

    def part(first: int, last: int) -> NDArray[np.int64]:
        first, last = first * T_i, min(A.rows, last * T_i)
        pattern = A.pointers, A.coordinates
        nonzeros = count_tiled(*pattern, B.pointers, B.coordinates, B.columns, T_k, first, last)
        fibers = count_tiled(*pattern, *rows, -(-B.columns // T_j), T_k, first, last)
        tiles = _tiles(*pattern, *rows, -(-B.columns // T_j), A.columns, T_i, T_k, first, last)
        return np.array([nonzeros, fibers, tiles])

    return PartialProducts(*(int(n) for n in in_parallel(part, -(-A.rows // T_i))))


@njit(cache=True, nogil=True)
def _distinct_tiles(
    pointers: NDArray[Any], coordinates: NDArray[Any], T: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pattern of rows over tiles of ``T`` columns."""
    rows = len(pointers) - 1
    begin = np.zeros(rows + 1, np.int64)
    tiles = np.empty(len(coordinates), np.int64)
    n = 0
    for row in range(rows):
        before = np.int64(-1)
        for p in range(pointers[row], pointers[row + 1]):
            tile = coordinates[p] // T
            if tile != before:
                tiles[n] = tile
                n += 1
                before = tile
        begin[row + 1] = n
    return begin, tiles[:n].copy()


@njit(cache=True, nogil=True)
def _tiles(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    width: int,
    depth: int,
    T_i: int,
    T_k: int,
    first: int,
    last: int,
) -> int:
    """Distinct (row of tiles of A, k tile, j tile) with a product in them."""
    used = np.full(depth, -1, np.int64)
    seen = np.full(width, -1, np.int64)
    generation = -1
    count = 0
    for begin in range(first, last, T_i):
        span = a_idx[a_ptr[begin] : a_ptr[min(last, begin + T_i)]]
        wanted = np.empty(len(span), np.int64)
        n = 0
        for k in span:
            if used[k] != begin:
                used[k] = begin
                wanted[n] = k
                n += 1
        found, generation = count_fibers(np.sort(wanted[:n]), b_ptr, b_idx, T_k, seen, generation)
        count += found
    return count


def footprints(matrix: Pattern, tile_rows: int, tile_columns: int) -> tuple[Index, Index]:
    """Footprints of nonempty tiles in bytes, rising, and how many tiles have each."""
    sizes, counts = np.unique(WORD_BYTES * tile_grid(matrix, tile_rows, tile_columns).words, return_counts=True)
    return sizes, counts
