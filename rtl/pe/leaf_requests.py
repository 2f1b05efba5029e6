"""What a leaf asks for: its first request, offered as it comes, and after each request the next one."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..leaf_lines import long_leaf_lines, memory_burst
from ..lib.block import Block
from ..lib.passed import passed
from ..lib.stream import StreamRegister
from ..storage import position_width
from ..types import POSITION_WIDTH
from .common import check_power_of_two, index_width, is_long

__all__ = ["FirstRequests", "NextRequest", "feed_leaf", "first_request", "leaf_request"]


def feed_leaf(lanes: int, address_width: int) -> data.StructLayout:
    """What the feeder knows of a leaf: its first line and how many there are. ``last`` ends the job."""
    lane_bits = index_width(lanes)
    return data.StructLayout(
        {
            "in_memory": 1,
            "unit": 1,
            "scratch": 1,
            "last": 1,
            "line": position_width(address_width) - lane_bits,
            "lines": POSITION_WIDTH + 1 - lane_bits,
        }
    )


def leaf_request(lanes: int, address_width: int, leaf_lines: int) -> data.StructLayout:
    """The next request of a leaf: ``count`` of the ``lines`` that are left, from ``line`` on; ``ends``: it is the last one."""
    given = feed_leaf(lanes, address_width)
    return data.StructLayout(
        {
            "in_memory": 1,
            "unit": 1,
            "scratch": 1,
            "line": given["line"].width,
            "lines": given["lines"].width,
            "count": memory_burst(long_leaf_lines(leaf_lines)).bit_length(),
            "ends": 1,
        }
    )


def first_request(lanes: int, address_width: int, leaf_lines: int) -> data.StructLayout:
    """A leaf's first request; ``last``: of the job's last leaf; ``empty``: the leaf has no line."""
    request = leaf_request(lanes, address_width, leaf_lines)
    return data.StructLayout({"last": 1, "empty": 1, "request": request})


def _check(radix: Any, lanes: Any, leaf_lines: Any) -> None:
    check_power_of_two("Merge radix", radix, 2, 256)
    check_power_of_two("Lanes", lanes, 2, 64)
    check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)


class FirstRequests(Block):
    """Gives each leaf of a job with its first request, and the next leaf in the same cycle.

    Parameters
    ----------
    radix, lanes, leaf_lines, address_width : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.

    Members
    -------
    leaves : In(stream(feed_leaf))
        Leaves 0, 1, ... of one job after another.
    past_first : In(1)
        The first leaf is being visited: what is asked about is the one behind it.
    available : Out(1), first : Out(first_request)
        Whether that leaf has come, and what it begins with.
    take : In(1)
        The first leaf has been visited. Only while it is there.

    Timing
    ------
    A leaf is ``available`` 1 cycle after it came with ``past_first``, 2 without; one leaf a cycle.
    """

    def __init__(self, *, radix: int, lanes: int, leaf_lines: int, address_width: int) -> None:
        _check(radix, lanes, leaf_lines)
        self.radix = radix
        self.lanes = lanes
        self.leaf_lines = leaf_lines
        self.address_width = address_width
        super().__init__(
            {
                "leaves": In(stream.Signature(feed_leaf(lanes, address_width))),
                "past_first": In(1),
                "available": Out(1),
                "first": Out(first_request(lanes, address_width, leaf_lines)),
                "take": In(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        burst, long_burst = memory_burst(self.leaf_lines), memory_burst(long_leaf_lines(self.leaf_lines))
        # Leaves come out of a block RAM, which answers late.
        m.submodules.entry = entry = StreamRegister(shape=self.leaves.payload.shape())
        m.submodules.front = front = StreamRegister(shape=self.first.shape())
        connect(m, flipped(self.leaves), entry.i)
        leaf, offered = entry.o.payload, front.i.payload
        number = Signal(range(self.radix))
        with m.If(front.i.valid & front.i.ready):
            m.d.sync += number.eq(Mux(leaf.last, 0, number + 1))
        whole = Mux(is_long(number), long_burst, burst)
        m.d.comb += [
            front.i.valid.eq(entry.o.valid),
            entry.o.ready.eq(front.i.ready),
            front.o.ready.eq(self.take),
            offered.last.eq(leaf.last),
            offered.empty.eq(leaf.lines == 0),
            offered.request.in_memory.eq(leaf.in_memory),
            *passed(leaf, offered.request, "unit scratch"),
            offered.request.line.eq(leaf.line),
            offered.request.lines.eq(leaf.lines),
            offered.request.count.eq(Mux(leaf.in_memory, Mux(leaf.lines < whole, leaf.lines, whole), 1)),
            offered.request.ends.eq(leaf.lines <= Mux(leaf.in_memory, whole, 1)),
            self.first.eq(Mux(self.past_first, offered, front.o.payload)),
            self.available.eq(Mux(self.past_first, entry.o.valid, front.o.valid)),
        ]
        return m


class NextRequest(Block):
    """What a leaf asks for after a request: the next line of the SRAM, the next burst of memory, or what is left of it.

    Parameters
    ----------
    lanes, leaf_lines, address_width : int
        See :class:`rtl.pe.gustavson.GustavsonPe`.

    Members
    -------
    made : In(leaf_request), long : In(1)
        The request that is made: one line of the SRAM, or of memory a whole burst or all that is left; the leaf has the line
        slots of a long one.
    following : Out(leaf_request)
        Means nothing where ``made.ends``.

    Timing
    ------
    Combinational.
    """

    latency = 0

    def __init__(self, *, lanes: int, leaf_lines: int, address_width: int) -> None:
        _check(2, lanes, leaf_lines)
        self.lanes = lanes
        self.leaf_lines = leaf_lines
        self.address_width = address_width
        request = leaf_request(lanes, address_width, leaf_lines)
        super().__init__({"made": In(request), "long": In(1), "following": Out(request)})

    def build(self, platform: Any) -> Module:
        m = Module()
        burst, long_burst = memory_burst(self.leaf_lines), memory_burst(long_leaf_lines(self.leaf_lines))
        made, following, lines, long = self.made, self.following, self.made.lines, self.long
        # What follows a whole burst: its size is offered beside the subtraction, not behind it.
        fewer = Mux(long, lines < 2 * long_burst, lines < 2 * burst)
        twice = Mux(long, lines == 2 * long_burst, lines == 2 * burst)
        rest = Mux(long, lines[: long_burst.bit_length() - 1], lines[: burst.bit_length() - 1])
        m.d.comb += [
            following.in_memory.eq(made.in_memory),
            *passed(made, following, "unit scratch"),
            following.line.eq(made.line + made.count),
            following.lines.eq(lines - made.count),
            following.count.eq(Mux(made.in_memory, Mux(fewer, rest, Mux(long, long_burst, burst)), 1)),
            following.ends.eq(Mux(made.in_memory, fewer | twice, lines == 2)),
        ]
        return m
