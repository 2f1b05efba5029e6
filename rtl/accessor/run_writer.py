"""Run writer: puts the beats that memory answers with into runs of lines of the SRAM."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue
from ..types import POSITION_WIDTH, sram_write

__all__ = ["RunWriter", "line_run"]


def line_run(line_address_width: int) -> data.StructLayout:
    """``lines`` lines of the SRAM from ``line`` on; at least one."""
    return data.StructLayout({"line": line_address_width, "lines": line_address_width + 1})


class RunWriter(Block):
    """Writes beats to the lines of one run after the other as they come. One a cycle.

    Parameters
    ----------
    lanes, line_address_width : int
        64-bit words of a line, power of two; bits of a line address.
    pending : int
        Runs that may wait for their beats.

    Members
    -------
    runs : In(stream(line_run)), beats : In(stream), sram_write : Out(stream)
        A beat that is taken is offered ``latency`` cycle later.
    written : Out(1)
        Pulse: the last line of the oldest run is granted.

    Timing
    ------
    One cycle; one line a cycle.
    """

    latency = 1

    def __init__(self, *, lanes: int, line_address_width: int, pending: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, POSITION_WIDTH)
        self.pending = check_integer("Pending runs", pending, 1, 1 << 16)
        super().__init__(
            {
                "runs": In(stream.Signature(line_run(line_address_width))),
                "beats": In(stream.Signature(64 * lanes)),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))),
                "written": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.waiting = waiting = StreamQueue(shape=self.runs.payload.shape(), depth=self.pending)
        write_shape = data.StructLayout({"write": self.sram_write.payload.shape(), "last": 1})
        m.submodules.writes = writes = StreamQueue(shape=write_shape, depth=2)
        index = Signal(self.line_address_width + 1)
        run, write = waiting.o.payload, writes.i.payload
        ends = index + 1 == run.lines
        moved = Signal()
        m.d.comb += [
            waiting.i.valid.eq(self.runs.valid),
            waiting.i.payload.eq(self.runs.payload),
            self.runs.ready.eq(waiting.i.ready),
            moved.eq(self.beats.valid & self.beats.ready),
            self.beats.ready.eq(waiting.o.valid & writes.i.ready),
            waiting.o.ready.eq(moved & ends),
            writes.i.valid.eq(moved),
            write.write.address.eq(run.line + index),
            write.write.mask.eq(~0),
            write.write.line.eq(self.beats.payload),
            write.last.eq(ends),
            self.sram_write.valid.eq(writes.o.valid),
            self.sram_write.payload.eq(writes.o.payload.write),
            writes.o.ready.eq(self.sram_write.ready),
            self.written.eq(writes.o.valid & writes.o.ready & writes.o.payload.last),
        ]
        with m.If(moved):
            m.d.sync += index.eq(index + 1)
        with m.If(moved & ends):
            m.d.sync += index.eq(0)
        return m
