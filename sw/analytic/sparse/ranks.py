"""Which loops each rank of a representation stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..features import FormattedRank, Representation
from ..nests import Nests, Site
from ..values import Count

__all__ = ["RankPlan", "plan_ranks"]


# Of each rank and step, which mappings' rank takes the step: all where there is such a loop (True), none (None), or some.
Dealt = list[list[np.ndarray | bool | None]]
# Of a rank: iterations over each dimension, those that are left out have one; and whether it has a loop.
_Part = tuple[dict[int, Count], np.ndarray]


@dataclass(frozen=True)
class RankPlan:
    """A rank in a tile. shape: coordinates of a fiber. box: iterations below one coordinate. stands: whether it has a loop."""

    shape: Count
    box: tuple[Count, ...]
    stands: np.ndarray


@dataclass(frozen=True)
class _Step:
    """A loop that a rank may stand for. factors: its iterations over each dimension that indexes the tensor, 1 but over its own.
    bound: its iterations, 1 where there is no such loop. site: where it stands; dimension: its own, where it is of the level
    inside."""

    factors: dict[int, Count]
    bound: Count
    site: Site | None = None
    dimension: int = -1

    def names(self, flattened: frozenset[int]) -> Count:
        """Whether a list of dimensions has its own."""
        return self.dimension in flattened if self.site is None else self.site.is_over(flattened)


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
    within = nests.box(child if inner is not None else -1)
    if not nests.mappings and (taker := _taker(representation, len(inner or ()), found.dimensions)) is not None:
        whole = nests.box(level)
        iterations = {dimension: whole[dimension] / within[dimension] for dimension in found.dimensions}
        moves = np.logical_or.reduce([factor > 1 for factor in iterations.values()])
        others = len(representation.ranks) - len(inner or ()) - 1 if representation else 0
        parts: list[_Part] = [({}, np.zeros(nests.count, dtype=bool))] * others
        parts.insert(taker, (iterations, moves))
    else:
        steps = _steps(nests, tensor, level, inside=inner is None)
        if representation is None:
            dealt: Dealt = [[True] * len(steps)]
        else:
            ranks = representation.ranks[len(inner or ()) :]
            dealt, left = _dealt(nests, steps, found.dimensions, ranks, inner_first=representation.inner_first)
            told = _Told(nests, steps, len(representation.ranks), len(inner or ()))
            nests.refuse(left & among, level, found.name, told)
        parts = [_taken(nests, steps, takes) for takes in dealt]
    box = list(within)
    plans = list(inner or ())
    for own, stands in parts:
        alone, below = list(nests.box(-1)), tuple(box)
        for dimension, factor in own.items():
            alone[dimension] = factor
            box[dimension] = box[dimension] * factor
        plans.append(RankPlan(found.size(alone), below, stands))
    return tuple(plans)


def _taker(representation: Representation | None, inner: int, dimensions: frozenset[int]) -> int | None:
    """Which rank behind so many inner ones stands for all loops that index the tensor, whatever they are; None where that depends
    on them."""
    if representation is None:
        return 0
    ranks = representation.ranks[inner:]
    first = 0 if representation.inner_first else len(ranks) - 1
    flattened = ranks[first].flattened if ranks else None
    return first if flattened is not None and flattened >= dimensions else None


def _taken(nests: Nests, steps: "Sequence[_Step]", takes: Sequence[np.ndarray | bool | None]) -> _Part:
    """What the loops that a rank takes make of it."""
    found: dict[int, Count] = {}
    stands = np.zeros(nests.count, dtype=bool)
    for step, taken in zip(steps, takes, strict=True):
        if taken is None:
            continue
        stands = stands | (taken & (step.bound > 1))
        for dimension, factor in step.factors.items():
            own = factor if taken is True else np.where(taken, factor, 1.0)
            found[dimension] = found[dimension] * own if dimension in found else own
    return found, stands


def _steps(nests: Nests, tensor: int, level: int, *, inside: bool) -> list[_Step]:
    """Loops between a level and the one inside, innermost first. inside: what the level inside covers counts to the innermost of
    them over its dimension; where there is none, it stands alone inside all."""
    dimensions = nests.problem.tensors[tensor].dimensions
    child = nests.inner_keeper(tensor, level)
    covered: dict[int, Count] = {d: nests.box(child)[d] for d in dimensions} if inside and child >= 0 else {}
    found = []
    for site in nests.between(child, level):
        factors = {dimension: site.factor(dimension) for dimension in dimensions if site.is_ever_over(dimension)}
        for dimension in factors:
            if dimension in covered:
                over = site.dimension == dimension
                factors[dimension] = factors[dimension] * np.where(over, covered[dimension], 1.0)
                covered[dimension] = np.where(over, 1.0, covered[dimension])
        if factors:
            found.append(_Step(factors, prod(factors.values()), site))
    alone = [
        _Step({dimension: covered[dimension]}, covered[dimension], dimension=dimension)
        for dimension in sorted(covered, reverse=True)
        if np.any(covered[dimension] > 1)
    ]
    return [*alone, *found]


def _dealt(
    nests: Nests,
    steps: Sequence[_Step],
    dimensions: frozenset[int],
    ranks: Sequence[FormattedRank],
    *,
    inner_first: bool,
) -> tuple[Dealt, np.ndarray]:
    """Which rank takes which loop, and mappings where some loops remain. dimensions: of the tensor.

    Each rank takes the next loop, and with a list of dimensions those after it that the list names. A rank whose list does not
    name the next loop stays empty.
    """
    order = range(len(steps)) if inner_first else range(len(steps) - 1, -1, -1)
    numbers = range(len(ranks)) if inner_first else range(len(ranks) - 1, -1, -1)
    # True: wherever there is a loop; False: nowhere.
    left: list[np.ndarray | bool] = [True] * len(steps)
    found: Dealt = [[None] * len(steps) for _ in ranks]
    for number in numbers:
        flattened = ranks[number].flattened
        if flattened is not None and flattened >= dimensions:
            found[number] = [None if each is False else each for each in left]
            left = [False] * len(steps)
            break
        closed: Count = np.zeros(nests.count, dtype=bool)
        for step in order:
            waits = left[step]
            if waits is False:
                continue
            if waits is True:
                waits = steps[step].bound > 1
            takes = waits & ~closed
            if flattened is not None:
                takes = takes & steps[step].names(flattened)
                closed = closed | (waits & ~takes)
            else:
                closed = closed | takes
            left[step] = waits & ~takes
            found[number][step] = takes
    remain = np.zeros(nests.count, dtype=bool)
    for each, waiting in zip(left, steps, strict=True):
        remain = remain | (waiting.bound > 1 if each is True else each)
    return found, remain


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
                dimension = step.dimension if step.site is None else int(step.site.dimension[number])
                written.append(f"{names[dimension]}={bound}")
        besides = f" besides {self.taken} of the level inside" if self.taken else ""
        return f"{self.ranks} ranks", f"more: they must stand for the loops {' '.join(written)}{besides}"
