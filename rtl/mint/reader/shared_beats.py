"""Gives each request its beats: those that come from memory, and the one that it shares with the request before."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...lib.sram import SramBank
from ...types import BEATS_WIDTH

__all__ = ["SharedBeats", "beats_of_request"]


def beats_of_request(carries: int) -> data.StructLayout:
    """``beats`` of a request, at least 1, the first of which is ``shared``: the last one of the request before on ``carry``."""
    return data.StructLayout({"beats": BEATS_WIDTH, "shared": 1, "carry": range(max(2, carries))})


class SharedBeats(Block):
    """Hands on beats from memory, and repeats the last beat of a request for the one that begins in it.

    Parameters
    ----------
    data_width : int
        Bits of a beat, power of two from 8 to 1024.
    carries : int
        Sequences of requests that share beats. Of each the last beat is kept: one in registers, more in an SRAM.

    Members
    -------
    requests : In(stream(beats_of_request))
        In the order of their beats.
    read_data : In(stream(data_width))
        Beats of the requests but for those that are shared.
    beats : Out(stream(data_width))
        All beats of the requests.
    last : Out(1)
        The beat is the last one of its request.

    Timing
    ------
    Combinational from ``read_data`` to ``beats``; one beat a cycle. With several carries a shared beat comes a cycle after its
    request.
    """

    latency = 0

    def __init__(self, *, data_width: int, carries: int = 1) -> None:
        self.data_width = check_power_of_two("Data width", data_width, 8, 1024)
        self.carries = check_integer("Carries", carries, 1, 1 << 16)
        super().__init__(
            {
                "requests": In(stream.Signature(beats_of_request(carries))),
                "read_data": In(stream.Signature(data_width)),
                "beats": Out(stream.Signature(data_width)),
                "last": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        request = self.requests.payload
        given = Signal(BEATS_WIDTH)  # beats of the request that have gone on
        first = Signal(init=1)
        repeats, known, moved, ends = signals("repeats known moved ends")
        kept = self._kept(m, known, moved & ends)
        m.d.comb += [
            repeats.eq(first & request.shared),
            self.beats.valid.eq(self.requests.valid & Mux(repeats, known, self.read_data.valid)),
            self.beats.payload.eq(Mux(repeats, kept, self.read_data.payload)),
            moved.eq(self.beats.valid & self.beats.ready),
            ends.eq(given + 1 == request.beats),
            self.last.eq(ends),
            self.read_data.ready.eq(self.requests.valid & ~repeats & self.beats.ready),
            self.requests.ready.eq(moved & ends),
        ]
        with m.If(moved):
            m.d.sync += [given.eq(Mux(ends, 0, given + 1)), first.eq(ends)]
        return m

    def _kept(self, m: Module, known: Signal, keeps: Any) -> Any:
        """The beat that is kept for the present request, and whether it is ``known``; ``keeps``: this beat is the next one."""
        if self.carries == 1:
            kept = Signal(self.data_width, reset_less=True)
            m.d.comb += known.eq(1)
            with m.If(keeps):
                m.d.sync += kept.eq(self.beats.payload)
            return kept
        m.submodules.kept = bank = SramBank(depth=self.carries, width=self.data_width)
        m.d.comb += [
            bank.read_enable.eq(self.requests.valid & ~known),
            bank.read_address.eq(self.requests.payload.carry),
            bank.write_mask.eq(keeps),
            bank.write_address.eq(self.requests.payload.carry),
            bank.write_data.eq(self.beats.payload),
        ]
        m.d.sync += known.eq(self.requests.valid & ~keeps)
        return bank.read_data
