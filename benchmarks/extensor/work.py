"""How long the elements compute: matches of each pair of subtiles of A and B, shared out to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .machine import ExTensor
from .shapes import Tiling
from .tiles import Operands

__all__ = ["computing_cycles"]


def computing_cycles(machine: ExTensor, tiling: Tiling, operands: Operands) -> int:
    """Sum over the visits of (A tile, B tile) of the time until the last element is ready, a match a cycle.

    An element takes the next pair of subtiles when it is ready with one, so that a visit lasts as long as its matches shared out
    evenly, or as its longest pair.
    """
    a, b = operands.a, operands.b
    width = -(-tiling.b[0] // tiling.pe_b[0])
    columns = np.arange(b.columns, dtype=np.int64)
    part_of = columns // tiling.b[0] * width + columns % tiling.b[0] // tiling.pe_b[0]
    steps = -(-tiling.a[1] // tiling.pe_a[1])
    return int(
        _computing(
            a.pointers, a.coordinates, b.pointers, part_of[b.coordinates], width, -(-b.columns // tiling.b[0]),
            a.columns, tiling.a[0], tiling.a[1], tiling.pe_a[0], tiling.pe_a[1], steps, machine.pes,
        )
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _computing(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    b_pointers: NDArray[Any],
    b_parts: NDArray[Any],
    width: int,
    outer_width: int,
    columns: int,
    outer_rows: int,
    outer_k: int,
    inner_rows: int,
    inner_k: int,
    steps: int,
    pes: int,
) -> int:
    rows = len(pointers) - 1
    outers = (columns + outer_k - 1) // outer_k
    # Nonzeros of a panel of A's subtiles by inner k step, as chains.
    newest = np.full(outers * steps, -1, np.int64)
    older = np.empty(len(coordinates), np.int64)
    ks = np.empty(outers * steps, np.int64)
    of_pair = np.zeros(outer_width * width, np.int64)
    pairs = np.empty(outer_width * width, np.int64)
    of_visit = np.zeros(outers * outer_width, np.int64)
    longest = np.zeros(outers * outer_width, np.int64)
    visits = np.empty(outers * outer_width, np.int64)
    cycles = 0
    begin = 0
    n_visits = 0
    while begin < rows:
        stop = min(rows, begin + inner_rows, (begin // outer_rows + 1) * outer_rows)
        n_ks = 0
        for p in range(pointers[begin], pointers[stop]):
            c = coordinates[p]
            k = c // outer_k * steps + c % outer_k // inner_k
            if newest[k] < 0:
                ks[n_ks] = k
                n_ks += 1
            older[p] = newest[k]
            newest[k] = p
        for k in ks[:n_ks]:
            n = 0
            p = newest[k]
            newest[k] = -1
            while p >= 0:
                c = coordinates[p]
                for q in range(b_pointers[c], b_pointers[c + 1]):
                    at = b_parts[q]
                    if of_pair[at] == 0:
                        pairs[n] = at
                        n += 1
                    of_pair[at] += 1
                p = older[p]
            for at in pairs[:n]:
                visit = k // steps * outer_width + at // width
                if of_visit[visit] == 0:
                    visits[n_visits] = visit
                    n_visits += 1
                of_visit[visit] += of_pair[at]
                longest[visit] = max(longest[visit], of_pair[at])
                of_pair[at] = 0
        if stop == rows or stop % outer_rows == 0:
            for visit in visits[:n_visits]:
                cycles += max((of_visit[visit] + pes - 1) // pes, longest[visit])
                of_visit[visit] = 0
                longest[visit] = 0
            n_visits = 0
        begin = stop
    return cycles
