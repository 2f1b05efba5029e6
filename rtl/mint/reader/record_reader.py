"""Reads lines of nonzeros out of memory that holds them as packed records."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...arith.arithmetic import value_bits, widened
from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.passed import passed
from ...lib.stream import StreamQueue
from ...memory.line_parts import PartJoiner
from ...storage import COORDINATE_WIDTH
from ...types import BEATS_WIDTH, line, read_request, record_request
from ..bit_unpacker import BitUnpacker
from .line_range import RECORD_WIDTH, LineRange, checked_beat_bits
from .shared_beats import SharedBeats, beats_of_request

__all__ = ["RecordReader"]


class RecordReader(Block):
    """A client port of the memory engine for a unit that asks for lines of nonzeros::

        request --> LineRange --+--> read_request          read_data
                                +--> (queue) --> SharedBeats <--+
                                                     | (PartJoiner, where a line is several beats)
                                +--> (queue) --> BitUnpacker --> lines

    A record is the bits of a value, and above them ``coordinate_bits`` of coordinate: only how many bits there are above the
    value changes from run to run. On chip a nonzero has 32 bits of each, the coordinate first. Lines that are ``plain`` lie in
    memory as on chip.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 1 to 16.
    beat_bits : int, optional
        Bits of a beat, by default those of a line: an eighth of them at least.
    address_width : int
        Bits of a byte address.
    value : str
        Value type, one of ``arith.VALUES``.
    carries : int
        Sequences of requests that share beats (:func:`rtl.types.record_request`).
    pending : int
        Requests that may wait for their beats.

    Members
    -------
    base, coordinate_bits : In
        Byte address of the array of records, bus-aligned; bits of a coordinate, 0 to 32. Constant while requests are under way.
    request : In(stream(record_request)), lines : Out(stream)
        Lines in the order of the requests.
    read_request, read_data : a client port of the memory engine
    beat : Out(1), plain : Out(1)
        A beat comes from memory; it belongs to a plain request.

    Timing
    ------
    Four cycles from a request to that of the memory engine; ``latency`` from a beat to its line, where it comes three cycles
    after that request or later. One request, one line, one beat a cycle.
    """

    def __init__(
        self,
        *,
        lanes: int,
        address_width: int,
        value: str,
        beat_bits: int | None = None,
        carries: int = 1,
        pending: int = 64,
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.beat_bits = beat_bits = checked_beat_bits(lanes, beat_bits)
        line_bits = RECORD_WIDTH * lanes
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.carries = check_integer("Carries", carries, 1, 1 << 16)
        self.pending = check_integer("Pending requests", pending, 2, 1 << 12)
        self.parts = line_bits // beat_bits
        self.value = value
        self.value_bits = value_bits(value)
        self.unpacker = BitUnpacker(
            beat_bits=line_bits,
            lanes=lanes,
            width=RECORD_WIDTH,
            count_bits=BEATS_WIDTH + (lanes - 1).bit_length(),
        )
        super().__init__(
            {
                "base": In(address_width),
                "coordinate_bits": In(range(COORDINATE_WIDTH + 1)),
                "request": In(stream.Signature(record_request(address_width, carries))),
                "lines": Out(stream.Signature(line_bits)),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(beat_bits)),
                "beat": Out(1),
                "plain": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        return self.unpacker.latency + (PartJoiner.latency if self.parts > 1 else 0)

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.line_range = ranges = LineRange(
            lanes=self.lanes, beat_bits=self.beat_bits, address_width=self.address_width, carries=self.carries
        )
        m.submodules.shared_beats = beats = SharedBeats(data_width=self.beat_bits, carries=self.carries)
        m.submodules.unpacker = unpacker = self.unpacker
        beats_shape = data.StructLayout({"beats": beats_of_request(self.carries), "plain": 1})
        records_shape = data.StructLayout({"records": unpacker.request.payload.shape(), "plain": 1})
        m.submodules.asked = asked = StreamQueue(shape=self.read_request.payload.shape(), depth=2)
        m.submodules.beats_due = beats_due = StreamQueue(shape=beats_shape, depth=self.pending)
        m.submodules.lines_due = lines_due = StreamQueue(shape=records_shape, depth=self.pending)
        # Of requests that the unpacker has taken, whether they are plain: the lines of few are in it.
        m.submodules.kinds = kinds = StreamQueue(shape=1, depth=16)
        connect(m, flipped(self.request), ranges.request)
        connect(m, flipped(self.read_request), asked.o)
        connect(m, flipped(self.read_data), beats.read_data)
        self._join(m, beats, unpacker)

        want = ranges.ranges.payload
        queues = (asked, beats_due, lines_due)
        goes = Signal()
        m.d.comb += [
            *passed(self, ranges, "base coordinate_bits"),
            ranges.value_bits.eq(self.value_bits),
            goes.eq(ranges.ranges.valid & Cat(queue.i.ready for queue in queues).all()),
            ranges.ranges.ready.eq(goes),
            asked.i.valid.eq(goes & (want.reads != 0)),
            asked.i.payload.address.eq(want.address),
            asked.i.payload.beats.eq(want.reads),
            beats_due.i.valid.eq(goes),
            beats_due.i.payload.plain.eq(want.plain),
            *(beats_due.i.payload.beats[name].eq(want[name]) for name in ("beats", "shared", "carry")),
            lines_due.i.valid.eq(goes),
            lines_due.i.payload.plain.eq(want.plain),
            lines_due.i.payload.records.drop.eq(want.drop),
            lines_due.i.payload.records.width.eq(want.width),
            lines_due.i.payload.records.count.eq(want.lines << (self.lanes - 1).bit_length()),
            beats.requests.valid.eq(beats_due.o.valid),
            beats.requests.payload.eq(beats_due.o.payload.beats),
            beats_due.o.ready.eq(beats.requests.ready),
            self.beat.eq(self.read_data.valid & self.read_data.ready),
            self.plain.eq(beats_due.o.payload.plain),
            unpacker.request.valid.eq(lines_due.o.valid & kinds.i.ready),
            unpacker.request.payload.eq(lines_due.o.payload.records),
            lines_due.o.ready.eq(unpacker.request.ready & kinds.i.ready),
            kinds.i.valid.eq(lines_due.o.valid & unpacker.request.ready),
            kinds.i.payload.eq(lines_due.o.payload.plain),
        ]
        self._widen(m, unpacker.groups, kinds)
        return m

    def _join(self, m: Module, beats: SharedBeats, unpacker: BitUnpacker) -> None:
        """The beats of a request, as wide as the unpacker takes them."""
        if self.parts == 1:
            connect(m, beats.beats, unpacker.beats)
            return
        m.submodules.joiner = joiner = PartJoiner(beat_bits=self.beat_bits, parts=self.parts)
        connect(m, joiner.lines, unpacker.beats)
        m.d.comb += [
            joiner.beats.valid.eq(beats.beats.valid),
            joiner.beats.payload.beat.eq(beats.beats.payload),
            joiner.beats.payload.last.eq(beats.last),
            beats.beats.ready.eq(joiner.beats.ready),
        ]

    def _widen(self, m: Module, groups: Any, kinds: StreamQueue) -> None:
        """A line of nonzeros as they are on chip out of each group of records."""
        out = Signal(line(self.lanes))
        m.d.comb += [
            self.lines.valid.eq(groups.valid),
            self.lines.payload.eq(out),
            groups.ready.eq(self.lines.ready),
            kinds.o.ready.eq(groups.valid & groups.ready & groups.payload.last),
        ]
        plain, bits = kinds.o.payload, self.value_bits
        for n in range(self.lanes):
            record = groups.payload.records[n]
            m.d.comb += [
                out[n].coordinate.eq(Mux(plain, record, record[bits:])),
                out[n].value.eq(Mux(plain, record[COORDINATE_WIDTH:], widened(record[:bits], self.value))),
            ]
