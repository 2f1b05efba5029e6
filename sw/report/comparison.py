"""Tilings side by side: the table as text and as CSV, a plot that stands alone, and the page with both."""

import csv
import io
from functools import partial
from typing import Any

from sw.runtime.energy import COMPONENTS
from sw.runtime.result import TENSORS, converting

from .charts import WIDE, bars, both, energy_parts, short
from .page import PALETTE, page
from .roofline import Work, most_macs, roofline
from .scatter import KINDS, Dot, scatter

__all__ = ["clock_text", "plot", "render", "rows", "table", "to_csv"]

FIELDS = (
    "tiling", "hardware", "correct", "order", "T_i", "T_j", "T_k", "cycles", "roofline_fraction", "ideal_fraction",
    "pe_utilization", "dram_bytes", "energy_pJ", "conversion_cycles", "conversion_bytes",
    "schedule_seconds", "regret", "run_seconds", "total_seconds", "total_regret",
)  # fmt: skip
MARK = "*"
NOTE = f"{MARK} tiles of different shapes: in the model only, no hardware runs them"


def _row(record: dict[str, Any]) -> dict[str, Any]:
    scheme = record["scheme"]
    traffic = record["dram_bytes"]
    own = {name: record[name] for name in FIELDS if name in record}
    conversion_cycles, conversion_bytes = converting(record)
    return {
        **{name: scheme[name] for name in ("order", "T_i", "T_j", "T_k")},
        **own,
        "dram_bytes": None if traffic is None else traffic["total"],
        "energy_pJ": None if record["energy_pJ"] is None else record["energy_pJ"]["total"],
        "conversion_cycles": conversion_cycles,
        "conversion_bytes": conversion_bytes,
        "schedule_seconds": record["seconds"]["schedule"],
    }


