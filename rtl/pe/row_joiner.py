"""Makes fibers of C out of what the weight-stationary array hands out, and of what memory has of them."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.onehot import lowest_set, onehot_select
from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.stream import StreamRegister
from ..types import COORDINATE_WIDTH, VALUE_WIDTH, fiber_nonzero, fiber_word
from .combiner import PairCombiner
from .common import merged_nonzero
from .packer import FiberPacker
from .weight_stationary_array import array_row

__all__ = ["RowJoiner"]

# Words that wait for accessor C, and rows whose last word has not left.
QUEUE_LINES = 4
ROWS = 255


class RowJoiner(Block):
    """Every row of a tile leaves as one fiber: the sums of its columns added to the partial row of earlier k steps.

    Where both have a column, its partial sum is the left operand. Rows without data in the tile leave too, with their partial
    row alone. While C is assembled the pieces of a row become one fiber, unchanged.

    Parameters
    ----------
    pes : int
        Columns of a row of the array.
    lanes : int
        Nonzeros in a word, power of two.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    start : In(1), count : In(COORDINATE_WIDTH), adds : In(1)
        Pulse while not ``open``: a tile of ``count`` rows begins; with ``adds`` each of them has a partial row. Constant while
        ``open``.
    rows : In(stream of ``array_row``)
        Rows of the tile with data, by their numbers in it; the last one with ``last``.
    partials : In(stream of ``fiber_nonzero``)
        With ``adds``: a fiber for each row.
    assembling : In(1), pieces : In(stream of ``fiber_nonzero``)
        Pieces of rows, ``closes`` on the end of a row's last one. ``assembling`` changes while nothing is under way.
    fiber : Out(stream of ``fiber_word``)
    open : Out(1)
        The tile has rows that are not complete.
    idle : Out(1)
        No row is under way.
    event_stall : Out(1)
        A row of the array waits.

    Timing
    ------
    One nonzero a cycle, at least one cycle a row; it leaves ``latency`` cycles after it came, if the next one has come.
    """

    def __init__(self, *, pes: int, lanes: int, value: str) -> None:
        self.pes = check_integer("PEs", pes, 1, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.value = value
        self._add = PairCombiner(value=value)
        # The register of rows, the nonzero whose successor is waited for, the sum, the packer's queue.
        self.latency = 3 + self._add.latency
        super().__init__(
            {
                "start": In(1),
                "count": In(COORDINATE_WIDTH),
                "adds": In(1),
                "rows": In(stream.Signature(array_row(pes))),
                "partials": In(stream.Signature(fiber_nonzero())),
                "assembling": In(1),
                "pieces": In(stream.Signature(fiber_nonzero())),
                "fiber": Out(stream.Signature(fiber_word(lanes))),
                "open": Out(1),
                "idle": Out(1),
                "event_stall": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        item = data.StructLayout({"coordinate": COORDINATE_WIDTH, "value": VALUE_WIDTH, "present": 1, "closes": 1})
        m.submodules.merged = merged = StreamRegister(shape=item)
        m.submodules.add = add = self._add
        m.submodules.packer = packer = FiberPacker(lanes=self.lanes, queue_lines=QUEUE_LINES)
        connect(m, packer.fiber, flipped(self.fiber))
        under_way = Signal(range(ROWS + 1))
        free = Signal()
        source = merged.i
        closes = source.valid & source.ready & source.payload.closes
        leaves = self.fiber.valid & self.fiber.ready & self.fiber.payload.last
        m.d.sync += under_way.eq(under_way + closes - leaves)
        m.d.comb += [
            free.eq(under_way != ROWS),
            self.idle.eq(~self.open & (under_way == 0)),
            self.event_stall.eq(self.rows.valid & ~self.rows.ready),
            add.advance.eq(packer.advance),
            packer.nonzero.eq(add.o),
        ]
        with m.If(self.assembling):
            m.d.comb += [
                source.valid.eq(self.pieces.valid & free),
                self.pieces.ready.eq(source.ready & free),
                *passed(self.pieces.payload, source.payload, "coordinate value present closes"),
            ]
        with m.Else():
            self._merge(m, source, free)
        _close(m, merged.o, add)
        return m

    def _merge(self, m: Module, source: Any, free: Signal) -> None:
        """Columns of a row in order, from the array and from its partial row."""
        head, partial, out = self.rows.payload, self.partials.payload, source.payload
        number = Signal(COORDINATE_WIDTH)  # of the row
        ended = Signal()  # the array has handed out its last row
        used = Signal(self.pes)  # sums of the array's row that have gone
        over = Signal()  # so has the partial row
        met = Signal(self.pes)
        mine, vain = signals("mine vain")
        sums, lowest = signals("sums lowest", self.pes)
        column = onehot_select(lowest, [one.column for one in head.sums])
        value = onehot_select(lowest, [one.value for one in head.sums])
        adds, takes_partial, goes, complete = signals("adds takes_partial goes complete")
        m.d.comb += [
            met.eq(Cat(~one.void for one in head.sums)),
            vain.eq(self.rows.valid & (met == 0)),
            mine.eq(self.rows.valid & (head.row == number)),
            sums.eq(met & ~used & mine.replicate(self.pes)),
            lowest.eq(lowest_set(sums)),
            adds.eq(self.adds & ~over),
            takes_partial.eq(adds & partial.present & ((sums == 0) | (partial.coordinate <= column))),
            complete.eq(number == self.count),
            # It is known what the array has for this row, and what the partial row goes on with.
            source.valid.eq(
                self.open & ~complete & free & (ended | self.rows.valid & ~vain) & (~adds | self.partials.valid)
            ),
            goes.eq(source.valid & source.ready),
            out.present.eq(takes_partial | (sums != 0)),
            out.coordinate.eq(Mux(takes_partial, partial.coordinate, column)),
            out.value.eq(Mux(takes_partial, partial.value, value)),
            out.closes.eq(
                Mux(takes_partial, partial.last & (sums == 0), (sums == lowest) & (~adds | ~partial.present))
            ),
            self.partials.ready.eq(goes & adds & (takes_partial | ~partial.present)),
            # Where nothing met, the row has no more than its partial row.
            self.rows.ready.eq(self.open & vain | goes & out.closes & mine),
        ]
        with m.If(goes):
            with m.If(self.partials.ready & partial.last):
                m.d.sync += over.eq(1)
            with m.If(~takes_partial):
                m.d.sync += used.eq(used | lowest)
            with m.If(out.closes):
                m.d.sync += [over.eq(0), used.eq(0), number.eq(number + 1)]
        with m.If(self.rows.valid & self.rows.ready & head.last):
            m.d.sync += ended.eq(1)
        with m.If(complete & ended):
            m.d.sync += self.open.eq(0)
        with m.If(self.start):
            m.d.sync += [self.open.eq(1), number.eq(0), ended.eq(0)]


def _close(m: Module, merged: Any, add: PairCombiner) -> None:
    """A nonzero goes on when the next one has come or the row has ended: then it is known whether it is the last one."""
    item = merged.payload
    waits = Signal(merged_nonzero())
    leaves = Signal()
    m.d.comb += [
        leaves.eq(waits.valid & (waits.last | merged.valid & item.present)),
        merged.ready.eq(add.advance),
        add.i.eq(waits),
        add.i.valid.eq(leaves),
    ]
    with m.If(add.advance):
        with m.If(leaves):
            m.d.sync += waits.valid.eq(0)
        with m.If(merged.valid & (item.present | item.closes & (leaves | ~waits.valid))):
            m.d.sync += [
                waits.valid.eq(1),
                *passed(item, waits, "coordinate value"),
                waits.last.eq(item.closes),
                waits.void.eq(~item.present),
            ]
        with m.Elif(merged.valid & item.closes):
            m.d.sync += waits.last.eq(1)
