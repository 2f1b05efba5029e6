"""Accessor of A: hands out the tile's nonzeros row by row, from memory or from its partition."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..lib.unit import Fault, Unit, word_client
from ..types import (
    COORDINATE_WIDTH,
    POSITION_WIDTH,
    record_request,
    row_part,
    segment_word,
    selection,
    sram_response,
    sram_write,
    tile,
    write_beat,
    write_request,
)
from .fiber_reader import READ_CLIENTS, FiberReader, read_clients
from .part_aligner import PartAligner
from .segment_loader import SegmentLoader
from .segment_player import SegmentPlayer
from .unroller import Unroller

__all__ = ["AccessorA"]

ELEMENTS = READ_CLIENTS.index("elements")  # the reader's client port for elements, which bumped segments share


class AccessorA(Unit):
    """Fetches A's part of a tile (``T_i x T_k``) and hands out one selection for each nonzero, or those of a line together.

    Streaming mode reads it from memory at each visit. In buffering mode ``load`` puts it into the partition once, and
    each visit reads it from there; rows that did not fit are read from memory at each visit. They pass through the
    reader's queue, each once a visit, so that a FIFO-managed region would hold nothing that is used again: the whole
    partition is for metadata and resident rows.

    Parameters
    ----------
    lanes : int
        64-bit elements in a line (bus beat, SRAM word), power of two.
    address_width : int
        Bits of a byte address.
    line_address_width : int
        Bits of an SRAM line address.
    burst_beats : int
        Beats of the longest burst that is asked for, power of two.
    parts : bool
        Nonzeros of a row that lie in one line are handed out together.

    Members
    -------
    buffering : In(1)
        Mode, constant during a run.
    load : In(stream)
        A tile that is to be put in place of the one there.
    tile : In(stream)
        Every tile, also those that only carry partial results: these give ``size_i`` empty rows and leave the partition
        as it is. In buffering mode any other is the one in place.
    base, lines : In
        The partition. ``lines`` exceeds the metadata.
    pointers, positions, elements : In(address_width)
        Byte addresses of the operand's arrays, bus-aligned: row pointers, begin positions, elements. Constant during a run.
    selections : Out(stream)
        Selections, or parts of rows. ``index`` is k relative to the tile's begin; the last one of each row has ``last`` set.
    sram_write : Out(stream).array(2), sram_request, sram_response
        Write ports for data and metadata, and a read port, of the banked SRAM.
    read_request, read_data, write_request, write_data
        Client ports of the memory engine, as :class:`FiberReader`. Begin positions move on at the load.
    idle : Out(1)
        No tile and no load in progress, nothing left to hand out; told a cycle late.
    bumped_elements : Out(POSITION_WIDTH), occupied : Out(line_address_width + 1)
        As :class:`SegmentLoader`.
    event_resident, event_bumped : Out(range(lanes + 1))
        As :class:`SegmentPlayer`.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        As :class:`FiberReader`.

    Timing
    ------
    One selection or part a cycle; a tile begins when the one before has been handed out.
    """

    READERS = read_clients("a")
    WRITERS = (word_client("a_positions", "write_a_meta"),)

    def __init__(
        self, *, lanes: int, address_width: int, line_address_width: int, burst_beats: int, parts: bool = False
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        self.parts = bool(parts)
        super().__init__(
            {
                "buffering": In(1),
                "load": In(stream.Signature(tile())),
                "tile": In(stream.Signature(tile())),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "pointers": In(address_width),
                "positions": In(address_width),
                "elements": In(address_width),
                "selections": Out(stream.Signature(row_part(lanes) if self.parts else selection())),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "read_request": Out(stream.Signature(record_request(address_width))).array(len(READ_CLIENTS)),
                "read_data": In(stream.Signature(64 * lanes)).array(len(READ_CLIENTS)),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))),
                "idle": Out(1),
                "bumped_elements": Out(POSITION_WIDTH),
                "occupied": Out(line_address_width + 1),
                "event_resident": Out(range(lanes + 1)),
                "event_bumped": Out(range(lanes + 1)),
                "wrong": Out(1),
                "coordinate": Out(COORDINATE_WIDTH),
            }
        )

    def events(self) -> Mapping[str, Value]:
        return {"hits_a": self.event_resident, "bumped_fetches_a": self.event_bumped, "buffer_peak_a": self.occupied}

    def faults(self) -> Sequence[Fault]:
        return (Fault("bad_coordinate", self.wrong, self.coordinate),)

    def activity(self) -> Mapping[str, Value]:
        return {"a_accessor": ~self.idle}

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {"lanes": self.lanes, "address_width": self.address_width, "burst_beats": self.burst_beats}
        m.submodules.reader = reader = FiberReader(**sizes)
        m.submodules.loader = loader = SegmentLoader(
            lanes=self.lanes, line_address_width=self.line_address_width, fifo_region=False
        )
        m.submodules.player = player = SegmentPlayer(line_address_width=self.line_address_width, **sizes)
        m.submodules.words = words = StreamQueue(shape=segment_word(self.lanes), depth=4)
        connect(m, flipped(self.write_request), reader.write_request)
        connect(m, flipped(self.write_data), reader.write_data)
        connect(m, flipped(self.sram_request), player.sram_request)
        connect(m, reader.sizes, loader.row_sizes)
        for n in range(2):
            connect(m, flipped(self.sram_write[n]), loader.sram_write[n])
        for n in range(len(READ_CLIENTS)):
            if n != ELEMENTS:
                connect(m, flipped(self.read_request[n]), reader.read_request[n])
                connect(m, flipped(self.read_data[n]), reader.read_data[n])

        empty_rows = Signal(POSITION_WIDTH)
        empty = Signal()  # some are left
        base = Signal(COORDINATE_WIDTH)
        way_out = PartAligner(lanes=self.lanes) if self.parts else Unroller(lanes=self.lanes)
        m.submodules["part_aligner" if self.parts else "unroller"] = way_out
        handed = way_out.selections
        connect(m, words.o, way_out.words)
        m.d.comb += way_out.base.eq(base)
        loading = Signal()  # what the reader delivers goes into the partition
        playing = Signal()  # words come from the player
        idle = Signal()  # says so a cycle late: what it lets begin goes through long paths of its own
        take_load = Signal()
        take_tile = Signal()
        m.d.sync += idle.eq(
            reader.idle
            & loader.idle
            & player.idle
            & ~empty
            & (words.level == 0)
            & ~handed.valid
            & ~take_load
            & ~take_tile
        )
        m.d.comb += [
            self.idle.eq(idle),
            self.load.ready.eq(idle),
            self.tile.ready.eq(idle & ~self.load.valid),
            take_load.eq(self.load.valid & self.load.ready),
            take_tile.eq(self.tile.valid & self.tile.ready),
        ]
        self._begin(m, reader, loader, player, take_load, take_tile)
        want = self.tile.payload
        with m.If(take_tile):
            m.d.sync += [base.eq(want.begin_k), playing.eq(self.buffering), loading.eq(0)]
            m.d.sync += empty.eq(want.carry & (want.size_i != 0))
        with m.If(take_load):
            m.d.sync += [loading.eq(1), playing.eq(0)]

        # Reader and player share the way out and the client port for elements: only one of them is at work.
        shared_request, shared_data = self.read_request[ELEMENTS], self.read_data[ELEMENTS]
        own_request, own_data = reader.read_request[ELEMENTS], reader.read_data[ELEMENTS]
        m.d.comb += [
            shared_request.valid.eq(Mux(playing, player.read_request.valid, own_request.valid)),
            shared_request.payload.eq(Mux(playing, player.read_request.payload, own_request.payload)),
            own_request.ready.eq(shared_request.ready & ~playing),
            player.read_request.ready.eq(shared_request.ready & playing),
            own_data.payload.eq(shared_data.payload),
            player.read_data.payload.eq(shared_data.payload),
            own_data.valid.eq(shared_data.valid & ~playing),
            player.read_data.valid.eq(shared_data.valid & playing),
            shared_data.ready.eq(Mux(playing, player.read_data.ready, own_data.ready)),
            words.i.valid.eq(Mux(playing, player.words.valid, reader.segments.valid & ~loading)),
            words.i.payload.eq(Mux(playing, player.words.payload, reader.segments.payload.word)),
            player.words.ready.eq(words.i.ready & playing),
            loader.segments.valid.eq(reader.segments.valid & loading),
            loader.segments.payload.eq(reader.segments.payload),
            reader.segments.ready.eq(Mux(loading, loader.segments.ready, words.i.ready & ~playing)),
        ]

        out = self.selections
        some = "count" if self.parts else "present"
        m.d.comb += [out.valid.eq(handed.valid | empty), handed.ready.eq(out.ready & ~empty)]
        m.d.comb += out.payload.eq(handed.payload)
        with m.If(empty):
            m.d.comb += [out.payload.last.eq(1), out.payload[some].eq(0)]
            with m.If(out.ready):
                m.d.sync += empty.eq(empty_rows != 1)
        with m.If(~empty | out.ready):
            m.d.sync += empty_rows.eq(Mux(empty, empty_rows - 1, want.size_i))
        return m

    def _begin(
        self,
        m: Module,
        reader: FiberReader,
        loader: SegmentLoader,
        player: SegmentPlayer,
        take_load: Signal,
        take_tile: Signal,
    ) -> None:
        """What each unit is told at the begin of a load or of a visit."""
        want = Signal(tile())
        streams = take_tile & ~self.buffering & ~self.tile.payload.carry
        rows = reader.tile.payload
        m.d.comb += [
            want.eq(Mux(self.load.valid, self.load.payload, self.tile.payload)),
            reader.tile.valid.eq(take_load | streams),
            rows.row.eq(want.begin_i),
            rows.rows.eq(want.size_i),
            rows.low.eq(want.begin_k),
            rows.high.eq(want.begin_k + want.size_k),
            rows.last.eq(want.last_k),
            rows.whole.eq(want.whole_k),
            rows.from_pointers.eq(want.from_pointers_a),
            rows.advance.eq(want.advance_a),
            self.wrong.eq(reader.wrong),
            self.coordinate.eq(reader.coordinate),
            *passed(self, reader, "pointers positions elements"),
            # What is streamed needs no place.
            reader.places.valid.eq(loader.row_places.valid),
            reader.places.payload.bumped.eq(loader.row_places.payload.bumped & self.buffering),
            loader.row_places.ready.eq(reader.places.ready),
            loader.start.eq(take_load),
            loader.rows.eq(want.size_i),
            loader.whole.eq(want.whole_k),
            loader.base.eq(self.base),
            loader.lines.eq(self.lines),
            loader.fifo_lines.eq(0),
            loader.reader_idle.eq(reader.idle),
            player.start.eq(take_tile & self.buffering & ~self.tile.payload.carry),
            player.rows.eq(want.size_i),
            player.metadata_line.eq(self.base + self.lines - 1),
            *passed(self, player, "elements sram_response"),
            self.bumped_elements.eq(loader.bumped_elements),
            self.occupied.eq(loader.occupied),
            self.event_resident.eq(player.event_resident),
            self.event_bumped.eq(player.event_bumped),
        ]
