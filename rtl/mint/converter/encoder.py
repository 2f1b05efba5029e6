"""Arrays of a matrix in any format that a converter writes, from its entries in row-major order."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...lib.stream import StreamQueue
from ...lib.unit import Fault, Unit
from ...regs.converter_map import BLOCK_BITS, POINTER_BITS
from ..bit_packer import packed_beat
from ..records import record_group
from ..tree_builder import TreeBuilder
from .beat_builder import BeatBuilder
from .block_filler import BlockFiller
from .conversions import ALL, Conversions, check_conversions
from .fields import FieldJoiner
from .row_pointers import RowPointers
from .run_encoder import RunEncoder
from .settings import HAS_FRAME, HAS_POINTERS, HAS_RECORDS, is_one_of, record_widths, settings_layout
from .streams import COORDINATE_BITS, ENTRY_BITS, POSITION_BITS, block_group, cell_group
from .tree_nodes import TreeNodes

__all__ = ["TREE_WIDTHS", "Encoder", "tree_ports"]

#: Groups that wait before records and before the frame, so that one does not stop the other at once.
WAITING = 4


class Encoder(Unit):
    """Records and frame of the target, each at its own pace::

        cells --+--> queue --+--> run_encoder (RLC) --+--> joiner --> records
                |            +------------------------+
                +--> queue --+--> row_pointers (CSR) ---> pointers
                             +--> beat_builder (ZVC, dense) ---> beats
                             +--> tree_builder --> tree_nodes (CSF) ---> pointers, ids_1, ids_0, ptrs_1

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
    form : str
        Network of the prefix sum of a tree, one of :data:`rtl.mint.prefix_sum.FORMS`.
    conversions : Conversions
        Those that it is built for: nothing else is.

    Members
    -------
    settings : In(settings_layout), places : In(65), block_size : In(25)
        Constant while something is inside.
    cells : In(stream(block_group))
        Positions rise, or blocks and places inside them, or outer, row and column. A group may be empty.
    records : Out(stream(record_group)), pointers : Out(stream(record_group)), beats : Out(stream(packed_beat))
        As :class:`rtl.mint.converter.target_writer.TargetWriter` takes them.
    ids_1, ids_0, ptrs_1 : Out(stream(record_group))
        Where some target is CSF, as :class:`rtl.mint.converter.tree_nodes.TreeNodes` gives them.
    overflow : Out(1), number : Out(64)
        See :class:`rtl.mint.converter.row_pointers.RowPointers` and :class:`rtl.mint.converter.tree_nodes.TreeNodes`.

    Timing
    ------
    That of its blocks, a group a cycle.
    """

    def __init__(
        self,
        *,
        beat_bits: int,
        lanes: int,
        value_bits: int,
        address_width: int,
        form: str = "work_efficient",
        conversions: Conversions = ALL,
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        check_conversions(conversions)
        self.writes = conversions.writes
        self.conversions = conversions
        self.form = form
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "places": In(POSITION_BITS + 1),
                "block_size": In(BLOCK_BITS + 1),
                "cells": In(stream.Signature(block_group(lanes, value_bits, conversions.tensors))),
                "records": Out(stream.Signature(record_group(lanes, ENTRY_BITS))),
                "pointers": Out(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": Out(stream.Signature(packed_beat(beat_bits))),
                **tree_ports(lanes, conversions, Out),
                "overflow": Out(1),
                "number": Out(64),
            }
        )

    def faults(self) -> Sequence[Fault]:
        return (Fault("pointer_overflow", self.overflow, self.number),)

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": self.value_bits}
        target = self.settings.formats.target
        shape = cell_group(self.lanes, self.value_bits, self.conversions.tensors)
        cells: Any = Signal(shape)
        valid, ready = signals("valid ready")
        m.d.comb += [
            *(cells[name].eq(self.cells.payload[name]) for name in shape.members),
            valid.eq(self.cells.valid),
            self.cells.ready.eq(ready),
        ]
        if "bsr" in self.writes:
            self._fill(m, sizes, cells, valid, ready)
        ways = []
        for name, formats, build in (("record", HAS_RECORDS, self._records), ("frame", HAS_FRAME, self._frame)):
            if self.writes & {*formats}:
                m.submodules[f"{name}_queue"] = queue = StreamQueue(shape=shape, depth=WAITING)
                ways.append((queue.i, is_one_of(target, *formats, among=self.writes)))
                build(m, sizes, queue.o)
        can = [way.ready | ~needed for way, needed in ways]
        for n, (way, needed) in enumerate(ways):
            others = Cat(Const(1, 1), *can[:n], *can[n + 1 :]).all()
            m.d.comb += [way.payload.eq(cells), way.valid.eq(valid & needed & others)]
        m.d.comb += ready.eq(Cat(*can).all())
        return m

    def _fill(self, m: Module, sizes: dict[str, Any], cells: Any, valid: Value, ready: Value) -> None:
        """Blocks take the place of cells."""
        m.submodules.block_filler = filler = BlockFiller(**sizes)
        m.d.comb += filler.size.eq(self.block_size)
        taken = filler.entries.payload
        m.d.comb += [taken[name].eq(self.cells.payload[name]) for name in taken.shape().members]
        with m.If(is_one_of(self.settings.formats.target, "bsr", among=self.writes)):
            m.d.comb += [
                filler.entries.valid.eq(self.cells.valid),
                self.cells.ready.eq(filler.entries.ready),
                *(cells[name].eq(filler.heads.payload[name]) for name in filler.heads.payload.shape().members),
                valid.eq(filler.heads.valid),
                filler.heads.ready.eq(ready),
            ]

    def _records(self, m: Module, sizes: dict[str, Any], cells: Any) -> None:
        m.submodules.joiner = joiner = FieldJoiner(**sizes)
        settings = self.settings
        target = settings.formats.target
        first, second = record_widths(settings, target, settings.widths.target_run, self.writes)
        m.d.comb += [
            joiner.first_bits.eq(first),
            joiner.second_bits.eq(second),
            joiner.bare.eq(is_one_of(target, "bsr", among=self.writes)),
            joiner.i.valid.eq(cells.valid),
            cells.ready.eq(joiner.i.ready),
            joiner.i.payload.first.eq(cells.payload.rows),
            joiner.i.payload.second.eq(cells.payload.columns),
            *(joiner.i.payload[name].eq(cells.payload[name]) for name in ("values", "count", "last")),
        ]
        if "rlc" in self.writes:
            m.submodules.run_encoder = runs = RunEncoder(**sizes)
            m.d.comb += runs.run_bits.eq(settings.widths.target_run)
            m.d.comb += [runs.groups.payload[name].eq(cells.payload[name]) for name in GROUP]
            with m.If(is_one_of(target, "rlc", among=self.writes)):
                m.d.comb += [
                    runs.groups.valid.eq(cells.valid),
                    cells.ready.eq(runs.groups.ready),
                    joiner.i.valid.eq(runs.pairs.valid),
                    runs.pairs.ready.eq(joiner.i.ready),
                    joiner.i.payload.eq(runs.pairs.payload),
                ]
        connect(m, joiner.o, flipped(self.records))

    def _frame(self, m: Module, sizes: dict[str, Any], cells: Any) -> None:
        settings = self.settings
        target = settings.formats.target
        has_pointers = is_one_of(target, *HAS_POINTERS, among=self.writes)
        if self.writes & {*HAS_POINTERS}:
            m.submodules.row_pointers = pointers = RowPointers(**sizes)
            m.d.comb += [
                pointers.rows.eq(settings.rows),  # of blocks, where there are some
                pointers.pointer_bits.eq(settings.pointers.target),
                *(
                    pointers.cells.payload[name].eq(cells.payload[name])
                    for name in pointers.cells.payload.shape().members
                ),
                self.overflow.eq(pointers.overflow),
                self.number.eq(pointers.number),
            ]
            with m.If(has_pointers):
                m.d.comb += [pointers.cells.valid.eq(cells.valid), cells.ready.eq(pointers.cells.ready)]
            given = pointers.pointers
            m.d.comb += [
                self.pointers.valid.eq(given.valid),
                self.pointers.payload.eq(given.payload),
                given.ready.eq(self.pointers.ready),
            ]
        if self.writes & {"dense", "zvc", "bsr"}:
            m.submodules.beat_builder = builder = BeatBuilder(beat_bits=self.beat_bits, **sizes)
            m.d.comb += [
                builder.dense.eq(is_one_of(target, "dense", among=self.writes)),
                builder.places.eq(self.places),
                *(builder.groups.payload[name].eq(cells.payload[name]) for name in GROUP),
            ]
            with m.If(~has_pointers & ~is_one_of(target, "csf", among=self.writes)):
                m.d.comb += [builder.groups.valid.eq(cells.valid), cells.ready.eq(builder.groups.ready)]
            if "bsr" in self.writes:
                filler = m.submodules.block_filler
                with m.If(is_one_of(target, "bsr", among=self.writes)):
                    m.d.comb += [
                        builder.dense.eq(1),
                        builder.places.eq(filler.places),
                        builder.groups.valid.eq(filler.values.valid),
                        builder.groups.payload.eq(filler.values.payload),
                        filler.values.ready.eq(builder.groups.ready),
                    ]
            connect(m, builder.beats, flipped(self.beats))
        if self.conversions.tensors:
            with m.If(is_one_of(target, "csf", among=self.writes)):
                self._grow(m, cells)

    def _grow(self, m: Module, cells: Any) -> None:
        """The tree of CSF, but for its leaves."""
        settings = self.settings
        m.submodules.tree_builder = builder = TreeBuilder(
            inputs=self.lanes, width=COORDINATE_BITS, count_bits=POINTER_BITS + 1, form=self.form
        )
        m.submodules.tree_nodes = nodes = TreeNodes(lanes=self.lanes)
        connect(m, builder.o, nodes.vectors)
        group = cells.payload
        m.d.comb += [
            builder.i.valid.eq(cells.valid),
            cells.ready.eq(builder.i.ready),
            *(builder.i.payload[name].eq(group[name]) for name in ("count", "last")),
            nodes.slice_bits.eq(settings.pointers.slices),
            nodes.entry_bits.eq(settings.pointers.target),
            self.overflow.eq(nodes.overflow),
            self.number.eq(nodes.number),
            self.pointers.valid.eq(nodes.ptrs_2.valid),
            self.pointers.payload.eq(nodes.ptrs_2.payload),
            nodes.ptrs_2.ready.eq(self.pointers.ready),
        ]
        for n, item in enumerate(builder.i.payload.items):
            m.d.comb += [item.i.eq(group.outers[n]), item.j.eq(group.rows[n]), item.k.eq(group.columns[n])]
        for name in TREE_WIDTHS:
            connect(m, getattr(nodes, name), flipped(getattr(self, name)))


#: Regions of a tree that no other target has, and the bits of their records.
TREE_WIDTHS = {"ids_1": COORDINATE_BITS, "ids_0": COORDINATE_BITS, "ptrs_1": POINTER_BITS}


def tree_ports(lanes: int, conversions: Conversions, flow: Any) -> dict[str, Any]:
    """Ports of those regions, where some target has them."""
    widths = TREE_WIDTHS if conversions.tensors else {}
    return {name: flow(stream.Signature(record_group(lanes, width))) for name, width in widths.items()}


#: What a group of entries by position has.
GROUP = ("positions", "values", "count", "last")
