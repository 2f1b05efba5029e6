"""How many rows of A a tile should take that keeps rows of B in place: a climb from where half of the buffer is used.

Taller tiles cost less by themselves, until the rows of B that they use leave no room for those of the tile before, and
then for their own. Between the two cycles have one valley, most often; each step is a replay (:mod:`sw.cost.replay`).
"""

from collections.abc import Callable

from sw.cost.predict import Prediction, predict_gathered, work_rows
from sw.cost.protocol import Machine
from sw.cost.replay import RowWork
from sw.cost.sampling import runs_of
from sw.plan.gather import RowPlanError
from sw.plan.plan import plan
from sw.plan.records import tensor_formats
from sw.plan.thresholds import (
    BYPASS_GAIN,
    HEIGHT_FINER,
    HEIGHT_GAIN,
    HEIGHT_RUNS,
    HEIGHT_STEP,
    HEIGHT_TILES_OF_A_RUN,
    MANY_MORE,
    PLANNED_GAIN,
    PLANNED_LEAST,
    SEARCHED,
)
from sw.scheme.scheme import Scheme
from sw.scheme.terms import LOAD_LIST, LOAD_PLANNED, LOAD_REUSE
from sw.stats.workload import Workload

from .resident import FEWEST_ROWS, kept_capacity, kept_scheme

__all__ = ["best_kept", "moves_more"]


class _Costs:
    """Cycles by height, each found once."""

    def __init__(self, cycles: Callable[[int], float], most: int) -> None:
        self._cycles = cycles
        self.most = most
        self.known: dict[int, float] = {}

    def at(self, height: float) -> float:
        """Infinite beyond the heights that there are."""
        T_i = round(height)
        if not FEWEST_ROWS <= T_i <= self.most:
            return float("inf")
        if T_i not in self.known:
            self.known[T_i] = self._cycles(T_i)
        return self.known[T_i]

    def climb(self, start: int) -> int:
        """The height at the bottom of the valley, a step up or down from which gains too little."""
        best, least = float(start), self.at(start)
        while least == float("inf") and best > FEWEST_ROWS:
            best = max(float(FEWEST_ROWS), best / HEIGHT_STEP)
            least = self.at(best)
        for factor in (HEIGHT_STEP, 1 / HEIGHT_STEP):
            began = best
            while self.at(best * factor) < (1 - HEIGHT_GAIN) * least:
                best *= factor
                least = self.at(best)
            if best != began:
                break
        return round(best)

    def finest(self, height: int) -> int:
        """The best of this one and those beside it."""
        return min(
            (height, round(height / HEIGHT_FINER), round(height * HEIGHT_FINER)), key=lambda T_i: (self.at(T_i), T_i)
        )


