"""Stream plumbing: queues and register slices with ready/valid ports.

Every port is ``amaranth.lib.stream.Signature(shape)``. ``valid`` never waits for ``ready``; a payload stays as it is
while ``valid`` is high and ``ready`` is low.
"""

from typing import Any

from amaranth.hdl import Array, Module, Mux, ShapeLike, Signal
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from .arbiter import RoundRobinArbiter
from .block import Block
from .sram import block_memory

__all__ = ["RoundRobinArbiter", "StreamQueue", "StreamRegister", "StreamSkid"]


class StreamQueue(Block):
    """First-in first-out queue between two streams.

    Parameters
    ----------
    shape : ShapeLike
        Payload of both streams.
    depth : int
        Items held, at least 1. Depth 1 passes an item every second cycle, any other depth one a cycle.
    block_memory : bool
        False: registers (depth up to 2) or a memory with an asynchronous read (LUT RAM). True: a memory with a
        synchronous read, which maps to block RAM or an SRAM macro; ``depth`` must be at least 3.

    Members
    -------
    i : In(stream), o : Out(stream)
        ``i.ready`` depends on registers only, so does ``o.valid``.
    level : Out(range(depth + 1))
        Items inside, registered: an item counts from the cycle after it entered to the cycle in which it leaves.

    Timing
    ------
    An item that enters an empty queue is at ``o`` after ``latency`` cycles: 1, or 2 with ``block_memory``.
    """

    def __init__(self, *, shape: ShapeLike, depth: int, block_memory: bool = False) -> None:
        if not isinstance(depth, int) or depth < 1:
            raise ValueError(f"Queue depth must be a positive integer, not {depth!r}")
        if block_memory and depth < 3:
            raise ValueError(f"A queue in block memory must be at least 3 deep, not {depth!r}")
        self.shape = shape
        self.depth = depth
        self.block_memory = bool(block_memory)
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "level": Out(range(depth + 1))}
        )

    @property
    def latency(self) -> int:
        return 2 if self.block_memory else 1

    def build(self, platform: Any) -> Module:
        m = Module()
        # Of a depth that is a power of two the highest bit says that nothing more fits.
        full = self.level[-1] if self.depth & (self.depth - 1) == 0 else self.level == self.depth
        m.d.comb += self.i.ready.eq(~full)
        enter = Signal()
        leave = Signal()
        m.d.comb += [enter.eq(self.i.valid & self.i.ready), leave.eq(self.o.valid & self.o.ready)]
        with m.If(enter & ~leave):
            m.d.sync += self.level.eq(self.level + 1)
        with m.Elif(leave & ~enter):
            m.d.sync += self.level.eq(self.level - 1)
        if self.block_memory:
            self._block(m, enter)
        else:
            self._asynchronous(m, enter, leave)
        return m

    def _asynchronous(self, m: Module, enter: Signal, leave: Signal) -> None:
        m.d.comb += self.o.valid.eq(self.level != 0)
        if self.depth == 1:
            with m.If(enter):
                m.d.sync += self.o.payload.eq(self.i.payload)
            return

        write_index = Signal(range(self.depth))
        read_index = Signal(range(self.depth))
        with m.If(enter):
            m.d.sync += write_index.eq(_next(write_index, self.depth))
        with m.If(leave):
            m.d.sync += read_index.eq(_next(read_index, self.depth))
        if self.depth == 2:
            slots = Array(Signal(self.shape, reset_less=True, name=f"slot{n}") for n in range(2))
            # The free one follows the input whether or not an item comes, so that it does not wait to be told.
            for n, slot in enumerate(slots):
                with m.If(self.i.ready & (write_index == n)):
                    m.d.sync += slot.eq(self.i.payload)
            m.d.comb += self.o.payload.eq(Mux(read_index, slots[1], slots[0]))
            return

        m.submodules.storage = storage = memory.Memory(shape=self.shape, depth=self.depth, init=[])
        write = storage.write_port()
        read = storage.read_port(domain="comb")
        m.d.comb += [write.addr.eq(write_index), write.data.eq(self.i.payload), write.en.eq(enter)]
        m.d.comb += [read.addr.eq(read_index), self.o.payload.eq(read.data)]

    def _block(self, m: Module, enter: Signal) -> None:
        # The memory's own output register is the head of the queue: all items but that one lie in the memory.
        write_index = Signal(range(self.depth))
        read_index = Signal(range(self.depth))
        # Never full and read from its first free place: no word is read while it is written.
        m.submodules.storage = storage = block_memory(shape=self.shape, depth=self.depth)
        write = storage.write_port()
        read = storage.read_port()
        fetch = Signal()
        m.d.comb += fetch.eq(Mux(self.o.valid, self.o.ready & (self.level > 1), self.level != 0))
        m.d.comb += [write.addr.eq(write_index), write.data.eq(self.i.payload), write.en.eq(enter)]
        m.d.comb += [read.addr.eq(read_index), read.en.eq(fetch), self.o.payload.eq(read.data)]
        with m.If(enter):
            m.d.sync += write_index.eq(_next(write_index, self.depth))
        with m.If(fetch):
            m.d.sync += [read_index.eq(_next(read_index, self.depth)), self.o.valid.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)


class StreamSkid(Block):
    """Register slice that cuts every path between its two sides, at one item a cycle: a queue of two in registers.

    Parameters
    ----------
    shape : ShapeLike
        Payload of both streams.

    Members
    -------
    i : In(stream), o : Out(stream)
        ``o.valid``, ``o.payload`` and ``i.ready`` come straight from registers. Latency 1.

    Timing
    ------
    ``latency`` cycle, 1; one item a cycle.
    """

    latency = 1

    def __init__(self, *, shape: ShapeLike) -> None:
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def build(self, platform: Any) -> Module:
        m = Module()
        full = Signal()  # the item in `spare` waits behind the one at the output
        ready = Signal(init=1)  # the contrary, for the other side: `full` has a reader in each bit
        spare = Signal(self.shape, reset_less=True)
        m.d.comb += self.i.ready.eq(ready)
        with m.If(self.o.ready | ~self.o.valid):
            m.d.sync += [full.eq(0), ready.eq(1)]
            m.d.sync += self.o.valid.eq(full | self.i.valid)
            with m.If(full):
                m.d.sync += self.o.payload.eq(spare)
            with m.Else():
                m.d.sync += self.o.payload.eq(self.i.payload)
        with m.Elif(self.i.valid):
            m.d.sync += [full.eq(1), ready.eq(0)]
        # Whether or not it is needed, so that its register waits for neither side.
        with m.If(~full):
            m.d.sync += spare.eq(self.i.payload)
        return m


class StreamRegister(Block):
    """Forward register slice: half the storage of a :class:`StreamSkid`, but ``i.ready`` follows ``o.ready`` at once.

    Parameters
    ----------
    shape : ShapeLike
        Payload of both streams.

    Members
    -------
    i : In(stream), o : Out(stream)
        ``o.valid`` and ``o.payload`` come straight from registers. Latency 1, one item a cycle.

    Timing
    ------
    ``latency`` cycle, 1; one item a cycle.
    """

    latency = 1

    def __init__(self, *, shape: ShapeLike) -> None:
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(self.o.ready | ~self.o.valid)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        return m


def _next(index: Signal, depth: int) -> Any:
    if depth & (depth - 1) == 0:
        return index + 1
    return Mux(index == depth - 1, 0, index + 1)
