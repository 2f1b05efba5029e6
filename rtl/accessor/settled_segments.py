"""Settled segments: how many segments of a tile that is loaded can be read already."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH

__all__ = ["SettledSegments"]

CHECKPOINTS = 4


class SettledSegments(Block):
    """Notes what has to be written for segments to be readable, and counts writes until it has been.

    A note is taken where the loader says so: where a line of entries ends, or at each segment where entries have places of
    their own. One that finds no place is skipped; those after it stand for it.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, a power of two.
    line_address_width : int

    Members
    -------
    start : In(1), kept : In(POSITION_WIDTH)
        Pulse: a tile begins, and so many of its segments are in place.
    place_kept : In(1), index : In(POSITION_WIDTH), entry_lane : In
        Pulse: those kept may be read, but for the ones in the line of entries of the next segment, which is ``index``: as many as
        ``entry_lane``.
    line_written, entry_written : In(1)
        A line of data, an entry goes to the SRAM.
    ended : In(1), segments : In(POSITION_WIDTH), lines : In(line_address_width + 1)
        A segment has ended, and with it so many have come, which take so many lines of data.
    whole_line, moves : In(1)
        With ``ended``: a note is taken, as where its entry is the last one of a line; it is bumped or may be, so that from here
        on nothing settles.
    settled : Out(POSITION_WIDTH)
        Segments from the tile's first on that can be read.
    pending : Out(1)
        What has been written has not all been told.

    Timing
    ------
    ``latency`` cycles, 3, from a write to what it settles; one write of each kind a cycle.
    """

    latency = 3  # from the last write of a noted segment to ``settled``

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        if not isinstance(lanes, int) or lanes < 1 or lanes & (lanes - 1):
            raise ValueError(f"Lanes must be a power of two, not {lanes!r}")
        self.lanes = lanes
        self.line_address_width = line_address_width
        super().__init__(
            {
                "start": In(1),
                "kept": In(POSITION_WIDTH),
                "place_kept": In(1),
                "index": In(POSITION_WIDTH),
                "entry_lane": In((lanes - 1).bit_length()),
                "line_written": In(1),
                "entry_written": In(1),
                "ended": In(1),
                "segments": In(POSITION_WIDTH),
                "lines": In(line_address_width + 1),
                "whole_line": In(1),
                "moves": In(1),
                "settled": Out(POSITION_WIDTH),
                "pending": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        count = self.line_address_width + 1
        checkpoint = data.StructLayout({"segments": POSITION_WIDTH, "lines": count})
        m.submodules.checkpoints = checkpoints = StreamQueue(shape=checkpoint, depth=CHECKPOINTS)
        written = Signal(count)
        entries = Signal(POSITION_WIDTH)
        reached = Signal()  # the checkpoint at hand has been written
        over = Signal()  # segments from here on may still move
        at = checkpoints.o.payload
        m.d.comb += [
            self.pending.eq(checkpoints.o.valid),
            checkpoints.i.valid.eq(self.ended & ~over & ~self.moves & self.whole_line),
            checkpoints.i.payload.segments.eq(self.segments),
            checkpoints.i.payload.lines.eq(self.lines),
            checkpoints.o.ready.eq(reached),
        ]
        m.d.sync += [
            written.eq(written + self.line_written),
            entries.eq(entries + self.entry_written),
            reached.eq(checkpoints.o.valid & ~reached & (written >= at.lines) & (entries >= at.segments) & ~self.start),
        ]
        with m.If(self.place_kept):
            m.d.sync += self.settled.eq(Mux(self.index < self.entry_lane, 0, self.index - self.entry_lane))
        with m.If(self.ended & self.moves):
            m.d.sync += over.eq(1)
        with m.If(checkpoints.o.valid & checkpoints.o.ready):
            m.d.sync += self.settled.eq(at.segments)
        with m.If(self.start):
            m.d.sync += [written.eq(0), entries.eq(self.kept), over.eq(0), self.settled.eq(0)]
        return m
