"""Streams fibers from memory through a region of the SRAM, ahead of the elements that merge them."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister
from ..storage import byte_count
from ..types import POSITION_WIDTH, leaf_item, read_request, sram_write

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
    beside what its own row holds, it goes on as it is and its element reads it from memory. So a leaf waits only for
    leaves before it, which wait for memory alone: nothing waits for itself, whatever the region's size. And a region
    too small to keep all elements at work costs nothing: a dispatcher with nothing to do gets what there is.

    Parameters
    ----------
    lanes, address_width : int
    line_address_width : int
        Bits of an SRAM line address.
    pending, rows : int
        Leaves and rows under way.

    Members
    -------
    base, lines : In
        The region; ``lines`` may be 0. Constant while not ``idle`` and while rows are under way.
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
    """

    def __init__(
        self, *, lanes: int, address_width: int, line_address_width: int, pending: int = 64, rows: int = 256
    ) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.line_address_width = line_address_width
        self.pending = pending
        self.rows = rows
        super().__init__(
            {
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "units": In(1),
                "origin": In(address_width),
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "streamed": Out(stream.Signature(leaf_item(address_width))),
                "row_done": In(1),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))),
                "idle": Out(1),
                "occupied": Out(line_address_width + 1),
                "event_stall": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "l": self.lanes,
            "a": self.address_width,
            "s": self.line_address_width,
            "n": self.pending,
            "r": self.rows,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        law = self.line_address_width
        shift = (self.lanes - 1).bit_length()
        count = law + 1  # bits of a number of lines
        item_shape = leaf_item(self.address_width)

        # How many lines cover the leaf, and whether the region can hold so many.
        sized_shape = data.StructLayout({"item": item_shape, "wanted": 1, "lines": count})
        m.submodules.came = came = StreamRegister(shape=item_shape)
        m.submodules.sized = sized = StreamQueue(shape=sized_shape, depth=2)
        given = came.o.payload.leaf
        covering = Signal(POSITION_WIDTH + 1 - shift)
        m.d.comb += [
            came.i.valid.eq(self.leaves.valid),
            came.i.payload.eq(self.leaves.payload),
            self.leaves.ready.eq(came.i.ready),
            covering.eq((given.length + given.position[:shift] + (self.lanes - 1)) >> shift),
            sized.i.valid.eq(came.o.valid),
            came.o.ready.eq(sized.i.ready),
            sized.i.payload.item.eq(came.o.payload),
            sized.i.payload.lines.eq(covering),
            sized.i.payload.wanted.eq(
                came.o.payload.present
                & given.in_memory
                & (~given.unit | self.units)
                & (given.length != 0)
                & (covering <= self.lines)
            ),
        ]

        pending_shape = data.StructLayout({"item": item_shape, "streamed": 1})
        m.submodules.decided = decided = StreamRegister(shape=pending_shape)
        m.submodules.pending = pending = StreamQueue(shape=pending_shape, depth=self.pending)
        connect(m, decided.o, pending.i)
        run_shape = data.StructLayout({"line": law, "lines": count})
        m.submodules.asked = asked = StreamQueue(shape=self.read_request.payload.shape(), depth=2)
        m.submodules.runs = runs = StreamQueue(shape=run_shape, depth=self.pending)
        m.submodules.row_lines = row_lines = StreamQueue(shape=count, depth=self.rows, block_memory=self.rows > 32)
        connect(m, flipped(self.read_request), asked.o)

        # Where they go if they are placed: behind those before, from the begin where the region's end is too near.
        spot_shape = data.StructLayout(
            {
                "sized": sized_shape,
                "after": law,  # where the lines before end, from `base`
                "to_end": count,  # lines from there to the region's end
                "place": law,
                "taken": count + 1,  # lines, with those skipped at the end
            }
        )
        spot = Signal(spot_shape)
        spot_valid = Signal()
        after = Signal(law)
        to_end = Signal(count)
        wraps = Signal()
        enter = Signal()
        anew = Signal()
        undo = Signal()
        coming = sized.o.payload
        m.d.comb += [
            wraps.eq(coming.lines > to_end),
            sized.o.ready.eq((~spot_valid | enter) & ~undo),
        ]
        with m.If(enter | ~spot_valid):
            m.d.sync += [
                spot_valid.eq(sized.o.valid & ~undo),
                spot.sized.eq(coming),
                spot.after.eq(after),
                spot.to_end.eq(to_end),
                spot.place.eq(Mux(wraps, 0, after)),
                spot.taken.eq(Mux(wraps, coming.lines + to_end, coming.lines)),
            ]
            with m.If(sized.o.valid & coming.wanted):
                m.d.sync += [
                    after.eq(Mux(wraps, coming.lines, after + coming.lines)),
                    to_end.eq(Mux(wraps, self.lines - coming.lines, to_end - coming.lines)),
                ]

        # Whether they are placed. Counts of free lines stand beside those of lines in use, so that one comparison does.
        item = spot.sized.item
        lines = spot.sized.lines
        taken = spot.taken
        used = self.occupied
        own = Signal(count)  # lines of the row in progress
        free = Signal(count)  # the region's, less those in use
        own_free = Signal(count)  # the region's, less the row's own
        freed = Signal(count)
        released = Signal(count)
        line = Signal(law)
        own_none = Signal(init=1)  # `own` is 0
        empty = Signal()  # `used` is 0; says so a cycle late
        quiet = Signal()  # no leaf waits to be taken; a cycle late in either way
        wanted = Signal()
        fits = Signal()
        will_fit = Signal()
        direct = Signal()
        placed = Signal()
        grown = Signal(count)
        m.d.comb += [
            wanted.eq(spot_valid & spot.sized.wanted),
            fits.eq(taken <= free),
            # With no line of its own yet, a row will have the whole region.
            will_fit.eq(own_none | (taken <= own_free)),
            direct.eq(~spot.sized.wanted | ~will_fit | (~fits & (used != 0) & quiet & ~decided.o.valid)),
            self.event_stall.eq(wanted & ~fits & ~direct),
            placed.eq(
                wanted
                & will_fit
                & fits
                & decided.i.ready
                & (row_lines.i.ready | ~item.leaf.last)
                & asked.i.ready
                & runs.i.ready
            ),
            enter.eq(placed | (spot_valid & direct & decided.i.ready & (row_lines.i.ready | ~item.leaf.last))),
            undo.eq(spot_valid & spot.sized.wanted & ((enter & ~placed) | anew)),
            # An empty region begins anew for a leaf that would meet its end.
            anew.eq(wanted & ~fits & empty & will_fit),
            grown.eq(Mux(placed, own + taken, own)),
            line.eq(self.base + spot.place),
            asked.i.valid.eq(placed),
            asked.i.payload.address.eq(self.origin + byte_count(item.leaf.position)),
            asked.i.payload.beats.eq(lines),
            runs.i.valid.eq(placed),
            runs.i.payload.line.eq(line),
            runs.i.payload.lines.eq(lines),
            row_lines.i.valid.eq(enter & item.leaf.last),
            row_lines.i.payload.eq(grown),
            row_lines.o.ready.eq(self.row_done),
            decided.i.valid.eq(enter),
            decided.i.payload.item.eq(item),
            decided.i.payload.streamed.eq(placed),
        ]
        with m.If(placed):
            m.d.comb += [
                decided.i.payload.item.leaf.in_memory.eq(0),
                decided.i.payload.item.leaf.position.eq(Cat(item.leaf.position[:shift], line)),
            ]
        with m.If(undo):
            m.d.sync += [after.eq(spot.after), to_end.eq(spot.to_end)]
        with m.If(anew):
            m.d.sync += [spot.place.eq(0), spot.taken.eq(lines), spot.after.eq(0), spot.to_end.eq(self.lines)]
            m.d.sync += [after.eq(lines), to_end.eq(self.lines - lines)]
        with m.If(empty & ~spot_valid & ~sized.o.valid):
            m.d.sync += [after.eq(0), to_end.eq(self.lines)]
        with m.If(enter):
            m.d.sync += [own.eq(Mux(item.leaf.last, 0, grown)), own_none.eq(item.leaf.last | (own_none & ~placed))]
        m.d.sync += [
            empty.eq((used == 0) & ~placed),
            quiet.eq((pending.level == 0) & ~decided.o.valid),
        ]
        with m.If(own_none & ~placed | (enter & item.leaf.last)):
            m.d.sync += own_free.eq(self.lines)
        with m.Elif(placed):
            m.d.sync += own_free.eq(own_free - taken)
        # Two registers, since the first one may become the output of a block RAM.
        m.d.sync += [released.eq(Mux(self.row_done, row_lines.o.payload, 0)), freed.eq(released)]
        with m.If(placed):
            m.d.sync += [used.eq(used - freed + taken), free.eq(free + freed - taken)]
        with m.Elif(empty):
            m.d.sync += free.eq(self.lines)
        with m.Else():
            m.d.sync += [used.eq(used - freed), free.eq(free + freed)]

        # Beats go to their lines as they come; `complete` leaves have all of theirs.
        write_shape = data.StructLayout({"write": self.sram_write.payload.shape(), "last": 1})
        m.submodules.writes = writes = StreamQueue(shape=write_shape, depth=2)
        index = Signal(count)
        run = runs.o.payload
        ends = index + 1 == run.lines
        moved = Signal()
        m.d.comb += [
            moved.eq(self.read_data.valid & runs.o.valid & writes.i.ready),
            self.read_data.ready.eq(runs.o.valid & writes.i.ready),
            runs.o.ready.eq(moved & ends),
            writes.i.valid.eq(moved),
            writes.i.payload.write.address.eq(run.line + index),
            writes.i.payload.write.mask.eq(~0),
            writes.i.payload.write.line.eq(self.read_data.payload),
            writes.i.payload.last.eq(ends),
            self.sram_write.valid.eq(writes.o.valid),
            self.sram_write.payload.eq(writes.o.payload.write),
            writes.o.ready.eq(self.sram_write.ready),
        ]
        with m.If(moved):
            m.d.sync += index.eq(Mux(ends, 0, index + 1))

        complete = Signal(range(self.pending + 1))
        completed = Signal()
        out = self.streamed
        head = pending.o.payload
        m.d.comb += [
            completed.eq(writes.o.valid & writes.o.ready & writes.o.payload.last),
            out.valid.eq(pending.o.valid & (~head.streamed | (complete != 0))),
            out.payload.eq(head.item),
            pending.o.ready.eq(out.valid & out.ready),
            self.idle.eq(~came.o.valid & ~sized.o.valid & ~spot_valid & ~decided.o.valid & (pending.level == 0)),
        ]
        m.d.sync += complete.eq(complete + completed - (out.valid & out.ready & head.streamed))
        return m
