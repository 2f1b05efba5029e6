"""Reads the arrays of a source and takes their records apart."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...regs.converter_map import POINTER_BITS
from ...types import read_request
from ..bit_unpacker import BitUnpacker
from ..records import record_group
from .regions import RegionReader
from .settings import is_one_of, record_widths, settings_layout
from .streams import COORDINATE_BITS, ENTRY_BITS

__all__ = ["SourceReader"]


class SourceReader(Block):
    """Two clients of the memory engine: one for the records of the source, one for its frame.

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

    Members
    -------
    settings : In(settings_layout)
        Constant from ``launch`` on.
    launch : In(1), record_beats : In(address_width), frame_beats : In(address_width)
        Pulse: all of the source is read, these beats of its two regions.
    read_request[2], read_data[2] : streams
        Client ports of the memory engine.
    records : Out(stream(record_group)), pointers : Out(stream(record_group)), beats : Out(stream(beat_bits))
        Records; row pointers of CSR; the mask of ZVC or the values of a dense matrix.

    Timing
    ------
    As :class:`rtl.mint.bit_unpacker.BitUnpacker`.
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
        self._records = BitUnpacker(beat_bits=beat_bits, lanes=lanes, width=ENTRY_BITS, count_bits=POINTER_BITS)
        self._pointers = BitUnpacker(
            beat_bits=beat_bits, lanes=lanes, width=POINTER_BITS, count_bits=COORDINATE_BITS + 2
        )
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "launch": In(1),
                "record_beats": In(address_width),
                "frame_beats": In(address_width),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(beat_bits)).array(2),
                "records": Out(stream.Signature(record_group(lanes, ENTRY_BITS))),
                "pointers": Out(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": Out(stream.Signature(beat_bits)),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"b": self.beat_bits, "l": self.lanes, "v": self.value_bits, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.records = records = self._records
        m.submodules.pointers = pointers = self._pointers
        settings = self.settings
        places = (
            ("records", settings.source_records, self.record_beats),
            ("frame", settings.source_frame, self.frame_beats),
        )
        for n, (name, address, beats) in enumerate(places):
            m.submodules[f"{name}_region"] = region = RegionReader(
                beat_bytes=self.beat_bits // 8, address_width=self.address_width
            )
            connect(m, region.read_request, flipped(self.read_request[n]))
            m.d.comb += [
                region.region.valid.eq(self.launch),  # the reader is empty
                region.region.payload.address.eq(address),
                region.region.payload.beats.eq(beats),
            ]

        source = settings.formats.source
        has_pointers = is_one_of(source, "csr")
        first, second = record_widths(settings, source, settings.widths.source_run)
        ask_records, ask_pointers = Signal(), Signal()
        with m.If(records.request.ready):
            m.d.sync += ask_records.eq(0)
        with m.If(pointers.request.ready):
            m.d.sync += ask_pointers.eq(0)
        with m.If(self.launch):
            m.d.sync += [ask_records.eq(~is_one_of(source, "dense")), ask_pointers.eq(has_pointers)]
        m.d.comb += [
            records.request.valid.eq(ask_records),
            records.request.payload.width.eq(first + second + self.value_bits),
            records.request.payload.count.eq(settings.count),
            pointers.request.valid.eq(ask_pointers),
            pointers.request.payload.width.eq(settings.pointers.source),
            pointers.request.payload.count.eq(settings.rows + 1),
            pointers.beats.valid.eq(self.read_data[1].valid & has_pointers),
            pointers.beats.payload.eq(self.read_data[1].payload),
            self.beats.valid.eq(self.read_data[1].valid & ~has_pointers),
            self.beats.payload.eq(self.read_data[1].payload),
        ]
        with m.If(has_pointers):
            m.d.comb += self.read_data[1].ready.eq(pointers.beats.ready)
        with m.Else():
            m.d.comb += self.read_data[1].ready.eq(self.beats.ready)
        connect(m, flipped(self.read_data[0]), records.beats)
        connect(m, records.groups, flipped(self.records))
        connect(m, pointers.groups, flipped(self.pointers))
        return m
