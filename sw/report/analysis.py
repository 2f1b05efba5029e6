"""The page of an analysis: its loop nest, energy and traffic by level, and a roofline."""

from functools import partial
from typing import Any

from sw.analytic.analysis import Analysis
from sw.analytic.explain import loops_text
from sw.analytic.hardware.cycles import port_words
from sw.analytic.result import record
from sw.analytic.sparse.counts import ACTIONS

from .charts import bars, both, short
from .page import page
from .roofline import Port, port_roofline
from .scatter import KINDS

__all__ = ["render"]

# Classes of the style sheet for accesses that are made, gated, skipped.
SPLIT = (("actual", "k0"), ("gated", "k1"), ("skipped", "bound"))


def render(analysis: Analysis, command: str) -> str:
    """The page. command: what made it."""
    ports = _ports(analysis)
    computes, units = analysis.sparse.computes, analysis.spec.architecture.compute
    return page(
        "analysis.html.j2",
        record=record(analysis),
        name=analysis.spec.workload.problem.name,
        unit=units.name,
        nest=_nest(analysis),
        energy_chart=_energy_chart(analysis),
        tensors=[(tensor.name, n % KINDS) for n, tensor in enumerate(analysis.spec.workload.problem.tensors)],
        traffic_chart=_traffic_chart(analysis),
        roofline_chart=port_roofline(ports, float(computes.actual), float(analysis.cycles.total), units.instances),
        ports=[(port.name, n % KINDS) for n, port in enumerate(port for port in ports if port.words > 0)],
        command=command,
    )  # fmt: skip


def _nest(analysis: Analysis) -> list[dict[str, Any]]:
    """Levels, outermost first: loops, and the tile of each tensor that a level keeps."""
    spec, found = analysis.spec, []
    for level in reversed(range(len(spec.architecture.levels))):
        own = [place for place in spec.mapping.places if place.level == level]
        tiles = [
            f"{tensor.name} {' x '.join(f'{extent:,}' for extent in analysis.traffic[level, number].extents)}"
            for number, tensor in enumerate(spec.workload.problem.tensors)
            if (level, number) in analysis.traffic
        ]
        found.append(
            {
                "name": spec.architecture.levels[level].name,
                "tiles": tiles,
                "time": loops_text(analysis, [place for place in own if not place.loop.is_spatial]),
                "space": loops_text(analysis, [place for place in own if place.loop.is_spatial]),
            }
        )
    return found


def _energy_chart(analysis: Analysis) -> str:
    """By component, outermost first, and of storage by tensor; what no tensor takes leaks."""
    spec, total = analysis.spec, sum(analysis.energy.values())
    parts: dict[str, list[tuple[str, float, str]]] = {name: [] for name in analysis.energy}
    for (level, number), one in analysis.tensor_energy.items():
        name, tensor = spec.architecture.levels[level].name, spec.workload.problem.tensors[number].name
        parts[name].append((f"d{number % KINDS}", one * analysis.uses[level].mean[number], f"{name}.{tensor}, pJ"))
    rows = []
    for name, energy in reversed(analysis.energy.items()):
        rest = energy - sum(length for _, length, _ in parts[name])
        what = "leakage" if parts[name] else "computes"
        segments = [*parts[name], ("bound", rest if rest > 1e-9 * energy else 0.0, f"{name}, {what}, pJ")]
        rows.append((name, segments, f"{energy / 1e6:,.4g} uJ ({energy / total if total else 0:.1%})"))
    return both(partial(bars, rows, "Energy by component"))


def _traffic_chart(analysis: Analysis) -> str:
    """Words at all instances, by level and tensor, outermost level first."""
    rows = []
    for level, number in sorted(analysis.sparse.counters, key=lambda pair: (-pair[0], pair[1])):
        counters = analysis.sparse.counters[level, number]
        copies = float(analysis.uses[level].mean[number])
        name = f"{analysis.spec.architecture.levels[level].name}.{analysis.spec.workload.problem.tensors[number].name}"
        segments = []
        for kind, style in SPLIT:
            words = copies * sum(float(getattr(counters.data(action), kind)) for action in ACTIONS)
            segments.append((style, words, f"{name}, {kind}"))
        rows.append((name, segments, f"{short(segments[0][1])} actual"))
    return both(partial(bars, rows, "Traffic by level and tensor"))


def _ports(analysis: Analysis) -> list[Port]:
    """Of each level, outermost first: what it reads and what is written, or both where they share a port or have no bound."""
    found = []
    for level in reversed(range(len(analysis.spec.architecture.levels))):
        storage, use = analysis.spec.architecture.levels[level], analysis.uses[level]
        if storage.is_spatial:
            continue
        sides = (
            ("reads", ("reads",), storage.read_bandwidth),
            ("writes", ("fills", "updates"), storage.write_bandwidth),
            ("reads and writes", ("reads", "fills", "updates"), storage.shared_bandwidth),
        )
        bounded = [side for side in sides if side[2] is not None] or [sides[-1]]
        for what, actions, bandwidth in bounded:
            words = sum(
                float(port_words(counters, analysis.sparse.occupancy[key], actions, storage.word_bits))
                * float(use.mean[key[1]])
                for key, counters in analysis.sparse.counters.items()
                if key[0] == level
            )
            whole = None if bandwidth is None else bandwidth * float(use.maximum)
            found.append(Port(name=f"{storage.name} {what}", words=words, bandwidth=whole))
    return found
