"""The functions of MINT's building blocks on whole vectors, as their definitions say: readable rather than fast."""

from collections.abc import Sequence
from itertools import accumulate, groupby

import numpy as np
from numpy.typing import NDArray

__all__ = ["block_flags", "equal_runs", "prefix_sums", "sorted_lanes", "tree_nodes"]


def prefix_sums(values: NDArray[np.uint64], first: NDArray[np.bool_], sum_width: int) -> NDArray[np.object_]:
    """Inclusive prefix sums of arrays that are cut into vectors, modulo 2**``sum_width``, as Python integers.

    Parameters
    ----------
    values
        Shape (vectors, lanes).
    first
        Shape (vectors,): which vectors begin an array. The first of all does so in any case.
    sum_width
        Bits of a sum.

    Source: MINT, section V.A.
    """
    begins = [n for n in range(len(values)) if first[n] or n == 0]
    sums = np.empty(values.shape, object)
    for begin, end in zip(begins, [*begins[1:], len(values)], strict=True):
        array = values[begin:end].astype(object)
        sums[begin:end] = np.cumsum(array.reshape(-1)).reshape(array.shape) & ((1 << sum_width) - 1)
    return sums


def sorted_lanes(keys: NDArray[np.uint64], present: NDArray[np.bool_]) -> NDArray[np.intp]:
    """From which lane each lane of the sorted vector comes: present ones first, by key, equal ones in order of their lanes."""
    return np.lexsort((keys, ~present))


def equal_runs(keys: NDArray[np.uint64], present: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Of each lane, how many lanes of its run there are up to it, and whether it is the run's last.

    A run is neighbouring present lanes with equal keys; absent lanes are in none and count 0.
    Source: MINT, section V.B, the cluster counter of CSR to CSC.
    """
    counts = np.zeros(len(keys), np.intp)
    last = np.zeros(len(keys), np.bool_)
    for (_, is_present), group in groupby(range(len(keys)), key=lambda lane: (int(keys[lane]), bool(present[lane]))):
        run = list(group)
        if is_present:
            counts[run] = np.arange(1, len(run) + 1)
            last[run[-1]] = True
    return counts, last


def block_flags(
    columns: NDArray[np.intp], present: NDArray[np.bool_], last: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], list[set[int]]]:
    """Which nonzeros are the first of their block, and the blocks that are occupied after each vector.

    Parameters
    ----------
    columns, present
        Shape (vectors, lanes): the block column of each nonzero, and which lanes have one.
    last
        Shape (vectors,): which vectors end a row of blocks.

    Source: MINT, section V.B, CSR to BSR.
    """
    fresh = np.zeros(columns.shape, np.bool_)
    occupied: list[set[int]] = []
    seen: set[int] = set()
    for n, row in enumerate(columns.tolist()):
        for lane, column in enumerate(row):
            if present[n, lane]:
                fresh[n, lane] = column not in seen
                seen = seen | {column}
        occupied.append(seen)
        if last[n]:
            seen = set()
    return fresh, occupied


def tree_nodes(
    entries: Sequence[tuple[int, int, int]],
) -> tuple[list[bool], list[bool], list[bool], list[int]]:
    """Of each entry i, j, k of a tensor: the first of its i; the first of its i, j; not above the entry before; fibers so far.

    Source: MINT, section V.B, Dense to CSF.
    """
    before = [None, *entries][: len(entries)]
    new_i = [former is None or former[0] != entry[0] for former, entry in zip(before, entries, strict=True)]
    new_j = [former is None or former[:2] != entry[:2] for former, entry in zip(before, entries, strict=True)]
    falls = [former is not None and entry <= former for former, entry in zip(before, entries, strict=True)]
    return new_i, new_j, falls, list(accumulate(map(int, new_j)))
