"""Functional coverage: named bins that a bench must hit, merged over the tests of a run.

A bench declares its bins once with what each means; tests call ``hit``. The runner gives a file to write to; a bin that no
test of the bench hit fails the run, not the single test.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["COVERAGE_FILE", "Coverage", "merge", "unhit"]

COVERAGE_FILE = "FIBERLOOM_COVERAGE"


class Coverage:
    """Hit counts of the bins of one bench.

    Parameters
    ----------
    bench: name.
    bins: name and meaning of each bin.
    """

    def __init__(self, bench: str, bins: Mapping[str, str]) -> None:
        self.bench = bench
        self.bins = dict(bins)
        self.hits = dict.fromkeys(bins, 0)
        target = os.environ.get(COVERAGE_FILE)
        self.target = Path(target) if target else None

    def hit(self, name: str, when: bool = True) -> None:
        """The situation of this bin occurred (if ``when``)."""
        if name not in self.hits:
            raise ValueError(f"Bench {self.bench} has no coverage bin {name!r}: it has {', '.join(self.hits)}")
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
        before = json.loads(self.target.read_text()) if self.target.exists() else {}
        record = {"bench": self.bench, "bins": self.bins, "hits": self.hits}
        self.target.write_text(json.dumps(merge([before, record] if before else [record]), indent=2))
        self.hits = dict.fromkeys(self.bins, 0)


def merge(records: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """One record with the hits of all; they must be of one bench."""
    merged: dict[str, object] = {}
    for record in records:
        if not merged:
            merged = {"bench": record["bench"], "bins": record["bins"], "hits": dict(record["hits"])}  # type: ignore[call-overload]
            continue
        if record["bench"] != merged["bench"]:
            raise ValueError(f"Coverage of {record['bench']} cannot be added to that of {merged['bench']}")
        hits = merged["hits"]
        for name, count in record["hits"].items():  # type: ignore[attr-defined]
            hits[name] = hits.get(name, 0) + count  # type: ignore[attr-defined, index]
    return merged


def unhit(record: Mapping[str, object]) -> dict[str, str]:
    """Bins that nothing hit, with their meaning."""
    bins, hits = record["bins"], record["hits"]
    return {name: text for name, text in bins.items() if not hits.get(name)}  # type: ignore[attr-defined]
