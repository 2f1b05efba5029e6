"""The mapping: loops of each storage level, and which tensors each level keeps."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod

from .problem import Problem

__all__ = ["TIME", "Keeping", "Loop", "Mapping", "Place"]

TIME = "time"


@dataclass(frozen=True)
class Loop:
    """A loop over a dimension. axis: ``time``, or ``x`` or ``y`` where its iterations run on instances side by side."""

    dimension: int
    bound: int
    axis: str = TIME

    @property
    def is_spatial(self) -> bool:
        """Whether iterations run side by side."""
        return self.axis != TIME


@dataclass(frozen=True)
class Place:
    """A loop and where it stands: the level, and the box of iterations that one of its iterations (``below``) and all of them
    (``above``) cover, remainders not counted.

    residual: its iterations at the last iteration of all outer loops over its dimension.
    """

    level: int
    loop: Loop
    below: tuple[int, ...]
    above: tuple[int, ...]
    residual: int


class Keeping:
    """Which tensors each level keeps. keeps: by level and tensor.

    apart: for each level the tensors whose words its spatial loops bring to each instance by an access of its own, and take from
    each alone: neither multicast nor reduction. Empty where there are none at all.
    """

    problem: Problem
    keeps: tuple[tuple[bool, ...], ...]
    apart: tuple[frozenset[int], ...]

    def is_apart(self, level: int, tensor: int) -> bool:
        """Whether instances that want the same words of a tensor each have an access of their own."""
        return bool(self.apart) and tensor in self.apart[level]

    def keepers(self, tensor: int) -> list[int]:
        """Levels that keep a tensor, innermost first."""
        return self._keepers[tensor]

    @cached_property
    def _keepers(self) -> list[list[int]]:
        tensors = range(len(self.problem.tensors))
        return [[level for level, kept in enumerate(self.keeps) if kept[tensor]] for tensor in tensors]

    def inner_keeper(self, tensor: int, level: int) -> int:
        """The next level inside that keeps the tensor; -1 where it is the compute units."""
        return max((keeper for keeper in self.keepers(tensor) if keeper < level), default=-1)

    def outer_keeper(self, tensor: int, level: int) -> int | None:
        """The next level outside that keeps the tensor."""
        return min((keeper for keeper in self.keepers(tensor) if keeper > level), default=None)

    def walk(self) -> Iterator[tuple[int, int]]:
        """Each level and tensor that it keeps."""
        for level, kept in enumerate(self.keeps):
            yield from ((level, tensor) for tensor, here in enumerate(kept) if here)


@dataclass(frozen=True)
class Mapping(Keeping):
    """Loops of each level, innermost level first and innermost loop first; at each level spatial loops are inside temporal ones.

    The bounds of a dimension's loops may have a product above the bound of the dimension: points beyond it do not exist, so that
    a loop has a remainder (*imperfect factors*). The outermost of them runs no further than it must.
    keeps: for each level and tensor whether the level holds tiles of the tensor; where not, the tensor bypasses it.
    """

    problem: Problem
    loops: tuple[tuple[Loop, ...], ...]
    keeps: tuple[tuple[bool, ...], ...]
    apart: tuple[frozenset[int], ...] = ()

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All loops, innermost first; those of one iteration, too."""
        box = [1] * len(self.problem.dimensions)
        found = []
        for level, loops in enumerate(self.loops):
            for loop in loops:
                below = tuple(box)
                box[loop.dimension] *= loop.bound
                last = self.problem.bounds[loop.dimension] - 1
                residual = last // below[loop.dimension] % loop.bound + 1
                found.append(Place(level, loop, below, tuple(box), residual))
        return tuple(found)

    @cached_property
    def imperfect(self) -> frozenset[int]:
        """Dimensions with a loop that has a remainder."""
        return frozenset(p.loop.dimension for p in self.places if p.residual != p.loop.bound)

    def box(self, level: int) -> tuple[int, ...]:
        """Iterations that the loops of a level and those inside cover, at most; of level -1 it is a single one."""
        return self._boxes[level + 1]

    @cached_property
    def _boxes(self) -> list[tuple[int, ...]]:
        found = [(1,) * len(self.problem.dimensions)] * (len(self.loops) + 1)
        for place in self.places:
            box = tuple(map(min, place.above, self.problem.bounds))
            found[place.level + 1 :] = [box] * (len(found) - place.level - 1)
        return found

    def between(self, inner: int, outer: int) -> tuple[Place, ...]:
        """Loops outside level ``inner`` up to level ``outer``, innermost first."""
        return self.places[self._begins[inner + 1] : self._begins[min(outer + 1, len(self.loops))]]

    @cached_property
    def _begins(self) -> list[int]:
        """Number of the first loop of each level."""
        return list(accumulate(map(len, self.loops), initial=0))

    def spread(self, level: int) -> tuple[int, int]:
        """Instances of a level, along x and along y, that the spatial loops outside it use. Level -1: the compute units."""
        outside = [place.loop for place in self.between(level, len(self.loops)) if place.loop.is_spatial]
        return (
            prod(loop.bound for loop in outside if loop.axis == "x"),
            prod(loop.bound for loop in outside if loop.axis == "y"),
        )

    def instances(self, level: int) -> int:
        """Instances of a level in use."""
        x, y = self.spread(level)
        return x * y
