"""``report.html``: one self-contained page about one run. No script, no network, readable on light and dark screens."""

from functools import partial
from typing import TYPE_CHECKING, Any

from sw.engine_result import EngineResult
from sw.runtime.result import TENSORS, TRAFFIC
from sw.scheme.terms import GATHERS, GUSTAVSON

from .architecture import architecture, shares
from .charts import Segment, bars, both, energy_parts, occupancy, short
from .page import page
from .roofline import Work, most_macs, roofline
from .spy import spy
from .timeline import timeline

if TYPE_CHECKING:
    from sw.formats.csr import Csr
    from sw.operands import Operand
    from sw.scheme.scheme import Scheme

__all__ = ["render"]

# Counters of the register map that say where cycles went, with their meaning for a reader.
STALLS = {
    "stall_a_empty": "B lookup waits for elements of A",
    "stall_load": "B lookup waits for a fiber that is being loaded",
    "stall_lookup": "B lookup is full",
    "stall_dispatch": "job waits for a free PE",
    "stall_collect": "collector waits for the PE whose turn it is",
    "stall_write": "word of C waits for the C accessor",
}
PHASES = {
    "phase_next_tile": "checking the scheme, next tile",
    "phase_load_a": "loading A tiles",
    "phase_load_b": "loading B tiles",
    "phase_compute": "processing rows of A",
    "phase_drain": "draining results",
}
KINDS = {
    "read": "data read",
    "write": "data written",
    "metadata_read": "metadata read",
    "metadata_write": "metadata written",
}
# Components of the energy.
ENERGIES = {
    "dram": "DRAM",
    "sram": "SRAM",
    "merge": "merge: comparisons",
    "mac": "multiply and add",
    "conversion": "conversion of formats",
}
ALTERNATIVES = 12
# PEs that have a bar each; of more these are shown.
MOST_PES = 32
QUARTERS = {"least busy PE": 0.0, "lower quarter": 0.25, "median": 0.5, "upper quarter": 0.75, "busiest PE": 1.0}
# The measures that schemes are compared by, the most reliable first: the number that both must have, and its name.
MEASURES = {
    "judged_cycles": "in the model tier",
    "cycles": "by prediction",
}
# What a tile loads of B, by the word in the scheme.
LOADS = {
    "tile": "its tile of B, whole",
    "used": "the rows of B that it uses",
    "list": "a list of the rows of B that it uses; they stay for the tiles after it while there is room",
    "reuse": "a list of the rows of B that it uses; those stay that are used again in time, the others go by",
    "planned": "a list of the rows of B that it uses, each at a place planned for it; those leave that are worth the least",
}


