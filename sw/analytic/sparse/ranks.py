"""Which loops each rank of a representation stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..features import FormattedRank, Representation
from ..nests import Nests
from ..values import Count

__all__ = ["RankPlan", "plan_ranks"]


# Of each rank and step, which mappings' rank takes the step; None where none does.
Dealt = list[list[np.ndarray | None]]


@dataclass(frozen=True)
class RankPlan:
    """A rank in a tile. shape: coordinates of a fiber. box: iterations below one coordinate. stands: whether it has a loop."""

    shape: Count
    box: tuple[Count, ...]
    stands: np.ndarray


@dataclass(frozen=True)
class _Step:
    """A loop that a rank may stand for. factors: its iterations over each dimension that indexes the tensor, 1 but over its own.
    dimension: of each mapping; of all where it is a number. bound: its iterations, 1 where there is no such loop."""

    dimension: Count
    factors: dict[int, Count]
    bound: Count


def plan_ranks(
    nests: Nests,
    tensor: int,
    level: int,
    representation: Representation | None,
    inner: tuple[RankPlan, ...] | None,
    *,
    among: Count = True,
) -> tuple[RankPlan, ...]:
    """Lays the loops that index a tensor on the ranks of its representation at a level, innermost rank first.

    inner: ranks of the next level inside that keeps the tensor, where this level must be cut as that one is (*pre-tiling*): they
    are its own inner ranks. Without it loops inside count to those of this level. Without a representation there is one rank for
    all. Refuses mappings of which loops remain. among: the others are not refused.
    """
    found = nests.problem.tensors[tensor]
    child = nests.inner_keeper(tensor, level)
    steps = _steps(nests, tensor, level, inside=inner is None)
    if representation is None:
        dealt: Dealt = [[np.ones(nests.count, dtype=bool)] * len(steps)]
    else:
        ranks = representation.ranks[len(inner or ()) :]
        dealt, left = _dealt(nests, steps, ranks, inner_first=representation.inner_first)
        told = _Told(nests, steps, len(representation.ranks), len(inner or ()))
        nests.refuse(left & among, level, found.name, told)
    box = list(nests.box(child if inner is not None else -1))
    plans = list(inner or ())
    for takes in dealt:
        alone, below, stands = list(nests.box(-1)), tuple(box), np.zeros(nests.count, dtype=bool)
        for step, taken in zip(steps, takes, strict=True):
            if taken is None:
                continue
            stands = stands | (taken & (step.bound > 1))
            for dimension, factor in step.factors.items():
                own = factor if representation is None else np.where(taken, factor, 1.0)
                alone[dimension] = alone[dimension] * own
        for dimension in found.dimensions:
            box[dimension] = box[dimension] * alone[dimension]
        plans.append(RankPlan(found.size(alone), below, stands))
    return tuple(plans)


def _steps(nests: Nests, tensor: int, level: int, *, inside: bool) -> list[_Step]:
    """Loops between a level and the one inside, innermost first. inside: what the level inside covers counts to the innermost of
    them over its dimension; where there is none, it stands alone inside all."""
    dimensions = nests.problem.tensors[tensor].dimensions
    child = nests.inner_keeper(tensor, level)
    covered: dict[int, Count] = {d: nests.box(child)[d] for d in dimensions} if inside and child >= 0 else {}
    found = []
    for site in nests.between(child, level):
        factors = {}
        for dimension in dimensions:
            factors[dimension] = site.factor(dimension)
            if dimension in covered:
                over = site.dimension == dimension
                factors[dimension] = factors[dimension] * np.where(over, covered[dimension], 1.0)
                covered[dimension] = np.where(over, 1.0, covered[dimension])
        found.append(_Step(site.dimension, factors, prod(factors.values())))
    alone = [_Step(dimension, {dimension: covered[dimension]}, covered[dimension]) for dimension in sorted(covered)]
    return [*reversed(alone), *found]


def _dealt(
    nests: Nests, steps: Sequence[_Step], ranks: Sequence[FormattedRank], *, inner_first: bool
) -> tuple[Dealt, np.ndarray]:
    """Which rank takes which loop, and mappings where some loops remain.

    Each rank takes the next loop, and with a list of dimensions those after it that the list names. A rank whose list does not
    name the next loop stays empty.
    """
    order = range(len(steps)) if inner_first else range(len(steps) - 1, -1, -1)
    numbers = range(len(ranks)) if inner_first else range(len(ranks) - 1, -1, -1)
    left = [step.bound > 1 for step in steps]
    found: Dealt = [[None] * len(steps) for _ in ranks]
    for number in numbers:
        flattened = ranks[number].flattened
        closed: Count = np.zeros(nests.count, dtype=bool)
        for step in order:
            waits = left[step]
            takes = waits & ~closed
            if flattened is not None:
                takes = takes & _names(flattened, steps[step].dimension)
                closed = closed | (waits & ~takes)
            else:
                closed = closed | takes
            left[step] = waits & ~takes
            found[number][step] = takes
    remain = np.zeros(nests.count, dtype=bool)
    for each in left:
        remain = remain | each
    return found, remain


def _names(flattened: frozenset[int], dimension: Count) -> Count:
    if isinstance(dimension, int):
        return dimension in flattened
    return np.isin(dimension, list(flattened))


@dataclass(frozen=True)
class _Told:
    """Says which loops ranks must stand for."""

    nests: Nests
    steps: Sequence[_Step]
    ranks: int
    taken: int

    def __call__(self, number: int) -> tuple[str, str]:
        names = self.nests.problem.dimensions
        written = []
        for step in reversed(self.steps):
            bound = int(np.broadcast_to(step.bound, self.nests.count)[number])
            if bound > 1:
                written.append(f"{names[int(np.broadcast_to(step.dimension, self.nests.count)[number])]}={bound}")
        besides = f" besides {self.taken} of the level inside" if self.taken else ""
        return f"{self.ranks} ranks", f"more: they must stand for the loops {' '.join(written)}{besides}"
