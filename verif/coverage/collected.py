"""Hits of the benches' runs, kept in a folder until they are joined: one file for each build and simulator."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["COLLECT", "Run", "keep", "runs"]

COLLECT = "FIBERLOOM_COVERAGE_FOLDER"


@dataclass(frozen=True)
class Run:
    """One bench on one build under one simulator.

    Parameters
    ----------
    plan, build, simulator: which.
    tests: how many passed.
    whole: every test of the bench was run, so that every bin is asked for.
    hits: how often each bin was hit.
    """

    plan: str
    build: str
    simulator: str
    tests: int
    whole: bool
    hits: Mapping[str, int]


def keep(folder: Path, run: Run) -> None:
    """Write a run, over an earlier one of the same build and simulator."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{run.build}.{run.simulator}.json").write_text(json.dumps(asdict(run), indent=1) + "\n")


def runs(folder: Path) -> list[Run]:
    """All runs of a folder, by build and simulator."""
    return [Run(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
