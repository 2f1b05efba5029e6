"""Hands out the fiber segments of a tile that is in place: resident ones from the SRAM, bumped ones from memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, record_request, segment_word, sram_response
from .entry_unpacker import EntryUnpacker
from .partition_reader import PartitionReader
from .piece_finder import PieceFinder, piece
from .piece_words import PieceWords
from .run_requester import RunRequester

__all__ = ["SegmentPlayer"]

PIECES = 16


class SegmentPlayer(Block):
    """Walks the metadata that a :class:`SegmentLoader` left and gives the words of each segment, one a cycle::

        SRAM <-> PartitionReader -- entries --> EntryUnpacker -- segments --> PieceFinder -- pieces --> PieceWords --> words
                      |   ^                          |                            |                       ^   ^
                      |   +-------- wanted ----------|----------------------------+                       |   |
                      +------------ lines -----------|----------------------------------------------------+   |
                                                     +--> RunRequester --> memory -- beats -------------------+

    A piece is what one line holds of one segment. Pieces are found ahead, and their lines asked for, from the SRAM or from
    memory; each line is read once, since segments lie in rising order in both. Bumped segments come through the reader's
    queue of the memory engine: each use of the tile reads them again.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.
    address_width, line_address_width : int
        Bits of a byte address, 8 to 64; of an SRAM line address, 1 to 32.
    burst_beats : int
        Longest burst of memory, power of two from 1 to 256.

    Members
    -------
    start : In(1), rows : In(POSITION_WIDTH)
        Pulse while ``idle``: segments of the tile, at least 1.
    metadata_line : In(line_address_width)
        Line of the first entries; the lines below hold those that follow.
    elements : In(address_width)
        Byte address of the element array, bus-aligned.
    sram_request, sram_response : a read port of the banked SRAM
    read_request, read_data : a client port of the memory engine
    words : Out(stream)
        The segments in row order.
    idle : Out(1)
        No row is left to look up, and no piece is on its way.
    event_resident, event_bumped : Out(range(lanes + 1))
        Elements handed out in this cycle, by where they came from.

    Timing
    ------
    Ten cycles and the SRAM's two answers from ``start`` to the first word, then one word a cycle.
    """

    def __init__(self, *, lanes: int, address_width: int, line_address_width: int, burst_beats: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "start": In(1),
                "rows": In(POSITION_WIDTH),
                "metadata_line": In(line_address_width),
                "elements": In(address_width),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "read_request": Out(stream.Signature(record_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "words": Out(stream.Signature(segment_word(lanes))),
                "idle": Out(1),
                "event_resident": Out(range(lanes + 1)),
                "event_bumped": Out(range(lanes + 1)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, law = self.lanes, self.line_address_width
        m.submodules.partition = partition = PartitionReader(lanes=lanes, line_address_width=law)
        m.submodules.unpacker = unpacker = EntryUnpacker(lanes=lanes)
        m.submodules.requester = requester = RunRequester(
            lanes=lanes, address_width=self.address_width, burst_beats=self.burst_beats
        )
        m.submodules.finder = finder = PieceFinder(lanes=lanes, line_address_width=law)
        m.submodules.pieces = pieces = StreamQueue(shape=piece(lanes), depth=PIECES)
        m.submodules.joined = joined = PieceWords(lanes=lanes)
        connect(m, partition.sram_request, flipped(self.sram_request))
        connect(m, partition.entries, unpacker.entries)
        connect(m, unpacker.runs, requester.pairs)
        connect(m, requester.read_request, flipped(self.read_request))
        connect(m, unpacker.segments, finder.segments)
        connect(m, finder.wanted, partition.wanted)
        connect(m, finder.pieces, pieces.i)
        connect(m, pieces.o, joined.pieces)
        connect(m, partition.lines, joined.lines)
        connect(m, flipped(self.read_data), joined.beats)
        connect(m, joined.words, flipped(self.words))

        rows_left = Signal(POSITION_WIDTH)  # segments whose last piece has not been found
        m.d.comb += [
            *passed(self, partition, "start rows metadata_line sram_response"),
            *passed(self, unpacker, "start rows"),
            *passed(self, requester, "start elements"),
            *passed(joined, self, "event_resident event_bumped"),
            self.idle.eq((rows_left == 0) & (pieces.level == 0)),
        ]
        with m.If(unpacker.segments.valid & unpacker.segments.ready):
            m.d.sync += rows_left.eq(rows_left - 1)
        with m.If(self.start):
            m.d.sync += rows_left.eq(self.rows)
        return m