def _start(workload: Workload, capacity: int, lanes: int) -> int:
    """Rows of A that use half of the capacity, were all the rows of B that they use different ones."""
    height = capacity * lanes * workload.I / 2 / max(1.0, workload.effmac + workload.a.nnz)
    return int(max(FEWEST_ROWS, min(workload.I // 2, height)))


def _part(workload: Workload, rows: RowWork) -> tuple[RowWork, int]:
    """Rows that the climb looks at, and the tallest tiles that these say anything of."""
    tallest = workload.I // 2
    if workload.a.nnz <= MANY_MORE * SEARCHED:
        return rows, tallest
    run = max(1, workload.I * SEARCHED // (HEIGHT_RUNS * workload.a.nnz))
    return rows.of(runs_of(workload.I, HEIGHT_RUNS * run, run)), max(
        FEWEST_ROWS, min(tallest, run // HEIGHT_TILES_OF_A_RUN)
    )


def moves_more(workload: Workload, design: Machine, found: Prediction) -> bool:
    """Whether so much of B moves more than once that planned places may be worth their list."""
    used = int(workload.b.row_lengths[workload.uses > 0].sum())
    once = tensor_formats(design, workload.K, workload.J)["B"].sizes(0, used)["elements"]
    return found.traffic["b_data"] - once > PLANNED_LEAST * found.dram_bytes


def best_kept(
    policy: str, workload: Workload, design: Machine, *, judged: bool = False, load: str | None = None
) -> list[tuple[Scheme, Prediction]]:
    """The schemes of the fewest predicted cycles whose tiles load what they use, the cheapest first: where all of it stays, and
    where only that stays which is used again in time, or each row has a planned place, if these are cheaper; not validated.

    None where A has fewer than two times ``FEWEST_ROWS`` rows or no elements, where the design's buffer has no
    default partition, and where even few rows of A use more rows of B than there is room for their metadata.

    Parameters
    ----------
    policy: name that the scheme carries.
    workload: the operands, A of I x K and B of K x J.
    judged: the model tier looks at all of them, so that rows that go by, or have places, need not be better by a margin.
    load: the only one of ``GATHERS`` that is asked for.
    """
    capacity = kept_capacity(workload, design)
    if capacity == 0:
        return []
    rows = work_rows(workload, design)
    known: dict[tuple[int, str], Prediction | None] = {}  # of all rows

    def predicted(T_i: int, of: RowWork, load: str = LOAD_LIST) -> Prediction | None:
        """None where a tile uses too many rows."""
        if of is rows and (T_i, load) in known:
            return known[T_i, load]
        try:
            scheme = kept_scheme(policy, workload, design, T_i, load)
            planned = plan(scheme, of.a, workload.b, design, with_places=False)
            found = predict_gathered(workload, design, planned, of)
        except RowPlanError:
            found = None
        if of is rows:
            known[T_i, load] = found
        return found

    def cycles(T_i: int, of: RowWork, load: str = LOAD_LIST) -> float:
        found = predicted(T_i, of, load)
        return float("inf") if found is None else float(found.cycles)

    part, most = _part(workload, rows)
    some = _Costs(lambda T_i: cycles(T_i, part), most)
    T_i = some.climb(min(_start(workload, capacity, design.lanes), most))
    whole = some if part is rows else _Costs(lambda T_i: cycles(T_i, rows), workload.I // 2)
    if whole is not some and HEIGHT_STEP * T_i > most:
        T_i = whole.climb(T_i)  # the valley may lie beyond
    T_i = whole.finest(T_i)

    def lowest(load: str, first: int) -> tuple[int, float]:
        """The best height of another kind, looked for from ``first`` on, and its cycles. Rows that go by take no lines, so
        tiles may be lower, or taller. Plans of places take long: of many rows only some are looked at."""
        looked, tallest = (part, most) if load == LOAD_PLANNED else (rows, workload.I // 2)
        costs = _Costs(lambda T_i: cycles(T_i, looked, load), tallest)
        # Where there are few rows all of it is tried.
        starts = (first, T_i, costs.most) if part is rows else (min(first, tallest),)
        height = min((costs.climb(start) for start in starts), key=costs.at)
        return height, costs.at(height) if looked is rows else cycles(height, rows, load)

    if load not in (None, LOAD_LIST):
        height, _ = lowest(load, max(FEWEST_ROWS, T_i // 4))
        only = predicted(height, rows, load)
        return [] if only is None else [(kept_scheme(policy, workload, design, height, load), only)]
    prediction = predicted(T_i, rows)
    if prediction is None:
        return []
    found = [(kept_scheme(policy, workload, design, T_i), prediction)]
    if load == LOAD_LIST:
        return found
    for kind, gain in ((LOAD_REUSE, BYPASS_GAIN), (LOAD_PLANNED, PLANNED_GAIN)):
        if kind == LOAD_PLANNED and not moves_more(workload, design, found[0][1]):
            continue
        height, by = lowest(kind, max(FEWEST_ROWS, found[0][0].T_i // 4))
        least = (1 - (0 if judged else gain)) * found[0][1].cycles
        if by < least and (other := predicted(height, rows, kind)) is not None:
            found.insert(0, (kept_scheme(policy, workload, design, height, kind), other))
    return found
