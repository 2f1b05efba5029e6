"""Region places: where in a circular region of the SRAM the next leaf's lines go."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..types import POSITION_WIDTH
from .leaf_sizer import sized_leaf

__all__ = ["RegionPlaces", "region_place"]


def region_place(address_width: int, line_address_width: int) -> data.StructLayout:
    """A leaf's lines begin at ``place``; with them ``taken`` lines are, those skipped at the region's end included."""
    return data.StructLayout(
        {
            "sized": sized_leaf(address_width, line_address_width),
            "after": line_address_width,  # where the lines before end
            "to_end": line_address_width + 1,  # lines from there to the region's end
            "place": line_address_width,
            "taken": line_address_width + 2,
        }
    )


class RegionPlaces(Block):
    """Places leaves one behind the other in a circular region, and at its begin where its end is too near.

    One leaf a cycle. Each is placed before it is known whether it goes there: one that does not leaves its place to the
    next, which then comes a cycle later.

    Parameters
    ----------
    address_width, line_address_width : int
        As those of :class:`.segment_stream.SegmentStreamer`.

    Members
    -------
    lines : In
        Of the region.
    sized : In(stream(sized_leaf)), places : Out(stream(region_place))
        ``latency`` cycle later at the earliest. Positions are lines from the region's begin.
    used : In(1)
        With ``places.ready``: the leaf goes to its place.
    anew : In(1)
        Not with ``places.ready``: the leaf, which is wanted, is to begin an empty region anew.
    empty : In(1)
        No line of the region is in use: a leaf that comes when none is inside begins it anew.

    Timing
    ------
    One cycle from a leaf to its place; one leaf a cycle, less where leaves do not go to their places.
    """

    latency = 1

    def __init__(self, *, address_width: int, line_address_width: int) -> None:
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, POSITION_WIDTH)
        sizes = (address_width, line_address_width)
        super().__init__(
            {
                "lines": In(line_address_width + 1),
                "sized": In(stream.Signature(sized_leaf(*sizes))),
                "places": Out(stream.Signature(region_place(*sizes))),
                "used": In(1),
                "anew": In(1),
                "empty": In(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        spot, valid, enter = self.places.payload, self.places.valid, self.places.ready
        after = Signal(self.line_address_width)
        to_end = Signal(self.line_address_width + 1)
        wraps = Signal()
        undo = Signal()
        coming = self.sized.payload
        m.d.comb += [
            wraps.eq(coming.lines > to_end),
            undo.eq(valid & spot.sized.wanted & enter & ~self.used),
            self.sized.ready.eq((~valid | enter) & ~undo),
        ]
        with m.If(enter | ~valid):
            m.d.sync += [
                valid.eq(self.sized.valid & ~undo),
                spot.sized.eq(coming),
                spot.after.eq(after),
                spot.to_end.eq(to_end),
                spot.place.eq(Mux(wraps, 0, after)),
                spot.taken.eq(Mux(wraps, coming.lines + to_end, coming.lines)),
            ]
            with m.If(self.sized.valid & coming.wanted):
                m.d.sync += [
                    after.eq(Mux(wraps, coming.lines, after + coming.lines)),
                    to_end.eq(Mux(wraps, self.lines - coming.lines, to_end - coming.lines)),
                ]
        with m.If(undo):
            m.d.sync += [after.eq(spot.after), to_end.eq(spot.to_end)]
        with m.If(self.anew):
            lines = spot.sized.lines
            m.d.sync += [spot.place.eq(0), spot.taken.eq(lines), spot.after.eq(0), spot.to_end.eq(self.lines)]
            m.d.sync += [after.eq(lines), to_end.eq(self.lines - lines)]
        with m.If(self.empty & ~valid & ~self.sized.valid):
            m.d.sync += [after.eq(0), to_end.eq(self.lines)]
        return m
