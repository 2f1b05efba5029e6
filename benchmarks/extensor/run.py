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

    ``time`` holds the cycles that each part alone would take: ``dram`` and ``compute``; both work at once, as in Sparseloop, so
    that ``cycles`` is the longer. ``energy``: picojoules by component.
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
    def global_bytes_per_cycle(self) -> float:
        """What the global buffer has to read and write in all, so that it bounds nothing."""
        return ENTRY_BYTES * (self.accesses.global_reads + self.accesses.global_writes) / max(1, self.cycles)

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
    k_first: bool = False,
) -> Tiling:
    """Shapes of ``N``, ``P`` or ``OB``; only the last one looks at y, k and the seed. P and OB are squares, or ``k_first``."""
    if variant == "N":
        return fixed(machine, operands)
    if variant == "P":
        return prescient(machine, operands, k_first=k_first)
    if variant == "OB":
        return overbooked(machine, operands, y=y, k=k, seed=seed, k_first=k_first)
    raise ValueError(f"Variant must be N, P or OB, not {variant!r}")


def run_extensor(machine: ExTensor, tiling: Tiling, operands: Operands) -> Run:
    """Runs the model; ``tiling`` may come from :func:`tile_for` or from anywhere else."""
    macs = operands.macs
    found = accesses(machine, tiling, operands, macs, output(operands, tiling))
    time = {
        "dram": _cycles(found.dram_bytes, machine.dram_bytes_per_cycle),
        "compute": computing_cycles(machine, tiling, operands),
    }
    return Run(tiling=tiling, accesses=found, macs=macs, time=time, energy=energy(found, macs))


def _cycles(amount: int, per_cycle: float) -> int:
    return -int(-amount // per_cycle)
