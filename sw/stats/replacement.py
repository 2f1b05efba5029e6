"""How little of B an optimal buffer reads while the rows of A have their turns in a given order: Belady's replacement.

What is needed again last leaves first, and what would leave before its next use never stays (MIN: Belady, IBM Systems Journal
5(2), 1966). The uses are known beforehand, since the rows of A are. Single nonzeros are counted interpreted, about a microsecond
for each of A, which takes less than compiling it; whole rows are counted for each order of A's rows, compiled.
"""

import heapq

import numpy as np

from sw.jit import njit

from .pattern import Index, Pattern

__all__ = ["least_nonzeros", "least_whole_rows"]


def least_nonzeros(a: Pattern, lengths: Index, capacity: int) -> int:
    """Nonzeros of B that must be read where any of them may stay on chip or leave by itself.

    A lower bound for every buffer of this ``capacity`` in nonzeros: no metadata, no lines, no rows held because they are in use.

    Parameters
    ----------
    a: I x K, its rows in their turn. lengths: int64[K], nonzeros of each row of B.
    """
    following, sizes = _next_uses(a).tolist(), lengths.tolist()
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
    """What the same costs with whole rows, where those of the last ``jobs`` rows of A, one at least, stay if they are on chip.

    Parameters
    ----------
    a: as above. sizes: int64[K], what each row of B takes of ``capacity``, in any unit. costs: int64[K], of reading it.

    A row of B may also go by: it costs, and takes nothing. Where rows stay because they are in use, or are of unequal sizes, no
    replacement is known to be the best; this one keeps the rows that are needed again first.
    """
    return int(_whole_rows(a.pointers, a.coordinates, _next_uses(a), sizes, costs, capacity, jobs))


@njit(cache=True)
def _whole_rows(
    pointers: Index, uses: Index, following: Index, sizes: Index, costs: Index, capacity: int, jobs: int
) -> int:
    rows, never = len(pointers) - 1, len(uses)
    users = np.zeros(len(sizes), np.int64)  # rows of A under way that use each row of B on chip
    uses_it = np.zeros(never, np.bool_)  # whether a use is one of these
    next_use = np.full(len(sizes), never)
    free_until = np.full(len(sizes), -1)  # the next use of rows on chip that nobody uses now; -1 of others
    leaving = [np.int64(1)]  # the next uses of those, negative: the last one first; some have passed
    leaving.pop()
    paid = used = 0
    for row in range(rows + jobs):
        ended = row - jobs
        if ended >= 0:
            for use in range(pointers[ended], pointers[ended + 1]):
                k = uses[use]
                if not uses_it[use]:
                    continue
                users[k] -= 1
                if users[k] == 0 and next_use[k] < never:
                    free_until[k] = next_use[k]
                    heapq.heappush(leaving, -next_use[k])
                elif users[k] == 0:
                    used -= sizes[k]
        if row >= rows:
            continue
        begin, end = pointers[row], pointers[row + 1]
        for use in range(begin, end):
            k = uses[use]
            next_use[k] = following[use]
            if users[k] > 0 or free_until[k] >= 0:
                uses_it[use] = True
                users[k] += 1
                free_until[k] = -1
        for use in begin + np.argsort(following[begin:end]):
            k = uses[use]
            if uses_it[use]:
                continue
            paid += costs[k]
            while following[use] < never and used + sizes[k] > capacity and len(leaving) > 0:
                last = -leaving[0]
                other = uses[last]
                if free_until[other] == last:
                    if last < following[use]:
                        break
                    free_until[other] = -1
                    used -= sizes[other]
                heapq.heappop(leaving)
            if following[use] < never and used + sizes[k] <= capacity:
                uses_it[use] = True
                users[k] = 1
                used += sizes[k]
    return paid


def _next_uses(a: Pattern) -> Index:
    """For each nonzero of A the next one of the same column; the number of all for none."""
    order = np.argsort(a.coordinates, kind="stable")
    following = np.full(a.nnz, a.nnz, np.int64)
    same = a.coordinates[order[1:]] == a.coordinates[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following
