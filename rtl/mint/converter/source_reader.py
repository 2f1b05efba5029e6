"""Reads the arrays of a source and takes their records apart."""

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...regs.converter_map import POINTER_BITS
from ...types import read_request
from ..bit_unpacker import BitUnpacker
from ..records import record_group
from .conversions import ALL, Conversions, check_conversions
from .regions import RegionReader
from .settings import HAS_FRAME, HAS_RECORDS, is_one_of, settings_layout, source_widths
from .streams import COORDINATE_BITS, record_bits

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
    conversions : Conversions
        Those that it is built for: nothing else is.

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

    def __init__(
        self, *, beat_bits: int, lanes: int, value_bits: int, address_width: int, conversions: Conversions = ALL
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        check_conversions(conversions)
        self.conversions = conversions
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "launch": In(1),
                "record_beats": In(address_width),
                "frame_beats": In(address_width),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(beat_bits)).array(2),
                "records": Out(stream.Signature(record_group(lanes, record_bits(conversions.triples)))),
                "pointers": Out(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": Out(stream.Signature(beat_bits)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        reads = self.conversions.reads
        if reads & {*HAS_RECORDS}:
            self._region(m, 0, "records", self.record_beats)
            self._records(m)
        if reads & {*HAS_FRAME}:
            self._region(m, 1, "frame", self.frame_beats)
            has_pointers = is_one_of(self.settings.formats.source, "csr", among=reads)
            given = self.read_data[1]
            m.d.comb += self.beats.payload.eq(given.payload)
            with m.If(~has_pointers):
                m.d.comb += [self.beats.valid.eq(given.valid), given.ready.eq(self.beats.ready)]
            if "csr" in reads:
                self._pointers(m, has_pointers)
        return m

    def _region(self, m: Module, client: int, name: str, beats: Value) -> None:
        m.submodules[f"{name}_region"] = region = RegionReader(
            beat_bytes=self.beat_bits // 8, address_width=self.address_width
        )
        connect(m, region.read_request, flipped(self.read_request[client]))
        m.d.comb += [
            region.region.valid.eq(self.launch),  # the reader is empty
            region.region.payload.address.eq(self.settings[f"source_{name}"]),
            region.region.payload.beats.eq(beats),
        ]

    def _asks(self, m: Module, unpacker: BitUnpacker, has: Value) -> None:
        """A request at the launch, where the source has such records."""
        asks = Signal(name="asks")
        with m.If(unpacker.request.ready):
            m.d.sync += asks.eq(0)
        with m.If(self.launch):
            m.d.sync += asks.eq(has)
        m.d.comb += unpacker.request.valid.eq(asks)

    def _records(self, m: Module) -> None:
        settings, reads = self.settings, self.conversions.reads
        source = settings.formats.source
        m.submodules.records = records = BitUnpacker(
            beat_bits=self.beat_bits,
            lanes=self.lanes,
            width=record_bits(self.conversions.triples),
            count_bits=POINTER_BITS,
        )
        self._asks(m, records, is_one_of(source, *HAS_RECORDS, among=reads))
        first, second, third = source_widths(settings, self.conversions)
        m.d.comb += [
            records.request.payload.width.eq(first + second + third + self.value_bits),
            records.request.payload.count.eq(settings.count),
        ]
        connect(m, flipped(self.read_data[0]), records.beats)
        connect(m, records.groups, flipped(self.records))

    def _pointers(self, m: Module, has_pointers: Value) -> None:
        m.submodules.pointers = pointers = BitUnpacker(
            beat_bits=self.beat_bits, lanes=self.lanes, width=POINTER_BITS, count_bits=COORDINATE_BITS + 2
        )
        self._asks(m, pointers, has_pointers)
        given = self.read_data[1]
        m.d.comb += [
            pointers.request.payload.width.eq(self.settings.pointers.source),
            pointers.request.payload.count.eq(self.settings.rows + 1),
            pointers.beats.payload.eq(given.payload),
        ]
        with m.If(has_pointers):
            m.d.comb += [pointers.beats.valid.eq(given.valid), given.ready.eq(pointers.beats.ready)]
        connect(m, pointers.groups, flipped(self.pointers))
