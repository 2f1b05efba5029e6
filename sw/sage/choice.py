"""SAGE: memory and compute formats by energy-delay product. Paper: MINT, section VI."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .accelerators import MATRIX_MCFS, TENSOR_MCFS, Accelerator
from .array import Array, Compute, compute_options
from .constants import Constants
from .conversion import Conversion, hardware_conversion, software_conversion
from .workload import Workload

__all__ = ["Candidate", "Given", "best", "ranked"]

TENSORS = ("A", "B", "O")
#: Formats that are given, by tensor.
Given = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Formats of A, B and O with what they cost.

    ``cycles``: transfer, conversion, compute, total, which is their sum. ``energy_pJ``: dram, conversion, buffer, compute, total.
    ``edp``: pJ x cycles. ``range_k``: of the tiles of B.
    """

    mcf: dict[str, str]
    acf: dict[str, str]
    cycles: dict[str, float]
    energy_pJ: dict[str, float]
    range_k: int

    @property
    def edp(self) -> float:
        return self.energy_pJ["total"] * self.cycles["total"]

    def as_dict(self) -> dict[str, Any]:
        """The record."""
        return {
            "mcf": self.mcf,
            "acf": self.acf,
            "cycles": self.cycles,
            "energy_pJ": self.energy_pJ,
            "edp": self.edp,
            "range_k": self.range_k,
        }


@dataclass(frozen=True, kw_only=True)
class _Side:
    """A tensor's own part of a candidate."""

    mcf: str
    transfer: float
    dram: float
    conversion: Conversion

    @property
    def cycles(self) -> float:
        return self.transfer + self.conversion.cycles

    @property
    def energy(self) -> float:
        return self.dram + self.conversion.energy


class _Costs:
    """The parts of all candidates, each computed once."""

    def __init__(self, workload: Workload, accelerator: Accelerator, array: Array, constants: Constants) -> None:
        self.workload, self.accelerator, self.constants = workload, accelerator, constants
        self.operands = dict(zip(TENSORS, (workload.a, workload.b, workload.o), strict=True))
        self.side = cache(self._side)
        self.compute = cache(lambda acf_a, acf_b: compute_options(workload, acf_a, acf_b, array, constants))

    def _side(self, tensor: str, mcf: str, acf: str) -> _Side:
        operand = self.operands[tensor]
        bits = operand.bits(mcf, self.workload.value)
        return _Side(
            mcf=mcf,
            transfer=bits / self.constants.memory_bits,
            dram=bits * self.constants.dram_bit,
            conversion=self._conversion(tensor, mcf, acf),
        )

    def _conversion(self, tensor: str, mcf: str, acf: str) -> Conversion:
        source, target = (acf, mcf) if tensor == "O" else (mcf, acf)
        operand, value = self.operands[tensor], self.workload.value
        if self.accelerator.software:
            return software_conversion(operand, source, target, value)
        # Columns of B go to their PEs from rows as well.
        return hardware_conversion(
            operand, source, target, value, self.constants, memory=mcf, dense_by_row=tensor != "B"
        )

    def outputs(self, given: Given) -> list[str]:
        """Formats that O may leave in."""
        if "O" in given:
            return [given["O"]]
        if self.accelerator.output is not None:
            return [self.accelerator.output]
        return list(MATRIX_MCFS if len(self.workload.o.shape) == 2 else TENSOR_MCFS)

    def candidate(self, sides: Iterable[_Side], acf: tuple[str, str], compute: Compute) -> Candidate:
        """The sum of the parts."""
        parts = list(sides)
        cycles = {
            "transfer": sum(side.transfer for side in parts),
            "conversion": sum(side.conversion.cycles for side in parts),
            "compute": compute.cycles,
        }
        energy = {
            "dram": sum(side.dram for side in parts),
            "conversion": sum(side.conversion.energy for side in parts),
            "buffer": compute.buffer,
            "compute": compute.compute,
        }
        return Candidate(
            mcf=dict(zip(TENSORS, (side.mcf for side in parts), strict=True)),
            acf=dict(zip(TENSORS, (*acf, "dense"), strict=True)),
            cycles=cycles | {"total": sum(cycles.values())},
            energy_pJ=energy | {"total": sum(energy.values())},
            range_k=compute.range_k,
        )


