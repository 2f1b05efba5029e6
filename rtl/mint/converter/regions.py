"""Reads a region of memory as beats, and writes beats to a region that has space for so many bytes."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...lib.stream import StreamQueue
from ...types import BEATS_WIDTH, read_request, write_beat, write_request
from ..bit_packer import packed_beat

__all__ = ["RegionReader", "RegionWriter"]

#: Beats of a request of a region's reader; a power of two.
REQUEST_BEATS = 1 << (BEATS_WIDTH - 1)


class RegionReader(Block):
    """Asks a client port of the memory engine for all beats of a region, however many.

    Parameters
    ----------
    beat_bytes : int
        Bytes of a beat, power of two.
    address_width : int
        Bits of a byte address.

    Members
    -------
    region : In(stream({address, beats}))
        A multiple of ``beat_bytes``; any number of beats.
    read_request : Out(stream(read_request))
        From registers.

    Timing
    ------
    One cycle; a request a cycle.
    """

    latency = 1

    def __init__(self, *, beat_bytes: int, address_width: int) -> None:
        self.beat_bytes = check_power_of_two("Bytes of a beat", beat_bytes, 1, 128)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        region = data.StructLayout({"address": address_width, "beats": address_width})
        super().__init__(
            {
                "region": In(stream.Signature(region)),
                "read_request": Out(stream.Signature(read_request(address_width))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        address = Signal(self.address_width)
        left = Signal(self.address_width)
        large = left > REQUEST_BEATS
        m.d.comb += [
            self.region.ready.eq(left == 0),
            self.read_request.valid.eq(left != 0),
            self.read_request.payload.address.eq(address),
            self.read_request.payload.beats.eq(Mux(large, REQUEST_BEATS, left)),
        ]
        with m.If(self.region.valid & self.region.ready):
            m.d.sync += [address.eq(self.region.payload.address), left.eq(self.region.payload.beats)]
        with m.If(self.read_request.valid & self.read_request.ready):
            m.d.sync += [
                address.eq(address + REQUEST_BEATS * self.beat_bytes),
                left.eq(Mux(large, left - REQUEST_BEATS, 0)),
            ]
        return m


class RegionWriter(Block):
    """Writes packed beats to consecutive addresses, as bursts, while the region has space for their bytes.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 64 to 1024.
    address_width : int
        Bits of a byte address.
    burst_beats : int
        Beats of a request, a power of two.

    Members
    -------
    launch : In(1), address : In(address_width), space : In(64)
        Pulse: a region begins; its first byte, a multiple of the beat's; its bytes.
    beats : In(stream(packed_beat))
        Those of one region, ``last`` with its last one. A beat without bytes is not written.
    flush : In(1)
        While it is high a burst that no beat follows at once is sent, however short.
    write_request, write_data : Out(stream)
        A client port of the memory engine. A request comes after the beats of its burst: the client's queue must hold them.
    done : Out(1)
        All of the region has been handed to the memory engine.
    overflow : Out(1), number : Out(64)
        A beat went beyond the space and was not written; bytes that are needed so far. They stay until the reset, and nothing
        is taken any more.

    Timing
    ------
    No cycle from a beat to its write; a beat a cycle.
    """

    latency = 0

    def __init__(self, *, beat_bits: int, address_width: int, burst_beats: int) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 64, 1024)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "launch": In(1),
                "address": In(address_width),
                "space": In(64),
                "beats": In(stream.Signature(packed_beat(beat_bits))),
                "flush": In(1),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(beat_bits))),
                "done": Out(1),
                "overflow": Out(1),
                "number": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.requests = requests = StreamQueue(shape=write_request(self.address_width), depth=4)
        connect(m, flipped(self.write_request), requests.o)
        address = Signal(self.address_width)  # of the burst that is being collected
        space = Signal(64)  # behind the beats so far
        collected = Signal(range(self.burst_beats + 1))
        open_ = Signal()  # beats of a region are still to come
        beat = self.beats.payload
        written, fits = signals("written fits")
        send = Signal()
        takes = Signal()  # also in the cycle of a request: full bursts follow one another
        ends = Signal()  # nothing more comes for this burst
        m.d.comb += [
            ends.eq(~open_ | (self.flush & ~self.beats.valid)),
            takes.eq(~send | requests.i.ready),
            written.eq(beat.bytes != 0),
            fits.eq(beat.bytes <= space),
            send.eq((collected == self.burst_beats) | (ends & (collected != 0))),
            requests.i.valid.eq(send),
            requests.i.payload.address.eq(address),
            requests.i.payload.beats.eq(collected),
            self.write_data.valid.eq(self.beats.valid & open_ & written & fits & takes & ~self.overflow),
            self.write_data.payload.data.eq(beat.data),
            self.write_data.payload.strobe.eq(beat.strobe),
            self.beats.ready.eq(open_ & fits & takes & ~self.overflow & (self.write_data.ready | ~written)),
            self.done.eq(~open_ & (collected == 0) & (requests.level == 0)),
        ]
        with m.If(send & requests.i.ready):
            m.d.sync += [collected.eq(0), address.eq(address + (collected << (self.beat_bits // 8 - 1).bit_length()))]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += [
                collected.eq(Mux(send, 0, collected) + written),
                space.eq(space - beat.bytes),
                self.number.eq(self.number + beat.bytes),
                open_.eq(~beat.last),
            ]
        with m.If(self.beats.valid & open_ & ~fits & ~self.overflow):
            m.d.sync += [self.overflow.eq(1), self.number.eq(self.number + beat.bytes)]
        with m.If(self.launch):
            m.d.sync += [open_.eq(1), address.eq(self.address), space.eq(self.space), self.number.eq(0)]
        return m
