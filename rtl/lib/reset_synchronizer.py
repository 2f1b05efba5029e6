"""A reset from outside the clock: two registers bring it in."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from .block import Block

__all__ = ["ResetSynchronizer"]


class ResetSynchronizer(Block):
    """A reset that changes at any time leaves two registers later, in the same cycle for all that it resets.

    The first register may take a cycle to settle on a value; the second hides this. Both begin in reset, and neither is
    reset itself. A pulse shorter than a clock period may pass unseen.

    Members
    -------
    reset_in : In(1), reset_out : Out(1)
        Active high.

    Timing
    ------
    ``latency`` cycles, 2, up to one more for a change next to a clock edge.
    """

    latency = 2

    def __init__(self) -> None:
        super().__init__({"reset_in": In(1), "reset_out": Out(1)})

    def build(self, platform: Any) -> Module:
        m = Module()
        settling = Signal(init=1, reset_less=True)
        settled = Signal(init=1, reset_less=True)
        m.d.sync += [settling.eq(self.reset_in), settled.eq(settling)]
        m.d.comb += self.reset_out.eq(settled)
        return m
