"""Whether the largest tiles fit and the machine has as many instances as the mapping uses."""

from dataclasses import dataclass
from math import ceil

from ..architecture import Architecture, Compute, Storage
from ..dataflow.remainders import time_steps
from ..errors import MappingError
from ..mapping import Mapping
from ..sparse.step import SparseTraffic

__all__ = ["Use", "instances_in_use", "require_fit"]


@dataclass(frozen=True)
class Use:
    """Instances in use of a level: at most, and on average by tensor (for the compute units, over all of them)."""

    maximum: float
    x: float
    y: float
    mean: dict[int, float]

    @property
    def busiest(self) -> float:
        """Average instances of the tensor that uses most."""
        return max(self.mean.values(), default=self.maximum)


def instances_in_use(mapping: Mapping, sparse: SparseTraffic, level: int) -> Use:
    """Of a level; -1: the compute units."""
    x, y = mapping.spread(level)
    tensors = range(len(mapping.problem.tensors))
    needs = sparse.instances
    along_x = max(x * needs[number].x.get(level, 1.0) for number in tensors)
    along_y = max(y * needs[number].y.get(level, 1.0) for number in tensors)
    mean = {}
    for number in tensors:
        tile = sparse.occupancy.get((level, number))
        busy = needs[number].busy.get(level, 1.0)
        mean[number] = x * y * (busy if tile is None else min(busy, tile.arrives))
    if level < 0:
        if mapping.imperfect:  # at remainders units have nothing to do
            share = mapping.problem.computes / (time_steps(mapping) * x * y)
            mean = {number: used * share for number, used in mean.items()}
        for lanes in sparse.lanes:
            mean = {number: used * lanes.use for number, used in mean.items()}
    return Use(along_x * along_y, along_x, along_y, mean)


def require_fit(mapping: Mapping, architecture: Architecture, sparse: SparseTraffic, uses: dict[int, Use]) -> None:
    """Raises MappingError for the first level that cannot hold its tiles or has too few instances. uses: by level."""
    for level, storage in enumerate(architecture.levels):
        if storage.is_spatial:
            continue
        _require_words(mapping, storage, level, sparse)
        _require_metadata(mapping, storage, level, sparse)
        _require_instances(storage, level, uses[level])
    _require_instances(architecture.compute, -1, uses[-1])


def _require_words(mapping: Mapping, storage: Storage, level: int, sparse: SparseTraffic) -> None:
    usable = storage.usable_words
    if usable is None:
        return
    parts = {
        tensor.name: sparse.occupancy[level, number].maximum
        for number, tensor in enumerate(mapping.problem.tensors)
        if (level, number) in sparse.occupancy
    }
    total = sum(parts.values())
    if total > usable:
        raise MappingError(level, "largest tiles", _sum(parts, total, "words"), f"at most {usable:,}{_shared(storage)}")
    least = usable * storage.minimum_utilization
    if total < least:
        raise MappingError(level, "largest tiles", _sum(parts, total, "words"), f"at least {least:g}: min_utilization")


def _require_metadata(mapping: Mapping, storage: Storage, level: int, sparse: SparseTraffic) -> None:
    usable = storage.usable_metadata_bits
    if usable is None:
        return
    parts = {}
    for number, tensor in enumerate(mapping.problem.tensors):
        tile = sparse.occupancy.get((level, number))
        if tile is not None and tile.has_metadata:
            parts[tensor.name] = ceil(sum(rank.maximum_bits for rank in tile.ranks))
    total = sum(parts.values())
    if total > usable:
        raise MappingError(
            level,
            "format data of the largest tiles",
            _sum(parts, total, "bits"),
            f"at most {usable:,}{_shared(storage)}",
        )


def _sum(parts: dict[str, int], total: int, unit: str) -> str:
    written = " + ".join(f"{name} {words:,}" for name, words in parts.items())
    return f"{written} = {total:,} {unit}" if len(parts) > 1 else f"{written} {unit}"


def _shared(storage: Storage) -> str:
    return f" (multiple_buffering {storage.multiple_buffering:g})" if storage.multiple_buffering != 1 else ""


def _require_instances(unit: Storage | Compute, level: int, use: Use) -> None:
    for what, used, given in (
        ("instances", use.maximum, unit.instances),
        ("instances along x", use.x, unit.mesh_x),
        ("instances along y", use.y, unit.mesh_y),
    ):
        if used > given + 1e-9:
            raise MappingError(level, what, f"{ceil(used - 1e-9)}", f"at most {given}")
