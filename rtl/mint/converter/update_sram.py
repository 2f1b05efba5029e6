"""Words in an SRAM that are read, changed and written, one a cycle."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer
from ...lib.sram import SramBank

__all__ = ["UpdateSram"]


class UpdateSram(Block):
    """Gives the word at an index, and takes in the same cycle what it becomes.

    The SRAM never reads an address that it writes: a word that is read right after its update comes from a register.

    Parameters
    ----------
    depth : int
        Words, at least 2.
    width : int
        Bits of a word.

    Members
    -------
    enable : In(1)
        Both stages move; otherwise nothing changes.
    request : In(1), index : In(range(depth))
        A word is asked for.
    valid : Out(1), word : Out(width)
        The word that was asked for in the last enabled cycle.
    update : In(width)
        What it becomes, when ``enable`` is high.

    Timing
    ------
    One cycle from the index to the word; an update a cycle, of any index.
    """

    latency = 1

    def __init__(self, *, depth: int, width: int) -> None:
        self.depth = check_integer("Depth", depth, 2, 1 << 16)
        self.width = check_integer("Width", width, 1, 2048)
        super().__init__(
            {
                "enable": In(1),
                "request": In(1),
                "index": In(range(depth)),
                "valid": Out(1),
                "word": Out(width),
                "update": In(width),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.words = words = SramBank(depth=self.depth, width=self.width)
        former = Signal(range(self.depth))  # index of the word at the output
        same = Signal()
        kept = Signal(self.width)
        is_kept = Signal()
        m.d.comb += [
            same.eq(self.valid & (self.index == former)),
            words.read_enable.eq(self.enable & self.request & ~same),
            words.read_address.eq(self.index),
            words.write_mask.eq(self.enable & self.valid),
            words.write_address.eq(former),
            words.write_data.eq(self.update),
            self.word.eq(Mux(is_kept, kept, words.read_data)),
        ]
        with m.If(self.enable):
            m.d.sync += [self.valid.eq(self.request), former.eq(self.index), is_kept.eq(same), kept.eq(self.update)]
        return m
