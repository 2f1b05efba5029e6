"""Makes records of cells and sends them, and their next digits, to the banks."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.stream import StreamQueue
from ...regs.converter_map import POINTER_BITS
from ..records import low_mask
from .bucket_bank import ENTRY_BYTES
from .fields import FieldJoiner, KeyJoiner
from .lane_router import LaneRouter, digit_group, routed_item
from .streams import COORDINATE_BITS, ENTRY_BITS, KEY_BITS, block_group

__all__ = ["RecordRouter"]

#: Groups that wait before counters and before buckets, so that one does not stop the other at once.
WAITING = 4


class RecordRouter(Block):
    """Cells on their way to buckets and counters::

        cells --> joiners --+--> queue --> router --> records      digit of this pass
                            +--> queue --> router --> digits       digit of the next pass

    Parameters
    ----------
    lanes : int
        Cells of a group, power of two from 2 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    banks : int
        Power of two from 2 to 64.
    most_bits : int
        Bits of a digit at most: more than name a bank, up to 16.

    Members
    -------
    launch : In(1)
        Pulse: a pass begins. The following are constant from then on:
    first : In(1), last : In(1)
        Only digits are sent, those of the first pass, and entries are counted; only records are.
    by_row : In(1), by_block : In(1)
        The new row is the row of a cell, not its column; entries are sorted by their blocks, not by their new row.
    digit_bits : In(range(17)), shift : In(7)
        Bits of a digit; those below the digit of this pass.
    inner_bits, column_bits : In(range(33))
        Of a block: bits of the key that are of the row inside it, and of its column.
    first_bits, second_bits : In(range(33)), record_bytes : In(range(13))
        Widths of new row and new column in a record, and its bytes.
    cells : In(stream(block_group))
    records[banks] : Out(stream(routed_item)), digits[banks] : Out(stream(routed_item))
        In the order of the cells. From registers.
    ended : Out(1), busy : Out(1)
        The last group of the pass has come; an item is inside that is to leave.
    entries : Out(40), bytes : Out(64)
        What first passes counted.

    Timing
    ------
    Four cycles from a cell to its record; a bank gets an entry a cycle.
    """

    latency = 4

    def __init__(self, *, lanes: int, value_bits: int, banks: int, most_bits: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.banks = check_power_of_two("Banks", banks, 2, 64)
        self.most_bits = check_integer("Digit bits", most_bits, banks.bit_length(), 16)
        width = In(range(COORDINATE_BITS + 1))
        index_bits = most_bits - banks.bit_length() + 1
        super().__init__(
            {
                **{name: In(1) for name in ("launch", "first", "last", "by_row", "by_block")},
                "digit_bits": In(range(17)),
                "shift": In(KEY_BITS),
                "inner_bits": width,
                "column_bits": width,
                "first_bits": width,
                "second_bits": width,
                "record_bytes": In(range(ENTRY_BYTES + 1)),
                "cells": In(stream.Signature(block_group(lanes, value_bits))),
                "records": Out(stream.Signature(routed_item(index_bits, ENTRY_BITS))).array(banks),
                "digits": Out(stream.Signature(routed_item(index_bits, 0))).array(banks),
                "ended": Out(1),
                "busy": Out(1),
                "entries": Out(POINTER_BITS),
                "bytes": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.joiner = joiner = FieldJoiner(lanes=self.lanes, value_bits=self.value_bits)
        # What a digit is of: the new row, or row inside a block, column and row of the block. It goes along with its record.
        m.submodules.key_joiner = keys = KeyJoiner(lanes=self.lanes)
        cells, fields = self.cells.payload, joiner.i.payload
        m.d.comb += [
            joiner.first_bits.eq(self.first_bits),
            joiner.second_bits.eq(self.second_bits),
            joiner.i.valid.eq(self.cells.valid),
            self.cells.ready.eq(joiner.i.ready),
            *(fields[name].eq(cells[name]) for name in ("values", "count", "last")),
            fields.first.eq(Mux(self.by_row, cells.rows, cells.columns)),
            fields.second.eq(Mux(self.by_row, cells.columns, cells.rows)),
            keys.first_bits.eq(Mux(self.by_block, self.inner_bits, COORDINATE_BITS)),
            keys.second_bits.eq(self.column_bits),
            keys.i.valid.eq(joiner.i.valid),
            keys.o.ready.eq(joiner.o.ready),
        ]
        for n in range(self.lanes):
            m.d.comb += [
                keys.i.payload.first[n].eq(Mux(self.by_block, cells.inner_rows[n], fields.first[n])),
                keys.i.payload.second[n].eq(Mux(self.by_block, cells.block_columns[n], 0)),
                keys.i.payload.values[n].eq(Mux(self.by_block, cells.block_rows[n], 0)),
            ]
        inputs, busy = {}, []
        for name, outputs, width in (("scatter", self.records, ENTRY_BITS), ("count", self.digits, 0)):
            sizes = {"lanes": self.lanes, "digit_bits": self.most_bits, "width": width}
            m.submodules[f"{name}_queue"] = queue = StreamQueue(shape=digit_group(**sizes), depth=WAITING)
            m.submodules[f"{name}_router"] = router = LaneRouter(banks=self.banks, **sizes)
            connect(m, queue.o, router.groups)
            for bank in range(self.banks):
                connect(m, router.items[bank], flipped(outputs[bank]))
            inputs[name] = queue.i
            busy.append(queue.o.valid | router.busy)
        scatter, count = inputs["scatter"], inputs["count"]
        group = joiner.o.payload
        scatter_can, count_can = scatter.ready | self.first, count.ready | self.last
        following = Signal(KEY_BITS + 1)
        goes = Signal()
        m.d.comb += [
            joiner.o.ready.eq(scatter_can & count_can),
            goes.eq(joiner.o.valid & joiner.o.ready),
            scatter.valid.eq(joiner.o.valid & ~self.first & count_can),
            count.valid.eq(joiner.o.valid & ~self.last & scatter_can),
            scatter.payload.count.eq(group.count),
            count.payload.count.eq(group.count),
            following.eq(Mux(self.first, 0, self.shift + self.digit_bits)),
            self.busy.eq(Cat(*busy).any()),
        ]
        for n in range(self.lanes):
            key = Value.cast(keys.o.payload.records[n])
            m.d.comb += [
                scatter.payload.digits[n].eq(self._digit(key, self.shift)),
                count.payload.digits[n].eq(self._digit(key, following)),
                scatter.payload.items[n].eq(group.records[n]),
            ]
        with m.If(goes & self.first):
            m.d.sync += [
                self.entries.eq(self.entries + group.count),
                self.bytes.eq(self.bytes + group.count * self.record_bytes),
            ]
        with m.If(self.launch):
            m.d.sync += self.ended.eq(0)
        with m.Elif(goes & group.last):
            m.d.sync += self.ended.eq(1)
        return m

    def _digit(self, key: Value, shift: Value) -> Value:
        return (key >> shift)[: self.most_bits] & low_mask(self.digit_bits, self.most_bits)
