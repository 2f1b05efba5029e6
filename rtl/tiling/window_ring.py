"""Where a window's rows of B lie: those that stay from the windows before it, in a ring of metadata entries."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..types import COORDINATE_WIDTH, ENTRY_WIDTH, LINE_WIDTH, ring_place
from .window_table import window

__all__ = ["WindowRing"]


class WindowRing(Block):
    """Follows the windows of a run: where the entries of each one begin in the ring, and whether it is legal.

    A window is bad that is longer than a tile or than the ring, reaches beyond the shape, would keep what is not there or
    puts rows outside the partition.

    Parameters
    ----------
    lanes : int
        64-bit lanes of a line, power of two.

    Members
    -------
    extent_k, tile_k, capacity : In(COORDINATE_WIDTH)
        The shape and the longest window along k; lines of B's partition for rows and metadata. Constant during a run.
    planned : In(1)
        Each row has a place of its own: windows keep nothing of one another, and an entry may follow any other.
    window : In(window)
        The present window; constant until ``taken``.
    start : In(1), taken : In(1)
        Pulses: a run begins; the tile of the present window has been handed over.
    ring : Out(ring_place), bad : Out(1)
        Where its rows are; it is not legal. ``WindowRing.latency`` cycles after the window.

    Timing
    ------
    A sum or a comparison a cycle.
    """

    latency = 6

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        super().__init__(
            {
                "extent_k": In(COORDINATE_WIDTH),
                "tile_k": In(COORDINATE_WIDTH),
                "capacity": In(COORDINATE_WIDTH),
                "planned": In(1),
                "window": In(window()),
                "start": In(1),
                "taken": In(1),
                "ring": Out(ring_place()),
                "bad": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        window, out = self.window, self.ring
        lane_bits = (self.lanes - 1).bit_length()
        # What the windows so far have left: rows from `first` to before `left_end`, the first in entry `entry` of
        # `metadata` lines.
        first = Signal(COORDINATE_WIDTH)
        left_end = Signal(COORDINATE_WIDTH + 1)
        entry = Signal(ENTRY_WIDTH)
        metadata = Signal(LINE_WIDTH)
        keeps = Signal()
        filled = Signal()  # the window has a coordinate
        reaches = Signal()  # and it ends where no window before it did, or nothing of these is kept
        later = Signal(COORDINATE_WIDTH + 1)  # how far behind `first` the window begins; negative is large
        window_end = Signal(COORDINATE_WIDTH + 1)
        kept_end = Signal(COORDINATE_WIDTH + 1)
        ring = Signal(LINE_WIDTH)
        entries = Signal(LINE_WIDTH + lane_bits)
        unwrapped = Signal(ENTRY_WIDTH + 1)
        longest = Signal(ENTRY_WIDTH + 1)
        line_end = Signal(LINE_WIDTH + 2)
        wrapped = Signal(ENTRY_WIDTH + 1)
        wrong = Signal(6)
        m.d.sync += [
            filled.eq(window.size != 0),
            keeps.eq((window.kept != 0) & ~self.planned),
            later.eq(window.begin - first),
            window_end.eq(window.begin + window.size),
            kept_end.eq(window.begin + window.kept),
            longest.eq(window.size + Mux(self.planned, 0, self.lanes)),
            # Two cycles after the window.
            reaches.eq(filled & (~keeps | (window_end > left_end))),
            ring.eq(Mux(keeps, metadata, window.metadata)),
            unwrapped.eq(entry + later[:ENTRY_WIDTH]),
            wrong[0].eq((window_end > self.extent_k) | (window.size > self.tile_k)),
            wrong[1].eq(window.kept > window.size),
            wrong[2].eq(keeps & later[COORDINATE_WIDTH]),
            wrong[3].eq(keeps & (kept_end > left_end)),
            # Three and four.
            entries.eq(ring << lane_bits),
            line_end.eq(ring + window.line + Mux(self.planned, 0, window.lines)),
            wrong[4].eq(longest > entries),
            wrong[5].eq(line_end > self.capacity),
            wrapped.eq(unwrapped - entries),
            self.bad.eq(filled & wrong.any() | wrong[0]),
        ]
        m.d.comb += [
            out.kept.eq(window.kept),
            out.line.eq(window.line),
            out.lines.eq(window.lines),
            out.metadata.eq(ring),
            # Where a chain begins, the ring's entries and the FIFO-managed region may move.
            out.early.eq(window.early & (keeps | self.planned)),
            out.entry.eq(Mux(keeps, Mux(wrapped[ENTRY_WIDTH], unwrapped, wrapped), 0)),
        ]
        with m.If(self.taken & filled):
            m.d.sync += [first.eq(window.begin), entry.eq(out.entry), metadata.eq(ring)]
        with m.If(self.taken & reaches):
            m.d.sync += left_end.eq(window_end)
        with m.If(self.start):
            m.d.sync += left_end.eq(0)
        return m
