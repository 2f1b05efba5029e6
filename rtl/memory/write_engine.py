"""Writing half of the memory engine."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.onehot import onehot_select
from ..lib.stream import StreamQueue, StreamRegister, StreamSkid
from ..types import write_beat, write_request
from .axi4 import Axi4Signature, Burst
from .burst_arbiter import BurstArbiter
from .burst_log import BurstLog
from .read_engine import BLOCK_MEMORY_DEPTH, NORMAL_MEMORY, counted, error_report
from .request_splitter import PAGE_BYTES, RequestSplitter, burst_limit, burst_request, checked_clients

__all__ = ["WriteEngine"]


class WriteEngine(Block):
    """Serves write requests of several clients over the AW, W and B channels.

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
        The window: byte addresses of its first line and of the line after its last, bus-aligned;
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

    def parameters(self) -> dict[str, Any]:
        return {
            "w": self.data_width,
            "a": self.address_width,
            "i": self.id_width,
            "o": self.outstanding,
            "b": self.burst_beats,
            "d": counted(self.writer_depth),
        }

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

        may_issue = Signal()
        issue = Signal()
        closed = Signal()  # a burst has been held back: none may follow, since its data still wait in their queue
        clients = [self._client(m, n, acknowledged & (acknowledged_id == n)) for n in range(self.writers)]
        bursts = [splitter.burst for splitter, _ in clients]
        queues = [queue for _, queue in clients]

        # Commands: the clients' bursts in turn. `flying` bounds what the order queue has to hold.
        line_width = self.address_width - self.line_shift
        burst_shape = burst_request(line_address_width=line_width, burst_beats=self.burst_beats)
        in_page = min((PAGE_BYTES // self.line_bytes - 1).bit_length(), line_width)
        command_shape = data.StructLayout({"id": self.id_width, "burst": burst_shape, "last_line": line_width})
        checked_shape = data.StructLayout(
            {"client": self.writers, "id": self.id_width, "burst": burst_shape, "outside": 1}
        )
        order_shape = data.StructLayout({"client": self.writers, "beats": range(self.burst_beats + 1)})
        m.submodules.arbiter = arbiter = BurstArbiter(burst=burst_shape, clients=self.writers)
        m.submodules.command = command = StreamSkid(shape=command_shape)
        m.submodules.checked = checked = StreamRegister(shape=checked_shape)
        m.submodules.order = order = StreamQueue(shape=order_shape, depth=max(2, self.outstanding))
        chosen = arbiter.chosen.payload.burst
        chosen_client = arbiter.chosen.payload.client
        flying = Signal(range(self.outstanding + 1))  # bursts from their grant to their acknowledgement
        for n, burst in enumerate(bursts):
            connect(m, burst, arbiter.bursts[n])
        m.d.comb += [
            may_issue.eq(command.i.ready & (flying != self.outstanding) & ~self.halt & ~closed),
            issue.eq(may_issue & arbiter.chosen.valid),
            arbiter.chosen.ready.eq(may_issue),
            command.i.valid.eq(issue),
            command.i.payload.id.eq(chosen_client),
            command.i.payload.burst.eq(chosen),
            # It lies in one page, so its last line differs in the low bits only.
            command.i.payload.last_line.eq(
                Cat((chosen.line[:in_page] + chosen.beats - 1)[:in_page], chosen.line[in_page:])
            ),
            checked.i.valid.eq(command.o.valid),
            command.o.ready.eq(checked.i.ready),
            checked.i.payload.client.eq(Cat(command.o.payload.id == n for n in range(self.writers))),
            checked.i.payload.id.eq(command.o.payload.id),
            checked.i.payload.burst.eq(command.o.payload.burst),
            checked.i.payload.outside.eq(self._outside(command.o.payload.burst.line, command.o.payload.last_line)),
            self.busy.eq(flying != 0),
        ]
        present = checked.o.payload
        outside = present.outside
        dropped = Signal()
        m.d.sync += flying.eq(flying + issue - acknowledged - dropped)
        m.d.comb += [
            dropped.eq(checked.o.valid & (outside | closed)),
            bus.awvalid.eq(checked.o.valid & ~outside & ~closed),
            checked.o.ready.eq(bus.awready | outside | closed),
            bus.awid.eq(present.id),
            bus.awaddr.eq(present.burst.line << self.line_shift),
            bus.awlen.eq(present.burst.beats - 1),
            bus.awsize.eq(self.line_shift),
            bus.awburst.eq(Burst.INCR),
            bus.awcache.eq(NORMAL_MEMORY),
            bus.awprot.eq(0),
            order.i.valid.eq(bus.awvalid & bus.awready),
            order.i.payload.client.eq(present.client),
            order.i.payload.beats.eq(present.burst.beats),
        ]

        self._send(m, order, queues)

        due = Signal()  # what was held back has not been reported yet
        held_back = Signal(line_width)
        held_back_id = Signal(self.id_width)
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
        m.d.comb += [
            log.client.eq(acknowledged_id),
            log.retire.eq(acknowledged),
            self.error.write.eq(1),
            self.retired.eq(Mux(log.entry[line_width], retiring, 0)),
            self.error.address.eq(Mux(self.error.outside, held_back, log.entry[:line_width]) << self.line_shift),
        ]
        failed = acknowledged & acknowledged_response[1]
        m.d.sync += [
            self.error.valid.eq(failed | due),
            self.error.outside.eq(due & ~failed),
            self.error.client.eq(Mux(failed, acknowledged_id, held_back_id)),
            self.error.response.eq(acknowledged_response),
            due.eq(due & failed),
        ]
        with m.If(dropped & ~closed):
            m.d.sync += [
                closed.eq(1),
                due.eq(1),
                held_back.eq(present.burst.line),
                held_back_id.eq(present.id),
            ]
        return m

    def _outside(self, line: Value, last_line: Value) -> Value:
        """Whether a burst has a line outside the window."""
        first, end = self.window_begin[self.line_shift :], self.window_end[self.line_shift :]
        return (line < first) | ((end != 0) & (last_line >= end))

    def _send(self, m: Module, order: StreamQueue, queues: list[StreamQueue]) -> None:
        """W channel: the bursts of the order queue, beat by beat from their clients' queues, which hold them whole."""
        w_shape = data.StructLayout({"beat": write_beat(self.data_width), "last": 1})
        m.submodules.beat_skid = output = StreamSkid(shape=w_shape)
        sent = Signal(range(self.burst_beats))  # beats of the front burst that have gone
        client = order.o.payload.client
        ready_beats = Signal(self.writers)
        moves = Signal()
        last = Signal()
        m.d.comb += [
            last.eq(sent == order.o.payload.beats - 1),
            output.i.valid.eq(order.o.valid & (client & ready_beats).any()),
            output.i.payload.beat.as_value().eq(onehot_select(client, [queue.o.payload for queue in queues])),
            output.i.payload.last.eq(last),
            moves.eq(output.i.valid & output.i.ready),
            order.o.ready.eq(moves & last),
            self.beat.eq(Mux(moves, client, 0)),
            self.bus.wvalid.eq(output.o.valid),
            output.o.ready.eq(self.bus.wready),
            self.bus.wdata.eq(output.o.payload.beat.data),
            self.bus.wstrb.eq(output.o.payload.beat.strobe),
            self.bus.wlast.eq(output.o.payload.last),
        ]
        for n, queue in enumerate(queues):
            m.d.comb += [ready_beats[n].eq(queue.o.valid), queue.o.ready.eq(client[n] & moves)]
        with m.If(moves):
            m.d.sync += sent.eq(Mux(last, 0, sent + 1))

    def _client(self, m: Module, n: int, acknowledged: Any) -> tuple[RequestSplitter, StreamQueue]:
        """Splitter, queue and counts of client ``n``."""
        depth = self.writer_depth[n]
        splitter = RequestSplitter(
            address_width=self.address_width,
            line_bytes=self.line_bytes,
            limit=burst_limit(burst_beats=self.burst_beats, line_bytes=self.line_bytes, capacity=depth),
            burst_beats=self.burst_beats,
            credit_limit=depth,
            credit=0,
        )
        queue = StreamQueue(shape=write_beat(self.data_width), depth=depth, block_memory=depth >= BLOCK_MEMORY_DEPTH)
        m.submodules[f"splitter{n}"] = splitter
        m.submodules[f"queue{n}"] = queue
        connect(m, flipped(self.request[n]), splitter.request)
        connect(m, flipped(self.data[n]), queue.i)

        # Credit: beats in the queue that no burst has claimed yet. Bursts without an acknowledgement are counted.
        pending = Signal(range(self.outstanding + 2), name=f"pending{n}")  # one may wait for its turn
        leaves = Signal(name=f"leaves{n}")
        m.d.comb += [
            splitter.earned.eq(queue.i.valid & queue.i.ready),
            leaves.eq(splitter.burst.valid & splitter.burst.ready),
            self.idle[n].eq(~splitter.busy & (splitter.credit == 0) & (pending == 0)),
        ]
        m.d.sync += pending.eq(pending + leaves - acknowledged)
        return splitter, queue
