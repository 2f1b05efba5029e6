"""Tiles of DRT and of Tailors on D2T2's machine, and what they move. Papers: D2T2, section 6; DRT; Tailors, sections 3 and 4."""

import math
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.csf_machine.pair import Pair, Shape
from sw.policies.drt import by_both, grow
from sw.stats.csf import WORD_BYTES, csf_words, tile_grid
from sw.stats.pattern import Pattern

__all__ = ["MICRO", "drt_boxes", "drt_traffic", "overbooked_bytes", "swiftiles_side"]

# Side of DRT's micro-tiles.
MICRO = 32


def _transposed(matrix: Pattern) -> Pattern:
    return Pattern(matrix.columns, matrix.rows, *matrix.by_column(np.arange(matrix.rows, dtype=np.int64)))


def _micro_words(matrix: Pattern, micro: int) -> sp.csr_array:
    """Footprints of the micro-tiles, each with fibers of its own."""
    grid = tile_grid(matrix, micro, micro)
    found = sp.csr_array((grid.words, grid.columns, grid.pointers), shape=(grid.rows_of_tiles, grid.columns_of_tiles))
    found.sort_indices()
    return found


def drt_boxes(pair: Pair, micro: int = MICRO) -> NDArray[np.int64]:
    """int64[boxes, 6]: begins and ends in micro-tiles along i, j and k, in the order ikj.

    The greedy growth of the policy ``drt`` (along k, then the other rank of the operand that moves, then that of the one that
    stays), with the operands exchanged: there B's tile stays, in the order ikj A's does.
    """
    a, b = (_micro_words(matrix, micro).T.tocsr() for matrix in (pair.a, pair.b))
    a.sort_indices()
    b.sort_indices()
    fits = pair.words, pair.words, max(pair.extent)
    boxes: NDArray[np.int64] = grow(*by_both(b), *by_both(a), 0, fits, (b.shape[0], a.shape[1], b.shape[1]))
    return boxes[:, [2, 3, 0, 1, 4, 5]]


def drt_traffic(pair: Pair, micro: int = MICRO, repacked: bool = False) -> float:
    """Bytes that move: A's box once, B's for each box of A that it meets, a product of two boxes as fibers of its own.

    ``repacked``: a box is read as one tile of compressed fibers, not as the micro-tiles that it consists of.
    """
    counts = [_micro_words(pair.a, micro), _micro_words(pair.b, micro)]
    a, b = _ones(pair.a), _ones(pair.b)
    words = 0
    boxes = drt_boxes(pair, micro).tolist()
    for (i0, i1), of_rows in groupby(boxes, key=lambda box: (box[0], box[1])):
        rows = a[i0 * micro : i1 * micro].tocsc()
        for (k0, k1), group in groupby(of_rows, key=lambda box: (box[4], box[5])):
            sides = [(box[2], box[3]) for box in group]
            left, right = rows[:, k0 * micro : k1 * micro].tocsr(), b[k0 * micro : k1 * micro]
            if left.nnz == 0 or right.nnz == 0:
                continue
            words += _words(left) if repacked else _between(counts[0], (i0, i1), (k0, k1))
            for j0, j1 in sides:
                part = right[:, j0 * micro : j1 * micro] if repacked else None
                words += _between(counts[1], (k0, k1), (j0, j1)) if part is None else _words(part)
            product = (left @ right).tocoo()
            box_of = np.searchsorted([end * micro for _, end in sides], product.col, side="right")
            fibers = np.unique(product.row.astype(np.int64) * len(sides) + box_of)
            words += csf_words(product.nnz, len(fibers), len(np.unique(box_of)))
    return WORD_BYTES * float(words)


def _ones(matrix: Pattern) -> sp.csr_array:
    ones = np.ones(matrix.nnz, np.float32)
    return sp.csr_array((ones, matrix.coordinates, matrix.pointers), shape=(matrix.rows, matrix.columns))


def _words(tile: Any) -> int:
    """Of a matrix as one tile."""
    fibers = int(np.count_nonzero(np.diff(tile.indptr)))
    return csf_words(int(tile.nnz), fibers, 1) if tile.nnz else 0


def _between(grid: sp.csr_array, rows: tuple[int, int], columns: tuple[int, int]) -> int:
    """Words of the micro-tiles of a box."""
    first, last = grid.indptr[rows[0]], grid.indptr[rows[1]]
    at = grid.indices[first:last]
    return int(grid.data[first:last][(at >= columns[0]) & (at < columns[1])].sum())


def swiftiles_side(pair: Pair, y: float = 0.1, k: int = 10, seed: int = 0) -> int:
    """Side of the squares of which about ``y`` hold more than the buffer: Swiftiles with k / y samples (Tailors, section 4.2)."""
    a, rng = pair.a, np.random.default_rng(seed)
    longest = max(pair.extent)
    side = min(longest, max(1, round(math.sqrt(pair.words / 2 * a.rows * a.columns / max(1, a.nnz)))))
    grid = tile_grid(a, side, side)
    all_tiles = grid.rows_of_tiles * grid.columns_of_tiles
    words = np.sort(grid.words)
    picked = np.sort(rng.integers(0, all_tiles, math.ceil(k / y))) - (all_tiles - len(words))
    samples = np.where(picked < 0, 0, words[np.maximum(picked, 0)])
    quantile = int(samples[max(0, len(samples) - 1 - round(y * len(samples)))]) or int(samples[-1]) or pair.words
    return min(longest, max(1, round(side * math.sqrt(pair.words / quantile))))


def overbooked_bytes(pair: Pair, shape: Shape) -> float:
    """Bytes that stream once more because tiles hold more than the buffer.

    An overbooked tile that waits while the fibers of the other operand's tile pass by streams what was bumped for each of them
    but the first. Of two tiles the one that costs less waits: nothing streams twice where only one overbooks.
    """
    T_i, T_j, T_k = shape
    a, b = tile_grid(pair.a, T_i, T_k), tile_grid(_transposed(pair.b), T_j, T_k)
    over = [np.maximum(0, grid.words - pair.words) for grid in (a, b)]
    words = 0
    for k in np.intersect1d(a.columns[over[0] > 0], b.columns[over[1] > 0]):
        ours, theirs = (np.flatnonzero((g.columns == k) & (o > 0)) for g, o in zip((a, b), over, strict=True))
        b_waits = (a.fibers[ours, None] - 1) * over[1][None, theirs]
        a_waits = (b.fibers[None, theirs] - 1) * over[0][ours, None]
        words += int(np.minimum(a_waits, b_waits).sum())
    return WORD_BYTES * float(words)
