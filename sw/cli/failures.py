"""What is said of failures: of an option that is no number, and of many runs each reason once, with its number of runs."""

import re
from collections.abc import Iterable

__all__ = ["Failures", "no_number"]

# What options of numbers take, by the first word of the kind of their error.
NUMBERS = {"int": "a whole number", "float": "a number"}
NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?")


def no_number(error: Exception) -> str | None:
    """What is said of an option whose value is no number; None of other errors."""
    errors = getattr(error.__cause__, "errors", None)
    option = getattr(getattr(error, "param", None), "opts", None)
    if not callable(errors) or not option:
        return None
    found = errors()[0]
    kind = NUMBERS.get(found["type"].partition("_")[0])
    return None if kind is None else f"{option[0]} {found['input']}: must be {kind}"


class Failures:
    """Failures as they come. Reasons that differ in names and numbers alone are one reason.

    ``kind``: what fails, in the plural.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.ways: dict[str, list[str]] = {}

    def add(self, called: str, error: str, names: Iterable[str]) -> None:
        """Adds a failure: the name of the run, the reason, and the names in the reason that belong to this run alone."""
        way = error
        for name in sorted(filter(None, names), key=len, reverse=True):
            way = re.sub(rf"(?<![\w/]){re.escape(name)}(?!\w)", "*", way)
        self.ways.setdefault(NUMBER.sub("#", way), []).append(f"{called}: {error}" if called else error)

    def lines(self) -> list[str]:
        """A line for each reason, in the order of their first failure."""
        return [
            first if not others else f"{len(others) + 1:,} {self.kind} fail in one way, the first of them {first}"
            for first, *others in self.ways.values()
        ]
