"""Sends the beats of issued bursts, in the order in which the bus accepted them."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.onehot import onehot_select
from ..lib.stream import StreamQueue, StreamSkid
from ..types import write_beat

__all__ = ["BeatSender", "bus_beat", "owned_burst"]


def owned_burst(*, clients: int, burst_beats: int) -> data.StructLayout:
    """Whose burst it is, one-hot, and how many beats it has."""
    return data.StructLayout({"client": clients, "beats": range(burst_beats + 1)})


def bus_beat(data_width: int) -> data.StructLayout:
    """A beat with its strobes; ``last`` ends its burst."""
    return data.StructLayout({"beat": write_beat(data_width), "last": 1})


class BeatSender(Block):
    """Remembers bursts, and takes the beats of each from its client's queue, which holds them whole.

    Parameters
    ----------
    data_width : int
        Bits of a beat, a power of two from 8 to 1024.
    clients : int
        At least 1.
    outstanding : int
        Bursts remembered, at least 1.
    burst_beats : int
        Longest burst, a power of two from 1 to 256.

    Members
    -------
    bursts : In(stream)
        Bursts in order; always taken while no more than ``outstanding`` are inside.
    beats[n] : In(stream)
        Of client n.
    sent : Out(stream)
        Beats in the order of the bursts. Straight from registers.
    moved : Out(clients)
        Bit n is high for one cycle for each beat of client n that is taken.

    Timing
    ------
    Two cycles from a burst to its first beat; one beat a cycle.
    """

    latency = 2

    def __init__(self, *, data_width: int, clients: int, outstanding: int, burst_beats: int) -> None:
        self.data_width = check_power_of_two("Data width", data_width, 8, 1024)
        self.clients = check_integer("Clients", clients, 1, 1 << 16)
        self.outstanding = check_integer("Outstanding bursts", outstanding, 1, 1 << 16)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        super().__init__(
            {
                "bursts": In(stream.Signature(owned_burst(clients=clients, burst_beats=burst_beats))),
                "beats": In(stream.Signature(write_beat(data_width))).array(clients),
                "sent": Out(stream.Signature(bus_beat(data_width))),
                "moved": Out(clients),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.order = order = StreamQueue(shape=self.bursts.payload.shape(), depth=max(2, self.outstanding))
        m.submodules.beat_skid = output = StreamSkid(shape=bus_beat(self.data_width))
        connect(m, output.o, flipped(self.sent))
        # The burst in progress is in registers. One that finds no other before it goes there at once.
        client = Signal(self.clients)  # whose it is, one-hot; none without a burst
        left = Signal(range(max(2, self.burst_beats) + 1))  # its beats that have not gone
        last = Signal()  # one beat is left
        ready_beats = Signal(self.clients)
        moves = Signal()
        takes = Signal()  # the next burst
        following = Signal.like(self.bursts.payload)
        m.d.comb += [
            takes.eq(~client.any() | (moves & last)),
            following.eq(Mux(order.o.valid, order.o.payload, self.bursts.payload)),
            order.i.payload.eq(self.bursts.payload),
            order.i.valid.eq(self.bursts.valid & (order.o.valid | ~takes)),
            self.bursts.ready.eq(order.i.ready),
            order.o.ready.eq(takes),
            output.i.valid.eq((client & ready_beats).any()),
            output.i.payload.beat.as_value().eq(onehot_select(client, [beats.payload for beats in self.beats])),
            output.i.payload.last.eq(last),
            moves.eq(output.i.valid & output.i.ready),
            self.moved.eq(Mux(moves, client, 0)),
        ]
        for n, beats in enumerate(self.beats):
            m.d.comb += [ready_beats[n].eq(beats.valid), beats.ready.eq(client[n] & moves)]
        with m.If(takes):
            m.d.sync += [
                client.eq(Mux(order.o.valid | self.bursts.valid, following.client, 0)),
                left.eq(following.beats),
                last.eq(following.beats == 1),
            ]
        with m.Elif(moves):
            m.d.sync += [left.eq(left - 1), last.eq(left == 2)]
        return m
