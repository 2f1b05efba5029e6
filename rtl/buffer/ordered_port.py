"""The memory side of a buffet: reads and writes reach the memory in the order in which they were accepted."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.signals import signals

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
    reserve : In(1), reserve_ready : Out(1)
        ``reserve`` takes the place of one answer and is allowed while ``reserve_ready`` is high.
    write_data : In(width), write_data_valid : In(1)
        The entry of each accepted write, at the moment of acceptance and in order. At most three cycles of advance.
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

    Timing
    ------
    One read and one write a cycle, in the order of acceptance.
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
                "reserve_ready": Out(1),
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

    def build(self, platform: Any) -> Module:
        m = Module()
        outstanding = self._answers(m)
        reading, writing = self.memory_read, self.memory_write
        m.d.comb += self.advance.eq((~reading.valid | reading.ready) & (~writing.valid | writing.ready))
        with m.If(self.advance):
            m.d.sync += [reading.valid.eq(self.read), writing.valid.eq(self.write)]
            m.d.sync += [reading.payload.eq(self.read_address), writing.payload.address.eq(self.write_address)]
        with m.Else():
            with m.If(reading.ready):
                m.d.sync += reading.valid.eq(0)
            with m.If(writing.ready):
                m.d.sync += writing.valid.eq(0)

        # Entries wait in a small memory. The write that carries an address knows that its entry is there, so the memory
        # needs no flags; whether the write was accepted is known late, so the entry is stored in any case.
        m.submodules.entries = entries = memory.Memory(shape=self.width, depth=DATA_IN_FLIGHT, init=[])
        store, fetch = entries.write_port(), entries.read_port(domain="comb")
        stored, fetched = signals("stored fetched", range(DATA_IN_FLIGHT))
        m.d.comb += [store.en.eq(1), store.addr.eq(stored), store.data.eq(self.write_data)]
        m.d.comb += [fetch.addr.eq(fetched), writing.payload.data.eq(fetch.data)]
        with m.If(self.write_data_valid):
            m.d.sync += stored.eq(stored + 1)
        with m.If(writing.valid & writing.ready):
            m.d.sync += fetched.eq(fetched + 1)
        m.d.comb += self.busy.eq(outstanding | (stored != fetched))
        return m

    def _answers(self, m: Module) -> Value:
        """Answers wait in a small memory: three counters say how many reads were accepted, answered and taken."""
        depth = self.queue_depth
        accepted, answered, taken = signals("accepted answered taken", range(2 * depth))
        m.submodules.answers = answers = memory.Memory(shape=self.width, depth=depth, init=[])
        store, fetch = answers.write_port(), answers.read_port(domain="comb")
        m.d.comb += [
            store.en.eq(self.memory_response.valid),
            store.addr.eq(answered),
            store.data.eq(self.memory_response.data),
            fetch.addr.eq(taken),
            self.read_data.payload.eq(fetch.data),
            self.read_data.valid.eq(answered != taken),
            self.reserve_ready.eq(accepted ^ taken != depth),
        ]
        for counter, counts in (
            (accepted, self.reserve),
            (answered, self.memory_response.valid),
            (taken, self.read_data.valid & self.read_data.ready),
        ):
            with m.If(counts):
                m.d.sync += counter.eq(counter + 1)
        return accepted != taken
