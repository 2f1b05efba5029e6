"""Starts runs from a clean machine: lets the bus finish its transactions, resets, and only then begins."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from .lib.block import Block

__all__ = ["ResetControl"]

RESET_CYCLES = 4


class _State(enum.Enum, shape=3):
    IDLE = 0
    HALT = 1
    RESET = 2
    START = 3
    RUN = 4


class ResetControl(Block):
    """Resets the machine before each run, while the registers keep their contents.

    Members
    -------
    start, soft_reset : In(1)
        From the registers. ``start`` is ignored during a run; ``soft_reset`` ends one, also one that is about to begin.
    halt : Out(1), bus_busy : In(1)
        The memory engine begins no further transaction; transactions are in flight.
    machine_reset : Out(1), machine_start : Out(1)
    machine_done : In(1)
        High from the end of a run until the machine is reset.
    busy : Out(1), done : Out(1)
        A run, or what follows one, is in progress; pulse at the end of a run that was not reset.

    Timing
    ------
    The reset begins in the cycle after ``start``; one run at a time.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "soft_reset": In(1),
                "halt": Out(1),
                "bus_busy": In(1),
                "machine_reset": Out(1),
                "machine_start": Out(1),
                "machine_done": In(1),
                "busy": Out(1),
                "done": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        state = Signal(_State)
        starting = Signal()  # a run follows the reset
        cycles = Signal(range(RESET_CYCLES + 1))
        # Only a run may use the bus: a machine that an error stopped stays halted until it has been reset.
        m.d.comb += [self.busy.eq(state != _State.IDLE), self.halt.eq(1)]
        with m.Switch(state):
            with m.Case(_State.IDLE):
                with m.If(self.start | self.soft_reset):
                    m.d.sync += [state.eq(_State.HALT), starting.eq(self.start)]
            with m.Case(_State.HALT):
                with m.If(~self.bus_busy):
                    m.d.sync += [state.eq(_State.RESET), cycles.eq(0)]
                with m.If(self.soft_reset):
                    m.d.sync += starting.eq(0)
            with m.Case(_State.RESET):
                m.d.comb += self.machine_reset.eq(1)
                m.d.sync += cycles.eq(cycles + 1)
                with m.If(cycles == RESET_CYCLES):
                    with m.If(starting & ~self.soft_reset):
                        m.d.sync += state.eq(_State.START)
                    with m.Else():
                        m.d.sync += state.eq(_State.IDLE)
                with m.If(self.soft_reset):
                    m.d.sync += starting.eq(0)
            with m.Case(_State.START):
                m.d.comb += [self.machine_start.eq(1), self.halt.eq(0)]
                m.d.sync += state.eq(_State.RUN)
                with m.If(self.soft_reset):
                    m.d.sync += [state.eq(_State.HALT), starting.eq(0)]
            with m.Case(_State.RUN):
                m.d.comb += self.halt.eq(self.machine_done)
                with m.If(self.machine_done & ~self.bus_busy):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += state.eq(_State.IDLE)
                with m.If(self.soft_reset):
                    m.d.comb += self.done.eq(0)
                    m.d.sync += [state.eq(_State.HALT), starting.eq(0)]
        return m
