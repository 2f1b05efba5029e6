"""Candidates before the model tier: whole where that is cheap, on some rows of A where it is not."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sw.cost.predict import Prediction, predict
from sw.cost.protocol import Machine
from sw.cost.sampling import rows_of, runs_of
from sw.plan.thresholds import FEWEST_RUNS, FEWEST_STRETCHES, NEARLY_ALL, RUN_OF_ROWS, STRETCH, UNITS_A_TILE
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload

__all__ = ["NEARLY_ALL", "Bench", "Judge", "work_units"]

# Cycles of a scheme for a pair of patterns, by the model tier; who composes the parts of the program hands it in.
Judge = Callable[[Scheme, Pattern, Pattern], int]


def work_units(workload: Workload, scheme: Scheme, prediction: Prediction) -> float:
    """Effort of running the model once, in effectual MACs: all of them, and each visited tile's rows of A and of B."""
    rows = min(scheme.T_i, workload.I) + (0 if scheme.gathers else workload.K)
    return 2 * workload.effmac + prediction.tiles * (UNITS_A_TILE + 4.0 * rows)


@dataclass(frozen=True)
class Bench:
    """Judges schemes for one pair of operands.

    Parameters
    ----------
    workload, design, judge: the operands, the machine and the model.
    units: effort that one judgement may cost (:func:`work_units`).

    A scheme that costs more is run on a part of A's rows, taken evenly: whole i tiles where i is cut, else runs of
    ``RUN_OF_ROWS``. What loading B costs does not depend on the rows unless i is outermost; the rest follows them. Where tiles
    load what they use, the first ones of a part load more than they do among all rows. A replay has the same error there, so its
    cycles for all rows are corrected by how far it is from the model on the part.
    """

    workload: Workload
    design: Machine
    judge: Judge
    units: float

    def share(self, scheme: Scheme, prediction: Prediction) -> float:
        """Share of A's rows that the budget allows; 0 where even the tiles alone are too much."""
        whole = work_units(self.workload, scheme, prediction)
        if scheme.T_i < self.workload.I or scheme.strips:
            return min(1.0, self.units / whole)  # tiles are fewer where there are fewer rows
        tiles = prediction.tiles * (UNITS_A_TILE + 4.0 * self.workload.K)
        return min(1.0, max(0.0, (self.units - tiles) / max(1.0, whole - tiles)))

    def cycles(self, scheme: Scheme, prediction: Prediction, share: float) -> float:
        """Cycles by the model, and of the conversions; extrapolated where ``share`` of the rows is below 1."""
        return self._cycles(scheme, prediction, share) + prediction.time.get("convert", 0)

    def _cycles(self, scheme: Scheme, prediction: Prediction, share: float) -> float:
        """Of the run alone."""
        workload = self.workload
        cut = scheme.T_i < workload.I
        # Tiles that find in place what those before them loaded are taken in stretches.
        run = scheme.T_i * (STRETCH if scheme.gathers else 1) if cut else RUN_OF_ROWS
        rows = (
            workload.I
            if share >= 1
            else max((FEWEST_STRETCHES if scheme.gathers else FEWEST_RUNS) * run, int(workload.I * share))
        )
        if rows >= NEARLY_ALL * workload.I:
            return float(self.judge(scheme, workload.a, workload.b))
        picked = runs_of(workload.I, rows, run)
        sample = rows_of(workload.a, picked)
        if not cut:
            scheme = replace(scheme, T_i=sample.rows)
        found = self.judge(scheme, sample, workload.b)
        if scheme.gathers:
            same = Workload(
                sample, workload.b, lanes=workload.lanes, statistics=workload.statistics, seed=workload.seed
            )
            whole = prediction.cycles - prediction.time.get("convert", 0)
            return whole * found / max(1, predict(same, self.design, scheme).cycles)
        part = float(workload.row_macs[picked].sum()) / max(1.0, workload.effmac)
        once = (
            0
            if cut and scheme.order[0] == "i"
            else prediction.time["load"] + (0 if cut else prediction.time["overhead"])
        )
        fixed = min(found, once)
        return fixed + (found - fixed) / max(part, 1e-9)
