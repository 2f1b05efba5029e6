"""Where records come from and go to: memory or an SRAM."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...types import read_request, write_beat, write_request
from .scratch_sram import ScratchSram

__all__ = ["RecordMemory"]


class RecordMemory(Block):
    """Joins one reading and two writing clients to a client port of a memory engine, or to a :class:`ScratchSram`.

    Parameters
    ----------
    sram_bytes : int
        Bytes of the SRAM, a power of two: at least 4 beats.
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    address_width : int
        Bits of a byte address.
    burst_beats : int
        Beats that may come before their request, power of two from 1 to 256.

    Members
    -------
    from_sram : In(1), to_sram : In(1), scatters : In(1)
        Where is read; where is written; the second client writes. They change while nothing is under way.
    read_request, write_request[2], write_data[2] : In(stream), read_data : Out(stream)
        Of the clients.
    memory_read_request, memory_write_request, memory_write_data : Out(stream), memory_read_data : In(stream)
        Of the memory engine.
    idle : Out(1)
        All that was taken for the SRAM is in it.

    Timing
    ------
    No cycle to memory and back; the SRAM as :class:`ScratchSram`.
    """

    latency = 0

    def __init__(self, *, sram_bytes: int, beat_bits: int, address_width: int, burst_beats: int) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.sram_bytes = check_power_of_two("SRAM bytes", sram_bytes, beat_bits // 2, 1 << 24)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        reads = stream.Signature(read_request(address_width))
        writes = stream.Signature(write_request(address_width))
        beats = stream.Signature(write_beat(beat_bits))
        super().__init__(
            {
                "from_sram": In(1),
                "to_sram": In(1),
                "scatters": In(1),
                "read_request": In(reads),
                "read_data": Out(stream.Signature(beat_bits)),
                "write_request": In(writes).array(2),
                "write_data": In(beats).array(2),
                "memory_read_request": Out(reads),
                "memory_read_data": In(stream.Signature(beat_bits)),
                "memory_write_request": Out(writes),
                "memory_write_data": Out(beats),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.sram = sram = ScratchSram(
            size=self.sram_bytes,
            beat_bits=self.beat_bits,
            address_width=self.address_width,
            burst_beats=self.burst_beats,
        )
        m.d.comb += self.idle.eq(sram.idle)

        def join(given: Any, taken: Any, chosen: Value) -> None:
            with m.If(chosen):
                m.d.comb += [
                    taken.payload.eq(given.payload),
                    taken.valid.eq(given.valid),
                    given.ready.eq(taken.ready),
                ]

        join(self.read_request, sram.read_request, self.from_sram)
        join(self.read_request, self.memory_read_request, ~self.from_sram)
        join(sram.read_data, self.read_data, self.from_sram)
        join(self.memory_read_data, self.read_data, ~self.from_sram)
        for name in ("write_request", "write_data"):
            for client, writes in enumerate((~self.scatters, self.scatters)):
                given = getattr(self, name)[client]
                join(given, getattr(sram, name), self.to_sram & writes)
                join(given, getattr(self, f"memory_{name}"), ~self.to_sram & writes)
        return m