def render(
    record: dict[str, Any],
    *,
    scheme: "Scheme",
    operands: "dict[str, Operand]",
    c: "Csr",
    result: EngineResult | None,
) -> str:
    """The page for a result record.

    Parameters
    ----------
    record: what ``result_record`` made.
    scheme: the tile scheme, for its grid and its alternatives.
    operands: ``A`` and ``B``, for their spy plots; ``c`` is the result.
    result: the engine's own findings, for the occupancy over tiles; None for the golden engine.
    """
    tiles = {"i": scheme.T_i, "j": scheme.T_j, "k": scheme.T_k}
    matrices = {"A": operands["A"].matrix, "B": operands["B"].matrix, "C": c.to_scipy()}
    ranks = {"A": "ik", "B": "kj", "C": "ij"}
    pictures = {
        name: spy(
            matrix,
            name,
            (tiles[ranks[name][0]], tiles[ranks[name][1]]),
            ranks[name],
        )
        for name, matrix in matrices.items()
    }
    shapes = {
        "i": record["operands"]["A"]["rows"],
        "j": record["operands"]["B"]["cols"],
        "k": record["operands"]["A"]["cols"],
    }
    return page(
        "report.html.j2",
        record=record,
        pictures=pictures,
        tile_counts={rank: -(-shapes[rank] // tiles[rank]) for rank in "ijk"},
        loads=LOADS[scheme.load] + (f"; rows of C in strips of {scheme.T_j:,} columns" if scheme.strips else ""),
        beaten=_beaten(scheme, shapes["j"]),
        cycle_chart=_cycle_chart(record),
        roofline_chart=_roofline_chart(record),
        timeline_chart=_timeline_chart(record),
        load_chart=_load_chart(record),
        waits=architecture(shares(record)) if record["design"]["pe"]["dataflow"] == GUSTAVSON else None,
        scipy_chart=_scipy_chart(record),
        pe_chart=_pe_chart(record),
        stall_chart=_stall_chart(record),
        traffic_chart=_traffic_chart(record),
        energy_chart=_energy_chart(record),
        occupancies=_occupancies(result),
        kinds=KINDS,
    )


def _beaten(scheme: "Scheme", columns: int) -> list[dict[str, Any]]:
    """The alternatives that cost more than the scheme by a measure that both have, a table for each measure.

    One that ran in the model is compared there alone: its prediction did not decide.
    """
    mine = {"order": scheme.order, "T_i": scheme.T_i, "T_j": scheme.T_j, "T_k": scheme.T_k, "load": scheme.load}
    chosen = _entry(mine | {"mode": scheme.mode, **scheme.predicted}, columns)
    tables = []
    left = [_entry(other, columns) for other in scheme.alternatives]
    for measure, words in MEASURES.items():
        limit = chosen[measure]
        if limit is None:
            continue
        compared = [entry for entry in left if entry[measure] is not None]
        left = [entry for entry in left if entry[measure] is None]
        rows = [entry for entry in compared if entry[measure] >= limit][:ALTERNATIVES]
        if rows:
            tables.append({"measure": measure, "words": words, "rows": [chosen, *rows]})
    return tables


def _entry(given: dict[str, Any], columns: int) -> dict[str, Any]:
    """A scheme as a row: shape, what is loaded and kept, and its costs; None for costs that it does not have."""
    costs = {name: given.get("predicted", given).get(name) for name in (*MEASURES, "dram_bytes")}
    load = given.get("load") or ("window" if given.get("windows") else "tile")
    strips = load in GATHERS and (given.get("T_j") or columns) < columns
    kept = [tensor for tensor, mode in given.get("mode", {}).items() if mode == "buffering"]
    shape = {name: given.get(name) for name in ("policy", "order", "T_i", "T_j", "T_k")}
    return (
        shape
        | costs
        | {
            "load": f"{load}, in strips" if strips else load,
            "kept": (", ".join(kept) or "none") if "mode" in given else "",
        }
    )


def _cycle_chart(record: dict[str, Any]) -> str | None:
    cycles = record["cycles"]
    if cycles is None:
        return None
    rows = [("this run", [("run", cycles, "cycles")], f"{cycles:,}")]
    predicted = record["scheme"]["predicted"].get("cycles")
    if predicted is not None:
        rows.append(("predicted by the policy", [("faint", predicted, "cycles")], f"{predicted:,}"))
    if record["model"] is not None:
        modelled = record["model"]["cycles"]
        rows.append(("trace-driven model", [("faint", modelled, "cycles")], f"{modelled:,} ({modelled / cycles:.1%})"))
    names = {"compute": "bound: compute", "dram": "bound: DRAM, bytes moved", "sram": "bound: SRAM"}
    for name, text in names.items():
        limit = record["bounds"][name]
        rows.append((text, [("bound", limit, "cycles")], f"{limit:,} ({limit / cycles:.1%})"))
    ideal = record["ideal_cycles"]
    rows.append(("ideal: compulsory bytes", [("bound", ideal, "cycles")], f"{ideal:,} ({ideal / cycles:.1%})"))
    return both(partial(bars, rows, "Cycles of this run against its bounds"))


def _roofline_chart(record: dict[str, Any]) -> str | None:
    cycles, traffic, macs = record["cycles"], record["dram_bytes"], record["macs"]
    if not cycles or traffic is None or not macs:
        return None
    runs = [
        Work(name="this run", macs=macs, dram_bytes=traffic["total"], cycles=cycles),
        Work(
            name="ideal", macs=macs, dram_bytes=record["useful_bytes"]["total"], cycles=record["ideal_cycles"], kind=7
        ),
    ]
    return roofline(runs, most_macs(macs, cycles, record["pe_utilization"]), record["design"]["axi"]["data_bits"] // 8)


def _timeline_chart(record: dict[str, Any]) -> str | None:
    seen = record["activity"]
    return None if seen is None else both(partial(timeline, seen["units"], seen["interval"], seen["cycles"]))


def _load_chart(record: dict[str, Any]) -> str | None:
    """Busy cycles of each PE; of many their least, quarters and most."""
    busy = record["pe_busy"]
    if busy is None:
        return None
    loads = [(f"PE {n}", load) for n, load in enumerate(busy)]
    if len(busy) > MOST_PES:
        ordered = sorted(busy)
        loads = [(name, ordered[round(part * (len(busy) - 1))]) for name, part in QUARTERS.items()]
    rows = [(name, [("k0", load, "cycles")], f"{load:,} ({load / record['cycles']:.1%})") for name, load in loads]
    return both(partial(bars, rows, f"Cycles with a job, of {record['cycles']:,}"))


def _scipy_chart(record: dict[str, Any]) -> str | None:
    """Time beside SciPy: of the run where place and route have reached a clock."""
    seconds, cycles, clock = record["scipy_seconds"], record["cycles"], record["design"]["clock"]
    if seconds is None:
        return None
    rows: list[tuple[str, list[Segment], str]] = [
        ("SciPy, one core here", [("k1", 1e6 * seconds, "microseconds")], f"{1e3 * seconds:,.3g} ms")
    ]
    if cycles and clock["part"]:
        run = cycles / clock["mhz"]
        rows.append((f"this run at {clock['mhz']:g} MHz", [("run", run, "microseconds")], f"{run / 1e3:,.3g} ms"))
    return both(partial(bars, rows, "Time of the product"))


def _pe_chart(record: dict[str, Any]) -> str | None:
    """Where the time of the PEs went, as one bar of all PE cycles."""
    counters, cycles = record["counters"], record["cycles"]
    if cycles is None or "pe_busy" not in counters:
        return None
    whole = cycles * record["design"]["pe"]["count"]
    busy = counters["pe_busy"]
    waiting = counters.get("pe_stall_input", 0)
    blocked = counters.get("pe_stall_output", 0)
    shares = [
        ("working", max(0, busy - waiting - blocked), "k0"),
        ("waiting for data", waiting, "k1"),
        ("blocked by the output", blocked, "k2"),
        ("without a job", max(0, whole - busy), "bound"),
    ]
    rows = [(name, [(kind, size, "PE cycles")], f"{size / whole:.1%}" if whole else "") for name, size, kind in shares]
    return both(partial(bars, rows, "PE cycles"))


def _stall_chart(record: dict[str, Any]) -> str | None:
    counters, cycles = record["counters"], record["cycles"]
    rows = [
        (text, [(kind, counters[name], "cycles")], f"{counters[name]:,} ({counters[name] / cycles:.1%})")
        for names, kind in ((PHASES, "k0"), (STALLS, "k1"))
        for name, text in names.items()
        if cycles and name in counters
    ]
    return both(partial(bars, rows, "Phases and stalls")) if rows else None


def _traffic_chart(record: dict[str, Any]) -> str | None:
    traffic = record["dram_bytes"]
    if traffic is None:
        return None
    rows = []
    for tensor in TENSORS:
        segments = [(f"k{n}", traffic[tensor][kind], f"{tensor} {KINDS[kind]}") for n, kind in enumerate(TRAFFIC)]
        moved = sum(traffic[tensor].values())
        least = record["useful_bytes"][tensor]
        factor = f" ({moved / least:.2f} x)" if least else ""
        rows.append((f"{tensor} moved", segments, f"{short(moved)}{factor}"))
        rows.append((f"{tensor} once", [("bound", least, f"{tensor} once")], short(least)))
    return both(partial(bars, rows, "DRAM traffic by tensor"))


def _energy_chart(record: dict[str, Any]) -> str | None:
    energy = record["energy_pJ"]
    if energy is None:
        return None
    rows = []
    for segment in energy_parts(energy):
        name = segment[2].partition(",")[0]
        share = energy[name] / energy["total"] if energy["total"] else 0.0
        rows.append((ENERGIES[name], [segment], f"{energy[name] / 1e6:,.4g} uJ ({share:.1%})"))
    return both(partial(bars, rows, "Energy by component"))


def _occupancies(result: EngineResult | None) -> list[dict[str, Any]]:
    found = []
    for tensor, series in (result.occupancy if result is not None else {}).items():
        if series.count:
            picture = both(partial(occupancy, series, f"Occupancy of {tensor} tiles"))
            found.append({"tensor": tensor, "tiles": series.count, "over": series.over, "picture": picture})
    return found
