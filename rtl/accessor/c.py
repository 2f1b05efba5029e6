"""Accessor of C: brings partial rows back, appends what the rows yield, and keeps their positions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import chosen, passed
from ..lib.signals import signals
from ..lib.unit import Fault, ReadClient, Unit, WriteClient, word_client
from ..storage import COORDINATE_WIDTH, position_width
from ..types import (
    MOST_PARTS,
    POSITION_WIDTH,
    fiber_word,
    partial_fiber,
    read_request,
    scratch_fiber,
    scratch_places,
    sram_response,
    sram_write,
    tile,
    write_beat,
    write_request,
)
from .c_regions import c_regions, give_regions
from .fiber_appender import FiberAppender
from .fiber_switch import FiberSwitch
from .partial_rows import PartialRows
from .partial_store import PartialStore
from .row_parts import RowParts
from .scratch_writer import ScratchWriter
from .tile_positions import TilePositions

__all__ = ["AccessorC"]


class AccessorC(Unit):
    """Writes the rows of C; partial rows wait in memory or on chip for the next k step.

    In streaming mode partial rows leave after each k step and come back at the next. The tiles of a k step write to
    one of two partial regions in turn, each with a bump pointer, while the rows of the step before are read from the
    other: tiles are visited in the same order in every step. Rows of the last k step go to the final compressed
    sparse rows, or, while C is cut along j, to a region of finished tiles from which the assembly pass makes the
    rows. ``size_i + 1`` positions go with each tile.

    With ``joined`` each k step but the last writes the parts of rows that it makes to the first partial region, one step
    behind the other, and their positions, counted from 1, to the second one; the last step gets all parts of its rows back
    (:class:`RowParts`). Tiles without work are not visited, so nothing of theirs moves.

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
    scratch_slots : int
        Slots of scratch memory, power of two: long rows that may be under way.
    joins : bool
        Rows can be ``joined``; without, the members ``joined`` and ``part_words`` are not there.
    packed : str, optional
        Value type of packed records, of which C's nonzeros are to be made. Other regions keep elements as they are on chip.
    converts : bool
        Final rows can be converted; without, the members for it are not there.

    Members
    -------
    tile : In(stream)
        Taken when everything of the tile before has been handed to the memory engine.
    regions : In(c_regions)
        Where C's arrays lie and how large they are; constant during a run.
    coordinate_bits : In
        With ``packed``: of C's records. Constant during a run.
    whole_rows : In(1)
        C is not cut along j, or the assembly pass is running: rows of the last k step are final.
    converted : In(1), to_conversion : Out(stream(fiber_word))
        Final rows leave here, in order, and write no positions. Constant during a run.
    conversion_idle : In(1), conversion_flush : Out(1)
        All final rows are in memory, or more are to come; no tile is in progress.
    joined : In(1), part_words : In(POSITION_WIDTH)
        Parts of rows are joined in the last k step; words from one step's positions to the next one's. Constant during a run.
    collected, scratch, first, slot, bound : In(stream), In, In, In, In
        Fiber words with what their ticket says: those of rows in row order, those of scratch fibers in theirs, a word of
        one or the other at a time.
    buffering, base, lines : In
        Mode of C; its partition for partial rows.
    scratch_base, scratch_lines, merged_out : In, scratch_open, scratch_places : Out
        As :class:`ScratchWriter` has them; the first two are its partition for scratch fibers.
    sram_write, sram_request, sram_response
        Ports of the banked SRAM.
    occupied : Out
        SRAM lines in use.
    partials : Out(stream), partial_region : Out(position_width)
        The rows' partial fibers, with positions from ``partial_region`` on, which is in elements from byte address 0.
    scratch_results : Out(stream)
        Each scratch fiber, once it can be read back (:class:`ScratchWriter`).
    read_request, read_data
        A client port of the memory engine, for positions of partial rows.
    write_request, write_data : Out(stream).array(4)
        Client ports of the memory engine, in the order of ``WRITERS``: rows, partials, scratch, positions.
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

    Timing: a fiber word a cycle; a tile begins when everything of the one before is in memory.
    """

    READERS = (ReadClient("c_positions", 16, "read_c_meta", turn=2),)
    WRITERS = (
        WriteClient("c_rows", "write_c_data"),
        WriteClient("c_partials", "write_c_data"),
        WriteClient("c_scratch", "write_c_data", part="write_scratch"),
        word_client("c_positions", "write_c_meta"),
    )

    def __init__(
        self,
        *,
        lanes: int,
        address_width: int,
        line_address_width: int,
        burst_beats: int,
        scratch_slots: int,
        joins: bool = False,
        packed: str | None = None,
        converts: bool = False,
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 30)
        self.burst_beats = check_power_of_two("Longest burst", burst_beats, 1, 256)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 32)
        self.joins = bool(joins)
        self.packed = packed
        self.converts = bool(converts)
        words = stream.Signature(fiber_word(lanes))
        converting = dict.fromkeys(("converted", "conversion_idle"), In(1))
        converting |= {"to_conversion": Out(words), "conversion_flush": Out(1)}
        super().__init__(
            {
                **(converting if self.converts else {}),
                **({} if packed is None else {"coordinate_bits": In(range(COORDINATE_WIDTH + 1))}),
                **({"joined": In(1), "part_words": In(POSITION_WIDTH)} if self.joins else {}),
                "tile": In(stream.Signature(tile())),
                "regions": In(c_regions(address_width)),
                "whole_rows": In(1),
                "collected": In(words),
                **dict.fromkeys(("scratch", "first"), In(1)),
                "slot": In(range(max(2, scratch_slots))),
                "bound": In(POSITION_WIDTH),
                "partials": Out(stream.Signature(partial_fiber())),
                "partial_region": Out(position_width(address_width)),
                "scratch_results": Out(stream.Signature(scratch_fiber(scratch_slots))),
                "buffering": In(1),
                **dict.fromkeys(("base", "scratch_base"), In(line_address_width)),
                **dict.fromkeys(("lines", "scratch_lines"), In(line_address_width + 1)),
                "scratch_open": Out(1),
                "scratch_places": Out(scratch_places(address_width, line_address_width, scratch_slots)),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(2),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "occupied": Out(line_address_width + 1),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
                "write_request": Out(stream.Signature(write_request(address_width))).array(4),
                "write_data": Out(stream.Signature(write_beat(64 * lanes))).array(4),
                "written": In(4),
                **dict.fromkeys(("merged_out", "scratch_retired", "restart"), In(1)),
                "drained": Out(1),
                "rows_left": Out(POSITION_WIDTH),
                "stored": Out(POSITION_WIDTH),
                "overflow": Out(3),
                "needed": Out(address_width),
                "event_stall": Out(1),
            }
        )

    def events(self) -> Mapping[str, Value]:
        return {"stall_write": self.event_stall, "buffer_peak_c": self.occupied}

    def faults(self) -> Sequence[Fault]:
        regions = ("c_elements", "c_partial", "c_scratch")
        return [Fault(f"{name}_overflow", self.overflow[n], self.needed) for n, name in enumerate(regions)]

    def activity(self) -> Mapping[str, Value]:
        return {"c_accessor": ~self.drained}

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, aw, law = self.lanes, self.address_width, self.line_address_width
        sizes = {"lanes": lanes, "address_width": aw, "burst_beats": self.burst_beats}
        want = self.tile.payload
        m.submodules.rows = rows = FiberAppender(packed=self.packed, **sizes)
        m.submodules.partials_out = partials = FiberAppender(**sizes)
        places = {"scratch_slots": self.scratch_slots, "line_address_width": law}
        m.submodules.scratch_out = scratch = ScratchWriter(**places, **sizes)
        m.submodules.positions = positions = TilePositions(**sizes)
        m.submodules.partial_rows = partial_rows = PartialRows(lanes=lanes, address_width=aw)
        m.submodules.partial_store = store = PartialStore(lanes=lanes, line_address_width=law)
        m.submodules.fibers = fibers = FiberSwitch(lanes=lanes, converts=self.converts)
        _connect_writers(m, self, (rows, partials, scratch, positions), fibers, store)

        # What the tile says, a cycle after it has been taken.
        take, parity = signals("take parity")  # parity: which partial region this k step writes
        to_rows = Signal()  # this tile's rows are not partial
        on_chip = Signal()  # this tile's rows stay on chip as far as they fit
        first_row, position_index, count = signals("first_row position_index count", POSITION_WIDTH)
        step = Signal(range(MOST_PARTS + 1))
        joined = self.joined if self.joins else Const(0, 1)
        parts = joined & ~to_rows  # this tile's rows are parts
        stays = self.buffering & ~want.last_k
        converting, converted_row, conversion_idle = _convert(m, self, fibers, positions, take)
        with m.If(take):
            m.d.sync += [
                count.eq(want.size_i),
                position_index.eq(want.position_index),
                step.eq(want.step),
                to_rows.eq(want.last_k),
                on_chip.eq(stays),
                first_row.eq(Mux(want.last_k & self.whole_rows, want.begin_i, want.position_index)),
            ]
            with m.If(want.k_step):
                m.d.sync += parity.eq(~parity & ~joined)
        m.d.sync += [store.tile_begins.eq(take & stays), store.read_begin.eq(take & self.buffering & want.partial_in)]
        back = _bring_back(m, self, partial_rows, store.partials, take & want.partial_in, step)
        idle = [conversion_idle, *(block.idle for block in (rows, partials, scratch, positions, store, *back))]
        # Said a cycle late: what it lets begin goes through long paths of its own.
        m.d.sync += self.drained.eq(positions.settled & Cat(*idle).all() & self.written.all() & ~take)
        m.d.comb += [
            self.tile.ready.eq(self.drained),
            take.eq(self.tile.valid & self.tile.ready),
            self.stored.eq(rows.position),
            *passed(positions, self, "rows_left"),
            rows.restart.eq(self.restart),
            partials.restart.eq(take & want.k_step),
            # Positions of rows in memory. Rows on chip are counted by the store; ends of spilled rows say nothing new.
            positions.start.eq(take),
            positions.rows.eq(want.size_i),
            positions.silent.eq(stays | converting),
            positions.first_row.eq(first_row + _before_step(m, self, take)),
            positions.first_free.eq(partial_rows.first_read),
            positions.row_done.eq(store.row_done | converted_row),
            store.flush.eq(positions.flush & on_chip),
        ]
        _count_ends(m, positions, rows, partials, to_rows, on_chip, parts)

        give_regions(m, self, (rows, partials, scratch, positions), to_rows, parity, joined)

        _connect_store(m, self, store, parity, partials.position)
        m.d.comb += [
            partial_rows.row.eq(position_index),
            partial_rows.positions.eq(self.regions.tile_positions),
            *(rows_of_tile.eq(count) for rows_of_tile in (partial_rows.rows, store.rows, store.read_rows)),
            *_ways(fibers, positions, store, to_rows, on_chip),
            self.event_stall.eq(self.collected.valid & ~self.collected.ready),
        ]
        return m


def _share_port(m: Module, rows: Any, scratch: Any, port: Any) -> None:
    """Lines of rows that stay on chip go first, but not before one of a scratch fiber that waits."""
    waits = Signal()
    m.d.sync += waits.eq(port.valid & ~port.ready & (waits | ~rows.valid))
    m.d.comb += chosen(rows.valid & ~waits, rows, scratch, port)


def _connect_writers(
    m: Module, owner: AccessorC, writers: Sequence[Any], fibers: FiberSwitch, store: PartialStore
) -> None:
    """Fibers go to the writers of rows, partial rows and scratch fibers, or on chip; these and that of positions, to memory."""
    for n, client in enumerate(writers):
        connect(m, flipped(owner.write_request[n]), client.write_request)
        connect(m, flipped(owner.write_data[n]), client.write_data)
    rows, partials, scratch, _ = writers
    connect(m, scratch.results, flipped(owner.scratch_results))
    m.d.comb += [
        *passed(owner, scratch, "first slot merged_out"),
        scratch.base.eq(owner.scratch_base),
        scratch.lines.eq(owner.scratch_lines),
        owner.scratch_open.eq(scratch.open),
        owner.scratch_places.eq(scratch.places),
        scratch.retired.eq(owner.scratch_retired),
    ]
    _share_port(m, store.sram_write[0], scratch.sram_write, owner.sram_write[0])
    m.d.comb += passed(owner, fibers, "scratch")
    connect(m, flipped(owner.collected), fibers.words)
    for words, writer in ((fibers.to_scratch, scratch), (fibers.to_rows, rows), (fibers.to_partials, partials)):
        connect(m, words, writer.words)
    connect(m, fibers.to_store, store.words)
    connect(m, store.spilled, fibers.spilled)


def _ways(
    fibers: FiberSwitch, positions: TilePositions, store: PartialStore, final_rows: Value, on_chip: Value
) -> Iterator[Any]:
    """Assignments that tell the switch where the tile's rows go, and when."""
    yield from (fibers.final_rows.eq(final_rows), fibers.on_chip.eq(on_chip))
    yield from (fibers.open.eq(positions.open), fibers.store_open.eq(~store.tile_begins))