def ranked(
    workload: Workload,
    accelerator: Accelerator,
    *,
    array: Array = Array(),  # noqa: B008 - frozen
    constants: Constants = Constants(),  # noqa: B008 - frozen
    mcf: Given | None = None,
    acf: Given | None = None,
) -> list[Candidate]:
    """All candidates, best first; ``mcf`` and ``acf`` are respected. Empty where the accelerator has none with these."""
    costs, given = _Costs(workload, accelerator, array, constants), mcf or {}
    found = []
    for mcfs, acfs in accelerator.pairs(workload.order):
        if not _respects(mcfs, given) or not _respects(acfs, acf or {}):
            continue
        sides = [costs.side(tensor, *formats) for tensor, *formats in zip("AB", mcfs, acfs, strict=False)]
        for output in costs.outputs(given):
            all_sides = [*sides, costs.side("O", output, "dense")]
            found.append(
                min(
                    (costs.candidate(all_sides, acfs, compute) for compute in costs.compute(*acfs)),
                    key=lambda each: each.edp,
                )
            )
    return sorted(found, key=lambda each: (each.edp, *each.acf.values(), *each.mcf.values()))


def _respects(formats: tuple[str, str], given: Given) -> bool:
    return all(given.get(tensor, name) == name for tensor, name in zip("AB", formats, strict=True))


def best(
    workload: Workload,
    accelerator: Accelerator,
    *,
    array: Array = Array(),  # noqa: B008 - frozen
    constants: Constants = Constants(),  # noqa: B008 - frozen
    mcf: Given | None = None,
    acf: Given | None = None,
) -> Candidate | None:
    """The first of :func:`ranked`, without the others.

    Cycles and energy are sums over the tensors, and both count in the product: a format of one tensor that another beats in both
    cannot be the best, whatever the others are. For each pair of ACFs those that are left are combined.
    """
    costs, given = _Costs(workload, accelerator, array, constants), mcf or {}
    by_acf: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for mcfs, acfs in accelerator.pairs(workload.order):
        if _respects(mcfs, given) and _respects(acfs, acf or {}):
            by_acf.setdefault(acfs, []).append(mcfs)
    outputs = _undominated([costs.side("O", name, "dense") for name in costs.outputs(given)])
    leader: Candidate | None = None
    for acfs, pairs in by_acf.items():
        kept = [
            _undominated([costs.side(tensor, name, own) for name in dict.fromkeys(pair[n] for pair in pairs)])
            for n, (tensor, own) in enumerate(zip("AB", acfs, strict=True))
        ]
        free = len(pairs) == len({one for one, _ in pairs}) * len({other for _, other in pairs})
        choices = (
            [(a, b) for a in kept[0] for b in kept[1]]
            if free
            else [(costs.side("A", one, acfs[0]), costs.side("B", other, acfs[1])) for one, other in pairs]
        )
        for a, b in choices:
            for output in outputs:
                for compute in costs.compute(*acfs):
                    cycles = a.cycles + b.cycles + output.cycles + compute.cycles
                    energy = a.energy + b.energy + output.energy + compute.buffer + compute.compute
                    if leader is None or cycles * energy < leader.edp:
                        leader = costs.candidate((a, b, output), acfs, compute)
    return leader


def _undominated(sides: list[_Side]) -> list[_Side]:
    """Those that no other beats in cycles and energy."""
    kept: list[_Side] = []
    for side in sorted(sides, key=lambda each: (each.cycles, each.energy)):
        if not kept or side.energy < kept[-1].energy:
            kept.append(side)
    return kept
