"""Search for the best mapping of a specification."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from .analysis import Analysis, InvalidMapping, evaluate
from .errors import MappingError
from .mapping import Mapping
from .mapspace import MapSpace, Point
from .spec.load import Spec
from .spec.read_mapper import Settings

__all__ = ["OBJECTIVE_UNITS", "Search", "objective_of", "search"]

OBJECTIVE_UNITS = {"delay": "cycles", "energy": "pJ", "edp": "pJ x cycles"}
# A climb ends after this many steps that are no better, and another begins.
PATIENCE = 300
# A climb begins at the best of this many mappings drawn at random.
DRAWS = 50
# A search ends where this many mappings in a row were met before.
MOST_REPEATED = 20_000


def objective_of(analysis: Analysis, objectives: tuple[str, ...]) -> tuple[float, ...]:
    """Values to be as small as can be, the first one most."""
    cycles, energy = float(analysis.cycles.total), sum(analysis.energy.values())
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
    value: tuple[float, ...] = ()
    seconds: float = 0.0
    stopped: str = ""
    reasons: Counter[tuple[int, str]] = field(default_factory=Counter)
    examples: dict[tuple[int, str], MappingError] = field(default_factory=dict)


class _Stopped(Exception):
    """A limit is reached."""


class _Evaluator:
    """Counts, remembers the best, and stops at limits."""

    def __init__(
        self, spec: Spec, space: MapSpace, settings: Settings, found: Search, report: Callable[[Search], None]
    ) -> None:
        self.spec, self.space, self.settings, self.found, self.report = spec, space, settings, found, report
        self.known: dict[object, tuple[float, ...] | None] = {}
        self.since_best = self.invalid = self.repeated = 0
        self.began = time.monotonic()

    def value(self, point: Point) -> tuple[float, ...] | None:
        """Of a mapping, None where it is invalid. A mapping that was met before is not evaluated once more."""
        settings, found = self.settings, self.found
        error: MappingError | None = None
        mapping: Mapping | None = None
        try:
            mapping = self.space.mapping(point)
        except MappingError as caught:
            error = caught
        key: object = point if mapping is None else (mapping.loops, mapping.keeps)
        if key in self.known:
            self.repeated += 1
            if self.repeated > MOST_REPEATED:
                raise _Stopped("no new mappings")
            return self.known[key]
        if found.evaluations >= settings.evaluations:
            raise _Stopped("evaluations")
        if settings.seconds is not None and time.monotonic() - self.began >= settings.seconds:
            raise _Stopped("seconds")
        self.repeated = 0
        found.evaluations += 1
        value = None
        if mapping is not None:
            try:
                analysis = evaluate(replace(self.spec, mapping=mapping))
                value = objective_of(analysis, found.objectives)
            except MappingError as caught:
                error = caught
        self.known[key] = value
        if error is not None:
            self._refused(error)
        if value is not None:
            self._valid(analysis, value)
        self.report(found)
        return value

    def _refused(self, error: MappingError) -> None:
        reason = (error.level, error.subject)
        self.found.reasons[reason] += 1
        self.found.examples.setdefault(reason, error)
        self.invalid += 1
        if self.settings.timeout and self.invalid >= self.settings.timeout:
            raise _Stopped("timeout")

    def _valid(self, analysis: Analysis, value: tuple[float, ...]) -> None:
        found = self.found
        found.valid += 1
        self.invalid = 0
        self.since_best += 1
        if found.best is None or value < found.value:
            found.best, found.value, self.since_best = analysis, value, 0
        elif self.settings.victory and self.since_best >= self.settings.victory:
            raise _Stopped("victory condition")


def search(
    spec: Spec, space: MapSpace, settings: Settings, report: Callable[[Search], None] = lambda found: None
) -> Search:
    """The best mapping of the space.

    All mappings where they are no more than the limit, else climbs from random ones; the same for the same seed, unless seconds
    end it. An interrupt ends it and keeps the best. Raises InvalidMapping, which says why, where no valid mapping was found.
    """
    found = Search(settings.objectives, space.count(settings.evaluations))
    evaluator = _Evaluator(spec, space, settings, found, report)
    try:
        if found.size is not None or settings.in_order:
            for point in space.points():
                evaluator.value(point)
            found.stopped = "all mappings"
        else:
            _climb(space, evaluator, random.Random(settings.seed))
    except _Stopped as limit:
        found.stopped = str(limit)
    except KeyboardInterrupt:
        found.stopped = "interrupt"
        if found.best is None:
            raise
    found.seconds = time.monotonic() - evaluator.began
    if found.best is None:
        raise InvalidMapping("; ".join(_why(spec, found)))
    return found


def _climb(space: MapSpace, evaluator: _Evaluator, random_: random.Random) -> None:
    """Climbs from random mappings until a limit is reached."""
    while True:
        best, value = None, None
        for _ in range(DRAWS):
            point = space.draw(random_)
            each = evaluator.value(point)
            if each is not None and (value is None or each < value):
                best, value = point, each
        if best is None or value is None:
            continue
        waits = 0
        while waits < PATIENCE:
            point = space.neighbour(best, random_)
            each = evaluator.value(point)
            waits += 1
            if each is not None and each <= value:
                waits = 0 if each < value else waits
                best, value = point, each


def _why(spec: Spec, found: Search) -> Iterator[str]:
    """The reasons, the most frequent first, each with an example."""
    of = "all" if found.stopped == "all mappings" else "the first"
    yield f"{spec.file('mapper')}: no valid mapping: {of} {found.evaluations:,} were tried ({found.stopped})"
    for reason, times in found.reasons.most_common(4):
        error = found.examples[reason]
        yield f"{times:,} x {spec.unit(error.level)}: {error.subject}, as {error.value}: must be {error.allowed}"
