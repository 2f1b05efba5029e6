"""What becomes of partial rows of C where k is cut, by the cost model."""

from collections.abc import Callable
from dataclasses import replace

from sw.plan.thresholds import FEWEST_STEPS_JOINED
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import CARRIED, JOINED
from sw.stats.workload import Workload

from .predict import Prediction, predict
from .protocol import Machine

__all__ = ["cheaper"]


def cheaper(
    workload: Workload,
    design: Machine,
    scheme: Scheme,
    cost: Callable[[Workload, Machine, Scheme], Prediction] = predict,
) -> tuple[Scheme, Prediction]:
    """The scheme with partial rows carried along, or joined where the design can do that in fewer cycles, and its cost."""
    carried = replace(scheme, partial_rows=CARRIED)
    prediction = cost(workload, design, carried)
    if scheme.tiles_per_rank(workload.I, workload.J, workload.K)[2] < FEWEST_STEPS_JOINED:
        return carried, prediction
    joined = replace(scheme, partial_rows=JOINED)
    try:
        joined.validate(design, workload.I, workload.J, workload.K)
    except SchemeError:
        return carried, prediction
    other = cost(workload, design, joined)
    return (joined, other) if other.cycles < prediction.cycles else (carried, prediction)