def _connect_store(m: Module, owner: AccessorC, store: PartialStore, half: Value, spill_position: Value) -> None:
    """Gives rows that stay on chip their partition and its ports, and says where those that do not fit go in memory."""
    connect(m, flipped(owner.sram_request), store.sram_request)
    connect(m, flipped(owner.sram_write[1]), store.sram_write[1])
    m.d.comb += [
        *passed(owner, store, "base lines bound sram_response"),
        *passed(store, owner, "occupied"),
        store.half.eq(half),
        store.spill_position.eq(spill_position),
    ]


def _count_ends(
    m: Module, positions: TilePositions, rows: Any, partials: Any, to_rows: Value, on_chip: Value, parts: Value
) -> None:
    """Tells the positions of rows, or of partial rows; those of ``parts`` count from 1."""
    m.d.comb += [
        positions.base.eq(Mux(to_rows, rows.position, partials.position + parts)),
        positions.ends.valid.eq(Mux(to_rows, rows.ends.valid, partials.ends.valid)),
        positions.ends.payload.eq(Mux(to_rows, rows.ends.payload, partials.ends.payload + parts)),
        rows.ends.ready.eq(to_rows & positions.ends.ready),
        partials.ends.ready.eq(on_chip | (~to_rows & positions.ends.ready)),
        rows.flush.eq(positions.flush & to_rows),
        partials.flush.eq(positions.flush & ~to_rows),
    ]


