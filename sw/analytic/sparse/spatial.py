"""Skipping over instances side by side: fewer of them are needed, and fewer on average are busy."""

from dataclasses import dataclass, field

from ..features import Features
from ..mapping import Mapping, Place
from ..problem import Workload
from .leaders import Elimination

__all__ = ["Instances", "spatial_skipping"]

KIND = "skipping_spatial"


@dataclass
class Instances:
    """Instances that a tensor needs of each level (-1: compute units), as shares of those that the mapping spreads over.

    busy: on average. x, y: at most, along the two axes of the mesh.
    """

    busy: dict[int, float] = field(default_factory=dict)
    x: dict[int, float] = field(default_factory=dict)
    y: dict[int, float] = field(default_factory=dict)

    def shrink(self, levels: range, busy: float, x: float, y: float) -> None:
        """Multiplies the shares of some levels."""
        for level in levels:
            self.busy[level] = self.busy.get(level, 1.0) * busy
            self.x[level] = self.x.get(level, 1.0) * x
            self.y[level] = self.y.get(level, 1.0) * y


def spatial_skipping(
    workload: Workload, mapping: Mapping, features: Features
) -> tuple[dict[int, Instances], list[Elimination]]:
    """What each tensor needs of the instances, and the SAFs with the share of accesses that they remove inside their level.

    A tensor whose own zeros are known outside a level needs no instance for them, once the machine can skip over instances.
    """
    needs: dict[int, Instances] = {number: Instances() for number in range(len(mapping.problem.tensors))}
    found: list[Elimination] = []
    stated = {
        (level, option.target): option.leaders
        for level, safs in features.actions.items()
        for saf in safs
        if saf.kind == KIND
        for option in saf.options
    }
    if not stated:
        return needs, found
    for number in range(len(mapping.problem.tensors)):
        for level in range(len(mapping.loops)):
            leaders = stated.get((level, number))
            if leaders is not None:
                shares = [(leader, _need(workload, mapping, features, number, leader, level)) for leader in leaders]
                busy, x, y = 1.0, 1.0, 1.0
                for _, (share, along_x, along_y, _) in shares:
                    busy, x, y = busy * share, x * along_x, y * along_y
                needs[number].shrink(range(-1, level), busy, x, y)
                empties = tuple((leader, 1.0 - need[0]) for leader, need in shares)
                boxes = tuple(need[3] for _, need in shares)
                found.append(Elimination(KIND, level, number, 1.0 - busy, 1.0 - busy, empties, boxes))
            else:
                busy, x, y, _ = _need(workload, mapping, features, number, number, level)
                needs[number].shrink(range(-1, level), busy, x, y)
    return needs, found


def _need(
    workload: Workload, mapping: Mapping, features: Features, target: int, leader: int, level: int
) -> tuple[float, float, float, tuple[int, ...]]:
    """Share of the instances inside a level that meet a nonzero of the leader: on average, and at most along x and y.

    The leader's zeros must be known at its nearest level outside; else nothing is skipped.
    """
    tensor = mapping.problem.tensors[leader]
    keeper = min((other for other in mapping.keepers(leader) if other >= level), default=None)
    nothing = (1.0, 1.0, 1.0, mapping.box(-1))
    if keeper is None or (keeper, leader) not in features.representations:
        return nothing
    spatial = [
        place
        for place in mapping.between(level - 1, level)
        if place.loop.is_spatial and place.loop.bound > 1 and place.loop.dimension in tensor.dimensions
    ]
    if not spatial:
        return nothing
    density = workload.density(tensor)
    box = _stationary(mapping, target, leader, level, spatial[0])
    busy = 1.0 - density.empty(tensor.extents(box))
    most = {"x": 1.0, "y": 1.0}
    for place in spatial:
        fiber = list(place.below)
        fiber[place.loop.dimension] *= place.loop.bound
        needed = min(place.loop.bound, density.maximum(tensor.extents(fiber)))
        most[place.loop.axis] *= needed / place.loop.bound
    return busy, most["x"], most["y"], box


def _stationary(mapping: Mapping, target: int, leader: int, level: int, place: Place) -> tuple[int, ...]:
    """Iterations of the leader's tile at one instance: with those temporal loops that leave the target's tile where it is."""
    box = list(place.below)
    if target == leader or mapping.inner_keeper(target, level) < 0:
        return tuple(box)
    of_target = mapping.problem.tensors[target].dimensions
    if place.loop.dimension not in of_target:
        return tuple(box)
    keeper = min((other for other in mapping.keepers(target) if other >= level), default=level)
    for other in mapping.between(level - 1, keeper):
        if other.loop.is_spatial or other.loop.bound == 1:
            continue
        if other.loop.dimension in of_target:
            break
        box[other.loop.dimension] *= other.loop.bound
    return tuple(box)
