"""Other rules of dynamic tuning than the hardware's, in the model alone: HYTE's text, and what its published simulator does.

The tuning unit decides by hit rates (:mod:`sw.golden.tuning`), and no schedule can tell it otherwise. These rules say what
another unit would give. Counters, legal changes and when a change takes effect are the hardware's.
"""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sw.cost.predict import Prediction, predict
from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.golden.partition import Capacity
from sw.golden.tuning import BETTER_THAN, CANDIDATES, OUT_OF, STAY, Counts, scores
from sw.plan.plan import Plan
from sw.plan.thresholds import TUNING_HYSTERESIS
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.stats.tiled_traffic import reads_again
from sw.stats.workload import Workload

from .machine import Run
from .walk import Rule

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["ByCost", "run_with_rule", "text_rule"]


def run_with_rule(design: "Design", planned: Plan[Csr], rule: Rule) -> EngineResult:
    """:func:`sw.model.machine.run_model` of a scheme with tuning, under another rule. Raises ValueError for one without."""
    run = Run(design, planned)
    if run.tuning is None:
        raise ValueError("the scheme must have tuning for a rule to decide anything")
    run.tuning = replace(run.tuning, rule=rule)
    return run.result()


def text_rule(
    counts: Counts, capacities: Mapping[int, Capacity], legal: Container[tuple[int, int]], sides: tuple[int, int]
) -> tuple[int, int]:
    """HYTE 6.4 to the letter: the best hit rate of the nine, where it is more than 5 % better than the present one."""
    score = scores(counts, capacities)
    best = max((c for c in CANDIDATES if c in legal or c == STAY), key=lambda c: (score[c], c == STAY))
    return best if OUT_OF * score[best] > BETTER_THAN * score[STAY] else STAY


class ByCost:
    """As HYTE's published simulator tunes: the cost model is asked for each of the nine shapes, with the measured hit rate.

    Parameters
    ----------
    workload, design, scheme: what the cost model asks. The counts are averaged over all tiles since the shape changed.

    A shape is taken if it costs less than the present one by a tenth of its own cost.
    """

    def __init__(self, workload: Workload, design: "Design", scheme: Scheme) -> None:
        self.workload, self.design = workload, design
        self.scheme = replace(scheme, tuning=False)
        self._sides = (0, 0)
        self._sums = [0, 0, 0, 0]
        self._tiles = 0
        self._known: dict[tuple[int, int], Prediction | None] = {}

    def __call__(
        self,
        counts: Counts,
        capacities: Mapping[int, Capacity],
        legal: Container[tuple[int, int]],
        sides: tuple[int, int],
    ) -> tuple[int, int]:
        if sides != self._sides:
            self._sides, self._sums, self._tiles = sides, [0, 0, 0, 0], 0
        self._tiles += 1
        self._sums = [s + c for s, c in zip(self._sums, counts, strict=True)]
        c00, c01, c10, c11 = (round(s / self._tiles) for s in self._sums)
        total = c00 + c01 + c10 + c11
        if total == 0:
            return STAY
        score = scores((c00, c01, c10, c11), capacities)
        costs = {c: self._cost(c, score[c] / (4 * total)) for c in CANDIDATES if c in legal or c == STAY}
        best = min(costs, key=lambda c: (costs[c], c != STAY))
        return best if TUNING_HYSTERESIS * costs[best] < costs[STAY] else STAY

    def _cost(self, change: tuple[int, int], hit_rate: float) -> float:
        """Cycles of the run in tiles of the changed shape, B's nonzeros moving as that hit rate has it."""
        k, j = (2.0**c for c in change)
        T_k = min(self.workload.K, int(self._sides[0] * k))
        T_j = min(self.workload.J, int(self._sides[1] * j))
        prediction = self._predicted(T_j, T_k)
        if prediction is None:
            return float("inf")
        counts = dict(zip("ijk", (-(-self.workload.I // self.scheme.T_i), -(-self.workload.J // T_j),
                                  -(-self.workload.K // T_k)), strict=True))  # fmt: skip
        loads = counts["i"] if reads_again(self.scheme.order, counts)["B"] else 1
        nonzeros = loads * self.workload.b.nnz * hit_rate + self.workload.effmac * (1 - hit_rate)
        more = (ELEMENT_BYTES * nonzeros - prediction.traffic["b_data"]) / self.design.dram_bytes_per_cycle
        time = prediction.time
        moving = max(0.0, time["load"] + time["dram"] + more)
        working = max(time[part] for part in ("pe", "front", "sram", "rows"))
        return max(moving, time["load"] + working) + time["assembly"] + time["overhead"]

    def _predicted(self, T_j: int, T_k: int) -> Prediction | None:
        """None of a shape that is not legal."""
        if (T_j, T_k) not in self._known:
            scheme = replace(self.scheme, T_j=T_j, T_k=T_k)
            try:
                scheme.validate(self.design, self.workload.I, self.workload.J, self.workload.K)
                self._known[T_j, T_k] = predict(self.workload, self.design, scheme)
            except SchemeError:
                self._known[T_j, T_k] = None
        return self._known[T_j, T_k]
