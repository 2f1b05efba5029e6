"""The truth of each performance counter, and the comparison: one function for every test that runs the machine.

``docs/counters.md`` has the same table for readers.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sw.model.machine import EXACT_COUNTERS
from sw.runtime.registers import COUNTERS
from sw.runtime.result import macs_per_cycle
from sw.runtime.simulation.probes import INSIDE_ELEMENT, NAMES

if TYPE_CHECKING:
    from gen.design import Design
    from sw.engine_result import EngineResult

__all__ = ["START_AND_END_CYCLES", "TRUTHS", "bus_beats", "check_counters", "check_sums"]

# From the cycle in which CONTROL.start is written to the first one that counts, and from the last one to the interrupt.
START_AND_END_CYCLES = 12
PHASES = ("phase_next_tile", "phase_load_a", "phase_load_b", "phase_compute", "phase_drain")
# Only in the computing phase; those of rows too, except where windows overlap in time.
STALLS_OF_COMPUTE = ("stall_a_empty", "stall_load", "stall_lookup")
STALLS_OF_ROWS = ("stall_dispatch", "stall_collect", "stall_write", "stall_conversion")
# Regions of memory whose beats a traffic counter counts.
_RESULTS = ("c_elements", "c_partial0", "c_partial1", "c_finished", "c_scratch")
BUS: Mapping[str, tuple[str, ...]] = {
    "read_a_data": ("a_elements", "a_frame"),
    "read_a_meta": ("a_pointers", "a_positions", "a_tile_map"),
    "read_b_data": ("b_elements", "b_frame"),
    "read_b_meta": ("b_pointers", "b_positions", "b_tile_map"),
    "read_c_data": _RESULTS,
    "read_scratch": ("c_scratch",),
    "write_scratch": ("c_scratch",),
    "read_c_meta": ("c_pointers", "c_tile_positions", "c_part_positions"),
    "write_a_meta": ("a_positions",),
    "write_b_meta": ("b_positions",),
    "write_c_data": (*_RESULTS, "c_frame"),
    "write_c_meta": ("c_pointers", "c_tile_positions", "c_part_positions"),
}

_MODEL = "the model, exactly"
_MONITOR = "a monitor in the simulation, exactly"
_STALL = f"{_MONITOR}; within the computing phase"
_BUS = "beats that the memory moved, by the region of their address"
_PEAK = "what the units say they hold, cycle by cycle; within the partition"
# How each counter is known to be right, by its name in lower case.
TRUTHS: Mapping[str, str] = {
    "cycles": "clock cycles of the simulation between the write of `CONTROL.start` and the interrupt; the sum of the phases",
    "macs": f"products that the operands have; {_MONITOR}; {_MODEL}",
    "jobs": f"leaves with `last` that PEs take; {_MODEL}",
    "rows": "last words of rows that the C accessor takes; rows of the tiles that run control takes",
    "leaves": f"leaves that are not empty and that PEs take; {_MODEL}",
    "tiles_total": f"{_MODEL}; `TILES_SKIPPED` and the tiles with work that run control takes",
    "tiles_skipped": f"{_MODEL}; `TILES_TOTAL` less the tiles with work that run control takes",
    "tiles_overbooked": _MODEL,
    "bumped_elements": _MODEL,
    "bumped_fetches": _MODEL,
    "pe_busy": "PEs between the first leaf of a job and the last word of its fiber; from MACS to PEs times cycles",
    "pe_stall_input": "what the root of each merge tree waits for; with 4 PEs and more a bound: `PE_BUSY` less MACS",
    "pe_stall_output": "full output queues; with 4 PEs and more a bound: `PE_BUSY` less MACS",
    "sram_read_conflicts": "requests at each read port of the SRAM that are not granted",
    **dict.fromkeys(BUS, _BUS),
    "phase_load_b": _MONITOR,
    "phase_compute": _MONITOR,
    "phase_drain": _MONITOR,
    "stall_a_empty": _STALL,
    "stall_lookup": _STALL,
    "stall_dispatch": _STALL,
    "stall_collect": _STALL,
    "stall_write": _STALL,
    "buffer_peak_a": f"{_MODEL}; {_PEAK}",
    "buffer_peak_b": f"{_PEAK}; what a tile holds is what is written for it, where it is not overbooked",
    "buffer_peak_c": f"{_PEAK}; lines written for two tiles in a row, where C is kept",
    "phase_load_a": _MONITOR,
    "loads_a": _MODEL,
    "overbooked_a": _MODEL,
    "bumped_elements_a": _MODEL,
    "hits_a": _MODEL,
    "bumped_fetches_a": _MODEL,
    "tuning_adjustments": _MODEL,
    "stall_load": _STALL,
    "phase_next_tile": _MONITOR,
    "stall_conversion": _STALL,
    "merged": f"{_MONITOR}; {_MODEL}",
}


def bus_beats(counters: Mapping[str, int], way: str) -> int:
    """Beats that the bus moved, ``read`` or ``write``, by the counters: those of scratch memory are among those of C."""
    return sum(beats for name, beats in counters.items() if name.startswith(f"{way}_") and name != f"{way}_scratch")


def check_counters(
    counters: Mapping[str, int],
    observed: Mapping[str, int],
    *,
    design: "Design",
    ended_well: bool = True,
    macs: int | None = None,
    model: "EngineResult | None" = None,
) -> list[str]:
    """A line for each counter that is not what it should be; none if all is well.

    Parameters
    ----------
    counters: all of them, by name in lower case.
    observed: what the simulation saw of the same run (``sw.runtime.simulation.engine.observe``).
    design: on which it ran.
    ended_well: the run ended without an error. After one, only the relations of every run are checked: beats and rows may
        have been in flight.
    macs: multiplications of the operands; only checked where the run ended well, like ``model``.
    model: the model's answer for the same scheme.
    """
    problems = [f"counter {name} is missing" for name in map(str.lower, COUNTERS) if name not in counters]
    problems += [f"counter {name} has no truth" for name in map(str.lower, COUNTERS) if name not in TRUTHS]
    if problems:
        return problems

    def equal(name: str, want: int, what: str) -> None:
        if counters[name] != want:
            problems.append(f"{name} is {counters[name]}, {what} {want}")

    def within(name: str, least: int, most: int, what: str) -> None:
        if not least <= counters[name] <= most:
            problems.append(f"{name} is {counters[name]}, not from {least} to {most}: {what}")

    closed = observed["closed_elements"]
    for name in NAMES:
        if name in counters and not (closed and name in INSIDE_ELEMENT):
            equal(name, observed[name], "its monitor counted")
    pes = design.pe.count
    macs_of_pe = macs_per_cycle(design) // pes
    problems += check_sums(counters, pes=pes, macs_of_pe=macs_of_pe, gathered=bool(observed["windows"]))
    for tensor in "abc":
        within(f"buffer_peak_{tensor}", 0, observed[f"{tensor}_lines"], "the partition")
    elapsed = observed["elapsed"] - START_AND_END_CYCLES
    if ended_well:
        equal("cycles", elapsed, "the simulation's clock counted")
        problems += _of_good_run(counters, observed, design, macs, model)
    else:
        within("cycles", 0, elapsed, "what the simulation's clock counted")
    return problems


def check_sums(counters: Mapping[str, int], *, pes: int, gathered: bool, macs_of_pe: int = 1) -> list[str]:
    """The relations between the counters of any run; a line for each that does not hold.

    ``gathered``: rows are merged while the next window of k is awaited. ``macs_of_pe``: that a PE begins in a cycle at most.
    """
    cycles, macs, busy, computed = (counters[name] for name in ("cycles", "macs", "pe_busy", "phase_compute"))
    bounds = [("cycles", total := sum(counters[name] for name in PHASES), total, "the sum of the phases")]
    bounds.append(("pe_busy", -(-macs // macs_of_pe), pes * cycles, "MACs to elements times cycles"))
    if counters["jobs"]:  # weight-stationary PEs, which have none, are not busy while they wait
        bounds += [(name, 0, busy, "the cycles of elements with a job") for name in INSIDE_ELEMENT]
        bounds.append(("pe_stall_output", 0, busy - macs, "an element that is blocked multiplies nothing"))
    bounds += [(name, 0, computed, "the computing phase") for name in STALLS_OF_COMPUTE]
    bounds += [(name, 0, cycles if gathered else computed, "where rows are computed") for name in STALLS_OF_ROWS]
    return [
        f"{name} is {counters[name]}, not from {least} to {most}: {what}"
        for name, least, most, what in bounds
        if not least <= counters[name] <= most
    ]


def _of_good_run(
    counters: Mapping[str, int],
    observed: Mapping[str, int],
    design: "Design",
    macs: int | None,
    model: "EngineResult | None",
) -> list[str]:
    """The relations of a complete run: bus, rows, lines, product and model."""
    wants: list[tuple[str, int, str]] = []
    for name, regions in BUS.items():
        direction = name.partition("_")[0]
        beats = sum(observed.get(f"{direction} {region}", 0) for region in regions)
        wants.append((name, beats, "beats on the bus"))
    wants += [("rows", observed[key], f"{key} saw") for key in ("rows_left", "rows_given")]
    wants.append(("tiles_total", counters["tiles_skipped"] + observed["tiles_given"], "skipped and taken with work"))
    if observed["keeps_c"]:
        wants.append(("buffer_peak_c", observed["lines_c"], "lines written for two tiles"))
    if macs is not None:
        wants.append(("macs", macs, "the operands have"))
    if model is not None:
        wants += [(name, model.counters[name], "the model says") for name in EXACT_COUNTERS]
        wants.append(("buffer_peak_a", int(model.buffer["A"]["peak_bytes"]) // design.line_bytes, "the model says"))
    problems = [f"{name} is {counters[name]}, {what} {want}" for name, want, what in wants if counters[name] != want]
    if observed["keeps_b"] and not observed["windows"]:
        # What a tile that does not fit has written is given up again, all or a part of it.
        loaded, written = observed["loaded_b"], observed["lines_b"]
        least = 0 if counters["tiles_overbooked"] else written
        if not least <= loaded <= min(written, counters["buffer_peak_b"]):
            problems.append(
                f"buffer_peak_b is {counters['buffer_peak_b']}: {written} lines written, {loaded} held by a tile"
            )
    return problems
