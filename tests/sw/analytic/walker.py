"""Executes small specifications step by step and word by word, with sets of coordinates and nothing of the model's formulas.

A level holds one tile of a tensor at each instance. While the loops outside run, a tile is replaced when a loop that indexes its
tensor moves on. What the new tile shares with the old one stays if only the innermost such loop moved, by one step; else all is
loaded anew.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from sw.analytic.mapping import Mapping, Place
from sw.analytic.problem import Tensor

__all__ = ["Counted", "operations", "steps", "walk"]

# Index of every loop, in the order of Mapping.places.
Indices = tuple[int, ...]
Coordinates = frozenset[tuple[int, ...]]


@dataclass
class Counted:
    """Words of one tensor at each instance of a level."""

    reads: Counter[Indices] = field(default_factory=Counter)
    fills: Counter[Indices] = field(default_factory=Counter)
    updates: Counter[Indices] = field(default_factory=Counter)


def steps(mapping: Mapping) -> Iterator[Indices]:
    """Index of every loop at each step in time, outer loops slowest; all instances of a step follow one another. Points beyond
    the bounds of the problem do not exist."""
    places = mapping.places
    time = [number for number, place in enumerate(places) if not place.loop.is_spatial]
    space = [number for number, place in enumerate(places) if place.loop.is_spatial]
    for moment in itertools.product(*(range(places[number].loop.bound) for number in reversed(time))):
        for place in itertools.product(*(range(places[number].loop.bound) for number in space)):
            indices = [0] * len(places)
            for number, index in zip(reversed(time), moment, strict=True):
                indices[number] = index
            for number, index in zip(space, place, strict=True):
                indices[number] = index
            point = _point(mapping, tuple(indices))
            if all(value < bound for value, bound in zip(point, mapping.problem.bounds, strict=True)):
                yield tuple(indices)


def _point(mapping: Mapping, indices: Indices) -> list[int]:
    """Value of each dimension."""
    values = [0] * len(mapping.problem.dimensions)
    for place, index in zip(mapping.places, indices, strict=True):
        values[place.loop.dimension] += index * place.below[place.loop.dimension]
    return values


def _coordinates(tensor: Tensor, base: list[int], box: tuple[int, ...], bounds: tuple[int, ...]) -> Coordinates:
    """Coordinates of the tensor that a box of iterations touches, with those between them along each rank: a level holds an
    interval, also where a stride leaves gaps."""
    dimensions = sorted(tensor.dimensions)
    touched = []
    lengths = [range(min(box[dimension], bounds[dimension] - base[dimension])) for dimension in dimensions]
    for offsets in itertools.product(*lengths):
        values = list(base)
        for dimension, offset in zip(dimensions, offsets, strict=True):
            values[dimension] += offset
        touched.append([sum(term.coefficient * values[term.dimension] for term in rank) for rank in tensor.ranks])
    return frozenset(itertools.product(*(range(min(along), max(along) + 1) for along in zip(*touched, strict=True))))


class _Tiles:
    """The tile of a tensor at each instance of a level, and what a step brings to it."""

    def __init__(self, mapping: Mapping, tensor: Tensor, level: int) -> None:
        self.mapping, self.tensor, self.level = mapping, tensor, level
        places = mapping.places
        self.outside = [number for number, place in enumerate(places) if place.level > level]
        self.time = [n for n in self.outside if self._moves(places[n])]
        self.space = [n for n in self.outside if places[n].loop.is_spatial]
        self.tiles: dict[Indices, tuple[Indices, Coordinates]] = {}
        self.known: dict[Indices, set[tuple[int, ...]]] = defaultdict(set)

    def _moves(self, place: Place) -> bool:
        loop = place.loop
        return not loop.is_spatial and loop.bound > 1 and loop.dimension in self.tensor.dimensions

    def arrives(self, indices: Indices) -> tuple[Indices, Coordinates, Coordinates] | None:
        """The instance, what is new to it, and the tile that leaves; None where the tile stays."""
        instance = tuple(indices[number] for number in self.space)
        now = tuple(indices[number] for number in self.time)
        before = self.tiles.get(instance)
        if before is not None and before[0] == now:
            return None
        kept = [index if number in self.outside else 0 for number, index in enumerate(indices)]
        box, bounds = self.mapping.box(self.level), self.mapping.problem.bounds
        tile = _coordinates(self.tensor, _point(self.mapping, tuple(kept)), box, bounds)
        moved = before is not None and [b - a for a, b in zip(before[0], now, strict=True)] == [1] + [0] * (
            len(now) - 1
        )
        new = tile - before[1] if before is not None and moved else tile
        self.tiles[instance] = (now, tile)
        return instance, new, before[1] if before is not None else frozenset()


def walk(mapping: Mapping, *, first_fills: bool) -> dict[tuple[int, int], Counted]:
    """Counts by ``(level, tensor)``."""
    found = {place: Counted() for place in mapping.walk()}
    for number, tensor in enumerate(mapping.problem.tensors):
        keepers = mapping.keepers(number)
        for inner, level in zip([-1, *keepers], keepers, strict=False):
            _between(mapping, number, tensor, inner, level, found, first_fills)
    return found


def _between(
    mapping: Mapping,
    number: int,
    tensor: Tensor,
    inner: int,
    level: int,
    found: dict[tuple[int, int], Counted],
    first_fills: bool,
) -> None:
    """Traffic between a level and the next one inside, -1 for the compute units, which take every word at every step."""
    places = mapping.places
    tiles = _Tiles(mapping, tensor, inner) if inner >= 0 else None
    space = [n for n, place in enumerate(places) if place.loop.is_spatial and place.level > level]
    differ = [
        n
        for n, place in enumerate(places)
        if place.loop.is_spatial
        and inner < place.level <= level
        and (place.loop.dimension in tensor.dimensions or mapping.is_apart(place.level, number))
    ]
    time = [n for n, place in enumerate(places) if not place.loop.is_spatial]
    own = found[level, number]
    seen: dict[Indices, set[tuple[int, ...]]] = defaultdict(set)
    moment, served = None, set()

    def updated(parent: Indices, coordinates: Coordinates) -> None:
        own.updates[parent] += len(coordinates)
        own.reads[parent] += len(coordinates & seen[parent])
        seen[parent] |= coordinates

    leaving: dict[tuple[Indices, Indices], Coordinates] = {}
    for indices in steps(mapping):
        now = tuple(indices[n] for n in time)
        if now != moment:
            moment, served = now, set()
        parent = tuple(indices[n] for n in space)
        child = tuple(indices[n] for n in differ)
        if tiles is None:
            new: Coordinates = _coordinates(tensor, _point(mapping, indices), mapping.box(-1), mapping.problem.bounds)
            if (parent, child) in served:
                continue
            served.add((parent, child))
            if tensor.is_output:
                updated(parent, new)
            else:
                own.reads[parent] += len(new)
            continue
        event = tiles.arrives(indices)
        if event is None:
            continue
        instance, new, old = event
        known = new & tiles.known[instance]
        found[inner, number].fills[instance] += len(new if first_fills or not tensor.is_output else known)
        tiles.known[instance] |= new
        if (parent, child) in served:
            continue
        served.add((parent, child))
        if tensor.is_output:
            if old:
                updated(parent, old)
            leaving[parent, child] = tiles.tiles[instance][1]
        else:
            own.reads[parent] += len(new)
    for (parent, _), tile in leaving.items():
        updated(parent, tile)


def operations(mapping: Mapping) -> Iterator[list[int]]:
    """Value of each dimension at every operation, in order."""
    for indices in steps(mapping):
        yield _point(mapping, indices)
