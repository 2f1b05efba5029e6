"""Runs below the roof of their hardware: multiplications a cycle over multiplications a byte."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from .charts import both, short
from .scatter import Dot, scatter

__all__ = ["Work", "most_macs", "roofline"]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run did: multiplications, bytes of DRAM traffic and cycles; its name, and its kind (0 up: which colour)."""

    name: str
    macs: int
    dram_bytes: int
    cycles: int
    kind: int = 0


def most_macs(macs: int, cycles: int, pe_utilization: float) -> int:
    """Multiplications that all PEs can do in a cycle, from those of a run and the share of the most that they are."""
    return round(macs / (cycles * pe_utilization))


def roofline(runs: Sequence[Work], macs: int, bus_bytes: int) -> str | None:
    """The plot for a page and for a phone; None where no run has multiplied and moved anything.

    Parameters
    ----------
    macs, bus_bytes: what all PEs multiply, and the bus moves, in a cycle at most: the two sides of the roof.
    """
    dots = [
        Dot(
            x=run.macs / run.dram_bytes,
            y=run.macs / run.cycles,
            kind=run.kind,
            text=f"{run.name}: {short(run.macs)} MACs, {short(run.dram_bytes)} bytes, {short(run.cycles)} cycles",
            name=run.name,
        )
        for run in runs
        if run.macs and run.dram_bytes and run.cycles
    ]
    if not dots:
        return None
    ridge = macs / bus_bytes
    low, high = min(ridge, *(dot.x for dot in dots)) / 1.5, max(ridge, *(dot.x for dot in dots)) * 1.5
    roof = [(low, low * bus_bytes), (ridge, macs), (high, macs)]
    return both(partial(scatter, dots, "MACs a byte of DRAM traffic", "MACs a cycle", roof=roof))
