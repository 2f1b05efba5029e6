"""Writing half of the memory engine."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..types import write_beat, write_request
from .axi4 import Axi4Signature, Burst
from .beat_sender import BeatSender
from .burst_arbiter import BurstArbiter
from .burst_log import BurstLog
from .read_engine import NORMAL_MEMORY, error_report
from .request_splitter import burst_request, checked_clients
from .window_guard import WindowGuard
from .write_client import WriteClient

__all__ = ["WriteEngine"]


class WriteEngine(Block):
    """Serves write requests of several clients over the AW, W and B channels::

        request[n], data[n] --> WriteClient -- bursts --> BurstArbiter --> WindowGuard --> AW      B --> idle, retired, error
                                     +------ beats --> BeatSender --> W

    Each client's data is collected in a queue of its own; a burst is issued when all of its beats have arrived, so the W
    channel never waits for a client. W beats follow the order of the accepted AW, and none goes out before its AW has
    been accepted. ``bready`` is always high.

    A burst that does not lie within the window never reaches the bus: it is reported, and from then on, until a reset,
    nothing is written at all.

    Parameters
    ----------
    data_width, address_width, id_width : int
        Of the bus. ``id_width`` must hold the largest client number.
    writers : int
        Clients, at least 1.
    outstanding : int
        Bursts issued and not acknowledged, over all clients, at least 1.
    burst_beats : int
        Longest burst in beats, a power of two from 1 to 256.
    writer_depth : Sequence[int]
        Queue depth of each client in beats, at least 2. Twice ``burst_beats`` lets one client fill the bus.

    Members
    -------
    request[n] : In(stream), data[n] : In(stream)
        Client n: byte address (aligned down to the bus) and beats; data with strobes, which may come before its request.
    idle[n] : Out(1)
        Every accepted request and every accepted beat of client n has been acknowledged. Low from the cycle after
        the first of them was accepted.
    retired : Out(writers)
        Bit n is high for one cycle for each request of client n, in order, whose last burst has been acknowledged. A
        request of zero beats is never retired.
    bus : Out(Axi4Signature)
        AW, W and B.
    window_begin, window_end : In(address_width)
        The window: byte addresses of its first line and of the line after its last, bus-aligned.
        ``window_end = 0`` is the end of the address space. Constant while not all clients are idle.
    halt : In(1)
        While high no further burst is given to the bus; those given come to their end.
    busy : Out(1)
        A burst is offered to the bus, on its way, or not yet acknowledged.
    error : Out(error_report)
        ``valid`` for one cycle for each burst acknowledged with SLVERR or DECERR, and once for the first one held back.
    beat : Out(writers)
        Bit n is high for one cycle for each beat of client n that leaves for the bus.

    Timing
    ------
    From the cycle in which request and data have arrived to AWVALID at least 6 cycles; one AW and one W beat a cycle.
    """

    request_latency = 6

    def __init__(
        self,
        *,
        data_width: int,
        address_width: int,
        id_width: int,
        writers: int,
        outstanding: int,
        burst_beats: int,
        writer_depth: Sequence[int],
    ) -> None:
        depths = checked_clients(
            kind="Writer",
            clients=writers,
            depths=writer_depth,
            least_depth=2,
            outstanding=outstanding,
            burst_beats=burst_beats,
        )
        if 1 << id_width < writers:
            raise ValueError(f"Identifiers of {id_width} bits are too few for {writers} writers")
        self.data_width = data_width
        self.address_width = address_width
        self.id_width = id_width
        self.writers = writers
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.writer_depth = depths
        self.line_bytes = data_width // 8
        self.line_shift = (self.line_bytes - 1).bit_length()
        super().__init__(
            {
                "request": In(stream.Signature(write_request(address_width))).array(writers),
                "data": In(stream.Signature(write_beat(data_width))).array(writers),
                "idle": Out(1).array(writers),
                "retired": Out(writers),
                "bus": Out(
                    Axi4Signature(data_width=data_width, address_width=address_width, id_width=id_width, read=False)
                ),
                "window_begin": In(address_width),
                "window_end": In(address_width),
                "halt": In(1),
                "busy": Out(1),
                "error": Out(error_report(clients=writers, address_width=address_width)),
                "beat": Out(writers),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        bus = self.bus

        # Acknowledgements: one register stage.
        acknowledged = Signal()
        acknowledged_id = Signal(self.id_width)
        acknowledged_response = Signal(2)
        m.d.comb += bus.bready.eq(1)
        m.d.sync += [
            acknowledged.eq(bus.bvalid),
            acknowledged_id.eq(bus.bid),
            acknowledged_response.eq(bus.bresp),
        ]

        line_width = self.address_width - self.line_shift
        m.submodules.arbiter = arbiter = BurstArbiter(
            burst=burst_request(line_address_width=line_width, burst_beats=self.burst_beats), clients=self.writers
        )
        m.submodules.guard = guard = WindowGuard(
            address_width=self.address_width,
            line_bytes=self.line_bytes,
            id_width=self.id_width,
            burst_beats=self.burst_beats,
        )
        bursts = {"outstanding": self.outstanding, "burst_beats": self.burst_beats}
        m.submodules.sender = sender = BeatSender(data_width=self.data_width, clients=self.writers, **bursts)
        for n, depth in enumerate(self.writer_depth):
            client = WriteClient(data_width=self.data_width, address_width=self.address_width, depth=depth, **bursts)
            m.submodules[f"client{n}"] = client
            connect(m, flipped(self.request[n]), client.request)
            connect(m, flipped(self.data[n]), client.data)
            connect(m, client.bursts, arbiter.bursts[n])
            connect(m, client.beats, sender.beats[n])
            m.d.comb += [
                client.acknowledged.eq(acknowledged & (acknowledged_id == n)),
                self.idle[n].eq(client.idle),
            ]

        # The clients' bursts in turn. `flying` bounds what the sender has to remember.
        chosen = arbiter.chosen.payload.burst
        chosen_client = arbiter.chosen.payload.client
        flying = Signal(range(self.outstanding + 1))  # bursts from their grant to their acknowledgement
        may_issue = Signal()
        issue = Signal()
        present = guard.bursts.payload
        m.d.comb += [
            guard.first_line.eq(self.window_begin[self.line_shift :]),
            guard.end_line.eq(self.window_end[self.line_shift :]),
            may_issue.eq(guard.commands.ready & (flying != self.outstanding) & ~self.halt & ~guard.closed),
            issue.eq(may_issue & arbiter.chosen.valid),
            arbiter.chosen.ready.eq(may_issue),
            guard.commands.valid.eq(issue),
            guard.commands.payload.id.eq(chosen_client),
            guard.commands.payload.burst.eq(chosen),
            self.busy.eq(flying != 0),
            bus.awvalid.eq(guard.bursts.valid),
            guard.bursts.ready.eq(bus.awready),
            bus.awid.eq(present.id),
            bus.awaddr.eq(present.burst.line << self.line_shift),
            bus.awlen.eq(present.burst.beats - 1),
            bus.awsize.eq(self.line_shift),
            bus.awburst.eq(Burst.INCR),
            bus.awcache.eq(NORMAL_MEMORY),
            bus.awprot.eq(0),
            sender.bursts.valid.eq(bus.awvalid & bus.awready),
            sender.bursts.payload.client.eq(Cat(present.id == n for n in range(self.writers))),
            sender.bursts.payload.beats.eq(present.burst.beats),
            self.beat.eq(sender.moved),
            bus.wvalid.eq(sender.sent.valid),
            sender.sent.ready.eq(bus.wready),
            bus.wdata.eq(sender.sent.payload.beat.data),
            bus.wstrb.eq(sender.sent.payload.beat.strobe),
            bus.wlast.eq(sender.sent.payload.last),
        ]
        m.d.sync += flying.eq(flying + issue - acknowledged - guard.dropped)

        m.submodules.log = log = BurstLog(clients=self.writers, outstanding=self.outstanding, width=line_width + 1)
        # Written one cycle later: no response can come so early.
        m.d.sync += [
            log.push.eq(issue),
            log.push_client.eq(chosen_client),
            log.push_entry.eq(Cat(chosen.line, chosen.ends)),
        ]
        retiring = Signal(self.writers)  # whose burst was acknowledged in the cycle before
        for n in range(self.writers):
            m.d.sync += retiring[n].eq(acknowledged & (acknowledged_id == n))
        failed = acknowledged & acknowledged_response[1]
        held_back = guard.held_back
        line = Mux(self.error.outside, held_back.payload.line, log.entry[:line_width])
        m.d.comb += [
            log.client.eq(acknowledged_id),
            log.retire.eq(acknowledged),
            self.retired.eq(Mux(log.entry[line_width], retiring, 0)),
            held_back.ready.eq(~failed),
            self.error.write.eq(1),
            self.error.address.eq(line << self.line_shift),
        ]
        m.d.sync += [
            self.error.valid.eq(failed | held_back.valid),
            self.error.outside.eq(held_back.valid & ~failed),
            self.error.client.eq(Mux(failed, acknowledged_id, held_back.payload.id)),
            self.error.response.eq(acknowledged_response),
        ]
        return m
