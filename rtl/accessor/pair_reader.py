"""Finds where the rows of a tile begin and end: pointers alone, or begin positions left by the tile before or by a list."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..storage import word_address, word_bytes, word_index
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
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        super().__init__(
            {
                "run": In(stream.Signature(pair_run(address_width))),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(64 * lanes)).array(2),
                "pairs": Out(stream.Signature(pair())),
                "places": Out(stream.Signature(row_place())),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        readers = [WordReader(lanes=self.lanes, address_width=self.address_width) for _ in range(2)]
        for n, reader in enumerate(readers):
            m.submodules[f"word_reader{n}"] = reader
            connect(m, flipped(self.read_request[n]), reader.read_request)
            connect(m, flipped(self.read_data[n]), reader.read_data)

        run, out = self.run.payload, self.pairs
        first, second = readers
        one, other = first.words, second.words
        single = Signal()
        planned = Signal()
        primed = Signal()  # `previous` is a begin; with ``planned`` its place has not left
        previous = Signal(POSITION_WIDTH)
        told = Signal()  # the place of `previous` has left

        # Both are ready when they have no word left: the last pair takes the last of each.
        take = self.run.valid & self.run.ready
        places = run.planned & ~run.single
        pointers = word_index(run.pointers)
        m.d.comb += [
            self.run.ready.eq(first.run.ready & second.run.ready),
            first.run.valid.eq(take),
            first.run.payload.address.eq(
                word_address(Mux(run.single, run.pointers, run.positions), Mux(places, run.row << 1, run.row))
            ),
            first.run.payload.count.eq(Mux(places, run.rows << 1, run.rows)),
            first.run.payload.more.eq(run.single),
            second.run.valid.eq(take & ~run.single),
            # Word `row + 1`: the ones carry.
            second.run.payload.address.eq(word_bytes((Cat(1, pointers) + Cat(1, run.row))[1:])),
            second.run.payload.count.eq(run.rows),
        ]
        with m.If(take):
            m.d.sync += [single.eq(run.single), planned.eq(places), primed.eq(0)]

        goes = out.valid & out.ready
        m.d.comb += [
            out.payload.begin.eq(Mux(single | planned, previous, one.payload)),
            out.payload.end.eq(Mux(single, one.payload, other.payload)),
            self.places.valid.eq(planned & primed & one.valid),
            self.places.payload.eq(one.payload),
        ]
        # A word of the first goes by itself, as a place, or with a pair. Whether it has come and its own reader say, not this.
        alone = (single & ~primed) | (planned & ~primed & ~told)
        placed = planned & primed
        m.d.comb += one.ready.eq(alone | (placed & self.places.ready) | (~placed & out.ready & (single | other.valid)))
        with m.If(single):
            m.d.comb += out.valid.eq(primed & one.valid)
            with m.If(one.valid & one.ready):
                m.d.sync += [previous.eq(one.payload), primed.eq(1)]
        with m.Elif(planned):
            m.d.comb += [
                out.valid.eq(told & other.valid),
                other.ready.eq(told & out.ready),
            ]
            with m.If(goes):
                m.d.sync += told.eq(0)
            with m.If(one.valid & one.ready):
                m.d.sync += [primed.eq(~primed), told.eq(primed)]
                with m.If(~primed):
                    m.d.sync += previous.eq(one.payload)
        with m.Else():
            m.d.comb += [
                out.valid.eq(one.valid & other.valid),
                other.ready.eq(one.valid & out.ready),
            ]
        return m
