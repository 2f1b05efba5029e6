"""An SRAM with the client ports of a memory engine."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...lib.sram import SramBank
from ...lib.stream import StreamQueue
from ...types import BEATS_WIDTH, read_request, write_beat, write_request

__all__ = ["ScratchSram"]


class ScratchSram(Block):
    """One reading and one writing client, which keep to different addresses at a time.

    Parameters
    ----------
    size : int
        Bytes, a power of two: at least 4 beats.
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    address_width : int
        Bits of a byte address; those above ``size`` are dropped.
    burst_beats : int
        Beats that may come before their request, power of two from 1 to 256.

    Members
    -------
    read_request, write_request, write_data : In(stream), read_data : Out(stream)
        As a client port of :class:`rtl.memory.memory_engine.MemoryEngine`.
    idle : Out(1)
        All that was taken from the writing client is in the SRAM.

    Timing
    ------
    Two cycles from a request to its first beat; a beat each way a cycle.
    """

    latency = 2

    def __init__(self, *, size: int, beat_bits: int, address_width: int, burst_beats: int) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.size = check_power_of_two("Size", size, beat_bits // 2, 1 << 24)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "read_request": In(stream.Signature(read_request(address_width))),
                "read_data": Out(stream.Signature(beat_bits)),
                "write_request": In(stream.Signature(write_request(address_width))),
                "write_data": In(stream.Signature(write_beat(beat_bits))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        beat_bytes = self.beat_bits // 8
        depth = self.size // beat_bytes
        m.submodules.beats = beats = SramBank(depth=depth, width=self.beat_bits, granularity=8)
        m.submodules.queue = queue = StreamQueue(shape=write_beat(self.beat_bits), depth=2 * self.burst_beats)
        connect(m, flipped(self.write_data), queue.i)

        def serves(request: Any, name: str, goes: Signal) -> tuple[Signal, Signal]:
            """The beat that is due, and how many are: the next request is taken with the last beat of the one before."""
            at, left = Signal(range(depth), name=f"{name}_at"), Signal(BEATS_WIDTH, name=f"{name}_left")
            m.d.comb += request.ready.eq((left == 0) | ((left == 1) & goes))
            with m.If(goes):
                m.d.sync += [at.eq(at + 1), left.eq(left - 1)]
            with m.If(request.valid & request.ready):
                m.d.sync += [
                    at.eq(request.payload.address >> (beat_bytes - 1).bit_length()),
                    left.eq(request.payload.beats),
                ]
            return at, left

        writes, fetches = signals("writes fetches")
        write_at, to_write = serves(self.write_request, "write", writes)
        read_at, to_read = serves(self.read_request, "read", fetches)
        m.d.comb += [
            writes.eq((to_write != 0) & queue.o.valid),
            queue.o.ready.eq(to_write != 0),
            beats.write_address.eq(write_at),
            beats.write_data.eq(queue.o.payload.data),
            beats.write_mask.eq(queue.o.payload.strobe & writes.replicate(beat_bytes)),
            self.idle.eq((to_write == 0) & (queue.level == 0)),
            fetches.eq((to_read != 0) & (self.read_data.ready | ~self.read_data.valid)),
            beats.read_enable.eq(fetches),
            beats.read_address.eq(read_at),
            self.read_data.payload.eq(beats.read_data),
        ]
        with m.If(self.read_data.ready | ~self.read_data.valid):
            m.d.sync += self.read_data.valid.eq(fetches)
        return m
