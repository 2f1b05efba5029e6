"""All mappings of a workload that the constraints of an architecture allow: factors, orders of loops, what each level keeps."""

import random
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from itertools import islice, permutations, product
from math import factorial, prod

from .architecture import Architecture, Unit
from .errors import MappingError
from .mapping import TIME, Loop, Mapping
from .problem import Problem

__all__ = ["LevelRules", "LoopRules", "MapSpace", "Point"]

TRIES = 100
# All choices of what levels keep are listed: twice as many with each that is free.
MOST_FREE = 16


@dataclass(frozen=True)
class LoopRules:
    """What constraints say of the temporal or of the spatial loops of a level.

    exact: factors by dimension, 0 for what the others leave. most: largest factors. order: these dimensions are the innermost
    ones, innermost first; others follow in any order. split: of the spatial loops this many run along x, the others along y.
    """

    exact: Table[int, int] = field(default_factory=dict)
    most: Table[int, int] = field(default_factory=dict)
    order: tuple[int, ...] = ()
    split: int | None = None


@dataclass(frozen=True)
class LevelRules:
    """Constraints of a level. keep, bypass: tensors; the others are free."""

    temporal: LoopRules = LoopRules()
    spatial: LoopRules = LoopRules()
    keep: frozenset[int] = frozenset()
    bypass: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Place:
    """Where a dimension can have a loop. exact: None where the factor is free, 0 where it is what the others leave."""

    level: int
    axes: tuple[str, ...]
    exact: int | None
    most: int | None

    def takes(self, factor: int) -> bool:
        return self.most is None or factor <= self.most


# The factor of each place of a dimension, and its axis.
Factors = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Point:
    """A mapping of the space. factors: by dimension. orders: temporal loops of each level, innermost first. keeps: as a mapping
    has them."""

    factors: tuple[Factors, ...]
    orders: tuple[tuple[int, ...], ...]
    keeps: tuple[tuple[bool, ...], ...]


