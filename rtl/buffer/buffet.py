"""Buffet: a queue in a memory, with random access relative to its head.

The storage idiom of Pellauer et al. (ASPLOS 2019), as section 3.2 of the Tailors paper describes it.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.error import StickyError
from ..lib.sram import SramBank
from .ordered_port import OrderedPort, memory_answer, memory_write
from .sizes import check_address, check_buffer, check_width
from .standalone import StandaloneBuffer

__all__ = ["Buffet", "BuffetControl", "BuffetError"]


class BuffetError(enum.Enum, shape=1):
    """What an illegal operation is called. The operation is taken and dropped; contents and state stay as they were."""

    NONE = 0
    SHRINK_BEYOND_OCCUPANCY = 1


class BuffetControl(Block):
    """Controller of a buffet over an external memory.

    Parameters
    ----------
    width : int
        Bits of an entry.
    entries : int
        Largest capacity, at least 2.
    address_width : int
        Bits of a memory address. Default: enough for ``entries``.
    queue_depth : int
        Answers kept for the reader, and reads in flight; a power of two.

    Members
    -------
    fill : In(stream(width))
        Appends at the tail. Waits while there is no credit.
    read : In(stream(index)), read_data : Out(stream(width))
        The entry ``index`` places from the head. Waits until it has arrived. Answers in order.
    update : In(stream({index, data}))
        Replaces a present entry, waits for an absent one. Reads and updates that wait together are looked at in turn.
    shrink : In(stream(count))
        Always ready; a cycle of its own. Frees ``count`` entries at the head: indices fall by it, credit rises by it.
    base, capacity : In
        First memory address, entries in use (1 to ``entries``). Change only while ``idle``.
    credit, occupancy : Out
        Free entries and present entries; their sum is ``capacity``.
    idle : Out(1)
        Empty, and nothing on its way.
    error : Out(BuffetError), clear_error : In(1)
        The first illegal operation since reset or clear; forgets it.
    memory_read, memory_response, memory_write
        Of :class:`OrderedPort`. Requests leave two cycles after acceptance.

    Timing
    ------
    One Fill (or Update) and one Read a cycle. A filled entry can be read from the next cycle on.
    """

    stages = 2  # acceptance to memory

    def __init__(self, *, width: int, entries: int, address_width: int | None = None, queue_depth: int = 8) -> None:
        check_width(width)
        check_buffer(entries)
        address_width = (entries - 1).bit_length() if address_width is None else address_width
        check_address(entries, address_width)
        self.width = width
        self.entries = entries
        self.address_width = address_width
        self.queue_depth = queue_depth
        index, count = range(entries), range(entries + 1)
        super().__init__(
            {
                "fill": In(stream.Signature(width)),
                "read": In(stream.Signature(index)),
                "read_data": Out(stream.Signature(width)),
                "update": In(stream.Signature(data.StructLayout({"data": width, "index": index}))),
                "shrink": In(stream.Signature(count)),
                "base": In(address_width),
                "capacity": In(count),
                "credit": Out(count),
                "occupancy": Out(count),
                "idle": Out(1),
                "error": Out(BuffetError),
                "clear_error": In(1),
                "memory_read": Out(stream.Signature(address_width)),
                "memory_response": In(memory_answer(width)),
                "memory_write": Out(stream.Signature(memory_write(width, address_width))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.port = port = OrderedPort(
            width=self.width, address_width=self.address_width, queue_depth=self.queue_depth
        )
        connect(m, port.read_data, flipped(self.read_data))
        connect(m, port.memory_read, flipped(self.memory_read))
        connect(m, port.memory_write, flipped(self.memory_write))
        m.d.comb += port.memory_response.eq(self.memory_response)
        m.submodules.sticky = sticky = StickyError(codes=BuffetError)
        m.d.comb += [sticky.clear.eq(self.clear_error), self.error.eq(sticky.error)]

        capacity, occupancy = self.capacity, self.occupancy
        place = range(self.entries)
        head = Signal(place)  # rolling offset of index 0
        tail = Signal(place)  # rolling offset of the next Fill
        m.d.comb += [self.credit.eq(capacity - occupancy), self.idle.eq((occupancy == 0) & ~port.busy)]

        def wrapped(value: Any) -> Any:
            """``value`` brought below the capacity when it is less than twice that."""
            reduced = value - capacity
            return Mux(reduced[-1], value, reduced)[: len(head)]

        # Reads and updates share one translation; when both wait they are looked at in turn, so neither holds up the
        # other.
        turn = Signal()
        updating = Signal()
        index = Signal(place)
        hit = Signal()
        able = Signal()
        filling = Signal()
        shrinking = self.shrink.valid
        m.d.sync += turn.eq(~turn)
        m.d.comb += [
            updating.eq(self.update.valid & (~self.read.valid | turn)),
            index.eq(Mux(updating, self.update.payload.index, self.read.payload)),
            hit.eq(index < occupancy),
            able.eq(port.advance & ~shrinking),
            self.update.ready.eq(updating & hit & able),
            self.read.ready.eq(~updating & hit & able & port.reserve_ready),
            self.fill.ready.eq(able & ~self.update.ready & (occupancy != capacity)),
            filling.eq(self.fill.valid & self.fill.ready),
        ]
        reading = self.read.valid & self.read.ready

        amount = self.shrink.payload
        remaining = Signal(len(occupancy) + 1)  # negative: the Shrink asks for more than there is
        m.d.comb += [
            self.shrink.ready.eq(1),
            remaining.eq(occupancy - Mux(shrinking, amount, 2 ** len(occupancy) - 1)),
            sticky.raised[BuffetError.SHRINK_BEYOND_OCCUPANCY.value].eq(shrinking & remaining[-1]),
        ]
        frees = shrinking & ~remaining[-1]
        with m.If(filling | frees):
            m.d.sync += occupancy.eq(remaining)
        with m.If(frees & (remaining == 0)):  # the capacity may change while empty, so start again from the base
            m.d.sync += [head.eq(0), tail.eq(0)]
        with m.Elif(frees):
            m.d.sync += head.eq(wrapped(head + amount))
        with m.Elif(filling):
            m.d.sync += tail.eq(Mux(tail + 1 == capacity, 0, tail + 1))

        # Each operation carries the pointers of its own moment to the adders that turn them into an address.
        start = Signal(place)
        reach = Signal(place)
        arrives_at = Signal(place)
        reads = Signal()
        updates = Signal()
        enters = Signal()
        with m.If(port.advance):
            m.d.sync += [start.eq(head), reach.eq(index), arrives_at.eq(tail)]
            m.d.sync += [reads.eq(reading), updates.eq(self.update.ready), enters.eq(filling)]
        read_place = wrapped(start + reach)
        m.d.comb += [
            port.reserve.eq(reading),
            port.read.eq(reads),
            port.write.eq(updates | enters),
            port.read_address.eq(self.base + read_place),
            port.write_address.eq(self.base + Mux(updates, read_place, arrives_at)),
            port.write_data_valid.eq(filling | self.update.ready),
            port.write_data.eq(Mux(updating & hit, self.update.payload.data, self.fill.payload)),
        ]
        return m


class Buffet(StandaloneBuffer):
    """A buffet with its own memory of ``entries`` entries (one read, one write port; block RAM).

    Parameters and members are those of :class:`BuffetControl` without ``address_width``, ``base`` and the memory side.

    Timing
    ------
    ``latency`` cycles from a read to its answer; one read, and one fill or update, a cycle.
    """

    latency = BuffetControl.stages + SramBank.latency + 1  # read accepted to read_data, when the consumer keeps up

    def __init__(self, *, width: int, entries: int, queue_depth: int = 8) -> None:
        super().__init__(BuffetControl(width=width, entries=entries, queue_depth=queue_depth))
