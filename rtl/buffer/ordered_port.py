"""The memory side of a buffet: reads and writes reach the memory in the order in which they were accepted."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.stream import StreamQueue

__all__ = ["OrderedPort", "memory_answer", "memory_write"]

DATA_IN_FLIGHT = 4  # written entries between acceptance and memory: three stages, rounded up to a power of two


def memory_answer(width: int) -> data.StructLayout:
    """What the memory answers to a read, in order."""
    return data.StructLayout({"data": width, "valid": 1})


def memory_write(width: int, address_width: int) -> data.StructLayout:
    """One entry on its way to the memory."""
    return data.StructLayout({"data": width, "address": address_width})


class OrderedPort(Block):
    """Issues one read and one write at a time to an external memory and keeps the answers until they are taken.

    Parameters
    ----------
    width : int
        Bits of an entry.
    address_width : int
        Bits of a memory address.
    queue_depth : int
        Answers kept, also the number of reads in flight; a power of two. One read a cycle needs the memory's latency
        plus 5.

    Members
    -------
    reserve : In(1), room : Out(1)
        ``reserve`` takes the place of one answer and is allowed while ``room`` is high.
    write_data : In(width), write_data_valid : In(1)
        The entry of each accepted write, at the moment of acceptance and in order; at most three cycles of advance.
    advance : Out(1)
        High when the operation below is taken over at the end of this cycle.
    read, write : In(1), read_address, write_address : In(address_width)
        The next pair of operations. A pair leaves only when both its halves have been granted, so a read never passes
        an earlier write nor a write an earlier read. The two of one pair touch different entries.
    read_data : Out(stream)
        Answers in order.
    memory_read, memory_response, memory_write
        The external memory: requests as streams (addresses straight from registers, data from a small queue), answers
        that cannot be refused.
    busy : Out(1)
        Something is on its way to the memory or an answer is not yet taken.
    """

    def __init__(self, *, width: int, address_width: int, queue_depth: int) -> None:
        if not isinstance(queue_depth, int) or queue_depth < 2 or queue_depth & (queue_depth - 1):
            raise ValueError(f"Answer queue depth must be a power of two of at least 2, not {queue_depth!r}")
        self.width = width
        self.address_width = address_width
        self.queue_depth = queue_depth
        super().__init__(
            {
                "reserve": In(1),
                "room": Out(1),
                "write_data": In(width),
                "write_data_valid": In(1),
                "advance": Out(1),
                "read": In(1),
                "write": In(1),
                "read_address": In(address_width),
                "write_address": In(address_width),
                "read_data": Out(stream.Signature(width)),
                "memory_read": Out(stream.Signature(address_width)),
                "memory_response": In(memory_answer(width)),
                "memory_write": Out(stream.Signature(memory_write(width, address_width))),
                "busy": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"w": self.width, "a": self.address_width, "q": self.queue_depth}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.answers = answers = StreamQueue(shape=self.width, depth=self.queue_depth)
        connect(m, flipped(self.read_data), answers.o)
        m.d.comb += [answers.i.valid.eq(self.memory_response.valid), answers.i.payload.eq(self.memory_response.data)]
        in_flight = Signal(range(self.queue_depth + 1))  # reads accepted whose answer has not left
        leaves = Signal()
        m.d.comb += [leaves.eq(self.read_data.valid & self.read_data.ready), self.room.eq(~in_flight[-1])]
        with m.If(self.reserve & ~leaves):
            m.d.sync += in_flight.eq(in_flight + 1)
        with m.Elif(leaves & ~self.reserve):
            m.d.sync += in_flight.eq(in_flight - 1)

        m.submodules.entries = entries = StreamQueue(shape=self.width, depth=DATA_IN_FLIGHT)
        m.d.comb += [entries.i.valid.eq(self.write_data_valid), entries.i.payload.eq(self.write_data)]

        reading, writing = self.memory_read, self.memory_write
        m.d.comb += [
            self.advance.eq((~reading.valid | reading.ready) & (~writing.valid | writing.ready)),
            writing.payload.data.eq(entries.o.payload),
            entries.o.ready.eq(writing.valid & writing.ready),
            self.busy.eq((in_flight != 0) | entries.o.valid),
        ]
        with m.If(self.advance):
            m.d.sync += [reading.valid.eq(self.read), writing.valid.eq(self.write)]
            m.d.sync += [reading.payload.eq(self.read_address), writing.payload.address.eq(self.write_address)]
        with m.Else():
            with m.If(reading.ready):
                m.d.sync += reading.valid.eq(0)
            with m.If(writing.ready):
                m.d.sync += writing.valid.eq(0)
        return m
