"""Keeps bursts off the bus that do not lie within the write window."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamRegister, StreamSkid
from ..storage import PAGE_BYTES
from .request_splitter import burst_request

__all__ = ["WindowGuard", "held_burst", "numbered_burst"]


def numbered_burst(*, id_width: int, line_address_width: int, burst_beats: int) -> data.StructLayout:
    """A burst and the number of the client whose it is."""
    burst = burst_request(line_address_width=line_address_width, burst_beats=burst_beats)
    return data.StructLayout({"id": id_width, "burst": burst})


def held_burst(*, id_width: int, line_address_width: int) -> data.StructLayout:
    """The first bus line of a burst that was held back, and its client."""
    return data.StructLayout({"id": id_width, "line": line_address_width})


class WindowGuard(Block):
    """Passes bursts on until one has a line outside the window. That one and all after it are dropped, until a reset.

    Their data still wait in their queue, so that none may follow.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 13 to 64.
    line_bytes : int
        Bytes of a bus beat, a power of two from 1 to 128.
    id_width : int
        Bits of a client's number, 1 to 16.
    burst_beats : int
        Longest burst, a power of two from 1 to 256.

    Members
    -------
    first_line, end_line : In
        The window's first bus line and the one after its last; ``end_line = 0`` is the end of the address space.
        Constant while any burst is inside.
    commands : In(stream)
        Bursts, each within a page. ``ready`` comes straight from a register.
    bursts : Out(stream)
        Those within the window; the payload straight from registers.
    dropped : Out(1)
        Pulse: a burst goes no further.
    closed : Out(1)
        One has been dropped, before this cycle.
    held_back : Out(stream)
        The first one that was dropped, once.

    Timing
    ------
    Two cycles; one burst a cycle.
    """

    latency = 2

    def __init__(self, *, address_width: int, line_bytes: int, id_width: int, burst_beats: int) -> None:
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.line_bytes = check_power_of_two("Bytes of a beat", line_bytes, 1, 128)
        self.id_width = check_integer("Identifier width", id_width, 1, 16)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        self.line_width = address_width - (line_bytes - 1).bit_length()
        burst = numbered_burst(id_width=id_width, line_address_width=self.line_width, burst_beats=burst_beats)
        burst_shape = held_burst(id_width=id_width, line_address_width=self.line_width)
        super().__init__(
            {
                "first_line": In(self.line_width),
                "end_line": In(self.line_width),
                "commands": In(stream.Signature(burst)),
                "bursts": Out(stream.Signature(burst)),
                "dropped": Out(1),
                "closed": Out(1),
                "held_back": Out(stream.Signature(burst_shape)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        in_page = min((PAGE_BYTES // self.line_bytes - 1).bit_length(), self.line_width)
        shape = self.commands.payload.shape()
        m.submodules.command = command = StreamSkid(
            shape=data.StructLayout({"command": shape, "last_line": self.line_width})
        )
        m.submodules.checked = checked = StreamRegister(shape=data.StructLayout({"command": shape, "outside": 1}))
        came = self.commands.payload.burst
        waiting = command.o.payload
        m.d.comb += [
            command.i.valid.eq(self.commands.valid),
            self.commands.ready.eq(command.i.ready),
            command.i.payload.command.eq(self.commands.payload),
            # It lies in one page, so its last line differs in the low bits only.
            command.i.payload.last_line.eq(Cat((came.line[:in_page] + came.beats - 1)[:in_page], came.line[in_page:])),
            checked.i.valid.eq(command.o.valid),
            command.o.ready.eq(checked.i.ready),
            checked.i.payload.command.eq(waiting.command),
            checked.i.payload.outside.eq(self._outside(waiting.command.burst.line, waiting.last_line)),
        ]
        present = checked.o.payload
        due = Signal()  # what was held back has not been taken yet
        m.d.comb += [
            self.dropped.eq(checked.o.valid & (present.outside | self.closed)),
            self.bursts.valid.eq(checked.o.valid & ~present.outside & ~self.closed),
            self.bursts.payload.eq(present.command),
            checked.o.ready.eq(self.bursts.ready | present.outside | self.closed),
            self.held_back.valid.eq(due),
        ]
        m.d.sync += due.eq(due & ~self.held_back.ready)
        with m.If(self.dropped & ~self.closed):
            m.d.sync += [
                self.closed.eq(1),
                due.eq(1),
                self.held_back.payload.line.eq(present.command.burst.line),
                self.held_back.payload.id.eq(present.command.id),
            ]
        return m

    def _outside(self, line: Value, last_line: Value) -> Value:
        """Whether a burst has a line outside the window."""
        return (line < self.first_line) | ((self.end_line != 0) & (last_line >= self.end_line))
