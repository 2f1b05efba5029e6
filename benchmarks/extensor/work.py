"""How long the elements compute: matches of the blocks of Z, shared out to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .machine import ExTensor
from .shapes import Tiling
from .tiles import Operands

__all__ = ["block_cycles", "computing_cycles", "working"]


def working(machine: ExTensor, tiling: Tiling) -> int:
    """Elements that have a block of Z in a visit."""
    blocks = -(-tiling.a[0] // tiling.pe_a[0]) * -(-tiling.b[0] // tiling.pe_b[0])
    return min(machine.pes, blocks)


def computing_cycles(machine: ExTensor, tiling: Tiling, operands: Operands) -> int:
    """All matches shared out evenly to the elements that have a block, a match a cycle, as Sparseloop counts them."""
    return -(-operands.macs // working(machine, tiling))


def block_cycles(machine: ExTensor, tiling: Tiling, operands: Operands) -> int:
    """The same where a block is the work of one element: the sum over the visits of the time until the last one is ready.

    An element takes the next block when it is ready with one, so that a visit lasts as long as its matches shared out evenly, or
    as its longest block.
    """
    a, b = operands.a, operands.b
    width = -(-tiling.b[0] // tiling.pe_b[0])
    columns = np.arange(b.columns, dtype=np.int64)
    block_of = columns // tiling.b[0] * width + columns % tiling.b[0] // tiling.pe_b[0]
    return int(
        _blocks(
            a.pointers, a.coordinates, b.pointers, block_of[b.coordinates], width, -(-b.columns // tiling.b[0]),
            a.columns, tiling.a[0], tiling.a[1], tiling.pe_a[0], working(machine, tiling),
        )
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _blocks(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    b_pointers: NDArray[Any],
    b_blocks: NDArray[Any],
    width: int,
    outer_width: int,
    columns: int,
    outer_rows: int,
    outer_k: int,
    inner_rows: int,
    pes: int,
) -> int:
    rows = len(pointers) - 1
    ks = (columns + outer_k - 1) // outer_k
    of_block = np.zeros(ks * outer_width * width, np.int64)
    blocks = np.empty(ks * outer_width * width, np.int64)
    of_visit = np.zeros(ks * outer_width, np.int64)
    longest = np.zeros(ks * outer_width, np.int64)
    visits = np.empty(ks * outer_width, np.int64)
    cycles = 0
    begin = 0
    n_visits = 0
    while begin < rows:
        stop = min(rows, begin + inner_rows, (begin // outer_rows + 1) * outer_rows)
        n = 0
        for p in range(pointers[begin], pointers[stop]):
            c = coordinates[p]
            first = c // outer_k * outer_width * width
            for q in range(b_pointers[c], b_pointers[c + 1]):
                at = first + b_blocks[q]
                if of_block[at] == 0:
                    blocks[n] = at
                    n += 1
                of_block[at] += 1
        for at in blocks[:n]:
            visit = at // width
            if of_visit[visit] == 0:
                visits[n_visits] = visit
                n_visits += 1
            of_visit[visit] += of_block[at]
            longest[visit] = max(longest[visit], of_block[at])
            of_block[at] = 0
        if stop == rows or stop % outer_rows == 0:
            for visit in visits[:n_visits]:
                cycles += max((of_visit[visit] + pes - 1) // pes, longest[visit])
                of_visit[visit] = 0
                longest[visit] = 0
            n_visits = 0
        begin = stop
    return cycles
