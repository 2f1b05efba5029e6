"""Search for the best mapping of a specification."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from .analysis import Analysis, Evaluations, InvalidMapping, analyze, evaluate
from .errors import MappingError
from .mapping import Mapping
from .mapspace import MapSpace, Point
from .processes import in_order
from .spec.load import Spec
from .spec.read_mapper import EVALUATIONS, WHOLE, Settings

__all__ = ["OBJECTIVE_UNITS", "Portion", "Search", "Share", "Spread", "objective_of", "search"]

OBJECTIVE_UNITS = {"delay": "cycles", "energy": "pJ", "edp": "pJ x cycles"}
# Mappings that are evaluated at once where all are.
PORTION = 5000
# Mappings of a family: climbs that share nothing with those of other families.
FAMILY = 5000
# Climbs of a family side by side; for each that begins so many mappings are drawn at random, and the best of all are taken.
CLIMBERS = 24
DRAWS = 30
# Mappings next to that of each climber that are evaluated at once, and how often without one that is better.
NEIGHBOURS = 24
PATIENCE = 6

Value = tuple[float, ...]
# Level and what of it.
Reason = tuple[int, str]


def objective_of(analysis: Analysis, objectives: tuple[str, ...]) -> Value:
    """Values to be as small as can be, the first one most."""
    return _value(float(analysis.cycles.total), sum(analysis.energy.values()), objectives)


def _value(cycles: float, energy: float, objectives: tuple[str, ...]) -> Value:
    values = {"delay": cycles, "energy": energy, "edp": cycles * energy}
    return tuple(values[name] for name in objectives)


@dataclass
class Search:
    """State of a search.

    size: mappings of the space, None where there are more than the limit. evaluations: those evaluated, valid those of them that
    are. seconds: of wall time. stopped: why it ended. reasons: why mappings are invalid, how often each, with an example.
    """

    objectives: tuple[str, ...]
    size: int | None
    evaluations: int = 0
    valid: int = 0
    best: Analysis | None = None
    value: Value = ()
    seconds: float = 0.0
    stopped: str = ""
    reasons: Counter[Reason] = field(default_factory=Counter)
    examples: dict[Reason, MappingError] = field(default_factory=dict)


@dataclass
class Portion:
    """What some mappings are worth, in the order in which they were met; of an invalid one why it is. better: the mappings that
    are better than all before them, by number. examples: of each reason."""

    values: list[Value | Reason] = field(default_factory=list)
    better: dict[int, Mapping] = field(default_factory=dict)
    examples: dict[Reason, MappingError] = field(default_factory=dict)


# Mappings to go through, or the number of a family of climbs: a share of the work that needs nothing of others.
Share = list[Point] | int
# Hands out shares and gives the portions of all of them, in order.
Spread = Callable[[Iterable[Share], Callable[[Share], Iterator[Portion]]], Iterator[Portion]]


HERE: Spread = partial(in_order, 1)


class _Stopped(Exception):
    """A limit is reached."""


@dataclass(frozen=True)
class _Evaluator:
    """Evaluates mappings of a space, many at once. seed, limit: of families."""

    spec: Spec
    space: MapSpace
    objectives: tuple[str, ...]
    seed: int
    limit: int

    def portions(self, share: Share) -> Iterator[Portion]:
        """Of a share of the work."""
        if isinstance(share, int):
            yield from _family(self, self.seed, share, self.limit)
        else:
            yield self.portion(self.mappings(share))

    def mappings(self, points: Sequence[Point]) -> list[Mapping | MappingError]:
        found: list[Mapping | MappingError] = []
        for point in points:
            try:
                found.append(self.space.mapping(point))
            except MappingError as error:
                found.append(error)
        return found

    def portion(self, mappings: Sequence[Mapping | MappingError]) -> Portion:
        """What each mapping is worth."""
        real = [mapping for mapping in mappings if isinstance(mapping, Mapping)]
        evaluations = evaluate(self.spec, real)
        reasons = _reasons(evaluations)
        found, best, number = Portion(), None, 0
        for mapping in mappings:
            if isinstance(mapping, MappingError):
                reason = (mapping.level, mapping.subject)
                found.examples.setdefault(reason, mapping)
                found.values.append(reason)
                continue
            if number in reasons:
                reason = reasons[number]
                if reason not in found.examples:
                    found.examples[reason] = evaluations.error(number)
                found.values.append(reason)
            else:
                cycles, energy = float(evaluations.cycles[number]), float(evaluations.energy[number])
                value = _value(cycles, energy, self.objectives)
                if best is None or value < best:
                    best, found.better[len(found.values)] = value, mapping
                found.values.append(value)
            number += 1
        return found


def _reasons(evaluations: Evaluations) -> dict[int, Reason]:
    """Of the mappings that do not fit, by number."""
    found = {}
    for numbers, nests, _ in evaluations.parts:
        for reason, places in nests.reasons().items():
            found.update(dict.fromkeys(numbers[places].tolist(), reason))
    return found


def search(
    spec: Spec,
    space: MapSpace,
    settings: Settings,
    report: Callable[[Search], None] = lambda found: None,
    spread: Spread = HERE,
) -> Search:
    """The best mapping of the space.

    All mappings where they are no more than the limit, else climbs from random ones. spread: where shares of the work are done,
    which changes nothing: the same seed finds the same, unless seconds end it. An interrupt ends it and keeps the best. Raises
    InvalidMapping, which says why, where no valid mapping was found.
    """
    limit = settings.evaluations
    size = space.count(WHOLE if limit is None else limit)
    if limit is None:
        limit = EVALUATIONS if size is None else WHOLE
    found = Search(settings.objectives, size)
    began = time.monotonic()
    evaluator = _Evaluator(spec, space, settings.objectives, settings.seed, limit)
    merged = _Merge(spec, settings, limit, found, report, began)
    exhaustive = found.size is not None or settings.in_order
    shares: Iterable[Share] = _portions(space, limit) if exhaustive else range(-(-limit // FAMILY))
    portions = spread(shares, evaluator.portions)
    try:
        for portion in portions:
            merged.add(portion)
        found.stopped = "all mappings" if exhaustive else "evaluations"
    except _Stopped as limit:
        found.stopped = str(limit)
    except KeyboardInterrupt:
        found.stopped = "interrupt"
        if merged.mapping is None:
            raise
    finally:
        close = getattr(portions, "close", None)
        if close is not None:
            close()
    found.seconds = time.monotonic() - began
    if merged.mapping is None:
        raise InvalidMapping("; ".join(_why(spec, found)))
    found.best = analyze(replace(spec, mapping=merged.mapping))
    return found


@dataclass
class _Merge:
    """Counts, remembers the best, and stops at limits."""

    spec: Spec
    settings: Settings
    limit: int
    found: Search
    report: Callable[[Search], None]
    began: float
    mapping: Mapping | None = None
    since_best: int = 0
    invalid: int = 0

    def add(self, portion: Portion) -> None:
        settings, found = self.settings, self.found
        for number, value in enumerate(portion.values):
            if found.evaluations >= self.limit:
                raise _Stopped("evaluations")
            found.evaluations += 1
            if isinstance(value[-1], str):
                self._refused((int(value[0]), value[-1]), portion)
            else:
                self._valid(tuple(map(float, value)), portion.better.get(number))
            self.report(found)
        if settings.seconds is not None and time.monotonic() - self.began >= settings.seconds:
            raise _Stopped("seconds")

    def _refused(self, reason: Reason, portion: Portion) -> None:
        self.found.reasons[reason] += 1
        self.found.examples.setdefault(reason, portion.examples[reason])
        self.invalid += 1
        if self.settings.timeout and self.invalid >= self.settings.timeout:
            raise _Stopped("timeout")

    def _valid(self, value: Value, mapping: Mapping | None) -> None:
        found = self.found
        found.valid += 1
        self.invalid = 0
        self.since_best += 1
        if mapping is not None and (self.mapping is None or value < found.value):
            self.mapping, found.value, self.since_best = mapping, value, 0
        elif self.settings.victory and self.since_best >= self.settings.victory:
            raise _Stopped("victory condition")


def _portions(space: MapSpace, limit: int) -> Iterator[list[Point]]:
    """All mappings, up to the limit."""
    points = islice(space.points(), limit)
    while portion := list(islice(points, PORTION)):
        yield portion


@dataclass
class _Climber:
    """The mapping where a climb has come to. waits: rounds without a better one."""

    point: Point
    value: Value
    waits: int = 0


def _family(evaluator: _Evaluator, seed: int, number: int, limit: int) -> Iterator[Portion]:
    """Climbs side by side from the best of some random mappings, until all mappings of the family are spent."""
    random_ = random.Random(f"{seed}/{number}")
    left, known = min(FAMILY, limit - number * FAMILY), set()
    climbers: list[_Climber] = []

    def worth(points: Sequence[Point]) -> tuple[Portion, list[tuple[Value, Point]]]:
        """Of those that are met for the first time, and the valid ones of them."""
        nonlocal left
        new: list[tuple[Point, Mapping | MappingError]] = []
        for point, mapping in zip(points, evaluator.mappings(points), strict=True):
            key = (mapping.loops, mapping.keeps) if isinstance(mapping, Mapping) else point
            if key not in known and len(new) < left:
                known.add(key)
                new.append((point, mapping))
        left -= len(new)
        portion = evaluator.portion([mapping for _, mapping in new])
        valid = [
            (value, point)
            for (point, _), value in zip(new, portion.values, strict=True)
            if not isinstance(value[-1], str)
        ]
        return portion, valid

    stuck = 0
    while left > 0 and stuck < PATIENCE:
        before = left
        if len(climbers) <= CLIMBERS // 2:
            draws = DRAWS * (CLIMBERS - len(climbers))
            portion, valid = worth([evaluator.space.draw(random_) for _ in range(draws)])
            yield portion
            valid.sort(key=lambda each: each[0])
            climbers += [_Climber(point, value) for value, point in valid[: CLIMBERS - len(climbers)]]
        points = [evaluator.space.neighbour(climber.point, random_) for climber in climbers for _ in range(NEIGHBOURS)]
        owners = {id(point): climbers[place // NEIGHBOURS] for place, point in enumerate(points)}
        portion, valid = worth(points)
        yield portion
        moved = set()
        for value, point in sorted(valid, key=lambda each: each[0]):
            climber = owners[id(point)]
            if id(climber) not in moved and value <= climber.value:
                moved.add(id(climber))
                climber.waits = 0 if value < climber.value else climber.waits + 1
                climber.point, climber.value = point, value
        for climber in climbers:
            climber.waits += id(climber) not in moved
        climbers = [climber for climber in climbers if climber.waits < PATIENCE]
        stuck = stuck + 1 if left == before else 0


def _why(spec: Spec, found: Search) -> Iterator[str]:
    """The reasons, the most frequent first, each with an example."""
    of = "all" if found.stopped == "all mappings" else "the first"
    yield f"{spec.file('mapper')}: no valid mapping: {of} {found.evaluations:,} were tried ({found.stopped})"
    for reason, times in found.reasons.most_common(4):
        error = found.examples[reason]
        yield f"{times:,} x {spec.unit(error.level)}: {error.subject}, as {error.value}: must be {error.allowed}"
