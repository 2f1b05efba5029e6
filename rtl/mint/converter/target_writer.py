"""Packs the records of a target and writes its arrays."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.unit import Fault, Unit
from ...regs.converter_map import POINTER_BITS
from ...types import write_beat, write_request
from ..bit_packer import BitPacker, packed_beat
from ..records import record_group
from .regions import RegionWriter
from .settings import HAS_FRAME, HAS_POINTERS, HAS_RECORDS, is_one_of, record_widths, settings_layout
from .streams import ENTRY_BITS

__all__ = ["TargetWriter"]


class TargetWriter(Unit):
    """Three clients of the memory engine: for the records of the target, its frame, its blocks.

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

    Members
    -------
    settings : In(settings_layout)
        Constant from ``launch`` on.
    launch : In(1)
        Pulse: a target begins.
    records, pointers, beats : In(stream)
        As :class:`rtl.mint.converter.encoder.Encoder` gives them.
    write_request[3], write_data[3] : streams
        Client ports of the memory engine.
    done : Out(1)
        All of the target has been handed to the memory engine.
    records_overflow, frame_overflow, blocks_overflow : Out(1), records_bytes, frame_bytes, blocks_bytes : Out(64)
        See :class:`rtl.mint.converter.regions.RegionWriter`.

    Timing
    ------
    As :class:`rtl.mint.bit_packer.BitPacker`.
    """

    def __init__(self, *, beat_bits: int, lanes: int, value_bits: int, address_width: int, burst_beats: int) -> None:
        check_power_of_two("Beat bits", beat_bits, 128, 1024)
        check_power_of_two("Lanes", lanes, 2, 16)
        check_power_of_two("Value bits", value_bits, 8, 32)
        check_integer("Address width", address_width, 13, 64)
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.value_bits = value_bits
        self.address_width = address_width
        self.burst_beats = burst_beats
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "launch": In(1),
                "records": In(stream.Signature(record_group(lanes, ENTRY_BITS))),
                "pointers": In(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": In(stream.Signature(packed_beat(beat_bits))),
                "write_request": Out(stream.Signature(write_request(address_width))).array(3),
                "write_data": Out(stream.Signature(write_beat(beat_bits))).array(3),
                "done": Out(1),
                **{f"{name}_overflow": Out(1) for name in REGIONS},
                **{f"{name}_bytes": Out(64) for name in REGIONS},
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "b": self.beat_bits,
            "l": self.lanes,
            "v": self.value_bits,
            "a": self.address_width,
            "n": self.burst_beats,
        }

    def faults(self) -> Sequence[Fault]:
        return tuple(
            Fault(f"{name}_overflow", getattr(self, f"{name}_overflow"), getattr(self, f"{name}_bytes"))
            for name in REGIONS
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        settings = self.settings
        target = settings.formats.target
        writers = {}
        for n, (name, formats) in enumerate(REGIONS.items()):
            m.submodules[f"{name}_writer"] = writers[name] = writer = RegionWriter(
                beat_bits=self.beat_bits, address_width=self.address_width, burst_beats=self.burst_beats
            )
            connect(m, writer.write_request, flipped(self.write_request[n]))
            connect(m, writer.write_data, flipped(self.write_data[n]))
            m.d.comb += [
                writer.launch.eq(self.launch & is_one_of(target, *formats)),
                writer.address.eq(settings[f"target_{name}"]),
                writer.space.eq(settings[f"target_{name}_bytes"]),
                getattr(self, f"{name}_overflow").eq(writer.overflow),
                getattr(self, f"{name}_bytes").eq(writer.number),
            ]
        begun = Signal()
        m.d.sync += begun.eq(self.launch)  # the writers say so a cycle later
        m.d.comb += self.done.eq(~self.launch & ~begun & Cat(writer.done for writer in writers.values()).all())

        m.submodules.records = records = BitPacker(beat_bits=self.beat_bits, lanes=self.lanes, width=ENTRY_BITS)
        m.submodules.pointers = pointers = BitPacker(beat_bits=self.beat_bits, lanes=self.lanes, width=POINTER_BITS)
        first, second = record_widths(settings, target, settings.widths.target_run)
        has_pointers, has_blocks = is_one_of(target, *HAS_POINTERS), is_one_of(target, *REGIONS["blocks"])
        m.d.comb += [
            records.region.valid.eq(self.launch & is_one_of(target, *HAS_RECORDS)),  # the packers are empty
            records.region.payload.width.eq(first + second + Mux(has_blocks, 0, self.value_bits)),
            pointers.region.valid.eq(self.launch & has_pointers),
            pointers.region.payload.width.eq(settings.pointers.target),
        ]
        connect(m, flipped(self.records), records.groups)
        connect(m, flipped(self.pointers), pointers.groups)
        connect(m, records.beats, writers["records"].beats)
        frame, blocks = writers["frame"].beats, writers["blocks"].beats
        m.d.comb += blocks.payload.eq(self.beats.payload)
        with m.If(has_pointers):
            m.d.comb += [
                frame.valid.eq(pointers.beats.valid),
                frame.payload.eq(pointers.beats.payload),
                pointers.beats.ready.eq(frame.ready),
            ]
        with m.Else():
            m.d.comb += [
                frame.valid.eq(self.beats.valid),
                frame.payload.eq(self.beats.payload),
                self.beats.ready.eq(frame.ready),
            ]
        with m.If(has_blocks):
            m.d.comb += [blocks.valid.eq(self.beats.valid), self.beats.ready.eq(blocks.ready)]
        return m


#: What a target has, and the formats that have it.
REGIONS = {"records": HAS_RECORDS, "frame": HAS_FRAME, "blocks": ("bsr",)}
