"""What units did over a run, from the notes that monitors made on the way."""

from typing import Any

from .loader import Activity

__all__ = ["UNITS", "activity_of", "busy_of"]

# Units, or what they wait for, by the monitor that counts their cycles.
UNITS = {
    "DRAM reads": "beats_read",
    "DRAM writes": "beats_written",
    "loading A": "phase_load_a",
    "loading B": "phase_load_b",
    "rows of C": "phase_compute",
    "draining": "phase_drain",
    "PEs": "pe_busy",
    "waits for A": "stall_a_empty",
    "waits for B's load": "stall_load",
    "waits for a PE": "stall_dispatch",
    "waits for a row's turn": "stall_collect",
    "waits for the C accessor": "stall_write",
}
DIGITS = 4


def activity_of(seen: Activity, pes: int) -> dict[str, Any] | None:
    """Share of each interval in which a unit was busy, of PEs their mean; None of a run in which nothing was counted."""
    ends = seen.counts["cycles"]
    if not ends[-1]:
        return None
    shares = {}
    for unit, monitor in UNITS.items():
        counts = seen.counts[monitor]
        width = pes if monitor == "pe_busy" else 1
        steps = zip([0, *counts], counts, [0, *ends], ends, strict=False)
        shares[unit] = [round((b - a) / (width * (end - begin)), DIGITS) for a, b, begin, end in steps if end > begin]
    return {"interval": seen.interval, "cycles": ends[-1], "units": shares}


def busy_of(seen: Activity, pes: int) -> list[int]:
    """Cycles in which each PE had a job."""
    return [seen.counts[f"pe{n}"][-1] for n in range(pes)]
