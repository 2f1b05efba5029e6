"""Failures of many runs by their reason: each reason once, with its number of runs."""

import re
from collections.abc import Iterable

__all__ = ["Failures"]

NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?")


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