def rows(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fields of the table as plain numbers, a row for each tiling; None for what an engine does not know."""
    return [{name: found.get(name) for name in FIELDS} for found in map(_row, records)]


def to_csv(records: list[dict[str, Any]]) -> str:
    """One line a tiling, the fields of the table as plain numbers."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(records))
    return text.getvalue()


def table(records: list[dict[str, Any]]) -> list[str]:
    """Lines for a terminal, in the order of the records; cycles of conversions where tensors are kept in formats of their own,
    use of PEs where they differ."""
    converts = any(record["memory_formats"] for record in records)
    engines = len({record["design"]["pe"]["dataflow"] for record in records}) > 1
    rows = [
        (
            "tiling",
            "order",
            "T_i x T_j x T_k",
            "cycles",
            *(["convert"] if converts else []),
            "ideal",
            "roofline",
            *(["PE use"] if engines else []),
            "DRAM bytes",
            "energy, uJ",
            "schedule",
            "regret",
            "run + schedule",
            "over the soonest",
        )
    ]
    for record in records:
        row = _row(record)
        mark = "" if row["hardware"] else f" {MARK}"
        rows.append(
            (
                f"{row['tiling']}{mark}" + ("" if row["correct"] else " NOT CORRECT"),
                row["order"],
                f"{row['T_i']:,} x {row['T_j']:,} x {row['T_k']:,}",
                _count(row["cycles"]),
                *([_count(row["conversion_cycles"])] if converts else []),
                _share(row["ideal_fraction"]),
                _share(row["roofline_fraction"]),
                *([_share(row["pe_utilization"])] if engines else []),
                _count(row["dram_bytes"]),
                "-" if row["energy_pJ"] is None else f"{row['energy_pJ'] / 1e6:,.2f}",
                f"{row['schedule_seconds']:.3f} s",
                _percent(row["regret"]),
                "-" if row["total_seconds"] is None else f"{row['total_seconds']:.3f} s",
                _times(row["total_regret"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for cells in rows:
        padded = [
            text.ljust(width) if n < 3 else text.rjust(width)
            for n, (text, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return [*lines, *([NOTE] if any(not record["hardware"] for record in records) else [])]


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def _times(regret: float | None) -> str:
    return "-" if regret is None else f"{1 + regret:,.2f} x"


def _name(record: dict[str, Any]) -> str:
    return str(record["tiling"]) + ("" if record["hardware"] else f" {MARK}")


def _cycle_chart(records: list[dict[str, Any]], width: int = WIDE) -> str:
    rows = [
        (
            _name(record),
            [("run" if record["hardware"] else "faint", record["cycles"], "cycles")],
            f"{record['cycles']:,} ({_percent(record['regret'])})",
        )
        for record in records
        if record["cycles"] is not None
    ]
    return bars(rows, "Cycles of each tiling", width)


def _traffic_chart(records: list[dict[str, Any]]) -> str:
    rows = []
    for record in records:
        traffic = record["dram_bytes"]
        if traffic is not None:
            parts = [(f"k{n}", sum(traffic[tensor].values()), tensor) for n, tensor in enumerate(TENSORS)]
            rows.append((_name(record), parts, short(traffic["total"])))
    return both(partial(bars, rows, "DRAM bytes of each tiling by tensor"))


def _energy_chart(records: list[dict[str, Any]]) -> str:
    rows = []
    for record in records:
        energy = record["energy_pJ"]
        if energy is not None:
            rows.append((_name(record), energy_parts(energy), f"{energy['total'] / 1e6:,.4g} uJ"))
    return both(partial(bars, rows, "Energy of each tiling by component"))


def _time_chart(records: list[dict[str, Any]]) -> str:
    rows = [
        (
            _name(record),
            [
                ("k1", 1e6 * record["seconds"]["schedule"], "microseconds of scheduling"),
                ("run", 1e6 * record["run_seconds"], "microseconds of the run"),
            ],
            f"{record['total_seconds']:.3g} s ({_times(record['total_regret'])})",
        )
        for record in records
        if record["run_seconds"] is not None
    ]
    return both(partial(bars, rows, "Seconds of scheduling and of the run"))


def _measured(records: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Records with cycles and bytes, and the kind of dot of each."""
    found = [record for record in records if record["cycles"] and record["dram_bytes"] and record["macs"]]
    return [(n % KINDS, record) for n, record in enumerate(found)]


def _side_by_side(records: list[dict[str, Any]]) -> str | None:
    """Cycles over bytes, a dot a tiling."""
    dots = [
        Dot(
            x=record["dram_bytes"]["total"],
            y=record["cycles"],
            kind=kind,
            text=f"{_name(record)}: {short(record['dram_bytes']['total'])} bytes, {short(record['cycles'])} cycles",
            name=_name(record),
        )
        for kind, record in _measured(records)
    ]
    return both(partial(scatter, dots, "DRAM bytes", "cycles")) if dots else None


def _roofline(records: list[dict[str, Any]]) -> str | None:
    found = _measured(records)
    if not found:
        return None
    runs = [
        Work(
            name=_name(record), macs=record["macs"], dram_bytes=record["dram_bytes"]["total"],
            cycles=record["cycles"], kind=kind,
        )
        for kind, record in found
    ]  # fmt: skip
    first = found[0][1]
    most = most_macs(first["macs"], first["cycles"], first["pe_utilization"])
    return roofline(runs, most, first["design"]["axi"]["data_bits"] // 8)


def plot(records: list[dict[str, Any]]) -> str:
    """Cycles of each tiling as an SVG file of its own."""
    chart = _cycle_chart(records)
    head, rest = chart.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{PALETTE}.chart {{ background: var(--page); }}</style>{rest}\n'


def clock_text(clock: dict[str, Any]) -> str:
    """The clock in which seconds are counted, and whether hardware reaches it."""
    reached = (
        f"reached by place and route on {clock['part']}"
        if clock["part"]
        else "asked for and reached by no place and route"
    )
    return f"{clock['mhz']:g} MHz, {reached}"


def render(records: list[dict[str, Any]], failures: dict[str, str], command: str) -> str:
    """The page. ``failures``: tilings that could not be run, and why."""
    return page(
        "comparison.html.j2",
        records=records,
        rows=[_row(record) for record in records],
        failures=failures,
        command=command,
        note=NOTE if any(not record["hardware"] for record in records) else "",
        mark=MARK,
        clock=clock_text(records[0]["design"]["clock"]),
        timed=any(record["cycles"] is not None for record in records),
        cycle_chart=both(partial(_cycle_chart, records)),
        side_by_side=_side_by_side(records),
        roofline_chart=_roofline(records),
        traffic_chart=_traffic_chart(records),
        energy_chart=_energy_chart(records),
        components=COMPONENTS,
        time_chart=_time_chart(records),
        tensors=TENSORS,
        formats=records[0]["memory_formats"],
        designs=", ".join(dict.fromkeys(record["design"]["name"] for record in records)),
        engines=len({record["design"]["pe"]["dataflow"] for record in records}) > 1,
    )  # fmt: skip
