"""Which loops each rank of a representation stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import MappingError
from ..features import FormattedRank, Representation
from ..mapping import Mapping

__all__ = ["RankPlan", "plan_ranks"]

# A dimension and how many of its coordinates a rank has, and the box below one of them.
Step = tuple[int, int]


@dataclass(frozen=True)
class RankPlan:
    """A rank in a tile. shape: coordinates of a fiber. box: iterations below one coordinate. loops: the loops it stands for."""

    shape: int
    box: tuple[int, ...]
    loops: tuple[Step, ...] = ()


def plan_ranks(
    mapping: Mapping,
    tensor: int,
    level: int,
    representation: Representation | None,
    inner: tuple[RankPlan, ...] | None,
) -> tuple[RankPlan, ...]:
    """Lays the loops that index a tensor on the ranks of its representation at a level, innermost rank first.

    inner: ranks of the next level inside that keeps the tensor, where this level must be cut as that one is (*pre-tiling*): they
    are its own inner ranks. Without it loops inside count to those of this level. Without a representation there is one rank for
    all. Raises MappingError where loops remain.
    """
    found = mapping.problem.tensors[tensor]
    child = mapping.inner_keeper(tensor, level)
    box = list(mapping.box(child))
    between = [place.loop for place in mapping.between(child, level) if place.loop.dimension in found.dimensions]
    steps: list[Step]
    if inner is None:
        inside, box = dict(enumerate(box)), [1] * len(box)
        steps = [(loop.dimension, loop.bound * inside.pop(loop.dimension, 1)) for loop in between]
        for dimension in sorted(found.dimensions & inside.keys()):
            steps.insert(0, (dimension, inside[dimension]))
    else:
        steps = [(loop.dimension, loop.bound) for loop in between]
    steps = [step for step in steps if step[1] > 1]
    own = _dealt(steps, representation, len(inner or ()))
    if own is None:
        assert representation is not None
        raise MappingError(
            level,
            found.name,
            f"{len(representation.ranks)} ranks",
            f"more: they must stand for the loops {_written(mapping, steps)}"
            + (f" besides {len(inner)} of the level inside" if inner else ""),
        )
    plans = list(inner or ())
    for loops in own:
        alone = [1] * len(box)
        below = tuple(box)
        for dimension, bound in loops:
            alone[dimension] *= bound
            box[dimension] *= bound
        plans.append(RankPlan(found.size(alone), below, tuple(loops)))
    return tuple(plans)


def _written(mapping: Mapping, steps: Sequence[Step]) -> str:
    return " ".join(f"{mapping.problem.dimensions[dimension]}={bound}" for dimension, bound in reversed(steps))


def _dealt(steps: list[Step], representation: Representation | None, taken: int) -> list[list[Step]] | None:
    """Loops of each rank from number ``taken`` on, innermost first; None where some remain."""
    if representation is None:
        return [steps]
    ranks = list(representation.ranks[taken:])
    if representation.inner_first:
        return _taken(steps, ranks)
    found = _taken(steps[::-1], ranks[::-1])
    return None if found is None else [loops[::-1] for loops in found[::-1]]


def _taken(steps: Sequence[Step], ranks: Sequence[FormattedRank]) -> list[list[Step]] | None:
    """Each rank takes the next loop, and with a list of dimensions those after it that the list names. A rank whose list does not
    name the next loop stays empty."""
    left = list(steps)
    found = []
    for rank in ranks:
        loops: list[Step] = []
        while left and (not loops if rank.flattened is None else left[0][0] in rank.flattened):
            loops.append(left.pop(0))
        found.append(loops)
    return None if left else found
