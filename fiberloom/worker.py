"""What a process elsewhere is asked to do; found by this name wherever Fiberloom is installed."""

from typing import Any

from .rooms import find_rooms

__all__ = ["work"]


def work(point: dict[str, Any]) -> dict[str, Any]:
    """Runs one point of a sweep, given and answered as plain data (``sw.cli.worker.work``)."""
    find_rooms()
    from sw.cli.worker import work as run

    return run(point)
