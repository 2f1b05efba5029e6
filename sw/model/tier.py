"""The model tier of any design and scheme: which of the models runs them."""

from typing import TYPE_CHECKING

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.plan.plan import Plan
from sw.scheme.terms import GUSTAVSON, WEIGHT_STATIONARY

from .dataflows.machine import run_dataflow
from .machine import run_model
from .shaped import run_shaped
from .stationary import run_stationary

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["simulate"]


def simulate(design: "Design", planned: Plan[Csr]) -> EngineResult:
    """Runs the model of the design's dataflow; parameters and result as :func:`.machine.run_model`."""
    if design.pe.dataflow == WEIGHT_STATIONARY:
        return run_stationary(design, planned)
    if design.pe.dataflow != GUSTAVSON:
        return run_dataflow(design, planned.scheme, planned.a, planned.b)
    return (run_shaped if planned.scheme.uneven else run_model)(design, planned)
