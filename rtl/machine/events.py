"""What the performance counters are shown: the sum of what the units say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from amaranth.hdl import Const, Module, Mux, Value
from amaranth.lib import data

from ..accessor.a import AccessorA
from ..accessor.b import AccessorB
from ..engine.signature import Engine
from ..lib.counter import popcount
from ..regs.counter_list import Counter
from ..tiling.run_control import Phase
from ..tiling.selection_gate import SelectionGate
from .tile_control import TileControl

__all__ = ["layout", "run_events", "show_events", "sums"]

# What an engine counts in lines, and the counters in beats.
LINES = ("read_b_data", "read_c_data", "read_scratch")


def sums(counters: Sequence[Counter], shown: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """What each counter adds in a cycle, or, for peaks, is compared with. Raises ValueError where there is no such counter."""
    terms: dict[str, list[Value]] = {counter.name.lower(): [] for counter in counters}
    for events in shown:
        for name, step in events.items():
            if name not in terms:
                raise ValueError(f"There is no performance counter {name!r}")
            terms[name].append(step)
    return {name: popcount(steps) if steps else Const(0, 1) for name, steps in terms.items()}


def run_events(
    control: TileControl, gate: SelectionGate, a: AccessorA, b: AccessorB, tile_engine: Engine, line_beats: int
) -> Iterator[Mapping[str, Value]]:
    """What the engine says while it counts, and what two units say together. The engine counts lines of ``line_beats``."""
    assembling, computing = control.assembling, control.phase == Phase.COMPUTE
    masks = {"rows": ~assembling, "stall_a_empty": computing & ~gate.event_stall, "stall_lookup": computing}
    said = {name: step & masks[name] if name in masks else step for name, step in tile_engine.events().items()}
    yield {name: step << (line_beats - 1).bit_length() if name in LINES else step for name, step in said.items()}
    yield {
        "tiles_overbooked": control.event_loaded & (b.bumped_elements != 0),
        "bumped_elements": Mux(control.event_loaded, b.bumped_elements, 0),
        "overbooked_a": control.event_loaded_a & (a.bumped_elements != 0),
        "bumped_elements_a": Mux(control.event_loaded_a, a.bumped_elements, 0),
        # Fibers of C stream through all of B's partition when they are assembled: its tiles are done with.
        "buffer_peak_b": Mux(assembling, 0, b.occupied),
    }


def show_events(m: Module, steps: Mapping[str, Value], events: Any) -> None:
    """Fills ``events`` with the steps."""
    for name, step in steps.items():
        m.d.comb += events[name].eq(step)


def layout(steps: Mapping[str, Value]) -> data.StructLayout:
    """Of the events with these steps."""
    return data.StructLayout({name: len(step) for name, step in steps.items()})
