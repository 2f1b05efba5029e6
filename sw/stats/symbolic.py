"""The symbolic product: the nonzeros of C = A x B, tile by tile of k, without their values.

Kernels over the rows ``first`` to ``last`` of A: several of them can run at a time, one a core.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

__all__ = [
    "BITS",
    "bits_of_k",
    "count_fibers",
    "count_rows",
    "count_tiled",
    "in_parallel",
    "symbolic_product",
    "weighed_bits_of_k",
]

# Entries of a count by bits; the last one is for first contributions.
BITS = 65


def in_parallel(part: Callable[[int, int], NDArray[np.int64]], units: int) -> NDArray[np.int64]:
    """Sum of ``part(first, last)`` over chunks of ``range(units)``; the compiled parts run without the lock."""
    cores = cpu_count() or 1
    edges = np.unique(np.linspace(0, units, min(units, 8 * cores) + 1).astype(np.int64))
    with ThreadPoolExecutor(cores) as pool:
        done = list(pool.map(part, edges[:-1], edges[1:]))
    return np.sum(done, axis=0)


@njit(cache=True, nogil=True)
def count_fibers(
    ks: NDArray[Any], b_ptr: NDArray[Any], b_idx: NDArray[Any], T_k: int, seen: NDArray[np.int64], generation: int
) -> tuple[int, int]:
    """Distinct (k tile, column) in the fibers ``ks`` of B, rising; ``seen`` marks columns with generations from there on.

    Returns the count and the last generation used.
    """
    count = 0
    tile = np.int64(-1)
    for k in ks:
        if k // T_k != tile:
            tile = k // T_k
            generation += 1
        for q in range(b_ptr[k], b_ptr[k + 1]):
            if seen[b_idx[q]] != generation:
                seen[b_idx[q]] = generation
                count += 1
    return count, generation


@njit(cache=True, nogil=True)
def count_tiled(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    columns: int,
    T_k: int,
    first: int,
    last: int,
) -> int:
    """Distinct (row of A, k tile, column of B)."""
    seen = np.full(columns, -1, np.int64)
    generation = -1
    total = 0
    for i in range(first, last):
        count, generation = count_fibers(a_idx[a_ptr[i] : a_ptr[i + 1]], b_ptr, b_idx, T_k, seen, generation)
        total += count
    return total


@njit(cache=True, nogil=True)
def count_rows(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    columns: int,
    rows: NDArray[Any],
) -> NDArray[np.int64]:
    """Nonzeros of these rows of C."""
    stamp = np.full(columns, -1, np.int32)
    found = np.zeros(len(rows), np.int64)
    for n in range(len(rows)):
        for p in range(a_ptr[rows[n]], a_ptr[rows[n] + 1]):
            k = a_idx[p]
            for q in range(b_ptr[k], b_ptr[k + 1]):
                if stamp[b_idx[q]] != n:
                    stamp[b_idx[q]] = n
                    found[n] += 1
    return found


@njit(cache=True, nogil=True)
def _bits(number: int) -> int:
    """How many bits the number has."""
    bits = 0
    while number:
        bits += 1
        number >>= 1
    return bits


@njit(cache=True, nogil=True)
def _add_bits_of_k(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    columns: int,
    first: int,
    last: int,
    weight: NDArray[Any],
    found: NDArray[Any],
) -> None:
    """Adds :func:`bits_of_k` of these rows to ``found``, each row as often as its weight."""
    stamp = np.full(columns, -1, np.int64)
    before = np.zeros(columns, np.int64)
    for i in range(first, last):
        for p in range(a_ptr[i], a_ptr[i + 1]):
            k = a_idx[p]
            for q in range(b_ptr[k], b_ptr[k + 1]):
                j = b_idx[q]
                if stamp[j] != i:
                    stamp[j] = i
                    found[BITS - 1] += weight[i]
                else:
                    found[_bits(k ^ before[j])] += weight[i]
                before[j] = k


@njit(cache=True, nogil=True)
def bits_of_k(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    columns: int,
    first: int,
    last: int,
) -> NDArray[np.int64]:
    """Contributions by the bits of their k ^ that of the nonzero's contribution before; the last entry: first ones."""
    by_bits = np.zeros(BITS, np.int64)
    _add_bits_of_k(a_ptr, a_idx, b_ptr, b_idx, columns, first, last, np.ones(len(a_ptr) - 1, np.int64), by_bits)
    return by_bits


@njit(cache=True, nogil=True)
def weighed_bits_of_k(
    a_ptr: NDArray[Any],
    a_idx: NDArray[Any],
    b_ptr: NDArray[Any],
    b_idx: NDArray[Any],
    columns: int,
    weight: NDArray[Any],
) -> NDArray[np.float64]:
    """:func:`bits_of_k` of all rows, each counted as often as its weight."""
    found = np.zeros(BITS, np.float64)
    _add_bits_of_k(a_ptr, a_idx, b_ptr, b_idx, columns, 0, len(a_ptr) - 1, weight, found)
    return found


@njit(cache=True, nogil=True)
def symbolic_product(
    a_ptr: NDArray[Any], a_idx: NDArray[Any], b_ptr: NDArray[Any], b_idx: NDArray[Any], columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Row, column and first k of each nonzero of C, by rows and within them in the order of k."""
    stamp = np.full(columns, -1, np.int64)
    rows = np.empty(1024, np.int64)
    cols = np.empty(1024, np.int64)
    first = np.empty(1024, np.int64)
    n = 0
    for i in range(len(a_ptr) - 1):
        for p in range(a_ptr[i], a_ptr[i + 1]):
            k = a_idx[p]
            for q in range(b_ptr[k], b_ptr[k + 1]):
                j = b_idx[q]
                if stamp[j] != i:
                    stamp[j] = i
                    if n == len(rows):
                        rows = np.concatenate((rows, np.empty(n, np.int64)))
                        cols = np.concatenate((cols, np.empty(n, np.int64)))
                        first = np.concatenate((first, np.empty(n, np.int64)))
                    rows[n] = i
                    cols[n] = j
                    first[n] = k
                    n += 1
    return rows[:n], cols[:n], first[:n]
