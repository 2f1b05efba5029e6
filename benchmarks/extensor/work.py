"""How long the elements compute: matches of each subtile of A with each tile of B, shared out to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.csf import tile_grid

from .machine import ExTensor
from .shapes import Tiling
from .tiles import Operands

__all__ = ["computing_cycles"]


def computing_cycles(machine: ExTensor, tiling: Tiling, operands: Operands) -> int:
    """Sum over the visits of (A tile, B tile) of the time until the last element is ready, a match a cycle.

    An element takes the next subtile of A when it is ready with one, so that a visit lasts as long as its matches shared out
    evenly, or as its longest subtile.
    """
    a, b = operands.a, operands.b
    grid = tile_grid(b, 1, tiling.b[0])
    steps = -(-tiling.a[1] // tiling.pe_a[1])
    return int(
        _computing(
            a.pointers, a.coordinates, grid.pointers, grid.columns, grid.nonzeros, grid.columns_of_tiles,
            a.columns, tiling.a[0], tiling.a[1], tiling.pe_a[0], tiling.pe_a[1], steps, machine.pes,
        )
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _computing(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    b_pointers: NDArray[Any],
    b_tiles: NDArray[Any],
    b_nonzeros: NDArray[Any],
    width: int,
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
    of_part = np.zeros(outers * steps * width, np.int64)
    parts = np.empty(1024, np.int64)
    of_visit = np.zeros(outers * width, np.int64)
    longest = np.zeros(outers * width, np.int64)
    visits = np.empty(outers * width, np.int64)
    cycles = 0
    begin = 0
    n_visits = 0
    while begin < rows:
        stop = min(rows, begin + inner_rows, (begin // outer_rows + 1) * outer_rows)
        n = 0
        for p in range(pointers[begin], pointers[stop]):
            c = coordinates[p]
            k = c // outer_k * steps + c % outer_k // inner_k
            for q in range(b_pointers[c], b_pointers[c + 1]):
                at = k * width + b_tiles[q]
                if of_part[at] == 0:
                    if n == len(parts):
                        parts = np.concatenate((parts, np.empty(n, np.int64)))
                    parts[n] = at
                    n += 1
                of_part[at] += b_nonzeros[q]
        for at in parts[:n]:
            visit = at // width // steps * width + at % width
            if of_visit[visit] == 0:
                visits[n_visits] = visit
                n_visits += 1
            of_visit[visit] += of_part[at]
            longest[visit] = max(longest[visit], of_part[at])
            of_part[at] = 0
        if stop == rows or stop % outer_rows == 0:
            for visit in visits[:n_visits]:
                cycles += max((of_visit[visit] + pes - 1) // pes, longest[visit])
                of_visit[visit] = 0
                longest[visit] = 0
            n_visits = 0
        begin = stop
    return cycles
