"""A few whole rows of C: how its nonzeros lie together, which counts alone do not show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .nnzc import OutputCounts, powers_of_two
from .pattern import Index, Pattern
from .symbolic import count_rows, symbolic_product, weighed_bits_of_k

__all__ = ["OutputRows", "nnz_by_macs", "nnz_of_groups", "rows_by_macs", "rows_of_counts", "sample_output_rows"]

# Rows drawn by their MACs at least, however many these have.
FEWEST_ROWS = 16


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Whole rows of C: ``row`` rising, ``column`` rising in a row, ``first_k``; each row stands for ``weight`` rows.

    ``weight``: one for all, or float64[nonzeros], the same for all nonzeros of a row.
    """

    row: Index
    column: Index
    first_k: Index
    weight: float | NDArray[np.float64]

    def fibers(self, T_j: int, T_k: int, steps: int) -> tuple[float, float]:
        """Nonempty fibers of C cut into j tiles: how many, and how often they leave before the last of the k steps."""
        if len(self.row) == 0:
            return 0.0, 0.0
        tile = self.column // T_j
        fresh = np.ones(len(tile), np.bool_)
        fresh[1:] = (tile[1:] != tile[:-1]) | (self.row[1:] != self.row[:-1])
        begins = np.flatnonzero(fresh)
        first = np.minimum.reduceat(self.first_k, begins) // T_k
        if isinstance(self.weight, float):
            return len(first) * self.weight, float(np.sum(steps - 1 - first)) * self.weight
        weight = self.weight[begins]
        return float(weight.sum()), float((steps - 1 - first) @ weight)


def sample_output_rows(A: Pattern, B: Pattern, macs: Index, budget: int) -> OutputRows:
    """Rows at regular distances from the list sorted by ``macs``, as many as their products fit the budget."""
    filled = np.flatnonzero(macs)
    ordered = filled[np.argsort(macs[filled], kind="stable")]
    mean = max(1.0, float(macs.sum()) / max(1, len(filled)))
    wanted = int(min(len(filled), max(16, budget / mean)))
    picked = np.sort(ordered[np.linspace(0, len(filled) - 1, wanted).astype(np.int64)]) if wanted else filled
    pointers, coordinates = _picked(A, picked)
    row, column, first_k = symbolic_product(pointers, coordinates, B.pointers, B.coordinates, B.columns)
    order = np.lexsort((column, row))
    return OutputRows(row[order], column[order], first_k[order], len(filled) / wanted if wanted else 1.0)


def _drawn(macs: Index, budget: int) -> tuple[Index, NDArray[np.float64]]:
    """Rows drawn evenly by their share of all MACs, and how many rows like it each stands for."""
    total = int(macs.sum())
    if total <= budget:
        picked = np.flatnonzero(macs)
        return picked, np.ones(len(picked))
    each = macs.astype(np.float64)
    draws = max(FEWEST_ROWS, int(budget * total / float(each @ each)))
    middle = (np.arange(draws) + 0.5) * (total / draws)
    picked, times = np.unique(
        np.searchsorted(np.cumsum(macs), middle.astype(np.int64), side="right"), return_counts=True
    )
    return picked, times * (total / draws) / each[picked]


def nnz_by_macs(A: Pattern, B: Pattern, macs: Index, budget: int) -> float:
    """Nonzeros of C from some of its rows, each standing for as many MACs; exact where the budget is enough for all rows.

    Parameters
    ----------
    A, B: I x K and K x J. macs: int64[I], of each row. budget: MACs that are computed, about; ``FEWEST_ROWS`` rows at least.
    """
    picked, stands_for = _drawn(macs, budget)
    counts = count_rows(A.pointers, A.coordinates, B.pointers, B.coordinates, B.columns, picked)
    return float(counts @ stands_for)


def nnz_of_groups(
    A: Pattern, B: Pattern, macs: Index, radix: int, budget: int
) -> tuple[Index, Index, NDArray[np.float64]]:
    """Rows drawn as in :func:`nnz_by_macs`, nonzeros of the results of their groups together, and how many rows each stands for.

    A group is ``radix`` nonzeros of A, in their order: what is merged at a time. ``macs``: int64[I], 0 for rows left out.
    """
    picked, stands_for = _drawn(macs, budget)
    pointers, coordinates = _picked(A, picked)
    groups = -(-np.diff(pointers) // radix)
    first = np.cumsum(groups) - groups  # of each row
    within = np.arange(int(groups.sum())) - np.repeat(first, groups)
    begins = np.append(np.repeat(pointers[:-1], groups) + radix * within, pointers[-1])
    counts = count_rows(begins, coordinates, B.pointers, B.coordinates, B.columns, np.arange(len(begins) - 1))
    of_rows: Index = np.add.reduceat(counts, first) if len(picked) else counts
    return picked, of_rows, stands_for


def rows_by_macs(A: Pattern, B: Pattern, macs: Index, budget: int, nnz: float) -> OutputCounts:
    """The same rows with all their statistics, for a C of ``nnz`` nonzeros (:func:`nnz_by_macs`)."""
    picked, stands_for = _drawn(macs, budget)
    pointers, coordinates = _picked(A, picked)
    row, column, first_k = symbolic_product(pointers, coordinates, B.pointers, B.coordinates, B.columns)
    weight = stands_for[row]
    weight *= nnz / max(1.0, float(weight.sum()))
    tiles_k = powers_of_two(A.columns)
    by_bits = weighed_bits_of_k(pointers, coordinates, B.pointers, B.coordinates, B.columns, stands_for)
    counts = np.array([by_bits[s + 1 :].sum() for s in range(len(tiles_k))])
    counts *= nnz / max(1.0, float(counts[-1]))
    return OutputCounts(A.columns, tiles_k, counts, picked[row], column, first_k, weight)


def rows_of_counts(counts: OutputCounts) -> OutputRows:
    """The sample of :func:`rows_by_macs`, row by row."""
    order = np.lexsort((counts.columns, counts.rows))
    assert not isinstance(counts.weight, float)
    return OutputRows(counts.rows[order], counts.columns[order], counts.first_k[order], counts.weight[order])


def _picked(A: Pattern, rows: Index) -> tuple[Index, Index]:
    """Pointers and coordinates of these rows alone."""
    lengths = A.row_lengths[rows]
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    within = np.arange(pointers[-1]) - np.repeat(pointers[:-1], lengths)
    return pointers, A.coordinates[np.repeat(A.pointers[rows], lengths) + within]
