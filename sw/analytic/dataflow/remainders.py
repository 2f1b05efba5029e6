"""Arrivals of tiles where loops have remainders: the last iteration of all outer loops over a dimension is shorter.

Iterations at the end of a dimension are told apart from the others; all others are alike. So a nest is visited once for each set
of dimensions that are at their end, not once for each iteration.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ..mapping import Mapping, Place
from ..problem import Tensor

__all__ = ["arrivals", "time_steps"]

# Where the index of a spatial loop stands to that of the dimension's last point: below it, at it, above it.
BELOW, AT, ABOVE = range(3)


@dataclass(frozen=True)
class _Run:
    """What some loops bring to one instance. extents: of the one tile, None where there are several. words: 0 where the instance
    has nothing to do."""

    words: int
    extents: tuple[int, ...] | None


NOTHING = _Run(0, None)


def arrivals(mapping: Mapping, tensor: Tensor, level: int, once: Sequence[Place], *, stationary: bool = True) -> int:
    """Words of a tensor that arrive at a level, over all instances.

    once: loops of which only the first iteration counts, as where instances side by side receive the same words. stationary: a
    tile stays while no loop that indexes its tensor moves on; else it arrives at each iteration.
    """
    places = [place for place in reversed(mapping.between(level, len(mapping.loops))) if place.loop.bound > 1]
    kinds = [_kinds(mapping, place, first=place in once) for place in places]
    total = 0
    for chosen in product(*kinds):
        times = prod(count for count, _ in chosen)
        if times:
            visit = _Visit(mapping, tensor, level, places, [kind for _, kind in chosen], stationary)
            total += times * visit.run(0, mapping.imperfect).words
    return total


def time_steps(mapping: Mapping) -> int:
    """Steps in time of the whole nest."""
    side_by_side = [place for place in mapping.places if place.loop.is_spatial]
    return arrivals(mapping, Tensor("", (), is_output=False), -1, side_by_side, stationary=False)


def _kinds(mapping: Mapping, place: Place, *, first: bool) -> list[tuple[int, int | None]]:
    """How many instances there are of each kind; None: the loop runs in time."""
    if first:
        return [(1, BELOW if place.residual > 1 or place.loop.dimension not in mapping.imperfect else AT)]
    if not place.loop.is_spatial:
        return [(1, None)]
    if place.loop.dimension not in mapping.imperfect:
        return [(place.loop.bound, BELOW)]
    return [(place.residual - 1, BELOW), (1, AT), (place.loop.bound - place.residual, ABOVE)]


@dataclass
class _Visit:
    """The loops outside a level, outermost first, for instances of one kind."""

    mapping: Mapping
    tensor: Tensor
    level: int
    places: Sequence[Place]
    kinds: Sequence[int | None]
    stationary: bool

    def __post_init__(self) -> None:
        self.known: dict[tuple[int, frozenset[int]], _Run] = {}
        box = self.mapping.box(self.level)
        bounds = self.mapping.problem.bounds
        # A tile at the end of a dimension has what is left.
        self.lengths = [(full, (bound - 1) % full + 1) for full, bound in zip(box, bounds, strict=True)]
        moving = [
            number
            for number, (place, kind) in enumerate(zip(self.places, self.kinds, strict=True))
            if kind is None and place.loop.dimension in self.tensor.dimensions
        ]
        self.slides = moving[-1] if moving and self.stationary else None

    def run(self, number: int, ends: frozenset[int]) -> _Run:
        """From one loop on; ends: dimensions of which all outer loops are at their last iteration."""
        if number == len(self.places):
            extents = self.tensor.extents([pair[dimension in ends] for dimension, pair in enumerate(self.lengths)])
            return _Run(prod(extents), extents)
        key = (number, ends)
        if key not in self.known:
            self.known[key] = self._loop(number, ends)
        return self.known[key]

    def _loop(self, number: int, ends: frozenset[int]) -> _Run:
        place, kind = self.places[number], self.kinds[number]
        dimension = place.loop.dimension
        at_end = dimension in ends
        if kind is not None:
            if kind == ABOVE and at_end:
                return NOTHING
            return self.run(number + 1, ends if kind == AT else ends - {dimension})
        if at_end:
            steps = [
                (place.residual - 1, self.run(number + 1, ends - {dimension})),
                (1, self.run(number + 1, ends)),
            ]
        else:
            steps = [(place.loop.bound, self.run(number + 1, ends))]
        steps = [(count, run) for count, run in steps if count and run.words]
        times = sum(count for count, _ in steps)
        if not times:
            return NOTHING
        moves = not self.stationary or dimension in self.tensor.dimensions
        same = times == 1 or (not moves and all(run.extents is not None for _, run in steps))
        if same:
            return steps[0][1]
        if number == self.slides:
            return _Run(self._slide(place, steps), None)
        return _Run(sum(count * run.words for count, run in steps), None)

    def _slide(self, place: Place, steps: Sequence[tuple[int, _Run]]) -> int:
        """The first tile, and what each other has that the one before has not."""
        tiles = list(_pairs([(count, run.extents) for count, run in steps if run.extents is not None]))
        words = steps[0][1].words
        for count, before, after in tiles:
            shared = []
            for rank, extent in zip(self.tensor.ranks, before, strict=True):
                shift = sum(
                    term.coefficient * place.below[term.dimension]
                    for term in rank
                    if term.dimension == place.loop.dimension
                )
                shared.append(max(0, extent - shift))
            words += count * (prod(after) - prod(shared))
        return words


def _pairs(
    steps: Sequence[tuple[int, tuple[int, ...]]],
) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Neighbours and how often they follow one another."""
    for number, (count, extents) in enumerate(steps):
        if number:
            yield 1, steps[number - 1][1], extents
        if count > 1:
            yield count - 1, extents, extents
