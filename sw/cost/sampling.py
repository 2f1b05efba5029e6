"""Some rows of an operand as an operand of its own."""

import numpy as np

from sw.stats.pattern import Index, Pattern

__all__ = ["rows_of", "runs_of"]


def runs_of(size: int, rows: int, run: int) -> Index:
    """About ``rows`` of ``size`` rows: runs of ``run`` neighbours at regular distances, cut where tiles would be."""
    count = -(-size // run)
    starts = run * np.unique(np.linspace(0, count - 1, max(1, min(count, -(-rows // run)))).astype(np.int64))
    picked: Index = (starts[:, None] + np.arange(run)).ravel()
    return picked[picked < size]


def rows_of(matrix: Pattern, picked: Index) -> Pattern:
    """These rows as a matrix."""
    lengths = matrix.row_lengths[picked]
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    within = np.arange(pointers[-1]) - np.repeat(pointers[:-1], lengths)
    positions = np.repeat(matrix.pointers[picked], lengths) + within
    return Pattern(len(picked), matrix.columns, pointers, matrix.coordinates[positions])
