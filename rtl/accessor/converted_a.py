"""A on its way in out of another format: the front of a converter hands the accelerator its nonzeros, tile by tile."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.check import check_integer
from ..lib.passed import chosen
from ..lib.unit import Fault
from ..types import part_of_one, row_part, selection, tile
from .converted_operand import ConvertedOperand, read_clients
from .row_shaper import RowShaper

__all__ = ["ConvertedA"]

#: A nonzero a cycle is what leaves: as few entries at a time as a decoder has.
GROUP = 2


class ConvertedA(ConvertedOperand):
    """Reads A in its format from begin to end, once a pass over its rows, and hands out one selection for each nonzero.

    It stands between accessor A and the tiles, and lets that do its work where A is not converted. A pass is read to its end with
    the last tile that has a nonzero.

    Parameters
    ----------
    beat_bits, address_width, value, form
        As :class:`ConvertedOperand`.
    lanes : int
        Not 0: as many nonzeros of a row at most leave accessor A together, one at a time the conversion.

    Members
    -------
    Those of :class:`ConvertedOperand`, and
    tile : In(stream(tile))
        Tiles that span their rows, in rising order, any number of times. One with ``carry`` gives empty rows.
    selections : Out(stream)
        Selections, or with ``lanes`` parts of rows. ``index`` is the column; the last one of each row has ``last`` set.
    fetched_tile : Out(stream(tile)), fetched : In(stream)
        Accessor A's, in use without ``enable``.

    Timing
    ------
    One selection a cycle, where the decoder has so many. Five cycles from a tile to the requests of its pass.
    """

    TENSOR = "a"
    READERS = read_clients("a")

    def __init__(self, *, beat_bits: int, address_width: int, value: str, form: str, lanes: int = 0) -> None:
        self.lanes = check_integer("Lanes", lanes, 0, 64)
        handed = stream.Signature(row_part(lanes) if lanes else selection())
        members = {
            "tile": In(stream.Signature(tile())),
            "selections": Out(handed),
            "fetched_tile": Out(stream.Signature(tile())),
            "fetched": In(handed),
        }
        super().__init__(
            beat_bits=beat_bits, address_width=address_width, value=value, form=form, group=GROUP, members=members
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.row_shaper = shaper = RowShaper(lanes=GROUP, value=self.value)
        left_over = Signal()  # an entry that no tile has taken; the next tile finds it, or the next pass
        control = self.convert(m, shaper, [Fault("bad_coordinate", shaper.stray | left_over, shaper.number)])
        want, fetched = self.tile.payload, self.fetched_tile
        comes = self.tile.valid & self.enable
        ends, unread = self.begin_passes(m, control, shaper, comes, want.begin_i, ~want.carry)
        shaped = self.selections.signature.create(path=("shaped",))
        one = shaper.selections.payload
        m.d.comb += [
            left_over.eq(ends & shaper.idle & shaper.waiting),
            shaper.tile.payload.rows.eq(want.size_i),
            shaper.tile.payload.empty.eq(want.carry),
            fetched.valid.eq(self.tile.valid & ~self.enable),
            fetched.payload.eq(want),
            self.tile.ready.eq(Mux(self.enable, shaper.tile.ready & shaper.tile.valid, fetched.ready)),
            self.busy.eq(~shaper.idle | (unread & ~shaper.waiting)),
            shaped.valid.eq(shaper.selections.valid),
            shaper.selections.ready.eq(shaped.ready),
            shaped.payload.eq(part_of_one(self.lanes, one) if self.lanes else one),
            *chosen(self.enable, shaped, self.fetched, self.selections),
        ]
        return m
