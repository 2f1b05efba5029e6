"""The policies for weight-stationary designs: a tile has as many columns as there are PEs, which keep them.

Papers: MINT and SAGE, section IV (what stays and what passes); Tailors, section 3.3 (columns that overflow). i is whole, so that
each column of B is read once. What is left to decide is where k is cut, and what of A and B is kept on chip.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from sw.cost.candidates.evaluator import Judge
from sw.cost.candidates.stationary import stationary_scheme
from sw.cost.protocol import Machine
from sw.cost.stationary import entries_of_nonzero, predict_stationary
from sw.plan.thresholds import FINALISTS_OF_DATAFLOWS, SIDES_ALIKE
from sw.scheme.errors import SchemeError
from sw.scheme.rules import check
from sw.scheme.scheme import Scheme
from sw.stats.occupancy import fits
from sw.stats.workload import Workload

__all__ = ["auto", "candidates", "fitting_side", "uniform"]

# What may be kept on chip; without B its columns go from memory to the PEs.
KEPT: tuple[set[str], ...] = (set(), {"A"}, {"B"}, {"A", "B"}, {"A", "B", "C"}, {"B", "C"})


def uniform(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """The highest tiles whose columns would fit the PEs' buffers if they were full. No options."""
    _refuse("uniform", options)
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    extent = (workload.I, workload.J, workload.K)
    side = min(workload.K, design.pe.buffer_entries // entries_of_nonzero(workload))
    kept = {"B"} if side < workload.K else set()
    found = stationary_scheme("uniform", design, extent, "jik", (workload.I, design.pe.count, side), kept)
    return _predicted(found, workload, design)


def auto(
    A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, judge: Judge | None = None, **options: Any
) -> Scheme:
    """The best by the model tier of the few that are best by the cost model, which decides where there is no model tier.

    No options.
    """
    _refuse("auto", options)
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    ranked = sorted(
        (_predicted(scheme, workload, design) for scheme in candidates(workload, design)),
        key=lambda scheme: (scheme.predicted["cycles"], scheme.predicted["dram_bytes"]),
    )
    return _best(ranked[:FINALISTS_OF_DATAFLOWS], workload, judge)


def candidates(workload: Workload, design: Machine) -> Iterator[Scheme]:
    """Legal schemes: k whole, cut at powers of two down to full columns that fill half a PE's buffer, and where all fit."""
    extent = (workload.I, workload.J, workload.K)
    least = design.pe.buffer_entries // entries_of_nonzero(workload)
    sides = {1 << n for n in range((least // 2).bit_length() - 1, workload.K.bit_length())} | {
        fitting_side(workload, least)
    }
    for side in (workload.K, *sorted(side for side in sides if side < workload.K)):
        tile = (workload.I, design.pe.count, side)
        orders = ("jik",) if side == workload.K else ("jik", "kij")
        for order in orders:
            for kept in KEPT:
                if "C" in kept and side == workload.K:
                    continue
                try:
                    found = stationary_scheme("auto", design, extent, order, tile, kept)
                    check(found, design, extent)
                except SchemeError:
                    continue
                yield found


def fitting_side(workload: Workload, most: int) -> int:
    """The highest side of tiles along k in which no column of B has more than ``most`` nonzeros, or one close to it."""
    low, high = most, workload.K + 1
    while high - low > max(1, low // SIDES_ALIKE):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(workload.b, middle, 1, most) else (low, middle)
    return low


def _best(ranked: list[Scheme], workload: Workload, ask: Judge | None) -> Scheme:
    """Of the fewest cycles in the model tier; the first one where nobody can ask it."""
    if ask is None:
        return ranked[0]
    cycles, best = min((ask(scheme, workload.a, workload.b), n) for n, scheme in enumerate(ranked))
    return replace(ranked[best], predicted=ranked[best].predicted | {"judged_cycles": cycles})


def _predicted(scheme: Scheme, workload: Workload, design: Machine) -> Scheme:
    return replace(scheme, predicted=predict_stationary(workload, design, scheme).as_dict())


def _refuse(policy: str, options: dict[str, Any]) -> None:
    if options:
        raise TypeError(f"{policy} takes no options, not {', '.join(options)}")
