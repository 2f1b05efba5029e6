"""Which error ends a run."""

from collections.abc import Sequence

from amaranth.hdl import Module

from ..lib.unit import Fault
from ..regs.map import ERRORS
from .tile_control import TileControl

__all__ = ["report_faults"]

ERROR_CODES = {error.name: error.code for error in ERRORS}


def report_faults(m: Module, control: TileControl, faults: Sequence[Fault]) -> None:
    """Tells run control of the first fault that is found. Raises ValueError for one that the register map does not have."""
    for fault in reversed(faults):
        if fault.name not in ERROR_CODES:
            raise ValueError(f"There is no error {fault.name!r}")
        with m.If(fault.found):
            m.d.comb += [control.fault.eq(ERROR_CODES[fault.name]), control.fault_detail.eq(fault.detail)]
