"""One product on ExTensor: cycles, accesses and energy of a variant."""

from dataclasses import dataclass

from .accesses import Accesses, accesses, output
from .energy import energy
from .machine import ENTRY_BYTES, ExTensor
from .shapes import Tiling, fixed, overbooked, prescient
from .tiles import Operands
from .work import computing_cycles

__all__ = ["Run", "run_extensor", "tile_for"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run costs.

    ``time`` holds the cycles that each part alone would take: ``dram``, ``global`` buffer and ``compute``; all work at once, as
    in Sparseloop, so that ``cycles`` is the longest. ``energy``: picojoules by component.
    """

    tiling: Tiling
    accesses: Accesses
    macs: int
    time: dict[str, int]
    energy: dict[str, float]

    @property
    def cycles(self) -> int:
        return max(self.time.values())

    @property
    def bound(self) -> str:
        """The part that takes longest."""
        return max(self.time, key=lambda part: self.time[part])

    @property
    def total_energy(self) -> float:
        return sum(self.energy.values())


def tile_for(
    variant: str,
    machine: ExTensor,
    operands: Operands,
    *,
    y: float = 0.1,
    k: int = 10,
    seed: int = 0,
    square: bool = False,
) -> Tiling:
    """Shapes of ``N``, ``P`` or ``OB``; only the last one looks at y, k and the seed. ``square``: how P and OB grow."""
    if variant == "N":
        return fixed(machine, operands)
    if variant == "P":
        return prescient(machine, operands, square=square)
    if variant == "OB":
        return overbooked(machine, operands, y=y, k=k, seed=seed, square=square)
    raise ValueError(f"Variant must be N, P or OB, not {variant!r}")


def run_extensor(machine: ExTensor, tiling: Tiling, operands: Operands) -> Run:
    """Runs the model; ``tiling`` may come from :func:`tile_for` or from anywhere else."""
    macs = operands.macs
    found = accesses(machine, tiling, operands, macs, output(operands, tiling))
    time = {
        "dram": _cycles(found.dram_bytes, machine.dram_bytes_per_cycle),
        "global": _cycles(ENTRY_BYTES * (found.global_reads + found.global_writes), machine.global_bytes_per_cycle),
        "compute": computing_cycles(machine, tiling, operands),
    }
    return Run(tiling=tiling, accesses=found, macs=macs, time=time, energy=energy(found, macs))


def _cycles(amount: int, per_cycle: float) -> int:
    return -int(-amount // per_cycle)
