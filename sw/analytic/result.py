"""The record of an analysis: the JSON document that ``fiberloom analyze`` prints."""

from typing import Any

from .analysis import Analysis
from .sparse.counts import ACTIONS, Accesses, Counters, FormatAccesses
from .sparse.occupancy import Occupancy

__all__ = ["invalid_record", "record"]


def record(analysis: Analysis) -> dict[str, Any]:
    """Counters are of one instance; those of the compute units are of all. Levels stand innermost first, as ranks do."""
    spec = analysis.spec
    computes, cycles = analysis.sparse.computes, analysis.cycles
    offered = cycles.total * spec.architecture.compute.instances
    return {
        "valid": True,
        "cycles": cycles.total,
        "utilization": computes.actual / offered if offered else 0.0,
        "area_um2": _area(analysis),
        "energy_pJ": {**analysis.energy, "total": sum(analysis.energy.values())},
        "computes": {
            "algorithmic": computes.algorithmic,
            "actual": computes.actual,
            "gated": computes.gated,
            "skipped": computes.skipped,
            "cycles": cycles.compute,
            "instances": {"max": _plain(analysis.uses[-1].maximum), "mean": analysis.uses[-1].busiest},
        },
        "levels": [
            _level(analysis, level) for level, each in enumerate(spec.architecture.levels) if not each.is_spatial
        ],
        "notes": list(spec.notes),
    }


def invalid_record(reason: str) -> dict[str, Any]:
    """Of a mapping that does not fit the machine."""
    return {"valid": False, "reason": reason}


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number


def _area(analysis: Analysis) -> float | None:
    """Of all instances, where the tables have any area."""
    units = (*analysis.spec.architecture.levels, analysis.spec.architecture.compute)
    known = [unit.area * unit.instances for unit in units if unit.area is not None]
    return sum(known) if known else None


def _level(analysis: Analysis, level: int) -> dict[str, Any]:
    use = analysis.uses[level]
    names = [tensor.name for tensor in analysis.spec.workload.problem.tensors]
    return {
        "name": analysis.spec.architecture.levels[level].name,
        "instances": {"max": _plain(use.maximum), "mean": use.busiest},
        "cycles": analysis.cycles.levels[level],
        "tensors": {
            name: _tensor(analysis, level, number)
            for number, name in enumerate(names)
            if (level, number) in analysis.sparse.counters
        },
    }


def _tensor(analysis: Analysis, level: int, number: int) -> dict[str, Any]:
    traffic, tile = analysis.traffic[level, number], analysis.sparse.occupancy[level, number]
    counters = analysis.sparse.counters[level, number]
    return {
        "tile": traffic.size,
        "tile_shape": list(traffic.extents),
        "occupancy": {"mean": tile.mean, "max": tile.maximum},
        "instances": analysis.uses[level].mean[number],
        **{action: _accesses(counters.data(action)) for action in ACTIONS},
        "format": _format(tile, counters),
        **_overbooking(analysis, level, number),
    }


def _overbooking(analysis: Analysis, level: int, number: int) -> dict[str, Any]:
    """Of tiles that may not fit."""
    found = analysis.sparse.overbooked.get((level, number))
    if found is None:
        return {}
    names = ("capacity", "share", "bumped", "refetched")
    return {"overbooking": {name: getattr(found, name) for name in names}}


def _accesses(found: Accesses) -> dict[str, int]:
    return {"dense": found.dense, "actual": found.actual, "gated": found.gated, "skipped": found.skipped}


def _format(tile: Occupancy, counters: Counters) -> list[dict[str, Any]]:
    return [
        {
            "format": rank.rank.format.name,
            "shape": rank.shape,
            "bits": {"mean": rank.mean_bits, "max": rank.maximum_bits},
            **{action: _words(counters.formats[action][number]) for action in ACTIONS},
        }
        for number, rank in enumerate(tile.ranks)
    ]


def _words(found: FormatAccesses) -> dict[str, Any]:
    """Words of metadata and of payloads together, and of each."""
    metadata, payload = _accesses(found.metadata), _accesses(found.payload)
    both = {kind: metadata[kind] + payload[kind] for kind in metadata}
    return {**both, "metadata": metadata, "payload": payload}
