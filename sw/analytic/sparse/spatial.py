"""Skipping over instances side by side: fewer of them are needed, and fewer on average are busy."""

from dataclasses import dataclass, field

import numpy as np

from ..architecture import Storage
from ..densities.many import of_many
from ..features import Features
from ..nests import Nests, Site
from ..problem import Workload
from ..values import Batched, Count, Real
from .leaders import Elimination

__all__ = ["Instances", "spatial_skipping"]

KIND = "skipping_spatial"


@dataclass
class Instances(Batched):
    """Instances that a tensor needs of each level (-1: compute units), as shares of those that the mapping spreads over.

    busy: on average. x, y: at most, along the two axes of the mesh.
    """

    busy: dict[int, Real] = field(default_factory=dict)
    x: dict[int, Real] = field(default_factory=dict)
    y: dict[int, Real] = field(default_factory=dict)

    def shrink(self, levels: range, busy: Real, x: Real, y: Real) -> None:
        """Multiplies the shares of some levels."""
        for level in levels:
            self.busy[level] = self.busy.get(level, 1.0) * busy
            self.x[level] = self.x.get(level, 1.0) * x
            self.y[level] = self.y.get(level, 1.0) * y


def spatial_skipping(
    workload: Workload, nests: Nests, features: Features, levels: tuple[Storage, ...]
) -> tuple[dict[int, Instances], list[Elimination]]:
    """What each tensor needs of the instances, and the SAFs with the share of accesses that they remove inside their level.

    A tensor whose own zeros are known outside a level needs no instance for them, once the hardware can skip over instances.
    The loops side by side are those of the level and of containers next to it inside.
    """
    needs: dict[int, Instances] = {number: Instances() for number in range(len(nests.problem.tensors))}
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
    for number in range(len(nests.problem.tensors)):
        for level, storage in enumerate(levels):
            if storage.is_spatial:
                continue
            leaders = stated.get((level, number))
            if leaders is not None:
                shares = [
                    (leader, _need(workload, nests, features, levels, number, leader, level)) for leader in leaders
                ]
                busy, x, y = nests.ones(), nests.ones(), nests.ones()
                for _, (share, along_x, along_y, _) in shares:
                    busy, x, y = busy * share, x * along_x, y * along_y
                needs[number].shrink(range(-1, level), busy, x, y)
                empties = tuple((leader, 1.0 - need[0]) for leader, need in shares)
                boxes = tuple(need[3] for _, need in shares)
                found.append(Elimination(KIND, level, number, 1.0 - busy, 1.0 - busy, empties, boxes))
            else:
                busy, x, y, _ = _need(workload, nests, features, levels, number, number, level)
                needs[number].shrink(range(-1, level), busy, x, y)
    return needs, found


def _innermost(levels: tuple[Storage, ...], level: int) -> int:
    """The last of the containers inside a level; itself without one."""
    while level and levels[level - 1].is_spatial:
        level -= 1
    return level


def _need(
    workload: Workload,
    nests: Nests,
    features: Features,
    levels: tuple[Storage, ...],
    target: int,
    leader: int,
    level: int,
) -> tuple[Real, Real, Real, tuple[Count, ...]]:
    """Share of the instances inside a level that meet a nonzero of the leader: on average, and at most along x and y.

    The leader's zeros must be known at its nearest level outside; else nothing is skipped.
    """
    tensor = nests.problem.tensors[leader]
    keeper = min((other for other in nests.keepers(leader) if other >= level), default=None)
    most = {False: nests.ones(), True: nests.ones()}
    box = nests.box(-1)
    if keeper is None or (keeper, leader) not in features.representations:
        return nests.ones(), most[False], most[True], box
    density = of_many(workload.density(tensor))
    busy: Real = nests.ones()
    begun = np.zeros(nests.count, dtype=bool)
    for site in nests.between(_innermost(levels, level) - 1, level):
        if not site.is_spatial:
            continue
        here = site.moves & site.is_over(tensor.dimensions)
        first = here & ~begun
        if first.any():
            begun = begun | here
            wide = _stationary(nests, target, leader, level, site)
            box = tuple(np.where(first, mine, own) for mine, own in zip(wide, box, strict=True))
            busy = np.where(first, 1.0 - density.empty(tensor.extents(wide)), busy)
        fiber = tuple(length * site.factor(d) for d, length in enumerate(nests.below(site)))
        needed = np.minimum(site.bound, density.maximum(tensor.extents(fiber)))
        for along_y in most:
            use = here & (site.along_y == along_y)
            most[along_y] = most[along_y] * np.where(use, needed / site.bound, 1.0)
    return busy, most[False], most[True], box


def _stationary(nests: Nests, target: int, leader: int, level: int, site: Site) -> tuple[Count, ...]:
    """Iterations of the leader's tile at one instance: with those temporal loops that leave the target's tile where it is."""
    box = list(nests.below(site))
    if target == leader or nests.inner_keeper(target, level) < 0:
        return tuple(box)
    of_target = nests.problem.tensors[target].dimensions
    keeper = min((other for other in nests.keepers(target) if other >= level), default=level)
    stays = site.is_over(of_target)
    for other in nests.between(level - 1, keeper):
        if not other.is_spatial:
            stays = stays & ~(other.moves & other.is_over(of_target))
            box = [length * np.where(stays, other.factor(d), 1.0) for d, length in enumerate(box)]
    return tuple(box)
