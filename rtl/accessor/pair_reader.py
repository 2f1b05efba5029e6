"""Finds where the rows of a tile begin and end: pointers alone, or begin positions left by the tile before or by a list."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..storage import word_address
from ..types import POSITION_WIDTH, pair, read_request, row_place
from .word_reader import WordReader

__all__ = ["PairReader", "pair_run"]


def pair_run(address_width: int) -> data.StructLayout:
    """Rows ``row`` to ``row + rows - 1``; ``single`` takes begin and end from the pointer array alone.

    ``planned``, without it: behind each begin stands where the row goes (:func:`.types.row_place`).
    """
    return data.StructLayout(
        {
            "row": POSITION_WIDTH,
            "rows": POSITION_WIDTH,
            "single": 1,
            "planned": 1,
            "pointers": address_width,
            "positions": address_width,
        }
    )


class PairReader(Block):
    """Streams one (begin, end) pair of element positions for each row of a run, one a cycle.

    With ``single`` the pairs are adjacent entries of the pointer array (``rows + 1`` words are read). Otherwise ``begin``
    is the begin position that the tile before left in the position array and ``end`` the row's end from the pointer
    array, since a segment may not run past its row (HYTE section 6.2). With ``planned`` the words behind the begins go to
    ``places``, each before its pair.

    Members
    -------
    run : In(stream)
        Taken when the run before has been streamed out; ``rows >= 1``.
    read_request, read_data : two client ports of the memory engine
        0 for pointers when ``single``, else positions; 1 for pointers when not ``single``.
    pairs : Out(stream)
        Begin and end of each row in elements, in row order.
    places : Out(stream(row_place))
        With ``planned``, where each of them goes.

    Timing
    ------
    One pair a cycle, once memory has answered; with ``planned`` one in two cycles.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        check_power_of_two("Lanes", lanes, 1, 64)
        check_integer("Address width", address_width, 8, 64)
        self.lanes = lanes
        self.address_width = address_width
        super().__init__(
            {
                "run": In(stream.Signature(pair_run(address_width))),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(64 * lanes)).array(2),
                "pairs": Out(stream.Signature(pair())),
                "places": Out(stream.Signature(row_place())),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        readers = [WordReader(lanes=self.lanes, address_width=self.address_width) for _ in range(2)]
        for n, reader in enumerate(readers):
            m.submodules[f"word_reader{n}"] = reader
            connect(m, flipped(self.read_request[n]), reader.read_request)
            connect(m, flipped(self.read_data[n]), reader.read_data)

        run = self.run.payload
        remaining = Signal(POSITION_WIDTH)
        single = Signal()
        planned = Signal()
        primed = Signal()  # `previous` is a begin; with ``planned`` its place has not left
        previous = Signal(POSITION_WIDTH)
        told = Signal()  # the place of `previous` has left

        idle = remaining == 0
        take = Signal()
        m.d.comb += [
            take.eq(self.run.valid & idle & readers[0].run.ready & (run.single | readers[1].run.ready)),
            self.run.ready.eq(take),
            readers[0].run.valid.eq(take),
            readers[1].run.valid.eq(take & ~run.single),
            readers[1].run.payload.address.eq(word_address(run.pointers, run.row + 1)),
            readers[1].run.payload.count.eq(run.rows),
        ]
        with m.If(run.single):
            m.d.comb += [
                readers[0].run.payload.address.eq(word_address(run.pointers, run.row)),
                readers[0].run.payload.count.eq(run.rows + 1),
            ]
        with m.Else():
            m.d.comb += [
                readers[0].run.payload.address.eq(word_address(run.positions, run.row << run.planned)),
                readers[0].run.payload.count.eq(run.rows << run.planned),
            ]
        with m.If(take):
            m.d.sync += [remaining.eq(run.rows), single.eq(run.single), planned.eq(run.planned), primed.eq(0)]

        out = self.pairs
        with m.If(single):
            with m.If(~primed):
                m.d.comb += readers[0].words.ready.eq(~idle)
                with m.If(readers[0].words.valid & ~idle):
                    m.d.sync += [previous.eq(readers[0].words.payload), primed.eq(1)]
            with m.Else():
                m.d.comb += [
                    out.valid.eq(readers[0].words.valid & ~idle),
                    out.payload.begin.eq(previous),
                    out.payload.end.eq(readers[0].words.payload),
                    readers[0].words.ready.eq(out.ready & ~idle),
                ]
                with m.If(out.valid & out.ready):
                    m.d.sync += previous.eq(readers[0].words.payload)
        with m.Elif(planned):
            word = readers[0].words
            m.d.comb += [
                self.places.valid.eq(primed & word.valid),
                self.places.payload.eq(word.payload),
                out.valid.eq(told & readers[1].words.valid),
                out.payload.begin.eq(previous),
                out.payload.end.eq(readers[1].words.payload),
                readers[1].words.ready.eq(told & out.ready),
                word.ready.eq(Mux(primed, self.places.ready, ~told | (out.valid & out.ready))),
            ]
            with m.If(out.valid & out.ready):
                m.d.sync += told.eq(0)
            with m.If(word.valid & word.ready):
                m.d.sync += [primed.eq(~primed), told.eq(primed)]
                with m.If(~primed):
                    m.d.sync += previous.eq(word.payload)
        with m.Else():
            both = readers[0].words.valid & readers[1].words.valid & ~idle
            m.d.comb += [
                out.valid.eq(both),
                out.payload.begin.eq(readers[0].words.payload),
                out.payload.end.eq(readers[1].words.payload),
                readers[0].words.ready.eq(both & out.ready),
                readers[1].words.ready.eq(both & out.ready),
            ]
        with m.If(out.valid & out.ready):
            m.d.sync += remaining.eq(remaining - 1)
        return m
