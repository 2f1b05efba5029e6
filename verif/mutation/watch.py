"""Plugin of pytest: writes a line of JSON for each test as it ends, so that a run that is cut short tells what it did.

Loaded with ``-p verif.mutation.watch``; the file is that of ``FIBERLOOM_MUTATION_LOG``.
"""

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["LOG_VARIABLE", "read", "under_way"]

LOG_VARIABLE = "FIBERLOOM_MUTATION_LOG"
MESSAGE_LENGTH = 300


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """A test that begins: the last one of these without an end is where a run hung."""
    _write({"test": nodeid, "outcome": "begun"})


def pytest_runtest_logreport(report: Any) -> None:
    """Its end; a failure in its preparation counts as its own."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        said = "" if report.outcome != "failed" else str(getattr(crash, "message", report.longrepr))
        _write(
            {
                "test": report.nodeid,
                "outcome": report.outcome,
                "seconds": round(report.duration, 2),
                "message": said[-MESSAGE_LENGTH:] if crash is None else said[:MESSAGE_LENGTH],
            }
        )


def pytest_collectreport(report: Any) -> None:
    """A module that cannot even be imported."""
    if report.failed:
        said = str(report.longrepr)[-MESSAGE_LENGTH:]
        _write({"test": report.nodeid, "outcome": "failed", "seconds": 0.0, "message": said})


def read(log: Path) -> list[dict[str, Any]]:
    """The ends of all tests in a log, in order."""
    return [item for item in _items(log) if item["outcome"] != "begun"]


def under_way(log: Path) -> str:
    """The test that had begun and not ended; empty if there is none."""
    open_tests: dict[str, None] = {}
    for item in _items(log):
        if item["outcome"] == "begun":
            open_tests[item["test"]] = None
        else:
            open_tests.pop(item["test"], None)
    return next(reversed(open_tests), "")


def _items(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _write(item: dict[str, Any]) -> None:
    with Path(os.environ[LOG_VARIABLE]).open("a") as log:
        log.write(json.dumps(item) + "\n")
