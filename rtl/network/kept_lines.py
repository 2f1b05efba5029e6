"""Reads runs of lines that stay on chip, out of a ring of the banked SRAM."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue
from ..types import line, sram_response

__all__ = ["KeptLines", "kept_run"]

# Runs that may wait, and lines that are on their way or wait to be taken.
RUNS = 8
LINES = 16


def kept_run(line_address_width: int, most: int) -> data.StructLayout:
    """``count`` lines of a ring, 1 to ``most``, from ``line`` on, which counts from the ring's first and may exceed it once."""
    return data.StructLayout({"line": line_address_width + 1, "count": range(most + 1)})


class KeptLines(Block):
    """Reads one run of lines after another; behind the ring's last line comes its first one.

    Parameters
    ----------
    lanes : int
        64-bit elements in a line, power of two.
    line_address_width : int
        Bits of an SRAM line address.
    most : int
        Lines of a run at most.
    runs : int
        Runs that may wait.
    pending : int
        Lines that may be on their way or wait to be taken.

    Members
    -------
    base : In(line_address_width), lines : In(line_address_width + 1)
        The ring. Constant while runs are read.
    requests : In(stream(kept_run))
        Runs.
    sram_request, sram_response
        A read port of the banked SRAM.
    line : Out(stream(line))
        Their lines, in order.

    Timing
    ------
    A line a cycle, one cycle more for each run; the first line two cycles after its run, and the SRAM's own.
    """

    def __init__(
        self, *, lanes: int, line_address_width: int, most: int, runs: int = RUNS, pending: int = LINES
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 30)
        self.most = check_integer("Lines of a run", most, 1, 1 << 10)
        self.runs = check_integer("Runs", runs, 1, 1 << 10)
        self.pending = check_integer("Pending lines", pending, 1, 1 << 10)
        super().__init__(
            {
                "base": In(line_address_width),
                "lines": In(line_address_width + 1),
                "requests": In(stream.Signature(kept_run(line_address_width, most))),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "line": Out(stream.Signature(line(lanes))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.runs = runs = StreamQueue(shape=self.requests.payload.shape(), depth=self.runs)
        m.submodules.came = came = StreamQueue(shape=line(self.lanes), depth=self.pending)
        connect(m, flipped(self.requests), runs.i)
        connect(m, came.o, flipped(self.line))
        run = runs.o.payload
        at = Signal(self.line_address_width + 1)  # in the ring
        left = Signal(range(self.most + 1))
        owed = Signal(range(self.pending + 1))  # lines that were asked for and not taken
        asks = self.sram_request.valid & self.sram_request.ready
        m.d.comb += [
            self.sram_request.valid.eq((left != 0) & (owed != self.pending)),
            self.sram_request.payload.eq(self.base + at),
            runs.o.ready.eq(left == 0),
            came.i.valid.eq(self.sram_response.valid),
            came.i.payload.eq(self.sram_response.line),
        ]
        m.d.sync += owed.eq(owed + asks - (self.line.valid & self.line.ready))
        with m.If(asks):
            m.d.sync += [left.eq(left - 1), at.eq(Mux(at + 1 == self.lines, 0, at + 1))]
        with m.If(runs.o.valid & runs.o.ready):
            m.d.sync += [left.eq(run.count), at.eq(Mux(run.line < self.lines, run.line, run.line - self.lines))]
        return m
