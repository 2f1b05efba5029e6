"""A small engine of another kind: dot products of A's rows with columns of B, one multiplication at a time."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import connect, flipped

from rtl.accessor.lookup import FiberLookup
from rtl.engine.signature import Engine
from rtl.lib.passed import connected
from rtl.lib.unit import ReadClient
from rtl.storage import byte_count
from rtl.types import VALUE_WIDTH, line

DEPTH = 64  # most columns of A


class InnerProductEngine(Engine):
    """Keeps a row of A by its columns, and goes through B's columns, one nonzero a cycle, for each row.

    Fibers of B are its columns. Values are int32; j and k are whole, and A has at most ``DEPTH`` columns.
    """

    READERS = (ReadClient("lookup", 64, "read_b_meta", turn=1), ReadClient("lines", 64, "read_b_data", turn=1))
    ACTIVITY = ("b_lookup", "processing_elements")
    B_FIBERS = "j"
    sram_reads = 2
    event_widths: Mapping[str, int] = {"macs": 1, "rows": 1, "stall_lookup": 1}

    def build(self, platform: Any) -> Module:
        m = Module()
        if self.value != "int32":
            raise ValueError(f"Values must be int32, not {self.value!r}")
        shift = (self.lanes - 1).bit_length()
        m.submodules.lookup = lookup = FiberLookup(
            lanes=self.lanes, address_width=self.address_width, line_address_width=self.line_address_width
        )
        m.submodules.weights = weights = Memory(shape=VALUE_WIDTH, depth=DEPTH, init=[])
        put, get = weights.write_port(), weights.read_port(domain="comb")
        m.d.comb += connected(lookup.read_request, self.read_request[0])
        connect(m, lookup.read_data, flipped(self.read_data[0]))
        connect(m, lookup.sram_request, flipped(self.sram_request[0]))
        m.d.comb += [getattr(lookup, name).eq(self.fiber_table[name]) for name in self.fiber_table.shape().members]

        known = Signal(DEPTH)  # columns that the row of A has
        begun, met = Signal(), Signal()  # the row has been begun; the column of B has met it
        column = Signal(32)
        at, left = Signal(self.address_width - 3), Signal(32)  # the next nonzero of the column, how many are left
        in_memory = Signal()
        held = Signal(line(self.lanes))
        total = Signal(VALUE_WIDTH)
        taken, found, word = self.selections.payload, lookup.leaves.payload, self.fibers.payload.word
        ask, answer = self.read_request[1], self.read_data[1]
        nonzero = held[at[:shift]]
        meets = known.bit_select(nonzero.coordinate[:6], 1)
        m.d.comb += [
            lookup.sram_response.eq(self.sram_response[0]),
            put.addr.eq(taken.index),
            put.data.eq(taken.weight),
            get.addr.eq(nonzero.coordinate),
            lookup.selections.payload.index.eq(column),
            lookup.selections.payload.present.eq(1),
            ask.payload.address.eq(byte_count(at)),
            ask.payload.beats.eq(1),
            self.sram_request[1].payload.eq(at >> shift),
            self.fibers.payload.bound.eq(self.tile.size_j),
            self.looked_up.eq(~begun),
            self.active.b_lookup.eq(~lookup.idle),
            self.active.processing_elements.eq(begun),
            self.counted.stall_lookup.eq(lookup.event_stall),
        ]
        with m.FSM():
            with m.State("ROW"):
                m.d.comb += [self.selections.ready.eq(1), put.en.eq(self.selections.valid & taken.present)]
                with m.If(self.selections.valid):
                    m.d.sync += [known.eq(known | taken.present << taken.index[:6]), begun.eq(1), column.eq(0)]
                    with m.If(taken.last & ~taken.present & (known == 0)):
                        m.next = "END"
                    with m.Elif(taken.last):
                        m.next = "COLUMN"
            with m.State("COLUMN"):
                with m.If(column == self.tile.size_j):
                    m.next = "END"
                with m.Else():
                    m.d.comb += lookup.selections.valid.eq(1)
                    with m.If(lookup.selections.ready):
                        m.next = "FIND"
            with m.State("FIND"):
                m.d.comb += lookup.leaves.ready.eq(1)
                m.d.sync += [at.eq(found.leaf.position), left.eq(found.leaf.length), in_memory.eq(found.leaf.in_memory)]
                m.d.sync += [met.eq(0), total.eq(0)]
                with m.If(lookup.leaves.valid & found.present):
                    m.next = "LINE"
                with m.Elif(lookup.leaves.valid):
                    m.next = "KEEP"
            with m.State("LINE"):
                m.d.comb += [ask.valid.eq(in_memory), self.sram_request[1].valid.eq(~in_memory)]
                with m.If(ask.valid & ask.ready | self.sram_request[1].valid & self.sram_request[1].ready):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += answer.ready.eq(1)
                with m.If(answer.valid):
                    m.d.sync += held.eq(answer.payload)
                    m.next = "MULTIPLY"
                with m.Elif(self.sram_response[1].valid):
                    m.d.sync += held.eq(self.sram_response[1].line)
                    m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.sync += [at.eq(at + 1), left.eq(left - 1)]
                with m.If(meets):
                    m.d.comb += self.counted.macs.eq(1)
                    m.d.sync += [total.eq(total + get.data * nonzero.value), met.eq(1)]
                with m.If(left == 1):
                    m.next = "KEEP"
                with m.Elif(at[:shift] == self.lanes - 1):
                    m.next = "LINE"
            with m.State("KEEP"):
                count, filled = Signal(range(self.lanes + 1)), Signal(line(self.lanes))
                m.d.comb += [word.line.eq(filled), word.count.eq(count)]
                with m.If(met & (count == self.lanes)):
                    m.d.comb += self.fibers.valid.eq(1)
                    with m.If(self.fibers.ready):
                        m.d.sync += count.eq(0)
                with m.Else():
                    m.d.sync += column.eq(column + 1)
                    with m.If(met):
                        m.d.sync += [
                            filled[count[:shift]].eq(Cat((column + self.tile.begin_j)[:32], total)),
                            count.eq(count + 1),
                        ]
                    m.next = "COLUMN"
            with m.State("END"):
                m.d.comb += [self.fibers.valid.eq(1), word.line.eq(filled), word.count.eq(count), word.last.eq(1)]
                with m.If(self.fibers.ready):
                    m.d.comb += self.counted.rows.eq(1)
                    m.d.sync += [count.eq(0), known.eq(0), begun.eq(0)]
                    m.next = "ROW"
        return m
