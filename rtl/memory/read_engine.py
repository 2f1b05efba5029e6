"""Reading half of the memory engine."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue, StreamSkid
from ..types import read_request
from .axi4 import Axi4Signature, Burst
from .burst_arbiter import BurstArbiter
from .burst_log import BurstLog
from .request_splitter import RequestSplitter, burst_limit, burst_request, checked_clients

__all__ = ["BLOCK_MEMORY_DEPTH", "NORMAL_MEMORY", "ReadEngine", "error_report"]

BLOCK_MEMORY_DEPTH = 64  # queues of this depth or more go to block memory: they pass it one cycle later
NORMAL_MEMORY = 0b0011  # AxCACHE: normal, non-cacheable, bufferable


def error_report(*, clients: int, address_width: int) -> data.StructLayout:
    """An error: of which burst (byte address), for which client, SLVERR or DECERR.

    ``outside``: not a response; the burst lies outside the write window and was held back.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "write": 1,
            "client": range(max(2, clients)),
            "response": 2,
            "outside": 1,
            "address": address_width,
        }
    )


class ReadEngine(Block):
    """Serves read requests of several clients over the AR and R channels.

    Each client has a queue of its own. A burst is issued only after space for all of its beats has been reserved in that
    queue, so ``rready`` is always high and no client waits for a slower one. Bursts of the clients are
    issued in turn; the identifier is the client's number, and beats may come back in any order across identifiers.

    Parameters
    ----------
    data_width, address_width, id_width : int
        Of the bus. ``id_width`` must hold the largest client number.
    readers : int
        Clients, at least 1.
    outstanding : int
        Bursts in flight, over all clients, at least 1.
    burst_beats : int
        Longest burst in beats, a power of two from 1 to 256. A client's bursts are also at most half of its queue.
    reader_depth : Sequence[int]
        Queue depth of each client in beats.

    Members
    -------
    request[n] : In(stream), data[n] : Out(stream)
        Client n: byte address and beats in, beats out in order.
    bus : Out(Axi4Signature)
        AR and R.
    halt : In(1)
        While high no further burst is given to the bus; those given come to their end.
    busy : Out(1)
        A burst is outstanding or offered to the bus.
    error : Out(error_report)
        ``valid`` for one cycle for each beat with SLVERR or DECERR. The beat itself is delivered as it came.
    beat : Out(readers)
        Bit n is high for one cycle for each beat that arrives for client n.

    Timing
    ------
    Request to ARVALID at least 5 cycles, R beat to ``data`` at least 2 (3 for queues of 64 and more); one AR and one
    R beat a cycle.
    """

    request_latency = 5

    def __init__(
        self,
        *,
        data_width: int,
        address_width: int,
        id_width: int,
        readers: int,
        outstanding: int,
        burst_beats: int,
        reader_depth: Sequence[int],
    ) -> None:
        depths = checked_clients(
            kind="Reader",
            clients=readers,
            depths=reader_depth,
            least_depth=1,
            outstanding=outstanding,
            burst_beats=burst_beats,
        )
        if 1 << id_width < readers:
            raise ValueError(f"Identifiers of {id_width} bits are too few for {readers} readers")
        self.data_width = data_width
        self.address_width = address_width
        self.id_width = id_width
        self.readers = readers
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.reader_depth = depths
        self.line_bytes = data_width // 8
        self.line_shift = (self.line_bytes - 1).bit_length()
        super().__init__(
            {
                "request": In(stream.Signature(read_request(address_width))).array(readers),
                "data": Out(stream.Signature(data_width)).array(readers),
                "bus": Out(
                    Axi4Signature(data_width=data_width, address_width=address_width, id_width=id_width, write=False)
                ),
                "halt": In(1),
                "busy": Out(1),
                "error": Out(error_report(clients=readers, address_width=address_width)),
                "beat": Out(readers),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        bus = self.bus

        # What arrives: one register stage, then the client's queue, where space is reserved.
        arrived = Signal()
        arrived_data = Signal(self.data_width, reset_less=True)
        arrived_id = Signal(self.id_width)
        arrived_response = Signal(2)
        arrived_last = Signal()
        m.d.comb += bus.rready.eq(1)
        m.d.sync += [
            arrived.eq(bus.rvalid),
            arrived_data.eq(bus.rdata),
            arrived_id.eq(bus.rid),
            arrived_response.eq(bus.rresp),
            arrived_last.eq(bus.rlast),
        ]

        bursts = [self._client(m, n, arrived & (arrived_id == n), arrived_data) for n in range(self.readers)]

        # Requests: the clients' bursts in turn, through a register slice to the bus.
        line_width = self.address_width - self.line_shift
        command_shape = data.StructLayout({"id": self.id_width, "line": line_width, "len": 8})
        m.submodules.command = command = StreamSkid(shape=command_shape)
        shape = burst_request(line_address_width=line_width, burst_beats=self.burst_beats)
        m.submodules.arbiter = arbiter = BurstArbiter(burst=shape, clients=self.readers)
        for n, burst in enumerate(bursts):
            connect(m, burst, arbiter.bursts[n])
        chosen = arbiter.chosen.payload.burst
        chosen_client = arbiter.chosen.payload.client
        flying = Signal(range(self.outstanding + 1))  # bursts from their grant to their last beat
        may_issue = Signal()
        issue = Signal()
        finish = Signal()
        m.d.comb += [
            may_issue.eq(command.i.ready & (flying != self.outstanding) & ~self.halt),
            issue.eq(may_issue & arbiter.chosen.valid),
            arbiter.chosen.ready.eq(may_issue),
            command.i.valid.eq(issue),
            command.i.payload.id.eq(chosen_client),
            command.i.payload.line.eq(chosen.line),
            command.i.payload.len.eq(chosen.beats - 1),
            finish.eq(arrived & arrived_last),
            self.busy.eq(flying != 0),
        ]
        m.d.sync += flying.eq(flying + issue - finish)
        m.d.comb += [
            bus.arvalid.eq(command.o.valid),
            command.o.ready.eq(bus.arready),
            bus.arid.eq(command.o.payload.id),
            bus.araddr.eq(command.o.payload.line << self.line_shift),
            bus.arlen.eq(command.o.payload.len),
            bus.arsize.eq(self.line_shift),
            bus.arburst.eq(Burst.INCR),
            bus.arcache.eq(NORMAL_MEMORY),
            bus.arprot.eq(0),
        ]

        m.submodules.log = log = BurstLog(clients=self.readers, outstanding=self.outstanding, width=line_width)
        # Written one cycle later: no response can come so early.
        m.d.sync += [
            log.push.eq(issue),
            log.push_client.eq(chosen_client),
            log.push_entry.eq(chosen.line),
        ]
        m.d.comb += [
            log.client.eq(arrived_id),
            log.retire.eq(finish),
            self.error.write.eq(0),
            self.error.address.eq(log.entry << self.line_shift),
        ]
        m.d.sync += [
            self.error.valid.eq(arrived & arrived_response[1]),
            self.error.client.eq(arrived_id),
            self.error.response.eq(arrived_response),
        ]
        return m

    def _client(self, m: Module, n: int, arrives: Any, arrived_data: Signal) -> Any:
        """Splitter, queue and credit of client ``n``; returns the stream of its bursts."""
        depth = self.reader_depth[n]
        splitter = RequestSplitter(
            address_width=self.address_width,
            line_bytes=self.line_bytes,
            limit=burst_limit(burst_beats=self.burst_beats, line_bytes=self.line_bytes, capacity=depth),
            burst_beats=self.burst_beats,
            credit_limit=depth,
            credit_init=depth,
        )
        queue = StreamQueue(shape=self.data_width, depth=depth, block_memory=depth >= BLOCK_MEMORY_DEPTH)
        m.submodules[f"splitter{n}"] = splitter
        m.submodules[f"queue{n}"] = queue
        connect(m, flipped(self.request[n]), splitter.request)
        connect(m, queue.o, flipped(self.data[n]))

        # Its credit is the space that is neither filled nor reserved for a burst in flight.
        left = Signal(name=f"left{n}")
        m.d.sync += left.eq(queue.o.valid & queue.o.ready)
        m.d.comb += [
            splitter.earned.eq(left),
            queue.i.valid.eq(arrives),
            queue.i.payload.eq(arrived_data),
            self.beat[n].eq(arrives),
        ]
        return splitter.burst
