"""The lines of scratch memory that stay on chip: a ring of the banked SRAM that rows take from and give back in turn."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.signals import signals
from ..lib.stream import StreamQueue
from ..types import sram_write
from .line_packer import packed_line

__all__ = ["MARGIN", "ROWS", "ScratchRing"]

# Lines that words on their way between collector and ring may take: two wait in the collector's queue, one is packed, two
# lines wait for the ring, which says a cycle late whether it is open.
MARGIN = 8
# Long rows that the other lines are enough for, power of two: one comes while the one before it is merged.
ROWS = 2


class ScratchRing(Block):
    """Places the first lines of each long row's slot in a ring: the next free line, row after row.

    A row gives its lines back when its own fiber has left, in the order in which rows began. So that this order alone decides who
    waits, the first ``keep_lines`` lines of every row stay on chip, whatever else is there: half of the ring but for a margin. A
    row waits for the rows before it alone.

    Parameters
    ----------
    lanes : int
        64-bit elements in a line, power of two.
    line_address_width : int
        Bits of an SRAM line address.
    scratch_slots : int
        Slots of scratch memory, power of two.

    Members
    -------
    base : In(line_address_width), lines : In(line_address_width + 1)
        The ring, none where it has no more lines than the margin. Constant while rows are under way.
    keep_lines : Out(line_address_width + 1)
        Lines of each row that stay on chip.
    row_begins : In(1), row : In
        Pulse: a row begins, in this slot.
    kept : In(stream(packed_line))
        Lines of the row that began last, by their number in its slot, a line once or several times in a row.
    begins : Out(array)
        For each slot the line of the ring that has its row's first one.
    merged_out : In(1)
        Pulse: the oldest row under way gives its lines back.
    open : Out(1)
        There are lines for all words that may be on their way.
    sram_write : Out(stream(sram_write))
        A write port of the banked SRAM.
    idle : Out(1)
        The SRAM has all that was taken.

    Timing
    ------
    A line a cycle, registered.
    """

    def __init__(self, *, lanes: int, line_address_width: int, scratch_slots: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        check_integer("Line address width", line_address_width, 1, 30)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1024)
        self.line_address_width = law = line_address_width
        super().__init__(
            {
                "base": In(law),
                "lines": In(law + 1),
                "keep_lines": Out(law + 1),
                "row_begins": In(1),
                "row": In(range(max(2, scratch_slots))),
                "kept": In(stream.Signature(packed_line(lanes))),
                "begins": Out(data.ArrayLayout(law, scratch_slots)),
                "merged_out": In(1),
                "open": Out(1),
                "sram_write": Out(stream.Signature(sram_write(lanes, law))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        law, rows = self.line_address_width, range(self.scratch_slots)
        m.submodules.writes = writes = StreamQueue(shape=self.sram_write.payload.shape(), depth=2)
        connect(m, writes.o, flipped(self.sram_write))
        taken = Array(Signal(law + 1, name=f"taken{n}") for n in rows)  # lines of the row in each slot
        newest, oldest = signals("newest oldest", self.row.shape())
        following = Signal(law + 1)  # the next line that is free
        used = Signal(law + 1)
        line = self.kept.payload
        # Of the newest row, so that nothing is chosen among rows as its lines come: lines that it has, those from its begin
        # to the ring's end, the address of its first line, and what its address would be one ring before.
        present = Signal(law + 1)
        to_end = Signal(law + 1)
        address, wrapped = signals("address wrapped", law)
        origin = Signal(law + 1)  # of a row that begins; an empty ring begins anew: its lines may be others than before
        fresh = Signal()  # the line at hand has no place yet
        takes = Signal()
        index = line.index[: law + 1]
        m.d.comb += [
            origin.eq(Mux(used == 0, 0, following)),
            # A line comes first where the ones before it end: it is new, or the newest one.
            fresh.eq(line.index[0] == present[0]),
            writes.i.valid.eq(self.kept.valid & (~fresh | (used < self.lines))),
            self.kept.ready.eq(writes.i.ready & (~fresh | (used < self.lines))),
            takes.eq(self.kept.valid & self.kept.ready & fresh),
            writes.i.payload.address.eq(Mux(index < to_end, address, wrapped) + index),
            writes.i.payload.mask.eq(line.mask),
            writes.i.payload.line.eq(line.data),
            self.idle.eq(writes.level == 0),
        ]
        m.d.sync += [
            self.keep_lines.eq(Mux(self.lines > MARGIN, self.lines - MARGIN, 0) >> (ROWS.bit_length() - 1)),
            self.open.eq((used + MARGIN <= self.lines) | (self.keep_lines == 0)),
            used.eq(used + takes - Mux(self.merged_out, taken[oldest], 0)),
        ]
        with m.If(takes):
            m.d.sync += following.eq(Mux(following + 1 == self.lines, 0, following + 1))
        with m.If(self.row_begins):
            m.d.sync += [
                newest.eq(self.row),
                present.eq(0),
                to_end.eq(self.lines - origin),
                address.eq(self.base + origin),
                wrapped.eq(self.base + origin - self.lines),
            ]
        with m.Elif(takes):
            m.d.sync += present.eq(present + 1)
        with m.If(self.merged_out):
            m.d.sync += oldest.eq(oldest + 1 if self.scratch_slots > 1 else 0)
        for n in rows:
            with m.If(self.row_begins & (self.row == n)):
                m.d.sync += [taken[n].eq(0), self.begins[n].eq(origin)]
            with m.Elif(takes & (newest == n)):
                m.d.sync += taken[n].eq(taken[n] + 1)
        with m.If(self.row_begins & (used == 0)):
            m.d.sync += following.eq(0)
        return m
