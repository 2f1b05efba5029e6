"""Writes the beats of several banks through one client of the memory engine."""

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ...lib.arbiter import RoundRobinArbiter
from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.onehot import onehot_select
from ...lib.signals import signals
from ...lib.stream import StreamRegister
from ...types import write_beat, write_request
from .bucket_bank import addressed_beat

__all__ = ["BeatMerger"]


class BeatMerger(Block):
    """Banks take turns; each beat is a request of its own.

    Parameters
    ----------
    banks : int
        Power of two from 2 to 64.
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    address_width : int
        Bits of a byte address.

    Members
    -------
    beats[banks] : In(stream(addressed_beat))
    base : In(address_width)
        Address of place 0, a multiple of the beat's bytes. Constant while a beat is inside.
    write_request, write_data : Out(stream)
        A client port of the memory engine.
    busy : Out(1)
        A beat is inside.

    Timing
    ------
    One cycle; a beat a cycle.
    """

    latency = 1

    def __init__(self, *, banks: int, beat_bits: int, address_width: int) -> None:
        self.banks = check_power_of_two("Banks", banks, 2, 64)
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        super().__init__(
            {
                "beats": In(stream.Signature(addressed_beat(beat_bits))).array(banks),
                "base": In(address_width),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(beat_bits))),
                "busy": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = RoundRobinArbiter(count=self.banks)
        m.submodules.chosen = chosen = StreamRegister(shape=addressed_beat(self.beat_bits))
        m.d.comb += [
            arbiter.requests.eq(Cat(beats.valid for beats in self.beats)),
            arbiter.advance.eq(chosen.i.ready),
            chosen.i.valid.eq(arbiter.requests.any()),
            chosen.i.payload.eq(onehot_select(arbiter.grant, [beats.payload for beats in self.beats])),
            *(beats.ready.eq(arbiter.grant[n] & chosen.i.ready) for n, beats in enumerate(self.beats)),
        ]
        beat = chosen.o.payload
        asked, given = signals("asked given")  # of the present beat, one has gone before the other
        request_goes, data_goes = self.write_request.ready | asked, self.write_data.ready | given
        with m.If(chosen.o.valid):
            m.d.sync += [asked.eq(request_goes & ~data_goes), given.eq(data_goes & ~request_goes)]
        m.d.comb += [
            self.write_request.valid.eq(chosen.o.valid & ~asked),
            self.write_data.valid.eq(chosen.o.valid & ~given),
            chosen.o.ready.eq(request_goes & data_goes),
            self.write_request.payload.address.eq(self.base + beat.place),
            self.write_request.payload.beats.eq(1),
            self.write_data.payload.data.eq(beat.data),
            self.write_data.payload.strobe.eq(beat.strobe),
            self.busy.eq(chosen.o.valid),
        ]
        return m
