"""Brings columns of B to the weight-stationary PEs, and the entries that they ask for."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.stream import StreamQueue
from ..storage import position_width
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, fiber_nonzero, fiber_place, leaf_item, selection
from .bumped_walk import check_region
from .column_check import ColumnCheck
from .common import index_width as bits_of_index
from .match_buffer import check_entries
from .weight_stationary_array import part_of_pe, word_of_pe

__all__ = ["ColumnFeeder"]

# Fibers whose nonzeros are on their way.
FIBERS = 4


class ColumnFeeder(Block):
    """Column n of a tile goes to PE n, with coordinates counted from the tile's begin along k; the rest get an empty one.

    A column with a nonzero in every row of the tile goes in Dense: values alone. Any other goes in CSC. Of a column that
    overflows the PE's buffer only the first ``entries`` words go; the others are read and sent when the PE asks for them.

    Parameters
    ----------
    pes, entries, region : int
        As :class:`WeightStationaryArray`.
    address_width : int
        Bits of a byte address, 8 to 64.

    Members
    -------
    start : In(1)
        Pulse while ``idle``.
    columns, begin_j, begin_k, size_k : In(COORDINATE_WIDTH)
        Of the tile, which has at most as many columns as there are PEs. Constant from ``start`` to the next.
    wanted : Out(stream of ``selection``), leaves : In(stream of ``leaf_item``)
        Columns of the tile by their numbers in it; where each of them is.
    places : Out(stream of ``fiber_place``), nonzeros : In(stream of ``fiber_nonzero``)
        What is to be read; the nonzeros.
    refill : In(stream of ``part_of_pe``), weights : Out(stream of ``word_of_pe``)
        Of the array.
    idle : Out(1)
        Everything was sent.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Pulse, 2 cycles after its words: a row of B that is not in the tile, or does not rise (:class:`ColumnCheck`).

    Timing
    ------
    One word a cycle: one for a nonzero of a Dense column, two for another, one for the header of each PE.
    """

    def __init__(self, *, pes: int, entries: int, region: int, address_width: int) -> None:
        self.pes = check_integer("PEs", pes, 1, 256)
        check_entries(entries)
        check_region(region, entries)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.entries = entries
        self.region = region
        super().__init__(
            {
                "start": In(1),
                **dict.fromkeys(("columns", "begin_j", "begin_k", "size_k"), In(COORDINATE_WIDTH)),
                "wanted": Out(stream.Signature(selection())),
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "places": Out(stream.Signature(fiber_place(address_width))),
                "nonzeros": In(stream.Signature(fiber_nonzero())),
                "refill": In(stream.Signature(part_of_pe(pes, POSITION_WIDTH, region))),
                "weights": Out(stream.Signature(word_of_pe(pes, POSITION_WIDTH))),
                "idle": Out(1),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        pe_bits = bits_of_index(self.pes)
        # What is sent to a PE: a column's header, and ``some`` nonzeros, from its nonzero ``index`` on.
        sent = data.StructLayout(
            {"pe": pe_bits, "header": 1, "some": 1, "dense": 1, "length": POSITION_WIDTH, "index": POSITION_WIDTH}
        )
        m.submodules.fibers = fibers = StreamQueue(shape=sent, depth=FIBERS)
        kept = data.StructLayout({"in_memory": 1, "dense": 1, "position": position_width(self.address_width)})
        m.submodules.columns_of_pes = table = Memory(shape=kept, depth=self.pes, init=[])
        put, get = table.write_port(), table.read_port(domain="comb")
        found, part, job, place = self.leaves.payload, self.refill.payload, fibers.i.payload, self.places.payload
        loads = Signal()
        asked, come = signals("asked come", range(self.pes + 1))
        exists, offered, goes = signals("exists offered goes")
        count = Signal(POSITION_WIDTH)  # nonzeros that are to be read
        full = Signal()  # the column that is loaded has a nonzero in every row of the tile
        length = found.leaf.length
        m.d.comb += [
            self.wanted.payload.index.eq(asked),
            self.wanted.payload.present.eq(1),
            self.wanted.valid.eq(loads & (asked < self.columns) & (asked != self.pes)),
            exists.eq(come < self.columns),
            put.addr.eq(come),
            full.eq(found.present & (length == self.size_k)),
            *passed(found.leaf, put.data, "in_memory position"),
            put.data.dense.eq(full),
            get.addr.eq(part.pe),
            job.header.eq(loads),
            job.some.eq(count != 0),
            place.length.eq(count),
        ]
        with m.If(loads):
            most = Mux(full, self.entries, self.entries // 2)
            with m.If(exists & found.present):
                m.d.comb += [job.length.eq(Mux(full, length, length << 1)), count.eq(_least(length, most))]
            m.d.comb += [
                job.pe.eq(come),
                job.dense.eq(exists & full),
                *passed(found.leaf, place, "in_memory position"),
                offered.eq((come != self.pes) & (self.leaves.valid | ~exists)),
                self.leaves.ready.eq(goes & exists),
                put.en.eq(goes & exists),
            ]
        with m.Else():
            words, dense = part.part, get.data.dense
            m.d.comb += [
                job.pe.eq(part.pe),
                job.dense.eq(dense),
                count.eq(Mux(dense, words.count, words.count >> 1)),
                job.index.eq(Mux(dense, words.index, words.index >> 1)),
                place.in_memory.eq(get.data.in_memory),
                place.position.eq(get.data.position + job.index),
                offered.eq(self.refill.valid),
                self.refill.ready.eq(goes),
            ]
        m.d.comb += [
            self.places.valid.eq(offered & job.some & fibers.i.ready),
            fibers.i.valid.eq(offered & (self.places.ready | ~job.some)),
            goes.eq(fibers.i.valid & fibers.i.ready),
            self.idle.eq(~loads & (fibers.level == 0)),
        ]
        with m.If(self.start):
            m.d.sync += [loads.eq(1), asked.eq(0), come.eq(0)]
        with m.Elif(loads):
            m.d.sync += [
                asked.eq(asked + (self.wanted.valid & self.wanted.ready)),
                come.eq(come + goes),
                loads.eq(come != self.pes),
            ]
        self._send(m, fibers.o)
        return m

    def _send(self, m: Module, fibers: Any) -> None:
        """The header of a column, and the words of its nonzeros: a value each, in CSC after its coordinate."""
        head, word, nonzero = fibers.payload, self.weights.payload, self.nonzeros.payload
        named = Signal()  # the coordinate of the next nonzero has been sent
        begun = Signal()
        header = head.header & ~begun
        names = ~header & ~head.dense & ~named
        value = ~header & ~names
        moves = self.weights.valid & self.weights.ready
        m.d.comb += [
            word.pe.eq(head.pe),
            word.word.header.eq(header),
            word.word.length.eq(head.length),
            word.word.metadata.eq(names),
            word.word.payload.eq(
                Mux(
                    header,
                    self.begin_j + head.pe,
                    Mux(names, nonzero.coordinate - self.begin_k, nonzero.value),
                )
            ),
            self.weights.valid.eq(fibers.valid & (header | self.nonzeros.valid)),
            self.nonzeros.ready.eq(fibers.valid & value & self.weights.ready),
            fibers.ready.eq(moves & Mux(header, ~head.some, value & nonzero.last)),
        ]
        number = Signal(POSITION_WIDTH)  # nonzeros that have been sent of these
        m.submodules.column_check = check = ColumnCheck(pes=self.pes)
        m.d.comb += [
            check.moved.eq(moves & value),
            *passed(head, check, "pe"),
            check.index.eq(head.index + number),
            check.row.eq(nonzero.coordinate),
            check.low.eq(self.begin_k),
            check.high.eq(self.begin_k + self.size_k),
            *passed(check, self, "wrong coordinate"),
        ]
        with m.If(moves & value):
            m.d.sync += number.eq(number + 1)
        with m.If(fibers.valid & fibers.ready):
            m.d.sync += [begun.eq(0), named.eq(0), number.eq(0)]
        with m.Elif(moves):
            m.d.sync += [begun.eq(1), named.eq(names)]


def _least(number: Any, bound: int) -> Value:
    """The number, but not more than ``bound``."""
    return Mux(number < bound, number, bound)
