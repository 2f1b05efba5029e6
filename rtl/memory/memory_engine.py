"""Memory engine: several streaming readers and writers on one AXI4 manager port."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.unit import Fault, Unit
from ..types import read_request, write_beat, write_request
from .axi4 import Axi4Signature
from .read_engine import ReadEngine, error_report
from .request_splitter import checked_clients
from .write_engine import WriteEngine

__all__ = ["MemoryEngine"]


class MemoryEngine(Unit):
    """AXI4 manager for ``readers`` reading and ``writers`` writing clients::

        read_request[n] --> splitter --> (room reserved) --+--> AR      R --> queue[n] --> read_data[n]
        write_request[n] -> splitter --> (data collected) -+--> AW      B --> write_idle[n], error
        write_data[n] ---------------> queue[n] --------------> W

    Reads and writes are independent of each other: a client that wants to read what it wrote waits for ``write_idle``.

    Parameters
    ----------
    data_width : int
        Bits of a beat: a power of two from 64 to 1024.
    address_width : int
        Bits of a byte address, 13 to 64.
    readers, writers : int
        Clients, at least 1 each.
    outstanding : int
        Bursts in flight, for each direction, over all clients.
    burst_beats : int
        Longest burst, a power of two from 1 to 256. Bursts also end at 4 KiB and at multiples of their longest length.
    reader_depth : Sequence[int] or int
        Beats in each reader's queue. Its bursts are at most half as long; to stream without gaps over a memory with a
        latency of L cycles a client needs a depth of about L.
    writer_depth : Sequence[int] or int, optional
        Beats in each writer's queue, at least 2. By default two longest bursts.

    Members
    -------
    read_request[n] : In(stream), read_data[n] : Out(stream)
        Byte address and beats in; beats out, in the order of the requests. A request can be followed by more at once.
    write_request[n] : In(stream), write_data[n] : In(stream)
        Byte address and beats; data and byte strobes. Exactly ``beats`` data beats belong to each request, in order.
    write_idle[n] : Out(1)
        Every accepted request and beat of this writer has been acknowledged by memory.
    write_retired : Out(writers)
        Bit n is high for one cycle for each request of writer n, in order, that memory has acknowledged to its last byte.
    bus : Out(Axi4Signature)
        The bus. AR, AW and W payloads and valids come straight from registers, AWVALID through a gate for what lies
        outside the window; ``rready`` and ``bready`` stay high.
    error : Out(error_report)
        The first SLVERR or DECERR since ``clear``: whether of a write, client, response, byte address of the burst. Of errors
        due in one cycle a read's is reported, then a write's, then what was held back.
        Data that came with an error is delivered all the same, so clients are never left waiting. ``outside``: a write
        burst outside the window, which was held back; no further one is issued until a reset.
    clear : In(1)
        Forget the error.
    write_begin, write_end : In(address_width)
        The window of what may be written: first byte, and first byte behind. 0 is the end of the address space.
        Bus-aligned; constant while not all writers are idle.
    halt : In(1), busy : Out(1)
        Before a reset in the middle of work: raise ``halt``, wait until ``busy`` is low, then reset. The bus sees only
        whole transactions. ``busy`` means bursts in flight, not queued requests.
    read_beat : Out(readers), write_beat : Out(writers)
        Events, bit n for client n: one beat moved.

    Timing
    ------
    ``read_latency`` cycles from a request to its first beat beyond what the memory itself takes (one more for queues of
    64 beats and more). One R beat and one W beat a cycle, also with one-beat requests of a single client.
    """

    read_latency = 7

    def __init__(
        self,
        *,
        data_width: int,
        address_width: int,
        readers: int,
        writers: int,
        outstanding: int,
        burst_beats: int,
        reader_depth: Sequence[int] | int,
        writer_depth: Sequence[int] | int | None = None,
    ) -> None:
        if data_width not in (64, 128, 256, 512, 1024):
            raise ValueError(f"Memory data width must be 64, 128, 256, 512 or 1024, not {data_width!r}")
        if not isinstance(address_width, int) or not 13 <= address_width <= 64:
            raise ValueError(f"Memory address width must be from 13 to 64, not {address_width!r}")
        bursts = {"outstanding": outstanding, "burst_beats": burst_beats}
        if isinstance(reader_depth, int):
            reader_depth = [reader_depth] * readers
        self.reader_depth = checked_clients(
            kind="Reader", clients=readers, depths=reader_depth, least_depth=1, **bursts
        )
        if writer_depth is None:
            writer_depth = max(2, 2 * min(burst_beats, 4096 * 8 // data_width))
        if isinstance(writer_depth, int):
            writer_depth = [writer_depth] * writers
        self.writer_depth = checked_clients(
            kind="Writer", clients=writers, depths=writer_depth, least_depth=2, **bursts
        )
        self.data_width = data_width
        self.address_width = address_width
        self.readers = readers
        self.writers = writers
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.id_width = max(1, (max(readers, writers) - 1).bit_length())
        super().__init__(
            {
                "read_request": In(stream.Signature(read_request(address_width))).array(readers),
                "read_data": Out(stream.Signature(data_width)).array(readers),
                "write_request": In(stream.Signature(write_request(address_width))).array(writers),
                "write_data": In(stream.Signature(write_beat(data_width))).array(writers),
                "write_idle": Out(1).array(writers),
                "write_retired": Out(writers),
                "bus": Out(Axi4Signature(data_width=data_width, address_width=address_width, id_width=self.id_width)),
                "error": Out(error_report(clients=max(readers, writers), address_width=address_width)),
                "clear": In(1),
                "write_begin": In(address_width),
                "write_end": In(address_width),
                "halt": In(1),
                "busy": Out(1),
                "read_beat": Out(readers),
                "write_beat": Out(writers),
            }
        )

    def faults(self) -> Sequence[Fault]:
        error, at = self.error, self.error.address
        return (
            Fault("write_outside", error.valid & error.outside, at),
            Fault("axi_write", error.valid & error.write, at),
            Fault("axi_read", error.valid, at),
        )

    def activity(self) -> Mapping[str, Value]:
        return {"memory_writes": ~Cat(*self.write_idle).all()}

    def build(self, platform: Any) -> Module:
        m = Module()
        common = {
            "data_width": self.data_width,
            "address_width": self.address_width,
            "id_width": self.id_width,
            "outstanding": self.outstanding,
            "burst_beats": self.burst_beats,
        }
        m.submodules.read = read = ReadEngine(readers=self.readers, reader_depth=self.reader_depth, **common)
        m.submodules.write = write = WriteEngine(writers=self.writers, writer_depth=self.writer_depth, **common)
        for n in range(self.readers):
            connect(m, flipped(self.read_request[n]), read.request[n])
            connect(m, read.data[n], flipped(self.read_data[n]))
        for n in range(self.writers):
            connect(m, flipped(self.write_request[n]), write.request[n])
            connect(m, flipped(self.write_data[n]), write.data[n])
            m.d.comb += self.write_idle[n].eq(write.idle[n])
        for half in (read, write):
            for name, member in half.bus.signature.members.items():
                inner, outer = getattr(half.bus, name), getattr(self.bus, name)
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        m.d.comb += [
            read.halt.eq(self.halt),
            write.halt.eq(self.halt),
            write.window_begin.eq(self.write_begin),
            write.window_end.eq(self.write_end),
            self.busy.eq(read.busy | write.busy),
            self.write_retired.eq(write.retired),
            self.read_beat.eq(read.beat),
            self.write_beat.eq(write.beat),
        ]

        with m.If(self.clear):
            m.d.sync += self.error.valid.eq(0)
        with m.If(~self.error.valid | self.clear):
            for report in (write.error, read.error):
                with m.If(report.valid):
                    m.d.sync += [
                        self.error.valid.eq(1),
                        self.error.write.eq(report.write),
                        self.error.client.eq(report.client),
                        self.error.response.eq(report.response),
                        self.error.outside.eq(report.outside),
                        self.error.address.eq(report.address),
                    ]
        return m
