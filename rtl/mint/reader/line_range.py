"""Where lines of packed records lie in memory: the beats that hold them, and the bit with which they begin."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...storage import COORDINATE_WIDTH, VALUE_WIDTH, line_bytes
from ...types import BEATS_WIDTH, POSITION_WIDTH, record_request
from ..records import Stage

__all__ = ["RECORD_WIDTH", "LineRange", "beat_range", "checked_beat_bits"]

# Bits of the widest record: that of a nonzero on chip.
RECORD_WIDTH = COORDINATE_WIDTH + VALUE_WIDTH


def checked_beat_bits(lanes: int, beat_bits: int | None) -> int:
    """Bits of a beat where a line has ``lanes`` nonzeros. Raises ValueError."""
    line_bits = RECORD_WIDTH * lanes
    if beat_bits is None:
        return line_bits
    check_power_of_two("Beat bits", beat_bits, max(RECORD_WIDTH, line_bits // 8), line_bits)
    return beat_bits


def beat_range(beat_bits: int, address_width: int, carries: int) -> data.StructLayout:
    """The beats of a request.

    ``address``: of the first beat that is read, and how many are (``reads``, 0 for none). ``beats``: that hold the request.
    ``shared``: the first of these is the last one of the request before on ``carry``, and is not read. ``drop``: bits of the
    first beat before the records. ``lines``, ``width``: lines of records, and bits of a record. ``plain``: as the request's.
    """
    return data.StructLayout(
        {
            "address": address_width,
            "reads": BEATS_WIDTH,
            "beats": BEATS_WIDTH,
            "lines": BEATS_WIDTH,
            "width": range(RECORD_WIDTH + 1),
            "drop": range(beat_bits),
            "shared": 1,
            "plain": 1,
            "carry": range(max(2, carries)),
        }
    )


class LineRange(Block):
    """Turns lines of records into the beats that hold them.

    Record p begins at bit p x width of its array. A line is ``lanes`` records. Where a beat has ``lanes`` x 64 bits, line n
    begins ``lanes`` x (n x width mod 64) bits into beat n x width div 64; where it has fewer, n counts as many times as there
    are beats in a line on chip.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 1 to 16.
    address_width : int
        Bits of a byte address.
    beat_bits : int, optional
        Bits of a beat, by default those of a line on chip: an eighth of them at least.
    carries : int
        Sequences of requests that share beats, see :func:`rtl.types.record_request`.

    Members
    -------
    base : In(address_width)
        Byte address of the array of records, bus-aligned.
    coordinate_bits, value_bits : In
        Bits of a record's coordinate and value. Constant while requests are under way.
    request : In(stream(record_request)), ranges : Out(stream(beat_range))

    Timing
    ------
    ``latency`` cycles; one request a cycle.
    """

    latency = 3

    def __init__(self, *, lanes: int, address_width: int, beat_bits: int | None = None, carries: int = 1) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.beat_bits = beat_bits = checked_beat_bits(lanes, beat_bits)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.carries = check_integer("Carries", carries, 1, 1 << 16)
        super().__init__(
            {
                "base": In(address_width),
                "coordinate_bits": In(range(COORDINATE_WIDTH + 1)),
                "value_bits": In(range(VALUE_WIDTH + 1)),
                "request": In(stream.Signature(record_request(address_width, carries))),
                "ranges": Out(stream.Signature(beat_range(beat_bits, address_width, carries))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        line_bits = (line_bytes(self.lanes) - 1).bit_length()
        granule = (RECORD_WIDTH - 1).bit_length()
        beat_lanes = self.beat_bits // RECORD_WIDTH  # whose bits fill a beat
        parts_bits, beat_lanes_bits = (self.lanes // beat_lanes - 1).bit_length(), (beat_lanes - 1).bit_length()
        # Plain lines count from address 0, records from their array: fewer bits to multiply.
        index, lanes_bits = self.address_width - line_bits, (self.lanes - 1).bit_length()
        kept = {"plain": 1, "follows": 1, "carry": range(max(2, self.carries)), "lines": BEATS_WIDTH}
        kept |= {"width": range(RECORD_WIDTH + 1)}
        known = data.StructLayout({**kept, "line": index})
        bits = data.StructLayout({**kept, "begin": index + granule + parts_bits, "length": BEATS_WIDTH + granule})
        asked, measured = Stage(m, "asked", known), Stage(m, "measured", bits)
        placed = Stage(m, "placed", self.ranges.payload.shape())

        want = self.request.payload
        width = Mux(want.plain, RECORD_WIDTH, self.coordinate_bits + self.value_bits)
        asked.moves(comes=self.request.valid, taken=measured.ready)
        asked.holds(
            {
                "plain": want.plain,
                "follows": want.follows,
                "carry": want.carry if self.carries > 1 else 0,
                "lines": want.beats,
                "line": want.address >> line_bits,
                "width": width,
            }
        )
        now = asked.payload
        low_bits = Const(0, parts_bits)  # a line begins with a beat's lane 0
        begin = _times(now.line[: POSITION_WIDTH - lanes_bits], now.width)
        measured.moves(comes=asked.valid, taken=placed.ready)
        measured.holds(
            {name: now[name] for name in kept}
            | {
                "begin": Cat(low_bits, Mux(now.plain, now.line << granule, begin)),
                "length": Cat(low_bits, _times(now.lines, now.width)),
            }
        )
        item = measured.payload
        first, drop = item.begin >> granule, item.begin[:granule]
        beats = (drop + item.length + (RECORD_WIDTH - 1)) >> granule
        # Plain lines begin with their beat, as all records do that are as long.
        shared = Signal()
        m.d.comb += [
            self.request.ready.eq(asked.ready),
            shared.eq(item.follows & (drop != 0)),
            self.ranges.valid.eq(placed.valid),
            self.ranges.payload.eq(placed.payload),
        ]
        placed.moves(comes=measured.valid, taken=self.ranges.ready)
        placed.holds(
            {
                "address": Mux(item.plain, 0, self.base) + ((first + shared) << (self.beat_bits // 8 - 1).bit_length()),
                "reads": beats - shared,
                "beats": beats,
                "lines": item.lines,
                "width": item.width,
                "drop": drop << beat_lanes_bits,
                "shared": shared,
                "plain": item.plain,
                "carry": item.carry,
            }
        )
        return m


def _times(value: Any, width: Any) -> Any:
    """The product, by shifts and sums: tools would take multipliers."""
    total = Mux(width[0], value, 0)
    for bit in range(1, len(width)):
        total = total + (Mux(width[bit], value, 0) << bit)
    return total
