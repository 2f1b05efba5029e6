"""The bins of its testplan that a bench hits, merged over the tests of a run.

Tests call ``hit``. The runner gives a file to write to; a bin that no test of the bench hit and that the plan does not excuse
fails the run, not the single test.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from .plans import plan

__all__ = ["COVERAGE_FILE", "Coverage", "Record", "merge"]

COVERAGE_FILE = "FIBERLOOM_COVERAGE"


class Record(TypedDict):
    """The hits of a run: its testplan, and how often each bin was hit."""

    plan: str
    hits: dict[str, int]


class Coverage:
    """Hit counts of the bins of one testplan.

    Parameters
    ----------
    name: of the testplan.
    bins: name and meaning of each bin, instead of those of the testplan.
    """

    def __init__(self, name: str, bins: Mapping[str, str] | None = None) -> None:
        self.plan = name
        self.bins = dict(plan(name).bins if bins is None else bins)
        self.hits = dict.fromkeys(self.bins, 0)
        target = os.environ.get(COVERAGE_FILE)
        self.target = Path(target) if target else None

    def hit(self, name: str, when: bool = True) -> None:
        """The situation of this bin occurred (if ``when``)."""
        if name not in self.hits:
            raise ValueError(f"Testplan {self.plan} has no coverage bin {name!r}: it has {', '.join(self.hits)}")
        self.hits[name] += bool(when)

    def cross(self, left: Mapping[str, bool], right: Mapping[str, bool]) -> None:
        """Hit ``left_right`` for each pair that holds."""
        for one, holds in left.items():
            for other, too in right.items():
                self.hit(f"{one}_{other}", holds and too)

    def save(self) -> None:
        """Add the counts to the run's file; called at the end of each test."""
        if self.target is None:
            return
        before = [json.loads(self.target.read_text())] if self.target.exists() else []
        record: Record = {"plan": self.plan, "hits": self.hits}
        self.target.write_text(json.dumps(merge([*before, record]), indent=2))
        self.hits = dict.fromkeys(self.bins, 0)


def merge(records: Iterable[Record]) -> Record:
    """One record with the hits of all; they must be of one testplan."""
    merged: Record | None = None
    for record in records:
        if merged is None:
            merged = {"plan": record["plan"], "hits": dict(record["hits"])}
            continue
        if record["plan"] != merged["plan"]:
            raise ValueError(f"Coverage of {record['plan']} cannot be added to that of {merged['plan']}")
        for name, count in record["hits"].items():
            merged["hits"][name] = merged["hits"].get(name, 0) + count
    if merged is None:
        raise ValueError("Coverage of no run cannot be merged; give at least one record")
    return merged
