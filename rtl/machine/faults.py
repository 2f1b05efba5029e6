"""What can go wrong during a run, and what is said of it."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ..network.fiber_check import FiberCheck
from ..regs.map import ERRORS
from ..tiling.run_control import Phase
from ..tiling.watchdog import Watchdog
from ..types import COORDINATE_WIDTH
from .units import Units

__all__ = ["find_faults"]

ERROR_CODES = {error.name: error.code for error in ERRORS}


def find_faults(m: Module, units: Units, *, extent_j: Value, waiting: Value) -> None:
    """Ends the run with an error: of the bus, of operands that are not what they should be, of regions too small.

    Parameters
    ----------
    extent_j: columns of B.
    waiting: detail of a run in which nothing moves any more.
    """
    control, engine = units.control, units.engine
    present = control.compute_c.payload
    assembling = control.assembling
    m.submodules.watchdog = watchdog = Watchdog()
    moves = [port.valid & port.ready for port in (*units.sram.read_request, *units.sram.write)]
    m.d.comb += watchdog.running.eq((control.phase != Phase.IDLE) & (control.phase != Phase.DONE))
    m.d.sync += watchdog.moved.eq(
        engine.busy | units.controller.event_tile | Cat(moves).any() | Cat(pe.event_mac for pe in units.pes).any()
    )
    chosen = units.lookup.selections
    selected = Signal()
    selected_index = Signal(COORDINATE_WIDTH)
    m.d.sync += [
        selected.eq(chosen.valid & chosen.payload.present & ~assembling),
        selected_index.eq(chosen.payload.index - units.lookup.origin),
    ]
    m.submodules.fiber_check = fibers = FiberCheck(lanes=units.engine.data_width // 64)
    m.d.comb += [
        fibers.moved.eq(units.collector.collected.valid & units.collector.collected.ready),
        fibers.word.eq(units.collector.collected.payload.word),
        fibers.kind.eq(units.collector.collected.payload.scratch),
        fibers.low.eq(Mux(assembling, 0, present.begin_j)),
        fibers.high.eq(Mux(assembling, extent_j, present.begin_j + present.size_j)),
    ]
    with m.If(engine.error.valid):
        m.d.comb += control.fault_detail.eq(engine.error.address)
        with m.If(engine.error.outside):
            m.d.comb += control.fault.eq(ERROR_CODES["write_outside"])
        with m.Elif(engine.error.write):
            m.d.comb += control.fault.eq(ERROR_CODES["axi_write"])
        with m.Else():
            m.d.comb += control.fault.eq(ERROR_CODES["axi_read"])
    with m.Elif(selected & (selected_index >= present.size_k)):
        m.d.comb += [control.fault.eq(ERROR_CODES["bad_coordinate"]), control.fault_detail.eq(selected_index)]
    with m.Elif(fibers.wrong):
        m.d.comb += [control.fault.eq(ERROR_CODES["bad_row"]), control.fault_detail.eq(fibers.coordinate)]
    with m.Elif(units.controller.bad_window):
        m.d.comb += control.fault.eq(ERROR_CODES["bad_window"])
        m.d.comb += control.fault_detail.eq(units.controller.window_index)
    with m.Elif(watchdog.expired):
        m.d.comb += [control.fault.eq(ERROR_CODES["stalled"]), control.fault_detail.eq(waiting)]
    with m.Elif(units.c.overflow.any()):
        m.d.comb += control.fault_detail.eq(units.c.needed)
        for n, name in reversed(tuple(enumerate(("c_elements", "c_partial", "c_scratch")))):
            with m.If(units.c.overflow[n]):
                m.d.comb += control.fault.eq(ERROR_CODES[f"{name}_overflow"])
