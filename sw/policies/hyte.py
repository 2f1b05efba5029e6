"""HYTE's static scheduler: tile shapes, orders and buffer splits under a cost model. Paper: HYTE, section 5."""

from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from sw.cost.candidates.grids import ranked
from sw.cost.predict import Prediction, predict_rows
from sw.cost.protocol import Machine
from sw.plan.thresholds import KEPT_ALTERNATIVES
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import TENSORS
from sw.stats.workload import STATISTICS, Workload

__all__ = ["hyte"]


def hyte(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    statistics: str = "sketch",
    fraction: float | None = None,
    sketch_size: int | None = None,
    buffered: tuple[str, ...] = TENSORS,
    tile_i: bool = False,
    **options: Any,
) -> Scheme:
    """Algorithm 1: estimate effMAC and nnzC_Tk, cost every scheme of the pruned space, keep the cheapest.

    Parameters
    ----------
    statistics, fraction, sketch_size: see :class:`sw.stats.workload.Workload`.
    buffered: tensors whose tiles may be kept on chip.
    tile_i: also cut i, which the paper does not, in schemes that cut k and leave j whole: with k innermost, partial
        rows then pass only through the k steps in which their i tile has work.
    """
    if options:
        raise TypeError(f"hyte does not take the option {', '.join(options)}")
    if statistics not in STATISTICS:
        raise SchemeError("option statistics", statistics, f"one of {', '.join(STATISTICS)}")
    if set(buffered) - set(TENSORS):
        raise SchemeError("option buffered", buffered, f"some of {', '.join(TENSORS)}")
    workload = Workload(
        A, B, lanes=design.lanes, statistics=statistics, fraction=fraction, sketch_size=sketch_size, seed=seed
    )
    found = ranked(workload, design, buffered=tuple(buffered), tile_i=tile_i)[: 1 + KEPT_ALTERNATIVES]
    (scheme, prediction), *others = [(each, predict_rows(workload, design, each)) for each, _ in found]
    return replace(
        scheme,
        predicted=prediction.as_dict(),
        alternatives=[_summary(s, p) for s, p in sorted(others, key=lambda other: other[1].cycles)],
    )


def _summary(scheme: Scheme, prediction: Prediction) -> dict[str, Any]:
    shape = {f"T_{rank}": scheme.tile(rank) for rank in "ijk"}
    return {"order": scheme.order, **shape, "mode": dict(scheme.mode), **prediction.as_dict()}
