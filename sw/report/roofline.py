"""Work of a cycle below the roofs of compute units and bandwidths: of runs of the machine, and of ports in an analysis."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from .charts import both, short
from .scatter import Dot, Roof, scatter

__all__ = ["Port", "Work", "most_macs", "port_roofline", "roofline"]

# The lower end of the axis of an analysis lies so many times below the peak at least.
LEAST_HEIGHT = 10


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
    roofs = [Roof(corners=[(low, low * bus_bytes), (ridge, macs), (high, macs)])]
    return both(partial(scatter, dots, "MACs a byte of DRAM traffic", "MACs a cycle", roofs=roofs))


@dataclass(frozen=True, kw_only=True)
class Port:
    """What passes a port. words: moved in all. bandwidth: words a cycle over all instances, None without a bound."""

    name: str
    words: float
    bandwidth: float | None


def port_roofline(ports: Sequence[Port], computes: float, cycles: float, peak: float) -> str | None:
    """A dot for each port, its roof where it has a bound, and that of the compute units, ``peak`` computes a cycle.

    None where there is nothing to compute or nothing moves.
    """
    moved = [port for port in ports if port.words > 0]
    if not moved or computes <= 0 or cycles <= 0:
        return None
    attained = computes / cycles
    places = [computes / port.words for port in moved] + [peak / port.bandwidth for port in moved if port.bandwidth]
    left, right, floor = min(places) / 1.5, max(places) * 1.5, min(attained, peak / LEAST_HEIGHT)
    dots, roofs = [], [Roof(corners=[(left, peak), (right, peak)], name="compute units")]
    for kind, port in enumerate(moved):
        intensity = computes / port.words
        text = f"{port.name}: {intensity:.4g} computes for each word"
        if port.bandwidth:
            text += f", bound {short(min(peak, intensity * port.bandwidth))} in a cycle"
            begin, ridge = max(left, floor / port.bandwidth), peak / port.bandwidth
            roofs.append(Roof(corners=[(begin, begin * port.bandwidth), (ridge, peak)], name=port.name, kind=kind))
        dots.append(Dot(x=intensity, y=attained, kind=kind, text=text))
    return both(partial(scatter, dots, "computes for each word", "computes in a cycle", roofs=roofs))
