"""``sweep.html``: the results of a sweep as trade-offs between area, cycles and traffic."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .charts import HALF, both, short
from .page import page
from .roofline import Work, most_macs, roofline
from .scatter import KINDS, Dot, pareto, scatter

__all__ = ["means", "render"]

Row = dict[str, Any]
# Operand pairs that get plots of their own.
MOST_PAIRS = 12
AXES = (
    ("area_proxy", "cycles", "area proxy, bits of SRAM", "cycles"),
    ("area_proxy", "dram_bytes", "area proxy, bits of SRAM", "DRAM bytes"),
    ("dram_bytes", "cycles", "DRAM bytes", "cycles"),
    ("energy_pJ", "cycles", "energy, pJ", "cycles"),
)
# Plots of rooflines: one for each pair of what PEs and bus can do.
MOST_ROOFS = 4
MACHINE = ("design", "settings", "tiling", "engine")


def means(rows: Sequence[Row]) -> list[Row]:
    """Geometric means of each machine (design, settings, tiling, engine) over the operand pairs that all machines finished.

    Each has ``pairs``, how many those are, and the names and the area of its machine.
    """
    good = [row for row in rows if not row["failed"] and row["cycles"]]
    machines = list(dict.fromkeys(tuple(row[name] for name in MACHINE) for row in good))
    by = {(tuple(row[name] for name in MACHINE), row["a"], row["b"]): row for row in good}
    pairs = list(dict.fromkeys((row["a"], row["b"]) for row in good))
    common = [pair for pair in pairs if all((names, *pair) in by for names in machines)]
    found = []
    for names in machines if common else []:
        mine = [by[(names, *pair)] for pair in common]
        found.append(
            dict(zip(MACHINE, names, strict=True))
            | {"pairs": len(common), "area_proxy": mine[0]["area_proxy"]}
            | {
                name: _mean(row[name] for row in mine)
                for name in ("cycles", "dram_bytes", "ideal_fraction", "roofline_fraction")
            }
            | {"energy_pJ": _mean(row["energy_pJ"] for row in mine) if all(row["energy_pJ"] for row in mine) else None}
            | {"schedule_seconds": _mean(max(row["schedule_seconds"], 1e-6) for row in mine)}
        )
    return found


def _mean(values: Any) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def _name(row: Row) -> str:
    return " ".join(filter(None, (row["design"], row["settings"], row["tiling"], row["engine"])))


def _plots(rows: Sequence[Row], kind: Callable[[Row], int]) -> list[str]:
    plots = []
    for x, y, x_name, y_name in AXES:
        dots = [
            Dot(
                x=row[x],
                y=row[y],
                kind=kind(row),
                text=f"{_name(row)}: {x_name} {short(row[x])}, {y_name} {short(row[y])}",
            )
            for row in rows
            if row[x] and row[y]
        ]
        # Along an axis on which all are equal there is no trade-off to see.
        if len({dot.x for dot in dots}) > 1:
            plots.append(both(partial(scatter, dots, x_name, y_name), HALF))
    return plots


def _rooflines(rows: Sequence[Row], kind: Callable[[Row], int]) -> list[dict[str, Any]]:
    """For each pair of what PEs and bus can do at most: its designs, and a dot for each operand pair and tiling on them."""
    roofs: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row["macs"] and row["dram_bytes"] and row["pe_utilization"]:
            most = most_macs(row["macs"], row["cycles"], row["pe_utilization"])
            roofs.setdefault((most, row["axi_bits"] // 8), []).append(row)
    found = []
    for (macs, bus_bytes), mine in list(roofs.items())[:MOST_ROOFS]:
        runs = [
            Work(name=row["a"], macs=row["macs"], dram_bytes=row["dram_bytes"], cycles=row["cycles"], kind=kind(row))
            for row in mine
        ]
        names = ", ".join(dict.fromkeys(row["design"] for row in mine))
        found.append(
            {
                "title": f"{names}: {macs:,} MACs and {bus_bytes:,} bytes a cycle",
                "plot": roofline(runs, macs, bus_bytes),
            }
        )
    return found


def _ranked(rows: Sequence[Row]) -> list[Row]:
    """By cycles, those that nothing beats in area and cycles marked."""
    ordered = sorted(rows, key=lambda row: (row["cycles"], row["area_proxy"]))
    front = set(pareto([(row["area_proxy"], row["cycles"]) for row in ordered]))
    return [row | {"name": _name(row), "front": n in front} for n, row in enumerate(ordered)]


def render(rows: Sequence[Row], command: str) -> str:
    """The page for the rows of the table."""
    good = [row for row in rows if not row["failed"] and row["cycles"]]
    tilings = list(dict.fromkeys(row["tiling"] for row in good))

    def kind(row: Row) -> int:
        return tilings.index(row["tiling"]) % KINDS

    overall = means(rows)
    pairs = list(dict.fromkeys((row["a"], row["b"]) for row in good))
    each = [
        {
            "title": f"{a} x {b}",
            "plots": _plots(mine, kind),
            "rows": _ranked(mine),
        }
        for a, b in pairs[:MOST_PAIRS]
        for mine in [[row for row in good if (row["a"], row["b"]) == (a, b)]]
    ]
    return page(
        "sweep.html.j2",
        points=len(rows),
        pairs=len(pairs),
        left_out=max(0, len(pairs) - MOST_PAIRS),
        wrong=[row | {"name": _name(row)} for row in rows if row["correct"] is False],
        failures=[row | {"name": _name(row)} for row in rows if row["failed"]],
        key=[(tiling, n % KINDS) for n, tiling in enumerate(tilings)],
        overall=_ranked(overall),
        overall_plots=_plots(overall, kind),
        each=each,
        rooflines=_rooflines(good, kind),
        command=command,
    )  # fmt: skip
