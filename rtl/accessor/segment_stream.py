"""Streams fibers from memory through a region of the SRAM, ahead of the elements that merge them."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamRegister
from ..types import POSITION_WIDTH, read_request, sram_write
from .lookup import leaf_item

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
        One a cycle, at least 2 cycles later.
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
        self, *, lanes: int, address_width: int, line_address_width: int, pending: int = 64, rows: int = 128
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
        m.submodules.sized = sized = StreamRegister(shape=sized_shape)
        given = self.leaves.payload.leaf
        covering = Signal(POSITION_WIDTH + 1 - shift)
        m.d.comb += [
            covering.eq((given.length + given.position[:shift] + (self.lanes - 1)) >> shift),
            sized.i.valid.eq(self.leaves.valid),
            self.leaves.ready.eq(sized.i.ready),
            sized.i.payload.item.eq(self.leaves.payload),
            sized.i.payload.lines.eq(covering),
            sized.i.payload.wanted.eq(
                self.leaves.payload.present
                & given.in_memory
                & (~given.unit | self.units)
                & (given.length != 0)
                & (covering <= self.lines)
            ),
        ]

        pending_shape = data.StructLayout({"item": item_shape, "streamed": 1})
        m.submodules.pending = pending = StreamQueue(shape=pending_shape, depth=self.pending)

        # Where they go. An empty region begins anew, so that a long leaf does not meet its end.
        item = sized.o.payload.item
        lines = sized.o.payload.lines
        used = self.occupied
        own = Signal(count)  # lines of the row in progress
        following = Signal(law)  # first line, from `base`, after those in use
        start = Signal(law)
        place = Signal(law)
        wraps = Signal()
        taken = Signal(count + 1)
        wanted = Signal()
        fits = Signal()
        will_fit = Signal()
        direct = Signal()
        m.d.comb += [
            start.eq(Mux(used == 0, 0, following)),
            wraps.eq(start + lines > self.lines),
            place.eq(Mux(wraps, 0, start)),
            taken.eq(lines + Mux(wraps, self.lines - start, 0)),
            wanted.eq(sized.o.valid & sized.o.payload.wanted),
            fits.eq(taken + used <= self.lines),
            # With no line of its own yet, a row will have the whole region.
            will_fit.eq((own == 0) | (taken + own <= self.lines)),
            direct.eq(~sized.o.payload.wanted | ~will_fit | (~fits & (pending.level == 0))),
            self.event_stall.eq(wanted & ~fits & ~direct),
        ]

        run_shape = data.StructLayout({"line": law, "lines": count})
        m.submodules.asked = asked = StreamQueue(shape=self.read_request.payload.shape(), depth=2)
        m.submodules.runs = runs = StreamQueue(shape=run_shape, depth=self.pending)
        m.submodules.row_lines = row_lines = StreamQueue(shape=count, depth=self.rows)
        connect(m, flipped(self.read_request), asked.o)
        enter = Signal()
        placed = Signal()
        grown = Signal(count)
        line = Signal(law)
        m.d.comb += [
            enter.eq(
                sized.o.valid
                & pending.i.ready
                & (row_lines.i.ready | ~item.leaf.last)
                & (direct | (fits & asked.i.ready & runs.i.ready))
            ),
            placed.eq(enter & ~direct),
            sized.o.ready.eq(enter),
            grown.eq(own + Mux(placed, taken, 0)),
            line.eq(self.base + place),
            asked.i.valid.eq(placed),
            asked.i.payload.address.eq(self.origin + (item.leaf.position << 3)),
            asked.i.payload.beats.eq(lines),
            runs.i.valid.eq(placed),
            runs.i.payload.line.eq(line),
            runs.i.payload.lines.eq(lines),
            row_lines.i.valid.eq(enter & item.leaf.last),
            row_lines.i.payload.eq(grown),
            row_lines.o.ready.eq(self.row_done),
            pending.i.valid.eq(enter),
            pending.i.payload.item.eq(item),
            pending.i.payload.streamed.eq(placed),
        ]
        with m.If(placed):
            m.d.comb += [
                pending.i.payload.item.leaf.in_memory.eq(0),
                pending.i.payload.item.leaf.position.eq(Cat(item.leaf.position[:shift], line)),
            ]
            m.d.sync += following.eq(Mux(place + lines == self.lines, 0, place + lines))
        with m.If(enter):
            m.d.sync += own.eq(Mux(item.leaf.last, 0, grown))
        m.d.sync += used.eq(used + Mux(placed, taken, 0) - Mux(self.row_done, row_lines.o.payload, 0))

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
            self.idle.eq(~sized.o.valid & (pending.level == 0)),
        ]
        m.d.sync += complete.eq(complete + completed - (out.valid & out.ready & head.streamed))
        return m
