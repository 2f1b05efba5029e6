"""What the performance counters are shown."""

from typing import Any

from amaranth.hdl import Module, Mux, Value
from amaranth.lib import data

from ..lib.counter import popcount
from ..regs.counter_list import COUNTERS
from ..tiling.run_control import Phase
from .clients import ELEMENT_CLIENTS, READERS, WRITERS
from .units import Units

__all__ = ["event_layout", "show_events"]

NAMES = tuple(counter.name.lower() for counter in COUNTERS)


def event_layout(*, pes: int, lanes: int, line_address_width: int) -> data.StructLayout:
    """What each counter adds in a cycle, or, for peaks, is compared with."""
    widths: dict[str, Any] = dict.fromkeys(NAMES, 1)
    widths |= dict.fromkeys(("macs", "pe_busy", "pe_stall_input", "pe_stall_output"), range(pes + 1))
    widths |= {"bumped_elements": 32, "bumped_fetches": 32, "sram_read_conflicts": range(pes + 4)}
    widths |= {"bumped_elements_a": 32, "hits_a": range(lanes + 1), "bumped_fetches_a": range(lanes + 1)}
    widths |= {f"buffer_peak_{tensor}": line_address_width + 1 for tensor in "abc"}
    widths |= {f"read_{tensor}_{kind}": 3 for tensor in "abc" for kind in ("data", "meta")}
    widths |= {"write_c_data": 2, "jobs": 2, "leaves": 2}
    return data.StructLayout({name: widths[name] for name in NAMES})


def show_events(m: Module, units: Units, events: Any, *, stall_load: Value, tuning: bool) -> None:
    """Fills ``events``, of :func:`event_layout`.

    Parameters
    ----------
    stall_load: a selection waits for its fiber of B.
    tuning: tile shapes can change.
    """
    control, engine, a, b, c = units.control, units.engine, units.a, units.b, units.c
    reader = {name: engine.read_beat[n] for n, name in enumerate(READERS)}
    writer = {name: engine.write_beat[n] for n, name in enumerate(WRITERS)}
    running = (control.phase != Phase.IDLE) & (control.phase != Phase.DONE)
    computing = control.phase == Phase.COMPUTE
    found = units.lookup.leaves
    bumped_leaf = (
        found.valid & found.ready & found.payload.present & found.payload.leaf.in_memory & ~found.payload.leaf.unit
    )
    assembling = control.assembling
    steps: dict[str, Any] = {
        "cycles": running,
        "macs": popcount([pe.event_mac for pe in units.pes]),
        "jobs": units.dispatcher.event_job,
        "rows": units.dispatcher.event_row & ~assembling,
        "leaves": units.dispatcher.event_leaf,
        "tiles_total": units.controller.event_tile,
        "tiles_skipped": units.controller.event_skip,
        "tiles_overbooked": control.event_loaded & (b.bumped_elements != 0),
        "bumped_elements": Mux(control.event_loaded, b.bumped_elements, 0),
        "bumped_fetches": Mux(bumped_leaf, found.payload.leaf.length, 0),
        "pe_busy": popcount([pe.busy for pe in units.pes]),
        "pe_stall_input": popcount([pe.event_stall_input for pe in units.pes]),
        "pe_stall_output": popcount([pe.event_stall_output for pe in units.pes]),
        "sram_read_conflicts": units.sram.read_conflicts,
        "read_a_data": popcount([reader[f"a_{name}"] for name in ELEMENT_CLIENTS]),
        "read_a_meta": popcount([reader["a_positions"], reader["a_pointers"], reader["a_map"]]),
        "read_b_data": popcount(
            [
                *(reader[f"b_{name}"] for name in ELEMENT_CLIENTS),
                reader["b_streamed"] & ~assembling,
                units.fetch.event_bumped,
            ]
        ),
        "read_b_meta": popcount(
            [reader["b_positions"], reader["b_pointers"], reader["b_map"], reader["lookup"] & ~assembling]
        ),
        "read_c_data": popcount([units.fetch.event_unit, reader["c_streamed"], reader["b_streamed"] & assembling]),
        "read_c_meta": popcount([reader["c_positions"], reader["lookup"] & assembling]),
        "write_a_meta": writer["a_positions"],
        "write_b_meta": writer["b_positions"],
        "write_c_data": popcount([writer["c_rows"], writer["c_partials"], writer["c_scratch"]]),
        "write_c_meta": writer["c_positions"],
        "stall_load": stall_load,
        "phase_load_b": (control.phase == Phase.LOAD_B) & ~control.loading_a,
        "phase_load_a": control.loading_a,
        "phase_compute": computing,
        "phase_drain": control.phase == Phase.DRAIN,
        "stall_a_empty": computing
        & ~units.lookup.selections.valid
        & ~units.lookup.leaves.valid
        & ~units.leaf_queue.o.valid
        & ~stall_load,
        "stall_lookup": computing & units.lookup.event_stall,
        "stall_dispatch": units.dispatcher.event_stall,
        "stall_collect": units.collector.event_stall,
        "stall_write": c.event_stall,
        "loads_a": control.event_loaded_a,
        "overbooked_a": control.event_loaded_a & (a.bumped_elements != 0),
        "bumped_elements_a": Mux(control.event_loaded_a, a.bumped_elements, 0),
        "hits_a": a.event_resident,
        "bumped_fetches_a": a.event_bumped,
        "buffer_peak_a": a.occupied,
        "buffer_peak_b": b.occupied + units.streamer.occupied,
        "buffer_peak_c": c.occupied + units.reentry.occupied,
        "tuning_adjustments": units.controller.event_adjust if tuning else 0,
    }
    for name, step in steps.items():
        m.d.comb += events[name].eq(step)
