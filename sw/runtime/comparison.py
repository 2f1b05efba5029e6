"""Results of several tilings of one multiplication beside each other: what each costs over the best."""

from typing import Any

__all__ = ["compared"]


def compared(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records with what can only be said of them together.

    ``regret``: cycles over the fewest of those that the hardware can run and that are correct, less one; below zero where
    only tiles that no hardware runs are better. ``run_seconds``: cycles at the design's clock; ``total_seconds`` with the
    scheduling before, and ``total_regret`` as ``regret`` with those. All null where an engine has no cycles.
    """
    timed = []
    for record in records:
        cycles = record["cycles"]
        run = None if cycles is None else cycles / (record["design"]["clock"]["mhz"] * 1e6)
        total = None if run is None else run + record["seconds"]["schedule"]
        timed.append(record | {"run_seconds": run, "total_seconds": total})
    fair = [record for record in timed if record["hardware"] and record["correct"] and record["cycles"] is not None]
    fewest = min((record["cycles"] for record in fair), default=None)
    soonest = min((record["total_seconds"] for record in fair), default=None)
    return [
        record
        | {
            "regret": _over(record["cycles"], fewest),
            "total_regret": _over(record["total_seconds"], soonest),
        }
        for record in timed
    ]


def _over(cost: float | None, least: float | None) -> float | None:
    return cost / least - 1 if cost is not None and least else None
