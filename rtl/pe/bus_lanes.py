"""Reads cycles of the flagged bus: which word is a datum, and of which row and column it is."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.signals import signals
from ..types import COORDINATE_WIDTH, VALUE_WIDTH
from .flagged_bus import Acf, bus_cycle, check_bus, lane_words

__all__ = ["BusLanes", "bus_data"]


def bus_data(vector: int) -> data.StructLayout:
    """The data of a cycle, lane 0 first. ``first``: another row than before; ``void``: no datum, only A's end, ``last``."""
    lane = data.StructLayout({"present": 1, "coordinate": COORDINATE_WIDTH, "value": VALUE_WIDTH})
    return data.StructLayout(
        {
            "first": 1,
            "last": 1,
            "void": 1,
            "row": COORDINATE_WIDTH,
            "last_column": COORDINATE_WIDTH,
            "lanes": data.ArrayLayout(lane, vector),
        }
    )


class BusLanes(Block):
    """Sorts the words of a cycle into lanes, by their flags alone, and keeps the row register (MINT, figure 7).

    Parameters
    ----------
    words : int
        Words of the bus, up to 64, more than ``vector``.
    vector : int
        Lanes, a power of two up to 32.

    Members
    -------
    i : In(stream of ``bus_cycle``)
        No cycle has more than ``vector`` data.
    o : Out(stream of ``bus_data``)
        Data of Dense have as columns their places in the row, from 0 on. ``last_column`` is the last one's of the cycle, with
        datum or without, and may lie behind the row's end.

    Timing
    ------
    ``latency`` cycle, 1; one cycle of the bus a cycle. ``o`` comes straight from registers; ``i.ready`` follows ``o.ready``.
    """

    latency = 1

    def __init__(self, *, words: int, vector: int) -> None:
        check_bus(words, vector)
        self.words = words
        self.vector = vector
        super().__init__({"i": In(stream.Signature(bus_cycle(words))), "o": Out(stream.Signature(bus_data(vector)))})

    def build(self, platform: Any) -> Module:
        m = Module()
        words = self.i.payload.words
        # No coordinate after the row id is Dense; a second triple begins with a row id where a second pair has its value.
        dense = words[0].present & ~words[1].metadata
        triples = words[4].present & words[4].metadata if self.words > 4 else Const(0, 1)
        row = Signal(COORDINATE_WIDTH)
        opened = Signal()
        place, origin = signals("place origin", COORDINATE_WIDTH)
        first, bare = signals("first bare")
        m.d.comb += [
            self.i.ready.eq(self.o.ready | ~self.o.valid),
            bare.eq(~words[0].present),
            first.eq(~bare & (~opened | (words[0].payload != row))),
            origin.eq(Mux(first, 0, place)),
        ]
        lanes = []
        for n in range(self.vector):
            lane = Signal(self.o.payload.shape().members["lanes"].elem_shape, name=f"lane{n}")
            places = lane_words(self.words, n)
            for acf, chosen in ((Acf.DENSE, dense), (Acf.COO, ~dense & triples), (Acf.CSR, ~dense & ~triples)):
                if acf in places:
                    word = words[places[acf]]
                    column = self._place(origin, n) if acf is Acf.DENSE else words[places[acf] - 1].payload
                    with m.If(chosen):
                        m.d.comb += [
                            lane.present.eq(word.present & ~word.metadata),
                            lane.coordinate.eq(column),
                            lane.value.eq(word.payload),
                        ]
            lanes.append(lane)

        out = self.o.payload
        with m.If(self.i.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                out.first.eq(first),
                out.last.eq(self.i.payload.last),
                out.void.eq(bare),
                out.row.eq(words[0].payload),
                *(Value.cast(register).eq(lane) for register, lane in zip(out.lanes, lanes, strict=True)),
                out.last_column.eq(lanes[0].coordinate),
            ]
            for lane in lanes[1:]:
                with m.If(lane.present | dense):
                    m.d.sync += out.last_column.eq(lane.coordinate)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += opened.eq(~self.i.payload.last)
            with m.If(~bare):
                m.d.sync += [row.eq(words[0].payload), place.eq(origin + self.vector)]
        return m

    def _place(self, origin: Signal, lane: int) -> Value:
        """Place of a lane's datum in its row: all cycles before were full."""
        low = (self.vector - 1).bit_length()
        return Cat(Const(lane, low), origin[low:]) if low else Value.cast(origin)
