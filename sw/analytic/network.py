"""A network: the layers' records, and their sum."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .spec.read_network import Layer

__all__ = ["network_record"]


def network_record(layers: Sequence[Layer], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Layers run one after another, each as often as it occurs: cycles, energies and computes add up. The area is that of the
    largest, as all run on one accelerator."""
    cycles = 0
    energy: Counter[str] = Counter()
    computes: Counter[str] = Counter()
    offered = 0.0
    for layer, record in zip(layers, records, strict=True):
        cycles += layer.times * record["cycles"]
        for component, each in record["energy_pJ"].items():
            energy[component] += layer.times * each
        for kind in ("algorithmic", "actual", "gated", "skipped"):
            computes[kind] += layer.times * record["computes"][kind]
        if record["utilization"]:
            offered += layer.times * record["computes"]["actual"] / record["utilization"]
    areas = [record["area_um2"] for record in records if record["area_um2"] is not None]
    return {
        "valid": True,
        "cycles": cycles,
        "utilization": computes["actual"] / offered if offered else 0.0,
        "area_um2": max(areas, default=None),
        "energy_pJ": dict(energy),
        "computes": dict(computes),
        "layers": [
            {"name": layer.name, "times": layer.times, **record} for layer, record in zip(layers, records, strict=True)
        ],
        "notes": list(dict.fromkeys(note for record in records for note in record["notes"])),
    }
