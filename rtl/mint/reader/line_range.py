"""Where lines of packed records lie in memory: the beats that hold them, and the bit with which they begin."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...storage import COORDINATE_WIDTH, VALUE_WIDTH, line_bytes
from ...types import BEATS_WIDTH, POSITION_WIDTH, record_request
from ..records import Stage

__all__ = ["RECORD_WIDTH", "LineRange", "beat_range"]

# Bits of the widest record: that of a nonzero on chip.
RECORD_WIDTH = COORDINATE_WIDTH + VALUE_WIDTH


def beat_range(lanes: int, address_width: int, carries: int) -> data.StructLayout:
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
            "drop": range(RECORD_WIDTH * lanes),
            "shared": 1,
            "plain": 1,
            "carry": range(max(2, carries)),
        }
    )


class LineRange(Block):
    """Turns lines of records into the beats that hold them.

    Record p begins at bit p x width of its array. A line is ``lanes`` records and a beat ``lanes`` x 64 bits, so line n begins
    ``lanes`` x (n x width mod 64) bits into beat n x width div 64.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 1 to 16.
    address_width : int
        Bits of a byte address.
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

    def __init__(self, *, lanes: int, address_width: int, carries: int = 1) -> None:
        check_power_of_two("Lanes", lanes, 1, 16)
        check_integer("Address width", address_width, 8, 64)
        check_integer("Carries", carries, 1, 1 << 16)
        self.lanes = lanes
        self.address_width = address_width
        self.carries = carries
        super().__init__(
            {
                "base": In(address_width),
                "coordinate_bits": In(range(COORDINATE_WIDTH + 1)),
                "value_bits": In(range(VALUE_WIDTH + 1)),
                "request": In(stream.Signature(record_request(address_width, carries))),
                "ranges": Out(stream.Signature(beat_range(lanes, address_width, carries))),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width, "c": self.carries}

    def build(self, platform: Any) -> Module:
        m = Module()
        line_bits = (line_bytes(self.lanes) - 1).bit_length()
        granule = (RECORD_WIDTH - 1).bit_length()
        # Plain lines count from address 0, records from their array: fewer bits to multiply.
        index, lanes_bits = self.address_width - line_bits, (self.lanes - 1).bit_length()
        kept = {"plain": 1, "follows": 1, "carry": range(max(2, self.carries)), "lines": BEATS_WIDTH}
        kept |= {"width": range(RECORD_WIDTH + 1)}
        known = data.StructLayout({**kept, "line": index})
        bits = data.StructLayout({**kept, "begin": index + granule, "length": BEATS_WIDTH + granule})
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
        begin = _times(now.line[: POSITION_WIDTH - lanes_bits], now.width)
        measured.moves(comes=asked.valid, taken=placed.ready)
        measured.holds(
            {name: now[name] for name in kept}
            | {"begin": Mux(now.plain, now.line << granule, begin), "length": _times(now.lines, now.width)}
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
                "address": Mux(item.plain, 0, self.base) + ((first + shared) << line_bits),
                "reads": beats - shared,
                "beats": beats,
                "lines": item.lines,
                "width": item.width,
                "drop": drop << lanes_bits,
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
