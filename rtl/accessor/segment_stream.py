"""Streams fibers from memory through a region of the SRAM, ahead of the elements that merge them."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..leaf_lines import short_leaf_lines
from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.stream import StreamQueue, StreamRegister
from ..storage import byte_count
from ..types import POSITION_WIDTH, leaf_item, record_request, sram_write
from .leaf_sizer import LeafSizer
from .region_lines import RegionLines
from .region_places import RegionPlaces
from .run_writer import RunWriter

__all__ = ["SegmentStreamer"]


class SegmentStreamer(Block):
    """Gives each leaf that lies in memory a run of lines in a circular region and fills them (Tailors 3.3, OWFill).

    Stands between lookup and dispatcher::

        leaves --> size --> place --+--> pending (in order) ------------------> streamed
                                    +--> read_request      read_data --> SRAM ----^ all lines written
                            rows of line counts <-- row_done

    For B the region is the FIFO-managed region in buffering mode and the whole partition in streaming mode (HYTE
    section 6.3: circular, whole segments are evicted). For partial rows of C it is C's partition, each of them a row
    by itself. A leaf's lines are asked for when they are placed, so that as many are under way as the region and
    ``pending`` hold. The leaf goes on when all of them can be read; its ``position`` is then one in the SRAM. Leaves
    that are in the SRAM already, that are ``unit`` or empty pass unchanged, in order. Which lines of memory are read
    does not depend on where a leaf is read from: those that cover it, each once.

    Lines are overwritten in the order of the rows: all of a row's are free when its fiber has left. A leaf that does not
    fit waits for the rows before it while there are leaves in ``pending`` to go on with; then, or when it would not fit
    beside what its own row holds, it goes on as it is and its element reads it from memory. Once a leaf of a row has
    found no lines, short ones behind it wait for no row: their element reads them about as fast. So a leaf waits only
    for leaves before it, which wait for memory alone: nothing waits for itself, whatever the region's size. And a
    region too small to keep all elements at work costs nothing: a dispatcher with nothing to do gets what there is.

    Parameters
    ----------
    lanes, address_width : int
    line_address_width : int
        Bits of an SRAM line address.
    leaf_lines : int
        Line slots of a leaf in its element, power of two: it tells which leaves are short.
    pending, rows : int
        Leaves and rows under way.

    Members
    -------
    base, lines : In
        The region. ``lines`` may be 0. Constant while not ``idle`` and while rows are under way.
    units : In(1)
        ``unit`` leaves are streamed as well.
    origin : In(address_width)
        Byte address from which the leaves' positions in memory count.
    leaves : In(stream), streamed : Out(stream)
        One a cycle, at least 5 cycles later.
    row_done : In(1)
        Pulse: the fiber of the oldest row under way is complete, no line of it will be read again.
    read_request, read_data : a client port of the memory engine
    sram_write : Out(stream)
        A write port of the banked SRAM. A leaf goes on in the cycle after its last line was granted.
    idle : Out(1)
        No leaf is inside. Rows may still hold lines.
    occupied : Out(line_address_width + 1)
        Lines of the region that are not free, those skipped at its end included.
    event_stall : Out(1)
        A leaf waits for lines of the region while leaves before it wait to be taken.

    Timing
    ------
    Two cycles for a leaf that is in the SRAM, else those of memory and four more; one leaf, one line a cycle.
    """

    def __init__(
        self,
        *,
        lanes: int,
        address_width: int,
        line_address_width: int,
        leaf_lines: int,
        pending: int = 64,
        rows: int = 256,
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, POSITION_WIDTH)
        self.leaf_lines = check_power_of_two("Leaf lines", leaf_lines, 1, 64)
        self.pending = check_integer("Pending leaves", pending, 1, 1 << 16)
        self.rows = check_integer("Rows", rows, 1, 1 << 16)
        super().__init__(
            {
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "units": In(1),
                "origin": In(address_width),
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "streamed": Out(stream.Signature(leaf_item(address_width))),
                "row_done": In(1),
                "read_request": Out(stream.Signature(record_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))),
                "idle": Out(1),
                "occupied": Out(line_address_width + 1),
                "event_stall": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        law = self.line_address_width
        shift = (self.lanes - 1).bit_length()
        m.submodules.sizer = sizer = LeafSizer(
            lanes=self.lanes,
            address_width=self.address_width,
            line_address_width=law,
            short_lines=short_leaf_lines(self.leaf_lines),
        )
        m.submodules.places = places = RegionPlaces(address_width=self.address_width, line_address_width=law)
        m.submodules.region = region = RegionLines(line_address_width=law, rows=self.rows)
        m.submodules.writer = writer = RunWriter(lanes=self.lanes, line_address_width=law, pending=self.pending)
        pending_shape = data.StructLayout({"item": leaf_item(self.address_width), "streamed": 1})
        m.submodules.decided = decided = StreamRegister(shape=pending_shape)
        m.submodules.pending = pending = StreamQueue(
            shape=pending_shape, depth=self.pending, block_memory=self.pending > 32
        )
        m.submodules.asked = asked = StreamQueue(shape=self.read_request.payload.shape(), depth=2)
        connect(m, flipped(self.leaves), sizer.leaves)
        connect(m, sizer.sized, places.sized)
        connect(m, decided.o, pending.i)
        connect(m, flipped(self.read_request), asked.o)
        connect(m, flipped(self.read_data), writer.beats)
        connect(m, flipped(self.sram_write), writer.sram_write)

        # Whether the leaf in front is placed.
        spot = places.places.payload
        item, lines = spot.sized.item, spot.sized.lines
        line = Signal(law)
        quiet = Signal()  # no leaf waits to be taken; a cycle late in either way
        wanted = Signal()
        starved = Signal()  # the leaf in front finds no lines, and does not wait for any
        row_starved = Signal()  # so did one of its row before it
        direct = Signal()
        placed = Signal()
        goes = Signal()  # but for what it would wait for to be placed
        m.d.comb += [
            *passed(self, sizer, "units lines"),
            *passed(self, places, "lines"),
            *passed(self, region, "lines row_done"),
            *passed(region, places, "empty"),
            region.taken.eq(spot.taken),
            region.last.eq(item.leaf.last),
            wanted.eq(places.places.valid & spot.sized.wanted),
            starved.eq(
                ~region.fits & (region.used != 0) & ((quiet & ~decided.o.valid) | (row_starved & spot.sized.short))
            ),
            direct.eq(~spot.sized.wanted | ~region.will_fit | starved),
            goes.eq(places.places.valid & decided.i.ready & (region.row_ready | ~item.leaf.last)),
            placed.eq(wanted & region.will_fit & region.fits & goes & asked.i.ready & writer.runs.ready),
            region.placed.eq(placed),
            region.enter.eq(placed | (direct & goes)),
            places.places.ready.eq(region.enter),
            places.used.eq(placed),
            # An empty region begins anew for a leaf that would meet its end.
            places.anew.eq(wanted & ~region.fits & region.empty & region.will_fit),
            self.occupied.eq(region.used),
            self.event_stall.eq(wanted & ~region.fits & ~direct),
            line.eq(self.base + spot.place),
            asked.i.valid.eq(placed),
            asked.i.payload.address.eq(self.origin + byte_count(item.leaf.position)),
            asked.i.payload.beats.eq(lines),
            asked.i.payload.plain.eq(item.leaf.unit),
            writer.runs.valid.eq(placed),
            writer.runs.payload.line.eq(line),
            writer.runs.payload.lines.eq(lines),
            decided.i.valid.eq(region.enter),
            decided.i.payload.item.eq(item),
            decided.i.payload.streamed.eq(placed),
        ]
        with m.If(placed):
            m.d.comb += [
                decided.i.payload.item.leaf.in_memory.eq(0),
                decided.i.payload.item.leaf.position.eq(Cat(item.leaf.position[:shift], line)),
            ]
        with m.If(region.enter):
            m.d.sync += row_starved.eq(~item.leaf.last & (row_starved | (wanted & starved)))
        m.d.sync += quiet.eq((pending.level == 0) & ~decided.o.valid)

        # Leaves go on in order; `complete` of those in front have all of their lines.
        complete = Signal(range(self.pending + 1))
        some = Signal()  # `complete` is not 0
        taken = Signal()  # one of them goes
        out = self.streamed
        head = pending.o.payload
        m.d.comb += [
            out.valid.eq(pending.o.valid & (~head.streamed | some)),
            taken.eq(out.valid & out.ready & head.streamed),
            out.payload.eq(head.item),
            pending.o.ready.eq(out.valid & out.ready),
            self.idle.eq(sizer.idle & ~places.places.valid & ~decided.o.valid & (pending.level == 0)),
        ]
        # Whether the leaf in front is streamed is known near the end of a cycle: it enables, and no sum waits for it.
        with m.If(writer.written ^ taken):
            m.d.sync += [
                complete.eq(Mux(writer.written, complete + 1, complete - 1)),
                some.eq(writer.written | (complete != 1)),
            ]
        return m
