"""How little of B an optimal buffer reads while the rows of A have their turns in a given order: Belady's replacement.

What is needed again last leaves first, and what would leave before its next use never stays (MIN: Belady, IBM Systems Journal
5(2), 1966). The uses are known beforehand, since the rows of A are. Interpreted: about a microsecond for each nonzero of A,
less than compiling it takes.
"""

import heapq

import numpy as np

from .pattern import Index, Pattern

__all__ = ["least_nonzeros", "least_whole_rows"]


def least_nonzeros(a: Pattern, lengths: Index, capacity: int) -> int:
    """Nonzeros of B that must be read where any of them may stay on chip or leave by itself.

    A lower bound for every buffer of this ``capacity`` in nonzeros: no metadata, no lines, no rows held because they are in use.

    Parameters
    ----------
    a: I x K, its rows in their turn. lengths: int64[K], nonzeros of each row of B.
    """
    following, sizes = _next_uses(a), lengths.tolist()
    never = len(following)
    kept = [0] * never  # nonzeros on chip, by the next use of their row
    leaving: list[int] = []  # the next uses of what is on chip, negative: the last one first; some have passed
    read = used = 0
    for now, (k, following_use) in enumerate(zip(a.coordinates.tolist(), following, strict=True)):
        length = sizes[k]
        read += length - kept[now]
        used -= kept[now]
        kept[now] = 0
        if following_use == never or length == 0:
            continue
        kept[following_use] = length
        used += length
        heapq.heappush(leaving, -following_use)
        while used > capacity:
            last = -leaving[0]
            part = min(kept[last], used - capacity)
            kept[last] -= part
            used -= part
            if kept[last] == 0:
                heapq.heappop(leaving)
    return read


def least_whole_rows(a: Pattern, sizes: Index, costs: Index, capacity: int, jobs: int) -> int:
    """What the same costs with whole rows, where those of the last ``jobs`` rows of A, one at least, are held in use.

    Parameters
    ----------
    a: as above. sizes: int64[K], what each row of B takes of ``capacity``, in any unit. costs: int64[K], of reading it.

    A row that the capacity does not take costs at each use. With rows of unequal sizes no replacement is known to be the best;
    this one takes the row that is needed again last, which is the best for rows of one size.
    """
    following, uses, pointers = _next_uses(a), a.coordinates.tolist(), a.pointers.tolist()
    size_of, cost_of = sizes.tolist(), costs.tolist()
    never = len(uses)
    users = [0] * len(size_of)  # rows of A under way that use each row of B
    next_use = [never] * len(size_of)
    kept: dict[int, int] = {}  # rows on chip that nobody uses, by their next use
    leaving: list[int] = []
    paid = used = 0
    for row in range(a.rows + jobs):
        ended = row - jobs
        if ended >= 0:
            for k in uses[pointers[ended] : pointers[ended + 1]]:
                users[k] -= 1
                if users[k] == 0 and size_of[k] <= capacity:
                    if next_use[k] < never:
                        kept[next_use[k]] = k
                        heapq.heappush(leaving, -next_use[k])
                    else:
                        used -= size_of[k]
        if row >= a.rows:
            continue
        for use in range(pointers[row], pointers[row + 1]):
            k = uses[use]
            next_use[k] = following[use]
            users[k] += 1
            if users[k] == 1 and kept.pop(use, None) is None:
                paid += cost_of[k]
                used += size_of[k] if size_of[k] <= capacity else 0
        # Rows in use stay, whatever they take; the others leave.
        while used > capacity and leaving:
            gone = kept.pop(-heapq.heappop(leaving), None)
            if gone is not None:
                used -= size_of[gone]
    return paid


def _next_uses(a: Pattern) -> list[int]:
    """For each nonzero of A the next one of the same column; the number of all for none."""
    order = np.argsort(a.coordinates, kind="stable")
    following = np.full(a.nnz, a.nnz, np.int64)
    same = a.coordinates[order[1:]] == a.coordinates[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    found: list[int] = following.tolist()
    return found
