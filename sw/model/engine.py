"""The model tier of any design and scheme: which of the models runs them."""

from typing import TYPE_CHECKING

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.scheme.scheme import Scheme

from .dataflows.machine import run_dataflow
from .machine import run_model
from .shaped import run_shaped

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["simulate"]


def simulate(design: "Design", scheme: Scheme, a: Csr, b: Csr) -> EngineResult:
    """Runs the model of the design's dataflow; parameters and result as :func:`.machine.run_model`."""
    if design.pe.dataflow != "gustavson":
        return run_dataflow(design, scheme, a, b)
    return (run_shaped if scheme.uneven else run_model)(design, scheme, a, b)
