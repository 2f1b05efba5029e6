"""Candidates before the model tier: whole where that is cheap, on some rows of A where it is not."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sw.stats.pattern import Index, Pattern
from sw.stats.workload import Workload

from .cost import Prediction
from .scheme import Scheme

__all__ = ["Bench", "Judge", "work_units"]

# Cycles of a scheme for a pair of patterns, by the model tier; who composes the parts of the program hands it in.
Judge = Callable[[Scheme, Pattern, Pattern], int]

# Rows are sampled in runs of this many, so that what neighbours share stays together.
RUN_OF_ROWS = 32
# What visiting a tile costs the model beside its MACs and rows, in MACs: about a millisecond.
UNITS_A_TILE = 1 << 18


def work_units(work: Workload, scheme: Scheme, prediction: Prediction) -> float:
    """Effort of running the model once, in effectual MACs: all of them, and each visited tile's rows of A and of B."""
    rows = min(scheme.T_i, work.I) + work.K
    return 2 * work.effmac + prediction.tiles * (UNITS_A_TILE + 4.0 * rows)


@dataclass(frozen=True)
class Bench:
    """Judges schemes for one pair of operands.

    Parameters
    ----------
    work, judge: the operands, and the model. units: effort that one judgement may cost (:func:`work_units`).

    A scheme that costs more is run on an even sample of runs of rows of A. Loading B costs then what it costs with all
    rows; the rest follows the rows. i tiles shrink with the sample, so that there are as many as before.
    """

    work: Workload
    judge: Judge
    units: float

    def share(self, scheme: Scheme, prediction: Prediction) -> float:
        """Share of A's rows that the budget allows; 0 where even the tiles alone are too much."""
        tiles = prediction.tiles * (UNITS_A_TILE + 4.0 * self.work.K)
        rest = work_units(self.work, scheme, prediction) - tiles
        return min(1.0, max(0.0, (self.units - tiles) / max(1.0, rest)))

    def cycles(self, scheme: Scheme, prediction: Prediction, share: float) -> float:
        """Cycles by the model; extrapolated where ``share`` of the rows is below 1."""
        work = self.work
        rows = work.I if share >= 1 else max(RUN_OF_ROWS, int(work.I * share))
        if rows >= work.I:
            return float(self.judge(scheme, work.a, work.b))
        sample = rows_of(work.a, rows)
        part = sample.nnz / max(1, work.a.nnz)
        T_i = max(1, min(sample.rows, round(scheme.T_i * sample.rows / work.I)))
        found = self.judge(replace(scheme, T_i=T_i), sample, work.b)
        fixed = min(found, prediction.time["load"] + prediction.time["overhead"])
        return fixed + (found - fixed) / max(part, 1e-9)


def rows_of(matrix: Pattern, rows: int) -> Pattern:
    """About so many of its rows, as a matrix: runs of neighbours at regular distances."""
    runs = max(1, rows // RUN_OF_ROWS)
    starts = np.unique(np.linspace(0, max(0, matrix.rows - RUN_OF_ROWS), runs).astype(np.int64))
    picked: Index = np.unique((starts[:, None] + np.arange(RUN_OF_ROWS)).ravel())
    picked = picked[picked < matrix.rows]
    lengths = matrix.row_lengths[picked]
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    within = np.arange(pointers[-1]) - np.repeat(pointers[:-1], lengths)
    return Pattern(
        len(picked), matrix.columns, pointers, matrix.coordinates[np.repeat(matrix.pointers[picked], lengths) + within]
    )
