"""Exact traffic of a static tiling of TTM or MTTKRP with CSF footprints, as D2T2 measures it. Paper: D2T2, sections 5.3, 6.

The machine is that of :mod:`sw.stats.tiled_traffic`: tiles of all operands are multiplied when each of them holds something;
a tile is read again whenever something outside the innermost of its own moving ranks has moved; each product of tiles leaves
as a CSF tile of its own and is added up in memory. The product is never built: memory is that of the operands.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.csf import WORD_BYTES, TileGrid, largest_tile, tile_grid
from sw.stats.pattern import Index
from sw.stats.symbolic import in_parallel

from .csf import TensorGrid, tensor_grid
from .kernels import Problem, Sides

__all__ = ["TensorTraffic", "largest_words", "tensor_traffic"]


@dataclass(frozen=True)
class TensorTraffic:
    """Bytes with all metadata of the tensor, of each matrix and of the output.

    ``visits``: combinations of tiles that all hold something; ``macs``: products summed up in them.
    """

    tensor: float
    matrices: tuple[float, ...]
    output: float
    visits: float
    macs: float

    @property
    def total(self) -> float:
        return self.tensor + sum(self.matrices) + self.output


def largest_words(problem: Problem, sides: Sides) -> tuple[int, ...]:
    """Footprint of the largest tile of the tensor and of each matrix."""
    grid = tensor_grid(problem.columns, problem.shape, sides[:3])
    found = [int(grid.words.max(initial=0))]
    for rank, matrix in zip(problem.kernel.contracted, problem.matrices, strict=True):
        found.append(largest_tile(matrix, sides[rank], sides[3]))
    return tuple(found)


def tensor_traffic(problem: Problem, sides: Sides) -> TensorTraffic:
    """Exact traffic of tiles ``sides``, in the kernel's order of ranks, which is also the inter-tile order."""
    kernel = problem.kernel
    grid = tensor_grid(problem.columns, problem.shape, sides[:3])
    grids = [
        tile_grid(matrix, sides[rank], sides[3])
        for rank, matrix in zip(kernel.contracted, problem.matrices, strict=True)
    ]
    met, words = _meetings(grid, grids, kernel.kept)
    moving = [count > 1 for count in (*grid.counts, grids[0].columns_of_tiles)]
    matrices = []
    for number, rank in enumerate(kernel.contracted):
        if moving[3]:
            read = int(words[:, number].sum())
        else:
            read = _held(grid, grids[number], met, rank, moving)
        matrices.append(WORD_BYTES * read)
    counts = _products(problem, grid, sides[3])
    nonzeros, macs, levels = int(counts[0]), int(counts[1]), [int(count) for count in counts[2:]]
    # A level of fibers for each kept rank, one more of nonzeros; values and coordinates of the nonzeros.
    out = 2 * nonzeros + 2 * sum(levels[1:]) + (kernel.kept + 2) * levels[0]
    return TensorTraffic(
        WORD_BYTES * int(grid.words[met > 0].sum()), tuple(matrices), WORD_BYTES * out, int(met.sum()), macs
    )


def _meetings(grid: TensorGrid, grids: list[TileGrid], kept: int) -> tuple[Index, NDArray[np.int64]]:
    """For each tile of A the tiles along the free rank that it meets, and the words of each matrix's tiles there."""
    first = grids[0]
    words = np.zeros((grid.tiles, len(grids)), np.int64)
    if len(grids) == 1:
        rows = grid.places[:, kept]
        words[:, 0] = _row_sums(first, first.words)[rows]
        return np.diff(first.pointers)[rows], words
    second = grids[1]
    met = np.asarray(
        _common(
            grid.places[:, kept], grid.places[:, kept + 1], first.pointers, first.columns, first.words,
            second.pointers, second.columns, second.words, first.columns_of_tiles, words,
        )
    )  # fmt: skip
    return met, words


def _row_sums(grid: TileGrid, values: Index) -> Index:
    total = np.concatenate([[0], np.cumsum(values)])
    found: Index = total[grid.pointers[1:]] - total[grid.pointers[:-1]]
    return found


