"""Area of the weight-stationary PE beside the same PE without MINT's extension (MINT, section IV.A and figure 7b: about 10 %).

    python -m benchmarks.stationary --liberty /usr/share/qflow/tech/osu018/osu018_stdcells.lib
    python -m benchmarks.stationary --liberty LIBRARY --value fp32 --entries 128

The library is that of ``benchmarks.cells``. The PE without it keeps a column in Dense and takes A in Dense: same MACs, same bytes
of buffer, same output registers. Every distinct module is mapped once; nothing is optimised across modules.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from gen.yosys import ToolError
from rtl.arith import VALUES
from rtl.lib.block import Block
from rtl.lib.passed import passed
from rtl.lib.stream import StreamSkid
from rtl.pe.flagged_bus import check_vector
from rtl.pe.match_buffer import check_entries
from rtl.pe.vector_mac import VectorMac, operands
from rtl.pe.weight_stationary import WeightStationaryPe, row_sum
from rtl.types import COORDINATE_WIDTH, VALUE_WIDTH

from .builds import Areas
from .table_markers import PrintedTable, benchmark_parser

#: Parts of the PE: name in the table, modules.
PARTS = (
    ("vector MAC", "vector_mac"),
    ("buffer, comparators, encoders, reads", "match_buffer"),
    ("lanes of the bus", "bus_lanes"),
    ("output registers", "stream_skid"),
    ("column loader", "column_loader"),
    ("overbooking: Tailors control", "tailors_control"),
    ("overbooking: walk over bumped entries", "bumped_walk"),
)
OVERBOOKING = "(?:tailors_control|bumped_walk)"


def dense_cycle(vector: int) -> data.StructLayout:
    """A row id and up to ``vector`` data of the row; ``last``: A ends."""
    return data.StructLayout(
        {"last": 1, "row": COORDINATE_WIDTH, "present": vector, "data": data.ArrayLayout(VALUE_WIDTH, vector)}
    )


class DensePe(Block):
    """The PE without the extension: a column of B in Dense stays, A passes in Dense, V words of the buffer are read at once.

    Parameters
    ----------
    vector, entries, value
        As :class:`rtl.pe.weight_stationary.WeightStationaryPe`; ``entries`` is a multiple of ``vector``.

    Members
    -------
    weights : In(stream of ``{header, payload}``)
        A column: its number, then all entries.
    bus : In(stream of ``dense_cycle``), sums : Out(stream of ``row_sum``)
        Every cycle of a row but its last has ``vector`` data.

    Timing
    ------
    One cycle of the bus a cycle.
    """

    def __init__(self, *, vector: int, entries: int, value: str) -> None:
        check_vector(vector)
        check_entries(entries)
        if entries % vector:
            raise ValueError(f"Buffer entries must be a multiple of {vector}, not {entries!r}")
        self.vector = vector
        self.entries = entries
        self.value = value
        self._mac = VectorMac(vector=vector, value=value)
        super().__init__(
            {
                "weights": In(stream.Signature(data.StructLayout({"header": 1, "payload": VALUE_WIDTH}))),
                "bus": In(stream.Signature(dense_cycle(vector))),
                "sums": Out(stream.Signature(row_sum())),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"v": self.vector, "e": self.entries, "t": self.value}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.mac = mac = self._mac
        m.submodules.leaving = leaving = StreamSkid(shape=row_sum())
        connect(m, leaving.o, flipped(self.sums))
        column, place = Signal(COORDINATE_WIDTH), Signal(range(self.entries))
        kept = [Signal(VALUE_WIDTH, name=f"entry{n}", reset_less=True) for n in range(self.entries)]
        opened, ending = Signal(), Signal()
        word = self.weights.payload
        m.d.comb += self.weights.ready.eq(~opened)
        with m.If(self.weights.valid & ~opened):
            with m.If(word.header):
                m.d.sync += [column.eq(word.payload), place.eq(0)]
            with m.Else():
                m.d.sync += place.eq(place + 1)
                for n, entry in enumerate(kept):
                    with m.If(place == n):
                        m.d.sync += entry.eq(word.payload)

        cycle = self.bus.payload
        enters, ends = Signal(), Signal()
        row, goes_on = Signal(COORDINATE_WIDTH), Signal()
        lines = self.entries // self.vector
        line, next_line, taken_line = (Signal(range(max(2, lines)), name=name) for name in ("line", "next", "taken"))
        first = ~goes_on | (cycle.row != row)
        taken = Signal(dense_cycle(self.vector))
        valid, begins = Signal(), Signal()
        operand = Signal(operands(self.vector), name="multiplied")
        m.d.comb += [
            mac.advance.eq(leaving.i.ready | ~mac.o.valid),
            self.bus.ready.eq(mac.advance & ~ending & ~(self.weights.valid & ~opened)),
            enters.eq(self.bus.valid & self.bus.ready),
            ends.eq(leaving.i.valid & leaving.i.ready & leaving.i.payload.last),
            line.eq(Mux(first, 0, next_line)),
            mac.i.eq(operand),
            leaving.i.valid.eq(mac.o.valid),
            leaving.i.payload.row.eq(mac.o.coordinate),
            leaving.i.payload.column.eq(column),
            *passed(mac.o, leaving.i.payload, "value void last"),
        ]
        with m.If(enters):
            m.d.sync += [opened.eq(1), ending.eq(cycle.last), goes_on.eq(~cycle.last)]
            m.d.sync += [row.eq(cycle.row), next_line.eq(line + 1)]
        with m.Elif(ends):
            m.d.sync += [opened.eq(0), ending.eq(0)]
        with m.If(mac.advance):
            m.d.sync += [
                valid.eq(enters),
                taken.eq(cycle),
                taken_line.eq(line),
                begins.eq(first),
                operand.valid.eq(valid),
                operand.first.eq(begins),
                operand.last.eq(taken.last),
                operand.void.eq(~taken.present.any()),
                operand.row.eq(taken.row),
            ]
            for n in range(self.vector):
                lane = operand.lanes[n]
                words = Array(kept[n :: self.vector])
                m.d.sync += [lane.hit.eq(taken.present[n]), lane.a.eq(taken.data[n]), lane.b.eq(words[taken_line])]
        return m


def table(areas: Areas, vector: int, entries: int, value: str) -> str:
    """Areas of both PEs and of the extended one's parts, in Markdown."""
    extended = WeightStationaryPe(words=vector + 1, vector=vector, entries=entries, value=value)
    name, base = areas.add([extended, DensePe(vector=vector, entries=entries, value=value)])
    whole, plain = areas.whole(name), areas.whole(base)
    without = whole - areas.part(name, OVERBOOKING)
    lines = [f"| V = {vector}, {value}, {4 * entries} B | area | over the PE without |", "| --- | ---: | ---: |"]
    lines.append(f"| PE without the extension | {plain:,.0f} | |")
    lines.append(f"| PE with it, without overbooking | {without:,.0f} | {100 * (without / plain - 1):.1f} % |")
    lines.append(f"| PE with it | {whole:,.0f} | {100 * (whole / plain - 1):.1f} % |")
    for label, pattern in PARTS:
        area = areas.part(name, pattern)
        lines.append(f"| {label} | {area:,.0f} | {100 * area / plain:.1f} % of it |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--liberty", type=Path, required=True, metavar="FILE", help="the cell library")
    parser.add_argument("--vector", type=int, default=8, help="MACs of the PE")
    parser.add_argument("--entries", type=int, default=32, help="entries of its buffer, 4 bytes each")
    parser.add_argument("--value", choices=VALUES, default="int32")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    if not options.liberty.is_file():
        raise ToolError(f"There is no library {options.liberty}; Debian: apt-get install qflow-tech-osu018")
    printed.line(table(Areas(options.liberty), options.vector, options.entries, options.value))
    printed.write()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ToolError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
