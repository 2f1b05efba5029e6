"""Whether the largest tiles fit and the accelerator has as many instances as the mapping uses."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from ..architecture import Architecture, Compute, Storage
from ..dataflow.remainders import time_steps
from ..nests import Nests
from ..sparse.step import SparseTraffic
from ..values import Batched, Count, Real

__all__ = ["Use", "instances_in_use", "require_fit"]


@dataclass(frozen=True)
class Use(Batched):
    """Instances in use of a level: at most, and on average by tensor (for the compute units, over all of them)."""

    maximum: Real
    x: Real
    y: Real
    mean: dict[int, Real]

    @property
    def busiest(self) -> Real:
        """Average instances of the tensor that uses most."""
        found = list(self.mean.values())
        most = found[0]
        for each in found[1:]:
            most = np.maximum(most, each)
        return most


def instances_in_use(nests: Nests, sparse: SparseTraffic, level: int) -> Use:
    """Of a level; -1: the compute units."""
    x, y = nests.spread(level)
    tensors = range(len(nests.problem.tensors))
    needs = sparse.instances
    along_x = x * _most([needs[number].x.get(level, 1.0) for number in tensors])
    along_y = y * _most([needs[number].y.get(level, 1.0) for number in tensors])
    every = x * y
    share: Real = 1.0
    if level < 0:
        if nests.mappings:  # at remainders units have nothing to do
            steps = np.array([time_steps(mapping) for mapping in nests.mappings], dtype=float)
            share = nests.problem.computes / (steps * every)
        for lanes in sparse.lanes:
            share = share * lanes.use
    mean = {}
    for number in tensors:
        tile = sparse.occupancy.get((level, number))
        busy = needs[number].busy.get(level, 1.0)
        if tile is not None:
            busy = np.minimum(busy, tile.arrives)
        mean[number] = every * busy * share
    return Use(along_x * along_y, along_x, along_y, mean)


def _most(shares: list[Real]) -> Real:
    found = shares[0]
    for each in shares[1:]:
        found = each if each is found else np.maximum(found, each)
    return found


def require_fit(nests: Nests, architecture: Architecture, sparse: SparseTraffic, uses: Table[int, Use]) -> None:
    """Refuses mappings at the first level that cannot hold their tiles or has too few instances. uses: by level."""
    for level, storage in enumerate(architecture.levels):
        if storage.is_spatial:
            continue
        _require_words(nests, storage, level, sparse)
        _require_metadata(nests, storage, level, sparse)
        _require_instances(nests, storage, level, uses[level])
    _require_instances(nests, architecture.compute, -1, uses[-1])


def _require_words(nests: Nests, storage: Storage, level: int, sparse: SparseTraffic) -> None:
    """Refuses mappings whose largest tiles a level cannot hold. Of overbooked tiles what fits is there."""
    occupancy = sparse.occupancy
    usable = storage.usable_words
    if usable is None:
        return
    parts = {
        tensor.name: _within(sparse, (level, number), occupancy[level, number].maximum)
        for number, tensor in enumerate(nests.problem.tensors)
        if (level, number) in occupancy
    }
    total: Count = sum(parts.values())
    told = _Told(nests, parts, "words", f"at most {usable:,}{_shared(storage)}")
    nests.refuse(total > usable, level, "largest tiles", told)
    least = usable * storage.minimum_utilization
    told = _Told(nests, parts, "words", f"at least {least:g}: min_utilization")
    nests.refuse(total < least, level, "largest tiles", told)


def _within(sparse: SparseTraffic, place: tuple[int, int], words: Count) -> Count:
    """Words of the largest tile that are in a level at once."""
    found = sparse.overbooked.get(place)
    return words if found is None else np.minimum(words, found.capacity)


def _require_metadata(nests: Nests, storage: Storage, level: int, sparse: SparseTraffic) -> None:
    usable = storage.usable_metadata_bits
    if usable is None:
        return
    parts = {}
    for number, tensor in enumerate(nests.problem.tensors):
        tile = sparse.occupancy.get((level, number))
        if tile is not None and tile.has_metadata:
            share = _within(sparse, (level, number), tile.maximum) / np.maximum(tile.maximum, 1.0)
            parts[tensor.name] = np.ceil(sum(rank.maximum_bits for rank in tile.ranks) * share)
    told = _Told(nests, parts, "bits", f"at most {usable:,}{_shared(storage)}")
    nests.refuse(sum(parts.values()) > usable, level, "format data of the largest tiles", told)


@dataclass(frozen=True)
class _Told:
    """The sum of what tensors take."""

    nests: Nests
    parts: Table[str, Count]
    unit: str
    allowed: str

    def __call__(self, number: int) -> tuple[str, str]:
        own = {name: int(np.broadcast_to(part, self.nests.count)[number]) for name, part in self.parts.items()}
        written = " + ".join(f"{name} {words:,}" for name, words in own.items())
        total = f" = {sum(own.values()):,}" if len(own) > 1 else ""
        return f"{written}{total} {self.unit}", self.allowed


def _shared(storage: Storage) -> str:
    return f" (multiple_buffering {storage.multiple_buffering:g})" if storage.multiple_buffering != 1 else ""


def _more_than(used: Any, given: Any, number: int) -> tuple[str, str]:
    """What a mapping uses, and what there is."""
    return f"{ceil(used[number] - 1e-9)}", f"at most {given}"


def _require_instances(nests: Nests, unit: Storage | Compute, level: int, use: Use) -> None:
    for what, used, given in (
        ("instances", use.maximum, unit.instances),
        ("instances along x", use.x, unit.mesh_x),
        ("instances along y", use.y, unit.mesh_y),
    ):
        nests.refuse(
            used > given + 1e-9,
            level,
            what,
            partial(_more_than, used, given),
        )