def _convert(
    m: Module, owner: AccessorC, fibers: FiberSwitch, positions: TilePositions, take: Value
) -> tuple[Value, Value, Value]:
    """Gives the conversion its rows.

    Returns whether the tile at the port has such rows, whether one ends in this cycle, and whether all of them are in memory.
    """
    if not owner.converts:
        return Const(0, 1), Const(0, 1), Const(1, 1)
    connect(m, fibers.to_conversion, flipped(owner.to_conversion))
    converting, given = Signal(name="converting"), owner.to_conversion
    m.d.comb += [
        converting.eq(owner.tile.payload.last_k & owner.whole_rows & owner.converted),
        owner.conversion_flush.eq(positions.settled),
    ]
    with m.If(take):
        m.d.sync += fibers.converted.eq(converting)
    return converting, given.valid & given.ready & given.payload.last, owner.conversion_idle


def _bring_back(
    m: Module, owner: AccessorC, partial_rows: PartialRows, kept: Any, starts: Value, step: Value
) -> list[Any]:
    """Joins what finds the fibers that come back to their port and to that of positions; returns what finds those in memory.

    ``kept``: those on chip. ``starts``: a tile begins to which fibers come back. ``step``: its number along k.
    """
    joined = owner.joined if owner.joins else Const(0, 1)
    m.d.comb += partial_rows.start.eq(starts & ~owner.buffering & ~joined)
    if not owner.joins:
        connect(m, flipped(owner.read_request), partial_rows.read_request)
        connect(m, flipped(owner.read_data), partial_rows.read_data)
        m.d.comb += chosen(owner.buffering, kept, partial_rows.partials, owner.partials)
        return [partial_rows]
    m.submodules.row_parts = parts = RowParts(lanes=owner.lanes, address_width=owner.address_width)
    found = partial_rows.partials
    m.d.comb += [
        *chosen(joined, parts.read_request, partial_rows.read_request, owner.read_request),
        parts.read_data.payload.eq(owner.read_data.payload),
        partial_rows.read_data.payload.eq(owner.read_data.payload),
        parts.read_data.valid.eq(owner.read_data.valid & joined),
        partial_rows.read_data.valid.eq(owner.read_data.valid & ~joined),
        owner.read_data.ready.eq(Mux(joined, parts.read_data.ready, partial_rows.read_data.ready)),
        owner.partials.valid.eq(Mux(owner.buffering, kept.valid, Mux(joined, parts.partials.valid, found.valid))),
        Value.cast(owner.partials.payload).eq(
            Mux(
                owner.buffering,
                Value.cast(kept.payload),
                Mux(joined, Value.cast(parts.partials.payload), Value.cast(found.payload)),
            )
        ),
        kept.ready.eq(owner.partials.ready & owner.buffering),
        parts.partials.ready.eq(owner.partials.ready & joined),
        found.ready.eq(owner.partials.ready & ~owner.buffering & ~joined),
        parts.start.eq(starts & joined),
        parts.first.eq(partial_rows.row),
        parts.rows.eq(partial_rows.rows),
        parts.steps.eq(step),
        parts.stride.eq(owner.part_words),
        parts.positions.eq(owner.regions.partial1),
    ]
    return [partial_rows, parts]


def _before_step(m: Module, owner: AccessorC, take: Signal) -> Signal:
    """Words of positions that parts of earlier steps have, from the cycle after ``take`` on; 0 for rows that are no parts."""
    words, want = Signal(POSITION_WIDTH, name="before_step"), owner.tile.payload
    if owner.joins:
        with m.If(take):
            m.d.sync += words.eq(Mux(owner.joined & ~want.last_k, _times(want.step[:-1], owner.part_words), 0))
    return words


def _times(number: Value, value: Value) -> Value:
    """Their product, as wide as ``value``: a sum for each bit, where it is set. Tools make more of plain sums of many."""
    half, width = len(number) // 2, len(value)
    if half > 1:
        return (_times(number[:half], value) + (_times(number[half:], value) << half))[:width]
    total: Any = Const(0, 1)
    for n, bit in enumerate(number):
        total = Mux(bit, total + (value << n), total)[:width]
    return total
