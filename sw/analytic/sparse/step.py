"""The sparse step as a whole."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import prod

import numpy as np

from ..architecture import Architecture
from ..dataflow.traffic import Traffic
from ..features import Features
from ..nests import Differ, Nests
from ..problem import Workload
from ..values import Batched, Count, Real
from .compute import Computes, compute_counts
from .counts import Counters
from .elimination import eliminate, existing, translate
from .joint import share_of_uses
from .leaders import Elimination, best_option
from .occupancy import Occupancy, occupancies
from .overbooking import Overbooked, bumped, refetch
from .positions import Lanes, position_skipping
from .spatial import Instances, spatial_skipping

__all__ = ["SparseTraffic", "sparse_traffic"]


@dataclass(frozen=True)
class SparseTraffic(Batched):
    """What really happens.

    counters, occupancy: by ``(level, tensor)``; counters are of one instance. eliminations: the SAFs that act. instances: what
    each tensor needs of them. lanes: those that take nonzeros by position. overbooked: tiles that may not fit, by
    ``(level, tensor)``.
    """

    counters: dict[tuple[int, int], Counters]
    occupancy: dict[tuple[int, int], Occupancy]
    eliminations: list[Elimination]
    instances: dict[int, Instances]
    lanes: list[Lanes]
    computes: Computes
    overbooked: dict[tuple[int, int], Overbooked]


def sparse_traffic(
    workload: Workload,
    nests: Nests,
    architecture: Architecture,
    features: Features,
    traffic: Table[tuple[int, int], Traffic],
) -> SparseTraffic:
    """Filters dense traffic by the SAFs. Refuses mappings that a SAF does not fit."""
    levels = architecture.levels
    occupancy = occupancies(workload, nests, architecture, features, traffic)
    tensors = workload.problem.tensors
    counters = {
        (level, number): existing(
            traffic[level, number],
            occupancy[level, number],
            is_output=tensors[number].is_output,
            of_uses=share_of_uses(workload, number) if nests.inner_keeper(number, level) < 0 else None,
        )
        for level, number in nests.walk()
    }
    needs, spatial = spatial_skipping(workload, nests, features, levels)
    chosen = _chosen(workload, nests, architecture, features, occupancy, spatial)
    computes: Count = float(workload.problem.computes)
    temporal = {
        found.target for found in chosen if found.kind != "skipping_spatial" and not tensors[found.target].is_output
    }
    pessimistic = architecture.conventions.pessimistic_computes and len(temporal) > 1
    innermost: list[Elimination] = []
    met: dict[int, Real] = {}
    for number, tensor in enumerate(tensors):
        own = {found.level: found for found in chosen if found.target == number}
        mine = {level: counters[level, number] for level in nests.keepers(number)}
        tiles = {level: occupancy[level, number] for level in mine}
        computes = eliminate(nests, number, mine, tiles, own, computes, met, pessimistic=pessimistic)
        if own and not tensor.is_output:
            innermost.append(own[min(own)])
    lanes = position_skipping(workload, nests, features)
    computes = _by_position(lanes, counters, computes)
    overbooked = bumped(workload, nests, architecture, occupancy)
    refetch(nests, overbooked, occupancy, traffic, counters)
    translate(nests, levels, occupancy, counters)
    if features.is_empty or lanes:
        counted = Computes(workload.problem.computes, computes)
    else:
        counted = compute_counts(workload, nests, occupancy, innermost, features.compute, computes)
    return SparseTraffic(counters, occupancy, chosen, needs, lanes, counted, overbooked)


def _chosen(
    workload: Workload,
    nests: Nests,
    architecture: Architecture,
    features: Features,
    occupancy: Table[tuple[int, int], Occupancy],
    spatial: list[Elimination],
) -> list[Elimination]:
    """One SAF for each level and tensor: where there are two, the one that removes more."""
    found = {(each.level, each.target): each for each in spatial}
    for level, safs in sorted(features.actions.items()):
        for saf in safs:
            if saf.kind in ("gating", "skipping"):
                each = best_option(workload, nests, architecture.levels, saf, level, occupancy)
                if each is None:
                    continue
                moved = not nests.keeps[level][each.target] and nests.problem.tensors[each.target].is_output
                if moved and not architecture.conventions.outputs_follow:
                    continue
                before = found.get((each.level, each.target))
                if before is None or _removes_more(nests, each, before):
                    found[each.level, each.target] = each
    return list(found.values())


def _removes_more(nests: Nests, each: Elimination, before: Elimination) -> bool:
    more = np.broadcast_to(before.share < each.share, nests.count)
    if more.any() and not more.all():
        raise Differ(more)
    return bool(more.all())


def _by_position(lanes: list[Lanes], counters: Table[tuple[int, int], Counters], computes: Count) -> Count:
    """Computes that are left; an operand is read once for each round of the other ones."""
    for each in lanes:
        computes = computes - np.floor(computes * each.share)
        others = prod(other.steps for other in lanes if other.tensor != each.tensor)
        reads = counters[each.level, each.tensor].reads
        reads.actual = reads.actual - np.floor(reads.actual * (1.0 - others))
    return computes
