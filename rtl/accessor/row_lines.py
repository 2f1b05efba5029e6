"""Puts the lines of rows in order, out of the chunks that they came in."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..lib.order import below
from ..lib.stream import StreamRegister, StreamSkid
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, line
from .chunk_peeker import peeked_line

__all__ = ["RowLines", "row_line", "scanned_row"]


def scanned_row() -> data.StructLayout:
    """A row whose segment is looked for from line ``line`` on; its last element lies before position ``end``."""
    return data.StructLayout({"line": POSITION_WIDTH, "end": POSITION_WIDTH, "empty": 1})


def row_line(lanes: int) -> data.StructLayout:
    """A line of a row as it was peeked at, which one it is (``at``), where its row ends, and whether the segment does here.

    ``keep``: lanes that hold the segment's elements. ``kept``, ``passes``: some lane does; some lane holds an element behind it.
    """
    fields = {
        "line": line(lanes),
        "inside": lanes,
        "keep": lanes,
        "above": lanes,
        "at": POSITION_WIDTH,
        "end": POSITION_WIDTH,
    }
    return data.StructLayout({**fields, "ends": 1, "kept": 1, "passes": 1})


class RowLines(Block):
    """Takes the lines of each row from its first chunk, its second chunk and those after it, to the line that ends its segment.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 2 to 64.

    Members
    -------
    low : In(COORDINATE_WIDTH + 1)
        As :class:`SegmentScanner`.
    rows : In(stream)
        Rows in order; an empty one has no lines.
    lines : In(stream).array(3)
        Lines of first, of second and of later chunks, each in the order of the rows.
    steps : Out(stream)
        Row after row, at least one for each; an empty row's has no nonzero in it. Straight from registers.
    idle : Out(1)
        No row inside.

    Timing
    ------
    Three cycles from a row to its first line, two from a line that is waited for; one line a cycle.
    """

    latency = 3

    def __init__(self, *, lanes: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        super().__init__(
            {
                "low": In(COORDINATE_WIDTH + 1),
                "rows": In(stream.Signature(scanned_row())),
                "lines": In(stream.Signature(peeked_line(lanes))).array(3),
                "steps": Out(stream.Signature(row_line(lanes))),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        # A line is chosen among RAMs in one cycle, compared with the range in the next.
        chosen_line = data.StructLayout(
            {"peeked": peeked_line(lanes), "at": POSITION_WIDTH, "end": POSITION_WIDTH, "empty": 1}
        )
        m.submodules.row = row = StreamRegister(shape=scanned_row())
        m.submodules.chosen = chosen = StreamRegister(shape=chosen_line)
        m.submodules.step = step = StreamSkid(shape=row_line(lanes))
        connect(m, flipped(self.rows), row.i)
        connect(m, step.o, flipped(self.steps))
        source = Signal(range(3))  # kind of chunk that the present row's lines come from
        fresh = Signal(init=1)  # the present row has not been looked at
        line_at = Signal(POSITION_WIDTH)
        here = Signal(POSITION_WIDTH)
        come = Signal(peeked_line(lanes))
        come_valid = Signal()
        ends = Signal()
        present = row.o.payload
        m.d.comb += [
            here.eq(Mux(fresh, present.line, line_at)),
            ends.eq(present.empty | come.ends),
            chosen.i.valid.eq(row.o.valid & (present.empty | come_valid)),
            chosen.i.payload.peeked.eq(come),
            chosen.i.payload.at.eq(here),
            chosen.i.payload.end.eq(present.end),
            chosen.i.payload.empty.eq(present.empty),
            row.o.ready.eq(chosen.i.ready & (present.empty | (come_valid & come.ends))),
            self.idle.eq(~row.o.valid & ~chosen.o.valid & ~step.o.valid),
        ]
        with m.Switch(source):
            for n, lines in enumerate(self.lines):
                with m.Case(n):
                    m.d.comb += [
                        come.eq(lines.payload),
                        come_valid.eq(lines.valid),
                        lines.ready.eq(chosen.i.ready & row.o.valid & ~present.empty),
                    ]
        with m.If(chosen.i.valid & chosen.i.ready):
            m.d.sync += [fresh.eq(ends), line_at.eq(here + 1)]
            with m.If(ends):
                m.d.sync += source.eq(0)
            with m.Elif(come.over):
                m.d.sync += source.eq(Mux(source == 0, 1, 2))

        found, out = chosen.o.payload, step.i.payload
        some = (~found.empty).replicate(lanes)
        reaches = Cat(~below(nonzero.coordinate, self.low) for nonzero in found.peeked.line)
        m.d.comb += [
            step.i.valid.eq(chosen.o.valid),
            chosen.o.ready.eq(step.i.ready),
            *(out[name].eq(found[name]) for name in ("at", "end")),
            out.line.eq(found.peeked.line),
            out.inside.eq(found.peeked.inside & some),
            out.keep.eq(found.peeked.inside & reaches & ~found.peeked.above & some),
            out.above.eq(found.peeked.above & some),
            out.kept.eq(out.keep.any()),
            out.passes.eq(found.peeked.above.any() & ~found.empty),
            out.ends.eq(found.empty | found.peeked.ends),
        ]
        return m
