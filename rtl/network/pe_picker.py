"""PE picker: which PE gets the next job."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.onehot import lowest_set, onehot_index

__all__ = ["PePicker"]


class PePicker(Block):
    """Picks the first free PE after the one chosen last. One choice a cycle.

    Parameters
    ----------
    pes : int
        Number of PEs.

    Members
    -------
    ready : In(pes)
        The PE takes a job; it stays so until one comes.
    kept : In(pes)
        It is not to be chosen.
    chosen : In, busy : In(1)
        The one chosen last; it has a job and is not to be chosen.
    pick : Out, any_free : Out(1)
        Of the inputs ``latency`` cycle before: whom to choose, if there is any.

    Timing
    ------
    One cycle; one choice a cycle.
    """

    latency = 1

    def __init__(self, *, pes: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 1 << 12)
        number = range(max(2, pes))
        super().__init__(
            {
                "ready": In(pes),
                "kept": In(pes),
                "chosen": In(number),
                "busy": In(1),
                "pick": Out(number),
                "any_free": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        free = Signal(self.pes)
        after = Signal(self.pes)  # those behind the last chosen one
        for n in range(self.pes):
            m.d.comb += free[n].eq(self.ready[n] & ~self.kept[n] & ~(self.busy & (self.chosen == n)))
            if n:
                m.d.comb += after[n].eq(self.chosen < n)
        preferred = free & after
        first = Mux(preferred.any(), lowest_set(preferred), lowest_set(free))
        m.d.sync += [self.pick.eq(onehot_index(first)), self.any_free.eq(free.any())]
        return m
