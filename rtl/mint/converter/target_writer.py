"""Packs the records of a target and writes its arrays."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.unit import Fault, Unit
from ...regs.converter_map import POINTER_BITS
from ...types import write_beat, write_request
from ..bit_packer import BitPacker, packed_beat
from ..records import record_group
from .conversions import ALL, Conversions, check_conversions
from .encoder import TREE_WIDTHS, tree_ports
from .regions import RegionWriter
from .settings import HAS_FRAME, HAS_POINTERS, HAS_RECORDS, is_one_of, record_widths, settings_layout
from .streams import ENTRY_BITS

__all__ = ["REGIONS", "TargetWriter"]


class TargetWriter(Unit):
    """Five clients of the memory engine: for the records of the target, its frame, its blocks, slices of a tree, their pointers.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    lanes : int
        Records a cycle, power of two from 2 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    address_width : int
        Bits of a byte address.
    burst_beats : int
        Beats of a request, a power of two.
    conversions : Conversions
        Those that it is built for: nothing else is.

    Members
    -------
    settings : In(settings_layout)
        Constant from ``launch`` on.
    launch : In(1)
        Pulse: a target begins.
    records, pointers, beats, ids_1, ids_0, ptrs_1 : In(stream)
        As :class:`rtl.mint.converter.encoder.Encoder` gives them.
    write_request[5], write_data[5] : streams
        Client ports of the memory engine.
    flush : In(1)
        See :class:`rtl.mint.converter.regions.RegionWriter`.
    done : Out(1)
        All of the target has been handed to the memory engine.
    records_overflow ... ptrs_1_overflow : Out(1), records_bytes ... ptrs_1_bytes : Out(64)
        Of each region, see :class:`rtl.mint.converter.regions.RegionWriter`.

    Timing
    ------
    As :class:`rtl.mint.bit_packer.BitPacker`.
    """

    def __init__(
        self,
        *,
        beat_bits: int,
        lanes: int,
        value_bits: int,
        address_width: int,
        burst_beats: int,
        conversions: Conversions = ALL,
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        check_conversions(conversions)
        self.conversions = conversions
        self.burst_beats = burst_beats
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "launch": In(1),
                "records": In(stream.Signature(record_group(lanes, ENTRY_BITS))),
                "pointers": In(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": In(stream.Signature(packed_beat(beat_bits))),
                **tree_ports(lanes, conversions, In),
                "write_request": Out(stream.Signature(write_request(address_width))).array(len(REGIONS)),
                "write_data": Out(stream.Signature(write_beat(beat_bits))).array(len(REGIONS)),
                "flush": In(1),
                "done": Out(1),
                **{f"{name}_overflow": Out(1) for name in REGIONS},
                **{f"{name}_bytes": Out(64) for name in REGIONS},
            }
        )

    def faults(self) -> Sequence[Fault]:
        return tuple(
            Fault(f"{name}_overflow", getattr(self, f"{name}_overflow"), getattr(self, f"{name}_bytes"))
            for name in REGIONS
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        settings, writes = self.settings, self.conversions.writes
        target = settings.formats.target
        begun = Signal()
        m.d.sync += begun.eq(self.launch)  # the writers say so a cycle later
        done: Any = ~self.launch & ~begun
        builds = (self._records, self._frame, self._blocks, self._ids_0, self._ptrs_1)
        for n, ((name, formats), build) in enumerate(zip(REGIONS.items(), builds, strict=True)):
            if not writes & {*formats}:
                continue
            m.submodules[f"{name}_writer"] = writer = RegionWriter(
                beat_bits=self.beat_bits, address_width=self.address_width, burst_beats=self.burst_beats
            )
            connect(m, writer.write_request, flipped(self.write_request[n]))
            connect(m, writer.write_data, flipped(self.write_data[n]))
            needed = is_one_of(target, *formats, among=writes)
            m.d.comb += [
                writer.launch.eq(self.launch & needed),
                writer.flush.eq(self.flush),
                writer.address.eq(settings[f"target_{name}"]),
                writer.space.eq(settings[f"target_{name}_bytes"]),
                getattr(self, f"{name}_overflow").eq(writer.overflow),
                getattr(self, f"{name}_bytes").eq(writer.number),
            ]
            build(m, writer, needed)
            done = done & writer.done
        m.d.comb += self.done.eq(done)
        return m

    def _records(self, m: Module, writer: RegionWriter, needed: Value) -> None:
        settings = self.settings
        m.submodules.records = records = BitPacker(beat_bits=self.beat_bits, lanes=self.lanes, width=ENTRY_BITS)
        target, writes = settings.formats.target, self.conversions.writes
        first, second = record_widths(settings, target, settings.widths.target_run, writes)
        has_blocks = is_one_of(target, "bsr", among=writes)
        m.d.comb += [
            records.region.valid.eq(self.launch & needed),  # the packers are empty
            records.region.payload.width.eq(first + second + Mux(has_blocks, 0, self.value_bits)),
        ]
        connect(m, flipped(self.records), records.groups)
        connect(m, records.beats, writer.beats)

    def _frame(self, m: Module, writer: RegionWriter, needed: Value) -> None:
        writes = self.conversions.writes
        with_pointers = (*HAS_POINTERS, "csf")
        has_pointers = is_one_of(self.settings.formats.target, *with_pointers, among=writes)
        ways = [(self.beats, ~has_pointers)]
        if writes & {*with_pointers}:
            m.submodules.pointers = pointers = BitPacker(beat_bits=self.beat_bits, lanes=self.lanes, width=POINTER_BITS)
            m.d.comb += [
                pointers.region.valid.eq(self.launch & has_pointers),
                pointers.region.payload.width.eq(self.settings.pointers.target),
            ]
            connect(m, flipped(self.pointers), pointers.groups)
            ways.append((pointers.beats, has_pointers))
        for given, chosen in ways:
            self._give(m, given, writer, chosen)

    def _give(self, m: Module, given: Any, writer: RegionWriter, chosen: Value) -> None:
        """Beats go to a region where it is theirs."""
        with m.If(chosen):
            m.d.comb += [
                writer.beats.valid.eq(given.valid),
                writer.beats.payload.eq(given.payload),
                given.ready.eq(writer.beats.ready),
            ]

    def _blocks(self, m: Module, writer: RegionWriter, needed: Value) -> None:
        writes = self.conversions.writes
        self._give(m, self.beats, writer, is_one_of(self.settings.formats.target, "bsr", among=writes))
        if self.conversions.tensors:
            self._tree(m, writer, "ids_1", self.settings.widths.column)

    def _ids_0(self, m: Module, writer: RegionWriter, needed: Value) -> None:
        self._tree(m, writer, "ids_0", self.settings.widths.row)

    def _ptrs_1(self, m: Module, writer: RegionWriter, needed: Value) -> None:
        self._tree(m, writer, "ptrs_1", self.settings.pointers.slices)

    def _tree(self, m: Module, writer: RegionWriter, name: str, width: Value) -> None:
        """Packs records of a tree."""
        needed = is_one_of(self.settings.formats.target, "csf", among=self.conversions.writes)
        m.submodules[name] = packer = BitPacker(beat_bits=self.beat_bits, lanes=self.lanes, width=TREE_WIDTHS[name])
        m.d.comb += [packer.region.valid.eq(self.launch & needed), packer.region.payload.width.eq(width)]
        connect(m, flipped(getattr(self, name)), packer.groups)
        self._give(m, packer.beats, writer, needed)


#: What a target has, each by a client of its own, and the formats that have it.
REGIONS = {
    "records": HAS_RECORDS,
    "frame": HAS_FRAME,
    "blocks": ("bsr", "csf"),
    "ids_0": ("csf",),
    "ptrs_1": ("csf",),
}
