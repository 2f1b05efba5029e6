"""Accessor of C: brings partial rows back, appends what the rows yield, and keeps their positions."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue
from ..types import (
    POSITION_WIDTH,
    fiber_word,
    partial_fiber,
    read_request,
    scratch_fiber,
    sram_response,
    sram_write,
    tile,
    write_beat,
    write_request,
)
from .fiber_appender import FiberAppender
from .pair_reader import PairReader
from .partial_store import PartialStore
from .scratch_writer import ScratchWriter
from .word_writer import WordWriter

__all__ = ["AccessorC", "c_regions"]

# Client ports for writing, in the order of AccessorC.write_request.
WRITE_CLIENTS = ("rows", "partials", "scratch", "positions")


def c_regions(address_width: int) -> data.StructLayout:
    """Byte addresses of C's arrays in memory and the room that each region has, all bus-aligned."""
    return data.StructLayout(
        {
            "pointers": address_width,
            "elements": address_width,
            "finished": address_width,
            "partial0": address_width,
            "partial1": address_width,
            "tile_positions": address_width,
            "scratch": address_width,
            "elements_bytes": address_width,
            "finished_bytes": address_width,
            "partial_bytes": address_width,
            "scratch_bytes": address_width,
        }
    )


class AccessorC(Block):
    """In streaming mode partial rows leave after each k step and re-enter at the next.

    The tiles of a k step write to one of two partial regions in turn, each with a bump pointer, while the rows of the
    step before are read from the other: tiles are visited in the same order in every step. Rows of the last k step
    go to the final compressed sparse rows, or, while C is cut along j, to a region of finished tiles from which the
    assembly pass makes the rows. ``size_i + 1`` positions go with each tile.

    In buffering mode, for orders with k innermost, partial rows stay in the C partition (:class:`PartialStore`); those
    that may not fit go to the partial regions as above, and no positions leave the chip.

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
    slots : int
        Slots of scratch memory, power of two: long rows that may be under way.

    Members
    -------
    tile : In(stream)
        Taken when everything of the tile before has been handed to the memory engine.
    regions : In(c_regions)
        Where C's arrays lie and how large they are; constant during a run.
    whole_rows : In(1)
        C is not cut along j, or the assembly pass is running: rows of the last k step are final.
    collected, scratch, first, slot, bound : In(stream), In, In, In, In
        Fiber words with what their ticket says: those of rows in row order, those of scratch fibers in theirs, a word of
        one or the other at a time.
    buffering, base, lines : In
        Mode and partition of C.
    sram_write, sram_request, sram_response
        Ports of the banked SRAM.
    occupied : Out
        SRAM lines in use.
    partials : Out(stream), partial_region : Out(address_width - 3)
        The rows' partial fibers, with positions from ``partial_region`` on, which is in elements from byte address 0.
    scratch_results : Out(stream)
        Each scratch fiber, once it is in memory (:class:`ScratchWriter`).
    read_request, read_data
        A client port of the memory engine, for positions of partial rows.
    write_request, write_data : Out(stream).array(4)
        Client ports of the memory engine, in the order of ``WRITE_CLIENTS``: rows, partials, scratch, positions.
    written : In(4)
        The memory engine has finished what each write client gave it.
    scratch_retired : In(1)
        It has finished one more request of the client ``scratch``.
    restart : In(1)
        Pulse while ``drained``: rows are appended from the begin of their region again.
    drained : Out(1)
        Nothing is outstanding, everything is in memory.
    rows_left, stored : Out(POSITION_WIDTH)
        Rows of the present tile still to come; elements of finished rows so far.
    overflow : Out(3), needed : Out(address_width)
        The region of rows, partials, scratch (bits 0, 1, 2) is too small; it needs that many bytes at least.
    event_stall : Out(1)
        A fiber word waits.
    """

    def __init__(
        self, *, lanes: int, address_width: int, line_address_width: int, burst_beats: int, slots: int
    ) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.line_address_width = line_address_width
        self.burst_beats = burst_beats
        self.slots = slots
        super().__init__(
            {
                "tile": In(stream.Signature(tile())),
                "regions": In(c_regions(address_width)),
                "whole_rows": In(1),
                "collected": In(stream.Signature(fiber_word(lanes))),
                "scratch": In(1),
                "first": In(1),
                "slot": In(range(max(2, slots))),
                "bound": In(POSITION_WIDTH),
                "partials": Out(stream.Signature(partial_fiber())),
                "partial_region": Out(address_width - 3),
                "scratch_results": Out(stream.Signature(scratch_fiber(slots))),
                "buffering": In(1),
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "occupied": Out(line_address_width + 1),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "write_request": Out(stream.Signature(write_request(address_width))).array(4),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))).array(4),
                "written": In(4),
                "scratch_retired": In(1),
                "restart": In(1),
                "drained": Out(1),
                "rows_left": Out(POSITION_WIDTH),
                "stored": Out(POSITION_WIDTH),
                "overflow": Out(3),
                "needed": Out(address_width),
                "event_stall": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "l": self.lanes,
            "a": self.address_width,
            "s": self.line_address_width,
            "b": self.burst_beats,
            "n": self.slots,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, aw = self.lanes, self.address_width
        sizes = {"lanes": lanes, "address_width": aw, "burst_beats": self.burst_beats}
        regions = self.regions
        m.submodules.rows = rows = FiberAppender(**sizes)
        m.submodules.partials_out = partials = FiberAppender(**sizes)
        m.submodules.scratch_out = scratch = ScratchWriter(slots=self.slots, **sizes)
        m.submodules.positions = positions = WordWriter(**sizes)
        m.submodules.pair_reader = pairs = PairReader(lanes=lanes, address_width=aw)
        m.submodules.partial_pairs = queue = StreamQueue(shape=self.partials.payload.shape(), depth=16)
        m.submodules.partial_store = store = PartialStore(lanes=lanes, line_address_width=self.line_address_width)
        connect(m, flipped(self.sram_request), store.sram_request)
        m.d.comb += store.sram_response.eq(self.sram_response)
        for n in range(2):
            connect(m, flipped(self.sram_write[n]), store.sram_write[n])
        for n, client in enumerate((rows, partials, scratch, positions)):
            connect(m, flipped(self.write_request[n]), client.write_request)
            connect(m, flipped(self.write_data[n]), client.write_data)
        # Pointers alone are read, so the reader's second port stays unused.
        connect(m, flipped(self.read_request), pairs.read_request[0])
        connect(m, flipped(self.read_data), pairs.read_data[0])

        want = self.tile.payload
        take = Signal()
        parity = Signal()  # which partial region this k step writes
        to_rows = Signal()  # this tile's rows are not partial
        begun = Signal(init=1)
        base_sent = Signal(init=1)
        base_read = Signal(init=1)  # the word that it replaces is no longer needed
        flush_due = Signal()
        asked_partials = Signal(init=1)
        first_row = Signal(POSITION_WIDTH)
        position_index = Signal(POSITION_WIDTH)
        count = Signal(POSITION_WIDTH)
        remaining = self.rows_left
        rows_due = Signal()  # remaining != 0
        settled = Signal()
        on_chip = Signal()  # this tile's rows stay on chip as far as they fit
        m.d.comb += [
            store.base.eq(self.base),
            store.lines.eq(self.lines),
            store.half.eq(parity),
            store.rows.eq(count),
            store.bound.eq(self.bound),
            store.spill_position.eq(partials.position),
            store.read_rows.eq(count),
            self.occupied.eq(store.occupied),
        ]
        # The store sees the tile's size and half a cycle after the tile has been taken.
        m.d.sync += [
            store.begin.eq(take & self.buffering & ~want.last_k),
            store.read_begin.eq(take & self.buffering & want.partial_in),
        ]
        m.d.comb += [
            settled.eq(~rows_due & begun & base_sent & ~flush_due & asked_partials),
            self.drained.eq(
                settled
                & rows.idle
                & partials.idle
                & scratch.idle
                & positions.idle
                & self.written.all()
                & (queue.level == 0)
                & store.idle
            ),
            self.tile.ready.eq(self.drained),
            take.eq(self.tile.valid & self.tile.ready),
            self.stored.eq(rows.position),
            rows.region.eq(Mux(self.whole_rows, regions.elements, regions.finished)),
            rows.capacity.eq(Mux(self.whole_rows, regions.elements_bytes, regions.finished_bytes)),
            partials.region.eq(Mux(parity, regions.partial1, regions.partial0)),
            partials.capacity.eq(regions.partial_bytes),
            self.partial_region.eq(Mux(parity, regions.partial0, regions.partial1) >> 3),
            scratch.region.eq(regions.scratch),
            scratch.capacity.eq(regions.scratch_bytes),
            rows.restart.eq(self.restart),
            partials.restart.eq(take & want.k_step),
        ]
        with m.If(take):
            m.d.sync += [
                remaining.eq(want.size_i),
                rows_due.eq(want.size_i != 0),
                count.eq(want.size_i),
                position_index.eq(want.position_index),
                to_rows.eq(want.last_k),
                on_chip.eq(self.buffering & ~want.last_k),
                begun.eq(self.buffering & ~want.last_k),
                base_sent.eq(self.buffering & ~want.last_k),
                asked_partials.eq(~want.partial_in | self.buffering),
                base_read.eq(~want.partial_in | self.buffering),
                first_row.eq(Mux(want.last_k & self.whole_rows, want.begin_i, want.position_index)),
            ]
            with m.If(want.k_step):
                m.d.sync += parity.eq(~parity)

        # Positions: where the tile's first row begins, then each row's end. They replace those of the k step before, of which a
        # row's two are read before it can end; only the first would be replaced without waiting for any row.
        m.d.comb += [
            positions.run.valid.eq(~begun),
            positions.run.payload.address.eq(
                Mux(to_rows & self.whole_rows, regions.pointers, regions.tile_positions) + (first_row << 2)
            ),
            positions.run.payload.count.eq(count + 1),
        ]
        with m.If(positions.run.valid & positions.run.ready):
            m.d.sync += begun.eq(1)
        row_end = Mux(to_rows, rows.ends.payload, partials.ends.payload)
        row_ended = Mux(to_rows, rows.ends.valid, partials.ends.valid)
        with m.If(begun & ~base_sent):
            m.d.comb += [
                positions.words.valid.eq(base_read),
                positions.words.payload.eq(Mux(to_rows, rows.position, partials.position)),
            ]
            with m.If(base_read & positions.words.ready):
                m.d.sync += base_sent.eq(1)
        with m.Elif(on_chip):
            # The store counts rows itself; ends of spilled rows say nothing new.
            m.d.comb += partials.ends.ready.eq(1)
            with m.If(store.row_done):
                m.d.sync += [remaining.eq(remaining - 1), rows_due.eq(remaining != 1)]
                with m.If(remaining == 1):
                    m.d.sync += flush_due.eq(1)
        with m.Elif(base_sent & rows_due):
            m.d.comb += [
                positions.words.valid.eq(row_ended),
                positions.words.payload.eq(row_end),
                rows.ends.ready.eq(to_rows & positions.words.ready),
                partials.ends.ready.eq(~to_rows & positions.words.ready),
            ]
            with m.If(positions.words.valid & positions.words.ready):
                m.d.sync += [remaining.eq(remaining - 1), rows_due.eq(remaining != 1)]
                with m.If(remaining == 1):
                    m.d.sync += flush_due.eq(1)
        with m.If(flush_due):
            m.d.comb += [rows.flush.eq(to_rows), partials.flush.eq(~to_rows), store.flush.eq(on_chip)]
            m.d.sync += flush_due.eq(0)

        # Partial rows of the k step before.
        m.d.comb += [
            pairs.run.valid.eq(~asked_partials),
            pairs.run.payload.row.eq(position_index),
            pairs.run.payload.rows.eq(count),
            pairs.run.payload.single.eq(1),
            pairs.run.payload.pointers.eq(regions.tile_positions),
            queue.i.valid.eq(pairs.pairs.valid),
            queue.i.payload.in_memory.eq(1),
            queue.i.payload.position.eq(pairs.pairs.payload.begin),
            queue.i.payload.length.eq(pairs.pairs.payload.end - pairs.pairs.payload.begin),
            pairs.pairs.ready.eq(queue.i.ready),
        ]
        with m.If(pairs.run.valid & pairs.run.ready):
            m.d.sync += asked_partials.eq(1)
        with m.If(pairs.pairs.valid & pairs.pairs.ready):
            m.d.sync += base_read.eq(1)

        with m.If(self.buffering):
            m.d.comb += [
                self.partials.valid.eq(store.partials.valid),
                self.partials.payload.eq(store.partials.payload),
                store.partials.ready.eq(self.partials.ready),
            ]
        with m.Else():
            m.d.comb += [
                self.partials.valid.eq(queue.o.valid),
                self.partials.payload.eq(queue.o.payload),
                queue.o.ready.eq(self.partials.ready),
            ]

        # Fibers go where their ticket says.
        word = self.collected
        connect(m, scratch.results, flipped(self.scratch_results))
        m.d.comb += [
            rows.words.payload.eq(word.payload),
            partials.words.payload.eq(word.payload),
            scratch.words.payload.eq(word.payload),
            scratch.first.eq(self.first),
            scratch.slot.eq(self.slot),
            scratch.retired.eq(self.scratch_retired),
        ]
        with m.If(self.scratch):
            m.d.comb += [scratch.words.valid.eq(word.valid), word.ready.eq(scratch.words.ready)]
        with m.Elif(to_rows):
            m.d.comb += [rows.words.valid.eq(word.valid & base_sent), word.ready.eq(rows.words.ready & base_sent)]
        with m.Elif(on_chip):
            m.d.comb += [
                store.words.valid.eq(word.valid & ~store.begin),
                word.ready.eq(store.words.ready & ~store.begin),
            ]
        with m.Else():
            m.d.comb += [
                partials.words.valid.eq(word.valid & base_sent),
                word.ready.eq(partials.words.ready & base_sent),
            ]
        m.d.comb += store.words.payload.eq(word.payload)
        with m.If(on_chip):
            m.d.comb += [
                partials.words.valid.eq(store.spilled.valid),
                partials.words.payload.eq(store.spilled.payload),
                store.spilled.ready.eq(partials.words.ready),
            ]
        m.d.comb += [
            self.overflow.eq((scratch.overflow << 2) | (partials.overflow << 1) | rows.overflow),
            self.needed.eq(Mux(rows.overflow, rows.needed, Mux(partials.overflow, partials.needed, scratch.needed))),
            self.event_stall.eq(word.valid & ~word.ready),
        ]
        return m
