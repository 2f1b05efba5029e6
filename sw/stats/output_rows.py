"""A few whole rows of C: how its elements lie together, which counts of elements do not tell."""

from dataclasses import dataclass

import numpy as np

from .pattern import Index, Pattern
from .symbolic import symbolic_product

__all__ = ["OutputRows", "sample_output_rows"]


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Whole rows of C: ``row`` rising, ``column`` rising in a row, ``first_k``; each row stands for ``weight`` rows."""

    row: Index
    column: Index
    first_k: Index
    weight: float

    def fibers(self, T_j: int, T_k: int, steps: int) -> tuple[float, float]:
        """Nonempty fibers of C cut into j tiles: how many, and how often they leave before the last of the k steps."""
        if len(self.row) == 0:
            return 0.0, 0.0
        tile = self.column // T_j
        fresh = np.ones(len(tile), np.bool_)
        fresh[1:] = (tile[1:] != tile[:-1]) | (self.row[1:] != self.row[:-1])
        first = np.minimum.reduceat(self.first_k, np.flatnonzero(fresh)) // T_k
        return len(first) * self.weight, float(np.sum(steps - 1 - first)) * self.weight


def sample_output_rows(A: Pattern, B: Pattern, macs: Index, budget: int) -> OutputRows:
    """Rows at regular distances from the list sorted by ``macs``, as many as their products fit the budget."""
    filled = np.flatnonzero(macs)
    ordered = filled[np.argsort(macs[filled], kind="stable")]
    mean = max(1.0, float(macs.sum()) / max(1, len(filled)))
    wanted = int(min(len(filled), max(16, budget / mean)))
    picked = np.sort(ordered[np.linspace(0, len(filled) - 1, wanted).astype(np.int64)]) if wanted else filled
    lengths = A.row_lengths[picked]
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    within = np.arange(pointers[-1]) - np.repeat(pointers[:-1], lengths)
    coordinates = A.coordinates[np.repeat(A.pointers[picked], lengths) + within]
    row, column, first_k = symbolic_product(pointers, coordinates, B.pointers, B.coordinates, B.columns)
    order = np.lexsort((column, row))
    return OutputRows(row[order], column[order], first_k[order], len(filled) / wanted if wanted else 1.0)