def _held(grid: TensorGrid, matrix: TileGrid, met: Index, rank: int, moving: list[bool]) -> int:
    """Words read of a matrix with one tile along the free rank: its tile stays while ranks inside its row rank move."""
    used = grid.places[met > 0]
    sums = _row_sums(matrix, matrix.words)
    if not moving[rank]:
        return int(sums[0]) if len(used) else 0
    prefix = used[:, : rank + 1]
    new = np.ones(len(prefix), np.bool_)
    new[1:] = (prefix[1:] != prefix[:-1]).any(axis=1)
    return int(sums[prefix[new, rank]].sum())


@njit(cache=True, nogil=True)
def _common(
    rows_1: NDArray[Any],
    rows_2: NDArray[Any],
    ptr_1: NDArray[Any],
    idx_1: NDArray[Any],
    words_1: NDArray[Any],
    ptr_2: NDArray[Any],
    idx_2: NDArray[Any],
    words_2: NDArray[Any],
    width: int,
    words: NDArray[Any],
) -> NDArray[np.int64]:
    """Tiles along the free rank that both rows of tiles hold; fills in the words of both there."""
    met = np.zeros(len(rows_1), np.int64)
    stamp = np.full(width, -1, np.int64)
    at = np.zeros(width, np.int64)
    before = np.int64(-1)
    generation = np.int64(-1)
    for n in range(len(rows_1)):
        if rows_1[n] != before:
            before = rows_1[n]
            generation += 1
            for p in range(ptr_1[before], ptr_1[before + 1]):
                stamp[idx_1[p]] = generation
                at[idx_1[p]] = words_1[p]
        for p in range(ptr_2[rows_2[n]], ptr_2[rows_2[n] + 1]):
            if stamp[idx_2[p]] == generation:
                met[n] += 1
                words[n, 0] += at[idx_2[p]]
                words[n, 1] += words_2[p]
    return met


def _products(problem: Problem, grid: TensorGrid, side: int) -> NDArray[np.int64]:
    """Nonzeros of all partial products, MACs, then tiles and the nonempty fibers of each kept rank."""
    kept = problem.kernel.kept
    first, last = problem.matrices[0], problem.matrices[-1]
    rows = problem.columns[kept][grid.order], problem.columns[2][grid.order]
    two = len(problem.matrices) > 1

    def part(begin: int, end: int) -> NDArray[np.int64]:
        span = slice(grid.begins[begin], grid.begins[end])
        return np.asarray(
            _count(
                grid.change[span], rows[0][span], rows[1][span], first.pointers, first.coordinates, last.pointers,
                last.coordinates, two, first.columns, side, kept,
            )
        )  # fmt: skip

    if not grid.tiles:
        return np.zeros(3 + kept, np.int64)
    return in_parallel(part, grid.tiles)


@njit(cache=True, nogil=True)
def _count(
    change: NDArray[Any],
    rows_1: NDArray[Any],
    rows_2: NDArray[Any],
    ptr_1: NDArray[Any],
    idx_1: NDArray[Any],
    ptr_2: NDArray[Any],
    idx_2: NDArray[Any],
    two: bool,
    width: int,
    side: int,
    kept: int,
) -> NDArray[np.int64]:
    found = np.zeros(3 + kept, np.int64)
    seen = np.full(width, -1, np.int64)
    tiles = np.full((kept + 1, (width + side - 1) // side), -1, np.int64)
    generations = np.zeros(kept + 1, np.int64)
    generations[:] = -1
    for n in range(len(change)):
        for level in range(min(change[n], kept + 1), kept + 1):
            generations[level] += 1
        p, p_end = ptr_1[rows_1[n]], ptr_1[rows_1[n] + 1]
        q, q_end = ptr_2[rows_2[n]], ptr_2[rows_2[n] + 1]
        while p < p_end and (not two or q < q_end):
            x = idx_1[p]
            if two:
                if idx_2[q] < x:
                    q += 1
                    continue
                if idx_2[q] > x:
                    p += 1
                    continue
                q += 1
            p += 1
            found[1] += 1
            if seen[x] == generations[kept]:
                continue
            seen[x] = generations[kept]
            found[0] += 1
            tile = x // side
            for level in range(kept + 1):
                if tiles[level, tile] != generations[level]:
                    tiles[level, tile] = generations[level]
                    found[2 + level] += 1
    return found
