"""Sends each fiber of C where its ticket and the tile say."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..types import fiber_word

__all__ = ["FiberSwitch"]


class FiberSwitch(Block):
    """Sends each fiber word one way: to scratch memory, final rows, rows that stay on chip, or partial rows in memory.

    Parameters
    ----------
    lanes : int
        64-bit elements in a line.
    converts : bool
        Final rows can go to a conversion; without, ``converted`` and ``to_conversion`` are not there.

    Members
    -------
    words : In(stream(fiber_word))
        Fibers in turn.
    scratch, final_rows, on_chip : In(1)
        The present fiber is one for scratch memory; else the rows of the present tile are final; else they stay on chip.
    converted : In(1)
        Final rows go to the conversion.
    open, store_open : In(1)
        Rows in memory may come; rows on chip may.
    to_scratch, to_rows, to_conversion, to_store, to_partials : Out(stream(fiber_word))
        Each fiber goes to one of them.
    spilled : In(stream(fiber_word))
        Rows that do not fit on chip go to the partial rows: with ``on_chip`` nothing else does.

    Timing
    ------
    Combinational.
    """

    latency = 0

    def __init__(self, *, lanes: int, converts: bool = False) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.converts = bool(converts)
        fibers = stream.Signature(fiber_word(lanes))
        ways = ("to_scratch", "to_rows", "to_store", "to_partials")
        flags = ("scratch", "final_rows", "on_chip", "open", "store_open")
        super().__init__(
            {
                "words": In(fibers),
                **{flag: In(1) for flag in flags},
                **{way: Out(fibers) for way in ways},
                **({"converted": In(1), "to_conversion": Out(fibers)} if self.converts else {}),
                "spilled": In(fibers),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        word = self.words
        for way in (self.to_scratch, self.to_rows, self.to_store, self.to_partials):
            m.d.comb += way.payload.eq(word.payload)
        with m.If(self.scratch):
            m.d.comb += [self.to_scratch.valid.eq(word.valid), word.ready.eq(self.to_scratch.ready)]
        with m.Elif(self.final_rows):
            m.d.comb += [self.to_rows.valid.eq(word.valid & self.open), word.ready.eq(self.to_rows.ready & self.open)]
            if self.converts:
                way = self.to_conversion
                m.d.comb += way.payload.eq(word.payload)
                with m.If(self.converted):
                    m.d.comb += [
                        self.to_rows.valid.eq(0),
                        way.valid.eq(word.valid & self.open),
                        word.ready.eq(way.ready & self.open),
                    ]
        with m.Elif(self.on_chip):
            m.d.comb += [
                self.to_store.valid.eq(word.valid & self.store_open),
                word.ready.eq(self.to_store.ready & self.store_open),
            ]
        with m.Else():
            m.d.comb += [
                self.to_partials.valid.eq(word.valid & self.open),
                word.ready.eq(self.to_partials.ready & self.open),
            ]
        with m.If(self.on_chip):
            m.d.comb += [
                self.to_partials.valid.eq(self.spilled.valid),
                self.to_partials.payload.eq(self.spilled.payload),
                self.spilled.ready.eq(self.to_partials.ready),
            ]
        return m
