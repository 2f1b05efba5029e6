"""All three steps, on one specification and on many mappings of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .dataflow.traffic import Traffic, dense_traffic
from .errors import MappingError, SpecError
from .hardware.capacity import Use, instances_in_use, require_fit
from .hardware.cycles import Cycles, count_cycles
from .hardware.energy import energies
from .mapping import Mapping
from .nests import Differ, Nests
from .sparse.step import SparseTraffic, sparse_traffic
from .spec.load import Spec
from .values import Batched, Count, Real, at

__all__ = ["Analysis", "Evaluations", "Found", "InvalidMapping", "analyze", "evaluate", "evaluate_nests"]


class InvalidMapping(SpecError):
    """The mapping does not fit the accelerator."""


@dataclass(frozen=True)
class Found(Batched):
    """What the steps found. uses: instances in use, by level; -1: the compute units. energy: pJ of each component.
    tensor_energy: pJ of each tensor at one instance of a level."""

    traffic: dict[tuple[int, int], Traffic]
    sparse: SparseTraffic
    uses: dict[int, Use]
    cycles: Cycles
    energy: dict[str, Real]
    tensor_energy: dict[tuple[int, int], Real]


@dataclass(frozen=True)
class Analysis(Found):
    """The same of one mapping, in plain numbers."""

    spec: Spec


@dataclass
class Evaluations:
    """Many mappings of a specification, in the order in which they were given.

    valid: whether each fits the accelerator. cycles, energy: of each, energy in pJ; they mean nothing where it does not fit.
    parts: mappings that are counted alike: their numbers, the mappings, and all their counters as arrays.
    """

    spec: Spec
    valid: np.ndarray
    cycles: Count
    energy: Real
    parts: list[tuple[np.ndarray, Nests, Found]]

    def _place(self, number: int) -> tuple[int, Nests, Found]:
        for numbers, nests, found in self.parts:
            here = np.flatnonzero(numbers == number)
            if here.size:
                return int(here[0]), nests, found
        raise IndexError(number)

    def found(self, number: int) -> Found:
        """All counters of one mapping."""
        place, _, found = self._place(number)
        return at(found, place)

    def error(self, number: int) -> MappingError:
        """Why a mapping does not fit."""
        place, nests, _ = self._place(number)
        error = nests.error(place)
        assert error is not None
        return error


def analyze(spec: Spec) -> Analysis:
    """Of the mapping of a specification. Raises InvalidMapping where it does not fit the accelerator."""
    evaluations = evaluate(spec, [spec.mapping])
    if not evaluations.valid[0]:
        raise InvalidMapping(spec.refusal(evaluations.error(0)))
    return analysis_of(evaluations, 0, spec.mapping)


def analysis_of(evaluations: Evaluations, number: int, mapping: Mapping) -> Analysis:
    """One of many mappings, by its number."""
    found = evaluations.found(number)
    return Analysis(**vars(found), spec=replace(evaluations.spec, mapping=mapping))


def evaluate(spec: Spec, mappings: Sequence[Mapping]) -> Evaluations:
    """All three steps, on all mappings at once; those that do not fit are noted. Mappings are of the problem of the
    specification."""
    groups: dict[object, list[int]] = {}
    for number, mapping in enumerate(mappings):
        groups.setdefault((mapping.keeps, mapping.apart, bool(mapping.imperfect)), []).append(number)
    return evaluate_nests(
        spec, [(np.array(own), Nests.of([mappings[number] for number in own])) for own in groups.values()]
    )


def evaluate_nests(spec: Spec, groups: Sequence[tuple[np.ndarray, Nests]]) -> Evaluations:
    """The same of groups of mappings whose levels keep the same tensors, with their numbers."""
    count = sum(len(numbers) for numbers, _ in groups)
    whole = Evaluations(spec, np.zeros(count, dtype=bool), np.zeros(count), np.zeros(count), [])
    left = list(groups)
    while left:
        numbers, nests = left.pop()
        try:
            found = _steps(spec, nests)
        except Differ as differ:
            for label in np.unique(differ.labels):
                own = np.flatnonzero(differ.labels == label)
                left.append((numbers[own], nests.take(own)))
            continue
        whole.valid[numbers] = nests.valid
        whole.cycles[numbers] = found.cycles.total
        whole.energy[numbers] = sum(found.energy.values())
        whole.parts.append((numbers, nests, found))
    return whole


def _steps(spec: Spec, nests: Nests) -> Found:
    workload, architecture = spec.workload, spec.architecture
    traffic = dense_traffic(nests, architecture.conventions)
    sparse = sparse_traffic(workload, nests, architecture, spec.features, traffic)
    uses = {level: instances_in_use(nests, sparse, level) for level in range(-1, len(architecture.levels))}
    require_fit(nests, architecture, sparse, uses)
    cycles = count_cycles(nests, architecture, sparse, uses)
    return Found(traffic, sparse, uses, cycles, *energies(workload, nests, architecture, sparse, uses, cycles.total))
