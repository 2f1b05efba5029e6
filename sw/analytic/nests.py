"""Many mappings of one problem as arrays, to be evaluated at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from .errors import MappingError
from .mapping import Keeping, Loop, Mapping
from .problem import Problem
from .values import Count

__all__ = ["Differ", "Nests", "Site"]

# Stands for no loop.
NONE = -1
# Value and what is allowed, of one mapping.
Told = Callable[[int], tuple[str, str]]


class Differ(Exception):
    """Mappings of one batch must be counted in different ways. labels: a number for each; equal ones are counted alike."""

    def __init__(self, labels: np.ndarray) -> None:
        super().__init__()
        self.labels = labels.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Site:
    """Where each mapping has a loop, or none.

    dimension: of the loop, -1 without one. bound: its iterations, 1 without one. along_y: which axis a spatial loop runs along.
    """

    level: int
    is_spatial: bool
    dimension: np.ndarray
    bound: np.ndarray
    along_y: np.ndarray
    _known: dict[object, Count] = field(default_factory=dict, repr=False)

    @cached_property
    def moves(self) -> np.ndarray:
        """Whether the loop has several iterations."""
        return self.bound > 1

    def is_over(self, dimensions: frozenset[int]) -> np.ndarray:
        """Whether there is a loop, and over one of these dimensions."""
        if dimensions not in self._known:
            table = np.zeros(int(max(dimensions, default=0)) + 129, dtype=bool)
            table[list(dimensions)] = True
            self._known[dimensions] = table.take(self.dimension, mode="wrap")
        return self._known[dimensions]

    @cached_property
    def _more(self) -> np.ndarray:
        """Iterations beside the first."""
        return self.bound - 1

    def is_ever_over(self, dimension: int) -> bool:
        """Whether some mapping has a loop over a dimension."""
        return bool(self._ever[dimension])

    @cached_property
    def _ever(self) -> np.ndarray:
        return np.bincount(self.dimension.astype(np.int64) + 1, minlength=128)[1:] > 0

    def factor(self, dimension: int) -> np.ndarray:
        """Iterations over a dimension; 1 where the loop is over another one."""
        if dimension not in self._known:
            ever = self.is_ever_over(dimension)
            self._known[dimension] = (self.dimension == dimension) * self._more + 1 if ever else np.float64(1.0)
        return self._known[dimension]

    def take(self, which: np.ndarray) -> "Site":
        """That of some of the mappings."""
        return Site(self.level, self.is_spatial, self.dimension[which], self.bound[which], self.along_y[which])


@dataclass(frozen=True, eq=False)
class Nests(Keeping):
    """Mappings whose levels keep the same tensors.

    sites: innermost first; at each level those of spatial loops are inside those of temporal ones. mappings: the same one by
    one where loops have remainders, which are counted one by one; else empty. Mappings that cannot be are noted by
    :meth:`refuse`; what is counted for them means nothing.
    """

    problem: Problem
    keeps: tuple[tuple[bool, ...], ...]
    sites: tuple[Site, ...]
    count: int
    mappings: tuple[Mapping, ...] = ()
    apart: tuple[frozenset[int], ...] = ()
    _refused: list[tuple[np.ndarray, int, str, Told]] = field(default_factory=list, repr=False)
    _products: dict[object, Count] = field(default_factory=dict, repr=False)

    @property
    def levels(self) -> int:
        """Storage levels."""
        return len(self.keeps)

    @classmethod
    def of(cls, mappings: Sequence[Mapping]) -> "Nests":
        """Mappings whose ``keeps`` and ``apart`` are the same, and which all have remainders or none of which has."""
        first = mappings[0]
        levels = range(len(first.loops))
        parts: list[list[list[Sequence[Loop]]]] = [[[], []] for _ in levels]
        for mapping in mappings:
            for level, loops in enumerate(mapping.loops):
                # Loops of one iteration do nothing.
                several = [loop for loop in loops if loop.bound > 1]
                parts[level][0].append([loop for loop in several if loop.axis != "time"])
                parts[level][1].append([loop for loop in several if loop.axis == "time"])
        sites = [
            site
            for level in levels
            for is_spatial, own in zip((True, False), parts[level], strict=True)
            for site in _sites(level, is_spatial, own)
        ]
        kept = tuple(mappings) if first.imperfect else ()
        return cls(first.problem, first.keeps, tuple(sites), len(mappings), kept, first.apart)

    def take(self, which: np.ndarray) -> "Nests":
        """Some of the mappings. which: their numbers."""
        mappings = tuple(self.mappings[number] for number in which) if self.mappings else ()
        sites = tuple(site.take(which) for site in self.sites)
        return replace(self, sites=sites, count=len(which), mappings=mappings, _refused=[], _products={})

    def refuse(self, refused: np.ndarray | bool, level: int, subject: str, told: Told) -> None:
        """Notes mappings that a level cannot do. told: the value as it is and what is allowed, of one mapping."""
        if np.any(refused):
            self._refused.append((np.broadcast_to(refused, self.count), level, subject, told))

    @property
    def valid(self) -> np.ndarray:
        """Mappings that are not refused."""
        found = np.ones(self.count, dtype=bool)
        for refused, *_ in self._refused:
            found &= ~refused
        return found

    def error(self, number: int) -> MappingError | None:
        """The first reason why a mapping is refused."""
        for refused, level, subject, told in self._refused:
            if refused[number]:
                return MappingError(level, subject, *told(number))
        return None

    def reasons(self) -> dict[tuple[int, str], np.ndarray]:
        """Numbers of the mappings that are refused, by the first reason of each: the level and what of it."""
        found: dict[tuple[int, str], np.ndarray] = {}
        left = np.ones(self.count, dtype=bool)
        for refused, level, subject, _ in self._refused:
            own = np.flatnonzero(refused & left)
            left = left & ~refused
            if own.size:
                found[level, subject] = np.concatenate([found.get((level, subject), own[:0]), own])
        return found

    @cached_property
    def _begins(self) -> list[int]:
        """Number of the first site of each level."""
        found = [sum(site.level < level for site in self.sites) for level in range(self.levels)]
        return [*found, len(self.sites)]

    def between(self, inner: int, outer: int) -> tuple[Site, ...]:
        """Sites outside level ``inner`` up to level ``outer``, innermost first."""
        return self.sites[self._begins[inner + 1] : self._begins[min(outer + 1, self.levels)]]

    def ones(self) -> np.ndarray:
        """1 for each mapping."""
        return np.ones(self.count)

    def box(self, level: int) -> tuple[Count, ...]:
        """Iterations of each dimension that the loops of a level and those inside cover, at most; of level -1 a single one."""
        return self._boxes[level + 1]

    @cached_property
    def _boxes(self) -> list[tuple[Count, ...]]:
        found: list[tuple[Count, ...]] = [tuple(self.ones() for _ in self.problem.bounds)]
        for level in range(self.levels):
            box = self._reach[self._begins[level + 1]]
            found.append(tuple(map(np.minimum, box, self.problem.bounds)) if self.mappings else box)
        return found

    @cached_property
    def _reach(self) -> list[tuple[Count, ...]]:
        """Iterations below each site, remainders not counted; the last ones are those of all."""
        box: tuple[Count, ...] = tuple(self.ones() for _ in self.problem.bounds)
        found = [box]
        for site in self.sites:
            box = tuple(
                inside * site.factor(dimension) if site.is_ever_over(dimension) else inside
                for dimension, inside in enumerate(box)
            )
            found.append(box)
        return found

    def below(self, site: Site) -> tuple[Count, ...]:
        """Iterations of each dimension that one iteration of a loop covers."""
        return self._reach[self.sites.index(site)]

    def above(self, site: Site) -> tuple[Count, ...]:
        """Iterations of each dimension that all iterations of a loop cover."""
        return self._reach[self.sites.index(site) + 1]

    def product(self, level: int, *, spatial: bool, dimensions: frozenset[int] | None = None) -> Count:
        """Iterations of the spatial or the temporal loops of a level, all or those over some dimensions."""
        key = (level, spatial, dimensions)
        if key not in self._products:
            found: Count = 1.0
            for site in self.between(level - 1, level):
                if site.is_spatial == spatial:
                    found = found * (
                        site.bound if dimensions is None else np.where(site.is_over(dimensions), site.bound, 1.0)
                    )
            self._products[key] = found
        return self._products[key]

    def spread(self, level: int) -> tuple[Count, Count]:
        """Instances of a level, along x and along y, that the spatial loops outside it use. Level -1: the compute units."""
        if ("spread", level) not in self._products:
            along_x, along_y = self.spread(level + 1) if level + 1 < self.levels else (self.ones(), self.ones())
            for site in self.between(level, level + 1):
                if site.is_spatial:
                    along_x = along_x * np.where(site.along_y, 1.0, site.bound)
                    along_y = along_y * np.where(site.along_y, site.bound, 1.0)
            self._products["spread", level] = (along_x, along_y)
        found: tuple[Count, Count] = self._products["spread", level]
        return found

    def instances(self, level: int) -> Count:
        """Instances of a level in use."""
        x, y = self.spread(level)
        return x * y


def _sites(level: int, is_spatial: bool, loops: Sequence[Sequence[Loop]]) -> Iterable[Site]:
    """As many as the mapping with the most loops has."""
    width = max(map(len, loops))
    if not width:
        return
    nothing = Loop(NONE, 1)
    flat = list(chain.from_iterable([*own, *[nothing] * (width - len(own))] for own in loops))
    shape = (len(loops), width)
    dimension = np.array([loop.dimension for loop in flat], dtype=np.int8).reshape(shape)
    bound = np.array([loop.bound for loop in flat], dtype=np.float64).reshape(shape)
    along_y = np.array([loop.axis == "y" for loop in flat], dtype=bool).reshape(shape)
    for number in range(width):
        own = [np.ascontiguousarray(each[:, number]) for each in (dimension, bound, along_y)]
        yield Site(level, is_spatial, own[0], own[1], own[2])
