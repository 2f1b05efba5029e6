"""Arrays of a matrix in any format that a converter writes, from its entries in row-major order."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.stream import StreamQueue
from ...lib.unit import Fault, Unit
from ...regs.converter_map import BLOCK_BITS, POINTER_BITS
from ..bit_packer import packed_beat
from ..records import record_group
from .beat_builder import BeatBuilder
from .block_filler import BlockFiller
from .fields import FieldJoiner
from .row_pointers import RowPointers
from .run_encoder import RunEncoder
from .settings import HAS_FRAME, HAS_POINTERS, HAS_RECORDS, is_one_of, record_widths, settings_layout
from .streams import ENTRY_BITS, POSITION_BITS, block_group, cell_group

__all__ = ["Encoder"]

#: Groups that wait before records and before the frame, so that one does not stop the other at once.
WAITING = 4


class Encoder(Unit):
    """Records and frame of the target, each at its own pace::

        cells --+--> queue --+--> run_encoder (RLC) --+--> joiner --> records
                |            +------------------------+
                +--> queue --+--> row_pointers (CSR) ---> pointers
                             +--> beat_builder (ZVC, dense) ---> beats

    Of BSR ``block_filler`` makes a cell of each block, and ``beat_builder`` gets the values of the blocks.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    lanes : int
        Entries a cycle, power of two from 2 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    address_width : int
        Bits of a byte address.

    Members
    -------
    settings : In(settings_layout), places : In(65), block_size : In(25)
        Constant while something is inside.
    cells : In(stream(block_group))
        Positions rise, or blocks and places inside them. A group may be empty.
    records : Out(stream(record_group)), pointers : Out(stream(record_group)), beats : Out(stream(packed_beat))
        As :class:`rtl.mint.converter.target_writer.TargetWriter` takes them.
    overflow : Out(1), number : Out(64)
        See :class:`rtl.mint.converter.row_pointers.RowPointers`.

    Timing
    ------
    That of its blocks, a group a cycle.
    """

    def __init__(self, *, beat_bits: int, lanes: int, value_bits: int, address_width: int) -> None:
        check_power_of_two("Beat bits", beat_bits, 128, 1024)
        check_power_of_two("Lanes", lanes, 2, 16)
        check_power_of_two("Value bits", value_bits, 8, 32)
        check_integer("Address width", address_width, 13, 64)
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.value_bits = value_bits
        self.address_width = address_width
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "places": In(POSITION_BITS + 1),
                "block_size": In(BLOCK_BITS + 1),
                "cells": In(stream.Signature(block_group(lanes, value_bits))),
                "records": Out(stream.Signature(record_group(lanes, ENTRY_BITS))),
                "pointers": Out(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": Out(stream.Signature(packed_beat(beat_bits))),
                "overflow": Out(1),
                "number": Out(64),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"b": self.beat_bits, "l": self.lanes, "v": self.value_bits, "a": self.address_width}

    def faults(self) -> Sequence[Fault]:
        return (Fault("pointer_overflow", self.overflow, self.number),)

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": self.value_bits}
        target = self.settings.formats.target
        shape = cell_group(self.lanes, self.value_bits)
        m.submodules.block_filler = filler = BlockFiller(**sizes)
        cells: Any = Signal(shape)
        valid, ready = Signal(), Signal()
        m.d.comb += [
            filler.size.eq(self.block_size),
            filler.entries.payload.eq(self.cells.payload),
            *(cells[name].eq(self.cells.payload[name]) for name in shape.members),
            valid.eq(self.cells.valid),
            self.cells.ready.eq(ready),
        ]
        with m.If(is_one_of(target, "bsr")):
            m.d.comb += [
                filler.entries.valid.eq(self.cells.valid),
                self.cells.ready.eq(filler.entries.ready),
                cells.eq(filler.heads.payload),
                valid.eq(filler.heads.valid),
                filler.heads.ready.eq(ready),
            ]
        m.submodules.record_queue = for_records = StreamQueue(shape=shape, depth=WAITING)
        m.submodules.frame_queue = for_frame = StreamQueue(shape=shape, depth=WAITING)
        has_records, has_frame = is_one_of(target, *HAS_RECORDS), is_one_of(target, *HAS_FRAME)
        records_can, frame_can = for_records.i.ready | ~has_records, for_frame.i.ready | ~has_frame
        m.d.comb += [
            for_records.i.payload.eq(cells),
            for_frame.i.payload.eq(cells),
            for_records.i.valid.eq(valid & has_records & frame_can),
            for_frame.i.valid.eq(valid & has_frame & records_can),
            ready.eq(records_can & frame_can),
        ]
        self._records(m, sizes, for_records.o)
        self._frame(m, sizes, for_frame.o, filler)
        return m

    def _records(self, m: Module, sizes: dict[str, Any], cells: Any) -> None:
        m.submodules.run_encoder = runs = RunEncoder(**sizes)
        m.submodules.joiner = joiner = FieldJoiner(**sizes)
        settings = self.settings
        target = settings.formats.target
        first, second = record_widths(settings, target, settings.widths.target_run)
        m.d.comb += [
            joiner.first_bits.eq(first),
            joiner.second_bits.eq(second),
            joiner.bare.eq(is_one_of(target, "bsr")),
            runs.run_bits.eq(settings.widths.target_run),
            *(runs.groups.payload[name].eq(cells.payload[name]) for name in ("positions", "values", "count", "last")),
        ]
        with m.If(is_one_of(target, "rlc")):
            m.d.comb += [
                runs.groups.valid.eq(cells.valid),
                cells.ready.eq(runs.groups.ready),
                joiner.i.valid.eq(runs.pairs.valid),
                runs.pairs.ready.eq(joiner.i.ready),
                joiner.i.payload.eq(runs.pairs.payload),
            ]
        with m.Else():
            m.d.comb += [
                joiner.i.valid.eq(cells.valid),
                cells.ready.eq(joiner.i.ready),
                joiner.i.payload.first.eq(cells.payload.rows),
                joiner.i.payload.second.eq(cells.payload.columns),
                *(joiner.i.payload[name].eq(cells.payload[name]) for name in ("values", "count", "last")),
            ]
        connect(m, joiner.o, flipped(self.records))

    def _frame(self, m: Module, sizes: dict[str, Any], cells: Any, filler: BlockFiller) -> None:
        m.submodules.row_pointers = pointers = RowPointers(**sizes)
        m.submodules.beat_builder = builder = BeatBuilder(beat_bits=self.beat_bits, **sizes)
        settings = self.settings
        target = settings.formats.target
        m.d.comb += [
            pointers.rows.eq(settings.rows),  # of blocks, where there are some
            pointers.pointer_bits.eq(settings.pointers.target),
            pointers.cells.payload.eq(cells.payload),
            builder.dense.eq(is_one_of(target, "dense")),
            builder.places.eq(self.places),
            *(
                builder.groups.payload[name].eq(cells.payload[name])
                for name in ("positions", "values", "count", "last")
            ),
            self.overflow.eq(pointers.overflow),
            self.number.eq(pointers.number),
        ]
        with m.If(is_one_of(target, *HAS_POINTERS)):
            m.d.comb += [pointers.cells.valid.eq(cells.valid), cells.ready.eq(pointers.cells.ready)]
        with m.Else():
            m.d.comb += [builder.groups.valid.eq(cells.valid), cells.ready.eq(builder.groups.ready)]
        with m.If(is_one_of(target, "bsr")):
            m.d.comb += [
                builder.dense.eq(1),
                builder.places.eq(filler.places),
                builder.groups.valid.eq(filler.values.valid),
                builder.groups.payload.eq(filler.values.payload),
                filler.values.ready.eq(builder.groups.ready),
            ]
        connect(m, pointers.pointers, flipped(self.pointers))
        connect(m, builder.beats, flipped(self.beats))
