"""Ends a run in which nothing moves any more."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block

__all__ = ["Watchdog"]


class Watchdog(Block):
    """Tells a machine that waits for itself from one that waits for memory.

    Units that were told things that contradict each other can wait for nonzeros that nobody will ask memory for. While
    the bus is busy nothing is concluded: memory may take as long as it likes.

    Parameters
    ----------
    patience_bits : int
        Nothing may move for 2 to the power of this many cycles: far more than any unit works without the SRAM, the bus, a
        multiplication or a tile.

    Members
    -------
    running : In(1)
        A run is in progress.
    moved : In(1)
        Something moves, or the bus is busy.
    expired : Out(1)
        From the end of the patience until something moves or the run ends.

    Timing
    ------
    2 to the power of ``patience_bits`` cycles without a move; one for each run.
    """

    def __init__(self, *, patience_bits: int = 16) -> None:
        if not isinstance(patience_bits, int) or not 1 <= patience_bits <= 32:
            raise ValueError(f"Patience must be from 1 to 32 bits of cycles, not {patience_bits!r}")
        self.patience_bits = patience_bits
        super().__init__({"running": In(1), "moved": In(1), "expired": Out(1)})

    def build(self, platform: Any) -> Module:
        m = Module()
        still = Signal(self.patience_bits + 1)
        m.d.comb += self.expired.eq(still[-1])
        with m.If(self.moved | ~self.running):
            m.d.sync += still.eq(0)
        with m.Elif(~self.expired):
            m.d.sync += still.eq(still + 1)
        return m