class MapSpace:
    """Perfect factors at all levels, orders of loops with more than one iteration, and what levels keep.

    Raises MappingError where the constraints allow no mapping.
    """

    def __init__(self, problem: Problem, architecture: Architecture, rules: Sequence[LevelRules]) -> None:
        self.problem, self.architecture, self.rules = problem, architecture, rules
        self.fanouts = [fanout(architecture, level) for level in range(len(architecture.levels))]
        self.places = [self._places(dimension) for dimension in range(len(problem.bounds))]
        for dimension, bound in enumerate(problem.bounds):
            if next(self.factors(dimension), None) is None:
                self._refuse_factors(dimension, bound)
        self.keeps = self._keeps()
        # What loops stand at each level: dimension, number of its place; and the order of loops side by side.
        self.at_level = [
            [(d, n) for d, own in enumerate(self.places) for n, place in enumerate(own) if place.level == level]
            for level in range(len(self.fanouts))
        ]
        self.sides = [self._ordered(own.spatial) for own in rules]
        self.near: dict[tuple[tuple[bool, ...], ...], list[tuple[tuple[bool, ...], ...]]] = {}

    def _places(self, dimension: int) -> list[_Place]:
        """Outermost first."""
        found = []
        for level in reversed(range(len(self.architecture.levels))):
            temporal, spatial = self.rules[level].temporal, self.rules[level].spatial
            if not self.architecture.levels[level].is_spatial:
                found.append(_Place(level, (TIME,), temporal.exact.get(dimension), temporal.most.get(dimension)))
            axes = [axis for axis in "xy" if self.fanouts[level][axis] > 1] or ["x"]
            if spatial.split is not None:
                axes = ["x" if self._ordered(spatial).index(dimension) < spatial.split else "y"]
            most = max(self.fanouts[level][axis] for axis in axes)
            exact = spatial.exact.get(dimension)
            if most > 1 or (exact is not None and exact > 1):
                found.append(_Place(level, tuple(axes), exact, min(most, spatial.most.get(dimension, most))))
        return found

    def _ordered(self, rules: LoopRules) -> tuple[int, ...]:
        """All dimensions; those of which the constraints say nothing follow the others."""
        return (*rules.order, *(d for d in range(len(self.problem.bounds)) if d not in rules.order))

    def _refuse_factors(self, dimension: int, bound: int) -> None:
        fixed = [place for place in self.places[dimension] if place.exact is not None and place.exact > 1]
        levels = self.architecture.levels
        written = " x ".join(f"{place.exact} at {levels[place.level].name}" for place in fixed) or "1"
        level = fixed[0].level if fixed else len(levels) - 1
        name = self.problem.dimensions[dimension]
        raise MappingError(
            level, f"constraints: factors of {name}", written, f"such that a product of factors is {bound}"
        )

    def factors(self, dimension: int) -> Iterator[Factors]:
        """All factors of a dimension."""
        places = self.places[dimension]
        rest = next((number for number, place in enumerate(places) if place.exact == 0), None)
        last = max((number for number, place in enumerate(places) if place.exact is None), default=None)

        def chosen(number: int, left: int, before: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if number == len(places):
                if rest is None:
                    if left == 1:
                        yield before
                elif places[rest].takes(left):
                    yield (*before[:rest], left, *before[rest + 1 :])
                return
            place = places[number]
            if place.exact is not None:
                options = [place.exact or 1]
            elif rest is None and number == last:
                after = prod(each.exact or 1 for each in places[number + 1 :])
                options = [left // after] if left % after == 0 else []
            else:
                options = divisors(left)
            for factor in options:
                if left % factor == 0 and (place.exact is not None or place.takes(factor)):
                    yield from chosen(number + 1, left // factor, (*before, factor))

        for found in chosen(0, self.problem.bounds[dimension], ()):
            axes = [place.axes if factor > 1 else place.axes[:1] for place, factor in zip(places, found, strict=True)]
            for along in product(*axes):
                yield tuple(zip(found, along, strict=True))

    def _keeps(self) -> list[tuple[tuple[bool, ...], ...]]:
        """What levels may keep. The outermost keeps all that it must not bypass."""
        tensors = range(len(self.problem.tensors))
        outermost = max(n for n, storage in enumerate(self.architecture.levels) if not storage.is_spatial)
        options: list[tuple[bool, ...]] = []
        for level, rules in enumerate(self.rules):
            storage = self.architecture.levels[level]
            for tensor in tensors:
                if storage.is_spatial or tensor in rules.bypass:
                    options.append((False,))
                elif tensor in rules.keep or level == outermost:
                    options.append((True,))
                else:
                    options.append((True, False))
        free = sum(len(each) > 1 for each in options)
        if free > MOST_FREE:
            allowed = f"at most {MOST_FREE}: say keep or bypass at more levels"
            raise MappingError(outermost, "constraints: tensors that levels may keep or not", str(free), allowed)
        width = len(self.problem.tensors)
        found = []
        for flat in product(*options):
            rows = tuple(flat[start : start + width] for start in range(0, len(flat), width))
            if all(any(row[tensor] for row in rows) for tensor in tensors):
                found.append(rows)
        if not found:
            raise MappingError(outermost, "constraints", "a tensor is bypassed at every level", "kept at one")
        return found

    def _moving(self, factors: Sequence[Factors], level: int) -> tuple[list[int], list[int]]:
        """Dimensions whose temporal loop at a level has several iterations: those in a fixed order, and the others."""
        order = self.rules[level].temporal.order
        moving = [
            dimension
            for dimension, own in enumerate(factors)
            for place, (factor, axis) in zip(self.places[dimension], own, strict=True)
            if place.level == level and axis == TIME and factor > 1
        ]
        return [d for d in order if d in moving], [d for d in moving if d not in order]

    def points(self) -> Iterator[Point]:
        """All mappings of the space; loops of one iteration have no order."""
        levels = range(len(self.architecture.levels))
        for factors in product(*(list(self.factors(dimension)) for dimension in range(len(self.places)))):
            orders = []
            for level in levels:
                fixed, free = self._moving(factors, level)
                orders.append([(*fixed, *others) for others in permutations(free)])
            for chosen in product(*orders):
                for keeps in self.keeps:
                    yield Point(factors, chosen, keeps)

    def count(self, most: int) -> int | None:
        """How many mappings there are; None where there are more than ``most``."""
        total = 0
        factors = [list(islice(self.factors(dimension), most + 1)) for dimension in range(len(self.places))]
        if prod(map(len, factors)) * len(self.keeps) > most:
            return None
        for chosen in product(*factors):
            orders = [factorial(len(self._moving(chosen, level)[1])) for level in range(len(self.rules))]
            total += prod(orders) * len(self.keeps)
            if total > most:
                return None
        return total

    def mapping(self, point: Point) -> Mapping:
        """Loops of one iteration are left out. Raises MappingError where loops side by side need more than the mesh has."""
        loops: list[tuple[Loop, ...]] = []
        for level in range(len(self.architecture.levels)):
            bounds = {}
            for dimension, number in self.at_level[level]:
                factor, axis = point.factors[dimension][number]
                if factor > 1:
                    bounds[dimension, axis] = factor
            order = self.sides[level]
            side_by_side = [Loop(d, bounds[d, axis], axis) for axis in "xy" for d in order if (d, axis) in bounds]
            for axis in "xy":
                used = prod(loop.bound for loop in side_by_side if loop.axis == axis)
                if used > self.fanouts[level][axis]:
                    what = f"spatial loops along {axis}"
                    raise MappingError(level, what, str(used), f"at most {self.fanouts[level][axis]}")
            time = [Loop(d, bounds[d, TIME]) for d in point.orders[level] if (d, TIME) in bounds]
            loops.append((*side_by_side, *time))
        return Mapping(self.problem, tuple(loops), point.keeps)

    def draw(self, random_: random.Random) -> Point:
        """A random mapping: prime factors anywhere, or most of them at the outermost level, or a dimension's all at one level."""
        kind = random_.choice(("anywhere", "outermost", "together"))
        factors = tuple(self._draw_factors(dimension, random_, kind) for dimension in range(len(self.places)))
        orders = []
        for rules in self.rules:
            free = [d for d in range(len(self.places)) if d not in rules.temporal.order]
            random_.shuffle(free)
            orders.append((*rules.temporal.order, *free))
        return Point(factors, tuple(orders), random_.choice(self.keeps))

    def _draw_factors(self, dimension: int, random_: random.Random, kind: str) -> Factors:
        """Prime by prime; where limits let that fail, the first factors of all."""
        places = self.places[dimension]
        free = [number for number, place in enumerate(places) if not place.exact]
        fixed = prod(place.exact or 1 for place in places)
        for _ in range(TRIES):
            chosen = [place.exact or 1 for place in places]
            favourite = (
                None if kind == "anywhere" or not free else free[0] if kind == "outermost" else random_.choice(free)
            )
            for prime in primes(self.problem.bounds[dimension] // fixed):
                fitting = [number for number in free if places[number].takes(chosen[number] * prime)]
                if not fitting:
                    break
                stays = favourite in fitting and (kind == "together" or random_.random() < 0.6)
                number = favourite if stays and favourite is not None else random_.choice(fitting)
                chosen[number] *= prime
            else:
                return tuple((f, random_.choice(place.axes)) for f, place in zip(chosen, places, strict=True))
        return next(self.factors(dimension))

    def neighbour(self, point: Point, random_: random.Random) -> Point:
        """One step away: a prime factor or a whole loop moves to another level, two loops change places, or a level keeps another
        tensor."""
        for _ in range(TRIES):
            kind = random_.choice(("factor", "factor", "order", "keep"))
            if kind == "keep" and len(self.keeps) > 1:
                if point.keeps not in self.near:
                    self.near[point.keeps] = [k for k in self.keeps if _differences(k, point.keeps) == 1]
                near = self.near[point.keeps] or self.keeps
                return replace(point, keeps=random_.choice(near))
            if kind == "order":
                level = random_.randrange(len(self.rules))
                first = len(self.rules[level].temporal.order)
                order = list(point.orders[level])
                moving = [
                    n
                    for n in range(first, len(order))
                    if _iterates(self.places[order[n]], point.factors[order[n]], level)
                ]
                if len(moving) > 1:
                    a, b = random_.sample(moving, 2)
                    order[a], order[b] = order[b], order[a]
                    return replace(point, orders=(*point.orders[:level], tuple(order), *point.orders[level + 1 :]))
            if kind == "factor":
                dimension = random_.randrange(len(self.places))
                moved = self._move_factor(dimension, point.factors[dimension], random_)
                if moved is not None:
                    return replace(point, factors=(*point.factors[:dimension], moved, *point.factors[dimension + 1 :]))
        return self.draw(random_)

    def _move_factor(self, dimension: int, factors: Factors, random_: random.Random) -> Factors | None:
        places = self.places[dimension]
        sources = [n for n, place in enumerate(places) if not place.exact and factors[n][0] > 1]
        if not sources:
            return None
        source = random_.choice(sources)
        moved = primes(factors[source][0])
        moved = moved if random_.random() < 0.3 else [random_.choice(moved)]
        targets = [
            n
            for n, place in enumerate(places)
            if n != source and not place.exact and place.takes(factors[n][0] * prod(moved))
        ]
        if not targets:
            return None
        target = random_.choice(targets)
        found = list(factors)
        found[source] = (factors[source][0] // prod(moved), factors[source][1])
        axis = factors[target][1] if factors[target][0] > 1 else random_.choice(places[target].axes)
        found[target] = (factors[target][0] * prod(moved), axis)
        return tuple(found)


def fanout(architecture: Architecture, level: int) -> dict[str, int]:
    """Instances along x and y that loops side by side at a level can use."""
    levels = architecture.levels
    own = levels[level]
    inner: Unit = own
    outer: Unit | None = own
    if own.is_spatial:
        outer = levels[level + 1] if level + 1 < len(levels) else None
    elif level and levels[level - 1].is_spatial:
        return {"x": 1, "y": 1}
    else:
        inner = levels[level - 1] if level else architecture.compute
    x, y = (outer.mesh_x, outer.mesh_y) if outer is not None else (1, 1)
    return {"x": max(1, inner.mesh_x // x), "y": max(1, inner.mesh_y // y)}


def divisors(number: int) -> list[int]:
    """In rising order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]


def primes(number: int) -> list[int]:
    """Prime factors, as often as they occur."""
    found, prime = [], 2
    while prime * prime <= number:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
    return found + ([number] if number > 1 else [])


def _differences(one: tuple[tuple[bool, ...], ...], other: tuple[tuple[bool, ...], ...]) -> int:
    return sum(a != b for mine, theirs in zip(one, other, strict=True) for a, b in zip(mine, theirs, strict=True))


def _iterates(places: Sequence[_Place], factors: Factors, level: int) -> bool:
    """Whether a dimension's temporal loop at a level has several iterations."""
    return any(
        place.level == level and axis == TIME and factor > 1
        for place, (factor, axis) in zip(places, factors, strict=True)
    )
