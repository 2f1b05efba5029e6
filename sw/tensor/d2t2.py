"""D2T2's statistics of an order-3 tensor and of its matrices. Paper: D2T2, sections 4.3, 4.4."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sw.stats.d2t2 import tile_correlations, tile_statistics
from sw.stats.pattern import Index, Pattern

from .csf import tensor_grid
from .kernels import Problem
from .occupancy import Occupancy, occupancy

__all__ = ["MatrixStatistics", "TensorStatistics", "matrix_statistics", "tensor_statistics"]

# Rows of a matrix whose nonzeros are compared one by one.
MOST_ROWS_INSIDE = 4096
# Rows of a matrix that are compared with others, and how far these are away at most.
MOST_ROWS = 128
MOST_ROW_SHIFTS = 64


@dataclass(frozen=True, eq=False)
class TensorStatistics:
    """Statistics of an order-3 tensor in cubes of ``T``, clipped to its shape.

    Parameters
    ----------
    nonzeros: of the tensor. max_tile, size_tile: the largest and the mean footprint in words.
    levels: what the tiles, their slices and their fibers do; slices and fibers keep their ranks above whole.
    nonzero_occupancy: the same of single nonzeros, along the ranks that are summed over.
    prefixes: of the tiles without their last ranks, down to the first.
    marginals: nonzeros in each coordinate of each rank that is summed over.
    """

    T: int
    nonzeros: int
    max_tile: int
    size_tile: float
    levels: tuple[Occupancy, Occupancy, Occupancy]
    nonzero_occupancy: Occupancy
    prefixes: tuple[Occupancy, Occupancy]
    marginals: tuple[Index, ...]


@dataclass(frozen=True, eq=False)
class MatrixStatistics:
    """Statistics of a matrix in tiles of ``T x T``, clipped to its shape.

    Parameters
    ----------
    nonzeros: of the matrix. max_tile: the largest footprint in words.
    levels: what the tiles and their rows do. row_lengths: nonzeros of each row.
    corrs: Corrs (equation 11) along the rows, the share of a row's nonzeros that the row s further on has too; the last
        entry holds for all longer shifts.
    """

    nonzeros: int
    max_tile: int
    levels: tuple[Occupancy, Occupancy]
    row_lengths: Index
    corrs: NDArray[np.float64]


def matrix_statistics(matrix: Pattern, T: int) -> MatrixStatistics:
    """Collects them: one pass for the tiles, and whole rows of a sample for correlations inside rows and between them."""
    sizes = (matrix.rows, matrix.columns)
    sides = (min(T, matrix.rows), min(T, matrix.columns))
    found = tile_statistics(matrix, T)
    # Columns of a tile that hold something, as if its nonzeros lay anywhere in their rows.
    columns = sides[1] * -math.expm1(found.nonzeros * math.log1p(-1 / sides[1])) if sides[1] > 1 else 1.0
    tiles = Occupancy(
        sizes=sizes,
        sides=sides,
        ranks=(0, 1),
        nonzeros=matrix.nnz,
        cells=found.tiles,
        groups=1,
        distinct={0: found.fibers, 1: columns},
        corrs={0: found.row_corrs, 1: found.column_corrs},
    )
    picked = np.unique(np.linspace(0, matrix.rows - 1, min(matrix.rows, MOST_ROWS_INSIDE)).astype(np.int64))
    lengths = matrix.row_lengths[picked]
    inside = [matrix.coordinates[matrix.pointers[row] : matrix.pointers[row + 1]] for row in picked]
    places = (np.repeat(picked, lengths), np.concatenate(inside))
    rows = occupancy(places, sizes, (1, sides[1]), (1,))
    nonempty = int(np.count_nonzero(matrix.row_lengths))
    rows = replace(rows, nonzeros=matrix.nnz, cells=round(found.fibers * found.tiles), groups=nonempty)
    corrs = tile_correlations(matrix, shifts=MOST_ROW_SHIFTS, most_rows=MOST_ROWS)
    return MatrixStatistics(
        nonzeros=matrix.nnz,
        max_tile=found.max_tile,
        levels=(tiles, rows),
        row_lengths=matrix.row_lengths,
        corrs=np.append(corrs, corrs[(len(corrs) + 1) // 2 :].mean() if len(corrs) > 1 else 0.0),
    )


def tensor_statistics(problem: Problem, T: int) -> TensorStatistics:
    """Collects them: one sort for each level and correlation."""
    columns, shape = problem.columns, problem.shape
    sides = tuple(min(T, size) for size in shape)
    grid = tensor_grid(columns, shape, (sides[0], sides[1], sides[2]))
    words = grid.words
    contracted = tuple(problem.kernel.contracted)
    levels = tuple(
        occupancy(columns, shape, (1,) * level + sides[level:], tuple(range(level, 3))) for level in range(3)
    )
    return TensorStatistics(
        T=T,
        nonzeros=problem.nnz,
        max_tile=int(words.max(initial=0)),
        size_tile=float(words.sum()) / max(1, grid.tiles),
        levels=(levels[0], levels[1], levels[2]),
        nonzero_occupancy=occupancy(columns, shape, (1, 1, 1), contracted),
        prefixes=(
            occupancy(columns[:1], shape[:1], sides[:1], (0,)),
            occupancy(columns[:2], shape[:2], sides[:2], (0, 1)),
        ),
        marginals=tuple(np.bincount(columns[r], minlength=shape[r]).astype(np.int64) for r in contracted),
    )
