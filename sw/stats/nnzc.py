"""How many nonzeros C has when the contracted rank is cut into tiles: exact, and HYTE's sketch. Paper: HYTE, 5.1.

``nnzC_Tk`` counts each (i, j) once for each k tile of T_k coordinates that contributes to it; T_k = K gives nnz(C).
A machine that carries partial rows along moves another count between k steps: that of the (i, j) met so far. It follows
from the first k of each (i, j).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .pattern import Index, Pattern
from .symbolic import bits_of_k, count_tiled, in_parallel, symbolic_product

__all__ = [
    "MOST_K_TILES",
    "OutputCounts",
    "exact_counts",
    "exact_nnzc",
    "exact_nnzc_by_tk",
    "powers_of_two",
    "sketch_counts",
]

MOST_K_TILES = 4096
MOST_CONTRIBUTIONS = 1 << 18
FEWEST_HASHES = 64
_WHOLE = 2.0**64


def powers_of_two(size: int, least: int = 1) -> list[int]:
    """Powers of two from ``least`` (a power of two) up, the last one being the first that reaches ``size``."""
    sizes = [least]
    while sizes[-1] < size:
        sizes.append(2 * sizes[-1])
    return sizes


@dataclass(frozen=True, eq=False)
class OutputCounts:
    """Counts and a sample of C's pattern.

    Parameters
    ----------
    depth: K.
    tiles_k: the powers of two T_k counted, rising; the last one reaches K.
    nnz_by_tk: ``nnzC_Tk`` of each.
    rows, columns, first_k: a sample of the distinct (i, j) and the first k that contributes to each.
    weight: nonzeros of C that each sampled (i, j) stands for, one number for all or one for each; 1 when the sample is
        everything.
    """

    depth: int
    tiles_k: list[int]
    nnz_by_tk: NDArray[np.float64]
    rows: Index
    columns: Index
    first_k: Index
    weight: float | NDArray[np.float64]

    @property
    def nnz(self) -> float:
        """Nonzeros of C, zeros from cancellation included."""
        return float(self.nnz_by_tk[-1])

    def nnz_tk(self, T_k: int) -> float:
        """``nnzC_Tk``, interpolated (log-log) where T_k is no power of two."""
        if T_k >= self.depth or self.nnz == 0:
            return self.nnz
        at = np.interp(np.log2(max(T_k, 1)), np.log2(self.tiles_k), np.log2(np.maximum(self.nnz_by_tk, 1.0)))
        return float(2.0**at)

    def carried(self, T_k: int) -> float:
        """Nonzeros that leave, summed over all k steps but the last: each (i, j) from its first k tile on."""
        steps = -(-self.depth // T_k) - 1
        return self.weighed(steps - self.first_k // T_k) if steps else 0.0

    def weighed(self, counts: Index) -> float:
        """Sum over C of what is counted for each sampled (i, j)."""
        if isinstance(self.weight, float):
            return float(counts.sum()) * self.weight
        return float(counts @ self.weight)


def exact_nnzc(A: Pattern, B: Pattern, T_k: int) -> int:
    """``nnzC_Tk`` for one T_k, by a symbolic product."""
    return int(count_tiled(A.pointers, A.coordinates, B.pointers, B.coordinates, B.columns, T_k, 0, A.rows))


def exact_nnzc_by_tk(A: Pattern, B: Pattern) -> dict[int, int]:
    """``nnzC_Tk`` for every power of two up to the first that reaches K, in one symbolic product on all cores."""
    return dict(zip(powers_of_two(A.columns), map(int, _nnzc_by_tk(A, B)), strict=True))


def _nnzc_by_tk(A: Pattern, B: Pattern) -> Index:
    def part(first: int, last: int) -> NDArray[np.int64]:
        return np.asarray(bits_of_k(A.pointers, A.coordinates, B.pointers, B.coordinates, B.columns, first, last))

    by_bits = in_parallel(part, A.rows)
    # A nonzero whose last k differed from this one in bit b at the highest is another tile for all T_k <= 2**b.
    return np.array([by_bits[s + 1 :].sum() for s in range(len(powers_of_two(A.columns)))])


def exact_counts(A: Pattern, B: Pattern) -> OutputCounts:
    """All powers of two, and where each nonzero of C begins: memory of the order of nnz(C) for the pairs."""
    rows, columns, first_k = symbolic_product(A.pointers, A.coordinates, B.pointers, B.coordinates, B.columns)
    counts = _nnzc_by_tk(A, B).astype(np.float64)
    return OutputCounts(A.columns, powers_of_two(A.columns), counts, rows, columns, first_k, 1.0)


def sketch_counts(A: Pattern, B: Pattern, *, rows: Index, columns: Index, size: int, seed: int = 0) -> OutputCounts:
    """ESTNNZCTK: a bottom-``size`` sketch of the (i, j) of sampled ``rows`` of A times sampled ``columns`` of B.

    ``h(i, j) = (h1(i) - h2(j)) mod 1``, with 64-bit fractions. The pairs of one k that lie below the bound are
    neighbours once A's column is sorted by h1 and B's row by h2 (done for all k by two counting passes), so work
    follows the nonzeros looked at plus the pairs found, not effMAC. Below the bound every contributing k of a pair is
    kept: the tiles of T_k,min = K / 4096, and by merging neighbours those of larger powers of two, come from one list.
    Where each (i, j) has so many contributions that this list would pass ``MOST_CONTRIBUTIONS``, ``size`` is halved.
    """
    if size < 1:
        raise ValueError(f"Sketch size must be at least 1, not {size!r}")
    rng = np.random.default_rng(seed)
    h1 = rng.integers(0, 2**64, A.rows, dtype=np.uint64)
    h2 = rng.integers(0, 2**64, B.columns, dtype=np.uint64)
    row_order = rows[np.argsort(h1[rows], kind="stable")]
    column_order = columns[np.argsort(h2[columns], kind="stable")]
    a_begin, a_rows = A.by_column(row_order)
    b_columns = Pattern(B.columns, B.rows, *B.by_column(np.arange(B.rows, dtype=np.int64)))
    b_begin, b_cols = b_columns.by_column(column_order)
    hashes, pair_rows, pair_cols, pair_k, size = _bottom(a_begin, a_rows, b_begin, b_cols, h1, h2, size)

    order = np.lexsort((pair_k, pair_cols, pair_rows, hashes))
    hashes, pair_rows, pair_cols, pair_k = (x[order] for x in (hashes, pair_rows, pair_cols, pair_k))
    fresh = np.ones(len(hashes), np.bool_)
    fresh[1:] = (pair_rows[1:] != pair_rows[:-1]) | (pair_cols[1:] != pair_cols[:-1])
    scale = (A.rows / len(rows)) * (B.columns / len(columns))
    starts = np.flatnonzero(fresh)
    if len(starts) >= size:
        bound = hashes[starts[size - 1]]
        keep = hashes <= bound
        hashes, pair_rows, pair_cols, pair_k, fresh = (x[keep] for x in (hashes, pair_rows, pair_cols, pair_k, fresh))
        starts = np.flatnonzero(fresh)
        scale *= _WHOLE / max(1.0, float(bound))
    least = powers_of_two(-(-A.columns // MOST_K_TILES))[-1]
    tiles_k = powers_of_two(A.columns, least)
    counts = []
    for T_k in tiles_k:
        tile = pair_k // T_k
        counts.append(float(np.count_nonzero(fresh[1:] | (tile[1:] != tile[:-1])) + (len(tile) > 0)) * scale)
    return OutputCounts(
        A.columns, tiles_k, np.array(counts), pair_rows[starts], pair_cols[starts], pair_k[starts], scale
    )


@njit(cache=True)
def _bottom(
    a_begin: NDArray[Any],
    a_rows: NDArray[Any],
    b_begin: NDArray[Any],
    b_cols: NDArray[Any],
    h1: NDArray[Any],
    h2: NDArray[Any],
    size: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], int]:
    """All (hash, i, j, k) up to the ``size``-th smallest distinct hash (a few more may be left), and ``size``."""
    capacity = max(1024, 8 * size)
    hashes = np.empty(capacity, np.uint64)
    rows = np.empty(capacity, np.int64)
    cols = np.empty(capacity, np.int64)
    ks = np.empty(capacity, np.int64)
    n = 0
    bound = ~np.uint64(0)
    for k in range(len(a_begin) - 1):
        b0, b1 = b_begin[k], b_begin[k + 1]
        if b0 == b1:
            continue
        low = b0
        for p in range(a_begin[k], a_begin[k + 1]):
            i = a_rows[p]
            x = h1[i]
            # h2 in [x - bound, x], going up; then, where that goes below zero, from the top down.
            wraps = x < bound
            if not wraps:
                while low < b1 and h2[b_cols[low]] < x - bound:
                    low += 1
            q = low
            back = False
            while True:
                if not back and (q >= b1 or h2[b_cols[q]] > x):
                    if not wraps:
                        break
                    back = True
                    q = b1 - 1
                if back and (q < b0 or h2[b_cols[q]] <= x):
                    break
                j = b_cols[q]
                value = x - h2[j]
                if value > bound:
                    if back:
                        break
                else:
                    if n == capacity:
                        n, bound = _compact(hashes, rows, cols, ks, n, size, bound)
                        while 2 * n > MOST_CONTRIBUTIONS and size > FEWEST_HASHES:
                            size //= 2
                            n, bound = _compact(hashes, rows, cols, ks, n, size, bound)
                        if 2 * n > capacity:
                            hashes = np.concatenate((hashes, np.empty(capacity, np.uint64)))
                            rows = np.concatenate((rows, np.empty(capacity, np.int64)))
                            cols = np.concatenate((cols, np.empty(capacity, np.int64)))
                            ks = np.concatenate((ks, np.empty(capacity, np.int64)))
                            capacity *= 2
                    if value <= bound:
                        hashes[n] = value
                        rows[n] = i
                        cols[n] = j
                        ks[n] = k
                        n += 1
                q += -1 if back else 1
    return hashes[:n], rows[:n], cols[:n], ks[:n], size


@njit(cache=True)
def _compact(
    hashes: NDArray[Any], rows: NDArray[Any], cols: NDArray[Any], ks: NDArray[Any], n: int, size: int, bound: int
) -> tuple[int, int]:
    """Lower the bound to the ``size``-th smallest distinct hash and drop what lies above."""
    ordered = np.sort(hashes[:n])
    distinct = 0
    for p in range(n):
        if p == 0 or ordered[p] != ordered[p - 1]:
            distinct += 1
            if distinct == size:
                bound = ordered[p]
                break
    kept = 0
    for p in range(n):
        if hashes[p] <= bound:
            hashes[kept] = hashes[p]
            rows[kept] = rows[p]
            cols[kept] = cols[p]
            ks[kept] = ks[p]
            kept += 1
    return kept, bound
