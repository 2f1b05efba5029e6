"""All three steps on one specification."""

from dataclasses import dataclass

from .dataflow.traffic import Traffic, dense_traffic
from .errors import MappingError, SpecError
from .hardware.capacity import Use, instances_in_use, require_fit
from .hardware.cycles import Cycles, count_cycles
from .hardware.energy import energies
from .sparse.step import SparseTraffic, sparse_traffic
from .spec.load import Spec

__all__ = ["Analysis", "InvalidMapping", "analyze", "evaluate"]


class InvalidMapping(SpecError):
    """The mapping does not fit the machine."""


@dataclass(frozen=True)
class Analysis:
    """What the steps found. uses: instances in use, by level; -1: the compute units. energy: pJ of each component."""

    spec: Spec
    traffic: dict[tuple[int, int], Traffic]
    sparse: SparseTraffic
    uses: dict[int, Use]
    cycles: Cycles
    energy: dict[str, float]


def analyze(spec: Spec) -> Analysis:
    """Raises InvalidMapping where the mapping does not fit the machine."""
    try:
        return evaluate(spec)
    except MappingError as error:
        raise InvalidMapping(spec.refusal(error)) from None


def evaluate(spec: Spec) -> Analysis:
    """As :func:`analyze`, but raises MappingError, for a search that goes on."""
    workload, mapping, architecture = spec.workload, spec.mapping, spec.architecture
    traffic = dense_traffic(mapping, architecture.conventions)
    sparse = sparse_traffic(workload, mapping, architecture, spec.features, traffic)
    uses = {level: instances_in_use(mapping, sparse, level) for level in range(-1, len(architecture.levels))}
    require_fit(mapping, architecture, sparse, uses)
    cycles = count_cycles(mapping, architecture, sparse, uses)
    energy = energies(workload, mapping, architecture, sparse, uses, cycles.total)
    return Analysis(spec, traffic, sparse, uses, cycles, energy)
