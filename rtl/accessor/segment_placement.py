"""Segment placement: which segments of a tile stay on chip, and which are bumped."""

from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.signals import signals
from ..lib.stream import StreamSkid
from ..types import POSITION_WIDTH

__all__ = ["REMEMBERED_SEGMENTS", "SegmentPlacement", "placement", "segment_size"]

# Segments that a loader can take back out of the FIFO-managed region when its tile turns out to be too long.
REMEMBERED_SEGMENTS = 64


def segment_size() -> data.StructLayout:
    """``nonzeros`` more of a segment, ``some`` or none; ``last`` ends it."""
    return data.StructLayout({"nonzeros": POSITION_WIDTH, "some": 1, "last": 1})


def placement() -> data.StructLayout:
    """The segment is ``bumped``; so far it reaches ``beyond`` the lines before the FIFO-managed region."""
    return data.StructLayout({"bumped": 1, "beyond": 1})


class SegmentPlacement(Block):
    """Segments are placed one behind the other, and from the first one on that does not fit they are bumped.

    A segment does not fit that ends beyond the data lines, or, with a FIFO-managed region, that is the one after
    ``remembered`` that end in it. Empty segments end nowhere.

    Parameters
    ----------
    remembered : int
        Segments in the FIFO-managed region that can be taken back; 0: there is no such region.

    Members
    -------
    start : In(1)
        Pulse: a tile begins; no step may come before ``load``.
    load : In(1), limit, regular : In(POSITION_WIDTH)
        Pulse: so many nonzeros fit, and so many of them before the FIFO-managed region.
    steps : In(stream), places : Out(stream)
        What comes of the segments, and a cycle later what becomes of the present one: for the whole segment with its last
        step, so far with the others. One a cycle.

    Timing
    ------
    One cycle; one step a cycle.
    """

    latency = 1

    def __init__(self, *, remembered: int) -> None:
        if not isinstance(remembered, int) or remembered < 0:
            raise ValueError(f"Remembered segments must be a number from 0 on, not {remembered!r}")
        self.remembered = remembered
        super().__init__(
            {
                "start": In(1),
                "load": In(1),
                "limit": In(POSITION_WIDTH),
                "regular": In(POSITION_WIDTH),
                "steps": In(stream.Signature(segment_size())),
                "places": Out(stream.Signature(placement())),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        left, regular_left = signals("left regular_left", signed(POSITION_WIDTH + 1))
        begun = Signal()  # the present segment has a nonzero
        closed = Signal()  # a segment has been bumped
        kept = Signal(range(self.remembered + 1))  # segments so far that end in the FIFO-managed region
        full = Signal(init=not self.remembered)  # no more of them can be remembered
        # It takes as many as the sums do, so that words that are summed never wait here.
        m.submodules.found = found = StreamSkid(shape=placement())
        connect(m, flipped(self.places), found.o)
        size, place = self.steps.payload, found.i.payload
        some = begun | size.some
        over = (left - size.nonzeros)[POSITION_WIDTH]
        m.d.comb += [
            found.i.valid.eq(self.steps.valid),
            self.steps.ready.eq(found.i.ready),
            place.beyond.eq(some & (regular_left - size.nonzeros)[POSITION_WIDTH]),
            place.bumped.eq(closed | over | (place.beyond & full)),
        ]
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += [
                left.eq(left - size.nonzeros),
                regular_left.eq(regular_left - size.nonzeros),
                begun.eq(some & ~size.last),
                closed.eq(place.bumped),
            ]
            with m.If(size.last & place.beyond & ~place.bumped):
                m.d.sync += [kept.eq(kept + 1), full.eq(kept + 1 == self.remembered)]
        with m.If(self.load):
            m.d.sync += [left.eq(self.limit), regular_left.eq(self.regular)]
        with m.If(self.start):
            m.d.sync += [begun.eq(0), closed.eq(0), kept.eq(0), full.eq(not self.remembered)]
        return m
