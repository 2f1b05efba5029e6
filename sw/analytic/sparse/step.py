"""The sparse step as a whole."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import floor, prod

from ..architecture import Architecture
from ..dataflow.traffic import Traffic
from ..features import Features
from ..mapping import Mapping
from ..problem import Workload
from .compute import Computes, compute_counts
from .counts import Counters
from .elimination import eliminate, existing, translate
from .leaders import Elimination, best_option
from .occupancy import Occupancy, occupancies
from .positions import Lanes, position_skipping
from .spatial import Instances, spatial_skipping

__all__ = ["SparseTraffic", "sparse_traffic"]


@dataclass(frozen=True)
class SparseTraffic:
    """What really happens.

    counters, occupancy: by ``(level, tensor)``; counters are of one instance. eliminations: the SAFs that act. instances: what
    each tensor needs of them. lanes: those that take nonzeros by position.
    """

    counters: dict[tuple[int, int], Counters]
    occupancy: dict[tuple[int, int], Occupancy]
    eliminations: list[Elimination]
    instances: dict[int, Instances]
    lanes: list[Lanes]
    computes: Computes


def sparse_traffic(
    workload: Workload,
    mapping: Mapping,
    architecture: Architecture,
    features: Features,
    traffic: Table[tuple[int, int], Traffic],
) -> SparseTraffic:
    """Filters dense traffic by the SAFs. Raises MappingError where a SAF does not fit the mapping."""
    levels = architecture.levels
    occupancy = occupancies(workload, mapping, architecture, features, traffic)
    tensors = workload.problem.tensors
    counters = {
        (level, number): existing(traffic[level, number], occupancy[level, number], is_output=tensors[number].is_output)
        for level, number in mapping.walk()
    }
    needs, spatial = spatial_skipping(workload, mapping, features)
    chosen = _chosen(workload, mapping, architecture, features, occupancy, spatial)
    computes = workload.problem.computes
    temporal = {
        found.target for found in chosen if found.kind != "skipping_spatial" and not tensors[found.target].is_output
    }
    pessimistic = architecture.conventions.pessimistic_computes and len(temporal) > 1
    innermost: list[Elimination] = []
    for number, tensor in enumerate(tensors):
        own = {found.level: found for found in chosen if found.target == number}
        mine = {level: counters[level, number] for level in mapping.keepers(number)}
        tiles = {level: occupancy[level, number] for level in mine}
        computes = eliminate(mapping, number, mine, tiles, own, computes, pessimistic=pessimistic)
        if own and not tensor.is_output:
            innermost.append(own[min(own)])
    lanes = position_skipping(workload, mapping, features)
    computes = _by_position(lanes, counters, computes)
    translate(mapping, levels, occupancy, counters)
    if features.is_empty:
        counted = Computes(computes, computes)
    elif lanes:
        counted = Computes(workload.problem.computes, computes)
    else:
        counted = compute_counts(workload, mapping, occupancy, innermost, features.compute, computes)
    return SparseTraffic(counters, occupancy, chosen, needs, lanes, counted)


def _chosen(
    workload: Workload,
    mapping: Mapping,
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
                each = best_option(workload, mapping, architecture.levels, saf, level, occupancy)
                moved = not mapping.keeps[level][each.target] and mapping.problem.tensors[each.target].is_output
                if moved and not architecture.conventions.outputs_follow:
                    continue
                before = found.get((each.level, each.target))
                if before is None or before.share < each.share:
                    found[each.level, each.target] = each
    return list(found.values())


def _by_position(lanes: list[Lanes], counters: Table[tuple[int, int], Counters], computes: int) -> int:
    """Computes that are left; an operand is read once for each round of the other ones."""
    for each in lanes:
        computes -= floor(computes * each.share)
        others = prod(other.steps for other in lanes if other.tensor != each.tensor)
        reads = counters[each.level, each.tensor].reads
        reads.actual -= floor(reads.actual * (1.0 - others))
    return computes
