"""Run monitor: who is at work, whether everything is quiet, and whether nothing moves any more."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.check import check_integer
from ..lib.unit import Fault, Unit
from ..regs.map import PHASE_BITS, UNITS
from .run_control import Phase
from .watchdog import Watchdog

__all__ = ["RunMonitor"]


class RunMonitor(Unit):
    """Puts together the word WAITING and ends a run in which nothing moves for as long as a :class:`Watchdog` waits.

    Parameters
    ----------
    patience_bits : int
        As :class:`Watchdog`.

    Members
    -------
    active : In
        What is not idle, by the names of the fields of WAITING.
    phase : In(Phase), running : In(1)
        What the run is doing, and whether there is one.
    moved : In(1)
        Something moves, or the bus is busy.
    quiet : Out(1)
        Nothing is at work; combinational.
    waiting : Out
        The fields of WAITING; combinational.
    expired : Out(1)
        Nothing has moved for too long.

    Timing
    ------
    Combinational but for ``expired``, 2 to the power of ``patience_bits`` cycles after the last move.
    """

    def __init__(self, *, patience_bits: int = 16) -> None:
        self.patience_bits = check_integer("Patience bits", patience_bits, 1, 64)
        super().__init__(
            {
                "active": In(data.StructLayout(dict.fromkeys(UNITS, 1))),
                "phase": In(Phase),
                "running": In(1),
                "moved": In(1),
                "quiet": Out(1),
                "waiting": Out(PHASE_BITS + len(UNITS)),
                "expired": Out(1),
            }
        )

    def faults(self) -> Sequence[Fault]:
        return (Fault("stalled", self.expired, self.waiting),)

    def watch(self, m: Module, units: Sequence[Unit]) -> None:
        """Drives ``active`` with what these units say. Raises ValueError for a name that WAITING does not have."""
        shown: dict[str, Value] = {}
        for unit in units:
            for name, active in unit.activity().items():
                if name not in UNITS:
                    raise ValueError(f"WAITING has no field {name!r}")
                shown[name] = shown[name] | active if name in shown else active
        m.d.comb += [self.active[name].eq(active) for name, active in shown.items()]

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.watchdog = watchdog = Watchdog(patience_bits=self.patience_bits)
        moved = Signal()
        m.d.sync += moved.eq(self.moved)
        m.d.comb += [
            watchdog.running.eq(self.running),
            watchdog.moved.eq(moved),
            self.expired.eq(watchdog.expired),
            self.quiet.eq(~self.active.as_value().any()),
            self.waiting.eq(self.active.as_value() << PHASE_BITS | self.phase),
        ]
        return m
