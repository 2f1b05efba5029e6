"""B on its way in out of another format: the front of a converter hands accessor B the rows of its tiles."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.check import check_power_of_two
from ..types import segment
from .converted_operand import ConvertedOperand, read_clients
from .segment_shaper import SegmentShaper, rows_of_tile

__all__ = ["ConvertedB"]

#: A decoder gives so many entries a cycle at least and at most.
LEAST_GROUP, MOST_GROUP = 2, 16


class ConvertedB(ConvertedOperand):
    """Reads B in its format from begin to end, once a pass over its rows, and hands out the rows of each tile that is loaded.

    Rows in no tile that is loaded are left out. What the last tile leaves of its pass is read with ``finishing``.

    Parameters
    ----------
    beat_bits, address_width, value, form
        As :class:`ConvertedOperand`. As many entries as a beat has bits for 8 bytes each are converted in a cycle.
    lanes : int
        64-bit elements in a line, at least those in a beat, power of two.

    Members
    -------
    Those of :class:`ConvertedOperand`, and
    tile : In(stream(rows_of_tile))
        Rows that accessor B loads.
    segments : Out(stream(segment))
        Those of accessor B's loader.
    idle : Out(1)
        No tile in progress.
    finishing : In(1)
        No tile comes any more.

    Timing
    ------
    A word of a segment a cycle, where the decoder has so many entries. Five cycles from a tile to the requests of its pass.
    """

    TENSOR = "b"
    READERS = read_clients("b")

    def __init__(self, *, beat_bits: int, address_width: int, value: str, form: str, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        members = {
            "tile": In(stream.Signature(rows_of_tile())),
            "segments": Out(stream.Signature(segment(lanes))),
            "idle": Out(1),
            "finishing": In(1),
        }
        group = min(max(beat_bits // 64, LEAST_GROUP), lanes, MOST_GROUP)
        super().__init__(
            beat_bits=beat_bits, address_width=address_width, value=value, form=form, group=group, members=members
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.segment_shaper = shaper = SegmentShaper(group=self.group, lanes=self.lanes, value=self.value)
        control = self.convert(m, shaper, [])
        want = self.tile.payload
        comes = self.tile.valid & self.enable
        ends, unread = self.begin_passes(m, control, shaper, comes, want.begin, self.enable)
        connect(m, shaper.segments, flipped(self.segments))
        m.d.comb += [
            shaper.tile.payload.rows.eq(want.rows),
            self.tile.ready.eq(shaper.tile.ready & shaper.tile.valid),
            self.idle.eq(shaper.idle),
            shaper.drop.eq(shaper.idle & (ends | self.finishing)),
            self.busy.eq(~shaper.idle | (unread & self.finishing)),
        ]
        return m
