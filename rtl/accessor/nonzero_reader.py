"""Reads fibers and hands out their nonzeros one by one."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.stream import StreamQueue, StreamRegister
from ..storage import byte_count, position_width
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, fiber_nonzero, fiber_place, record_request, sram_response

__all__ = ["NonzeroReader"]

# Lines asked for at a time, of memory; lines of the SRAM under way; fibers whose lines are asked for.
REQUEST_LINES = 64
LINES = 8
FIBERS = 16


class NonzeroReader(Block):
    """Gives the nonzeros of one fiber after the other, from memory or from the SRAM, each of its lines read once.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width, line_address_width : int
        Bits of a byte address, 8 to 64; of an SRAM line address, 1 to 32.

    Members
    -------
    places : In(stream of ``fiber_place``), nonzeros : Out(stream of ``fiber_nonzero``)
        In order. An empty fiber gives one that is not ``present``.
    sram_request, sram_response : a read port of the banked SRAM
    read_request, read_data : a client port of the memory engine
    plain : In(1)
        Lines lie in memory as they are on chip (:func:`rtl.types.record_request`). Constant while any fiber is under way.
    idle : Out(1)
        No fiber is under way.

    Timing
    ------
    A fiber's first line is asked for two cycles after its place was taken, and its first nonzero is there when the line is, one
    cycle later from the SRAM. One nonzero a cycle; lines of the next fibers are asked for meanwhile.
    """

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        super().__init__(
            {
                "places": In(stream.Signature(fiber_place(address_width))),
                "nonzeros": Out(stream.Signature(fiber_nonzero())),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "read_request": Out(stream.Signature(record_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "plain": In(1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        fiber = data.StructLayout({"in_memory": 1, "closes": 1, "lane": range(self.lanes), "length": POSITION_WIDTH})
        m.submodules.given = given = StreamRegister(shape=fiber_place(self.address_width))
        m.submodules.fibers = fibers = StreamQueue(shape=fiber, depth=FIBERS)
        m.submodules.lines = lines = StreamQueue(shape=64 * self.lanes, depth=LINES)
        connect(m, flipped(self.places), given.i)
        place = given.o.payload

        # Ask: a fiber's lines, one at a time of the SRAM and many of memory.
        begun = Signal()
        follows = Signal()  # the last lines that memory was asked for are of this fiber
        line_place = Signal(position_width(self.address_width) - shift)
        left = Signal(POSITION_WIDTH + 1 - shift)  # lines that are not asked for
        many = Signal(range(REQUEST_LINES + 1))
        under_way = Signal(range(LINES + 1))  # lines of the SRAM that have places in `lines`
        asks = Signal()
        line_width = POSITION_WIDTH + 1
        whole = (place.length + place.position[:shift] + (self.lanes - 1))[:line_width] >> shift
        asked_memory = self.read_request.valid & self.read_request.ready
        asked_sram = self.sram_request.valid & self.sram_request.ready
        m.d.comb += [
            *passed(place, fibers.i.payload, "in_memory closes length"),
            fibers.i.payload.lane.eq(place.position[:shift]),
            fibers.i.valid.eq(given.o.valid & ~begun),
            many.eq(Mux(left > REQUEST_LINES, REQUEST_LINES, left)),
            asks.eq(begun & (left != 0)),
            given.o.ready.eq(begun & (left == 0)),
            self.read_request.valid.eq(asks & place.in_memory),
            self.read_request.payload.address.eq(byte_count(line_place << shift)),
            self.read_request.payload.beats.eq(many),
            self.read_request.payload.plain.eq(self.plain),
            self.read_request.payload.follows.eq(follows),
            self.sram_request.valid.eq(asks & ~place.in_memory & (under_way != LINES)),
            self.sram_request.payload.eq(line_place),
        ]
        with m.If(fibers.i.valid & fibers.i.ready):
            m.d.sync += [begun.eq(1), line_place.eq(place.position >> shift), left.eq(Mux(place.length == 0, 0, whole))]
        with m.If(asked_memory):
            m.d.sync += [follows.eq(1), line_place.eq(line_place + many), left.eq(left - many)]
        with m.If(asked_sram):
            m.d.sync += [line_place.eq(line_place + 1), left.eq(left - 1)]
        with m.If(given.o.valid & given.o.ready):
            m.d.sync += [begun.eq(0), follows.eq(0)]

        # Hand out.
        m.submodules.present = present = StreamRegister(shape=fiber)
        connect(m, fibers.o, present.i)
        current, out = present.o.payload, self.nonzeros
        number = Signal(POSITION_WIDTH)  # nonzeros of the fiber that have been handed out
        lane = Signal(range(self.lanes))
        line = Signal(64 * self.lanes)
        arrived, moves, used, empty = signals("arrived moves used empty")
        m.d.comb += [
            lines.i.valid.eq(self.sram_response.valid),
            lines.i.payload.eq(self.sram_response.line),
            empty.eq(current.length == 0),
            arrived.eq(Mux(current.in_memory, self.read_data.valid, lines.o.valid)),
            # What is offered stays, also where it means nothing.
            line.eq(Mux(empty, 0, Mux(current.in_memory, self.read_data.payload, lines.o.payload))),
            lane.eq(current.lane + number),
            out.valid.eq(present.o.valid & (arrived | empty)),
            out.payload.coordinate.eq(line.word_select(lane, 64)[:COORDINATE_WIDTH]),
            out.payload.value.eq(line.word_select(lane, 64)[COORDINATE_WIDTH:]),
            out.payload.present.eq(~empty),
            out.payload.last.eq(empty | (number + 1 == current.length)),
            out.payload.closes.eq(out.payload.last & current.closes),
            moves.eq(out.valid & out.ready),
            used.eq(moves & ~empty & ((lane == self.lanes - 1) | out.payload.last)),
            self.read_data.ready.eq(used & current.in_memory),
            lines.o.ready.eq(used & ~current.in_memory),
            present.o.ready.eq(moves & out.payload.last),
            self.idle.eq(~given.o.valid & (fibers.level == 0) & ~present.o.valid),
        ]
        m.d.sync += under_way.eq(under_way + asked_sram - (used & ~current.in_memory))
        with m.If(moves):
            m.d.sync += number.eq(Mux(out.payload.last, 0, number + 1))
        return m
